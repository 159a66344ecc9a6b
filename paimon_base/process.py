"""Changes to the process: garbage collector, forks, threads, environment.

Importing the package only registers hooks that run in forked children.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

_OLDEST = 2


def run_after_fork(hook: Callable[[], None]) -> None:
    """Run ``hook`` in every child that forks from this process."""
    os.register_at_fork(after_in_child=hook)


def in_this_process(call: Callable[..., object]) -> Callable[..., None]:
    """Return ``call``, which does nothing in a forked child.

    For cleanups: a child inherits them, and its end must not remove what its parent uses.
    """
    owner = os.getpid()

    def run(*arguments: object, **named: object) -> None:
        if os.getpid() == owner:
            call(*arguments, **named)

    return run


class _Pause:
    """Count of threads that need the collector off.

    The last one restores it.
    """

    def __init__(self) -> None:
        self._reset()
        # The other threads do not exist in a child: none would switch the collector on again.
        run_after_fork(self._resume)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
        self._was_on = False

    def _resume(self) -> None:
        if self._threads and self._was_on:
            gc.enable()
        self._reset()

    def __enter__(self) -> None:
        with self._lock:
            if not self._threads:
                self._was_on = gc.isenabled()
                # Thousands of new objects start full collections, which visit everything that the process holds: without the pause,
                # 30,000 file entries took 1.3 to 1.5 times as long in a process with 400,000 other objects.
                gc.disable()
            self._threads += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            if self._threads == 1 and self._was_on:
                gc.enable()
            self._threads = max(0, self._threads - 1)


_PAUSE = _Pause()


def gc_paused() -> _Pause:
    """Pause the cyclic garbage collector while creating objects without cycles.

    Other threads' cycles are collected later. The collector stays off if it was off before.

    >>> with gc_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    return _PAUSE


def freeze_heap() -> None:
    """Exclude all present objects from garbage collection, permanently.

    For a process that only forks workers.
    """
    gc.collect()
    # A collection writes to every object that it visits: the pages would not stay shared with the children.
    gc.freeze()


_DAEMONS = frozenset({"pyspark.daemon", "pyspark_paimon.spark.daemon"})
_WORKERS = _DAEMONS | {"pyspark.worker"}


class _Freezer:
    """Callback of the garbage collector that freezes what full collections leave.

    ``min_objects``: objects that are not worth a freeze. ``max_objects``: objects frozen at least before a collection visits all objects again.
    """

    def __init__(self, min_objects: int = 5_000, max_objects: int = 100_000) -> None:
        self._min_objects, self._max_objects = min_objects, max_objects
        self._added = 0
        self._thaws = False

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        if phase != "stop" or info["generation"] != _OLDEST:
            return
        left = len(gc.get_objects(generation=_OLDEST))
        if self._thaws:  # this collection visited all objects
            self._thaws, self._added, self._max_objects = False, 0, max(self._max_objects, left)
        elif left < self._min_objects:
            return
        else:
            self._added += left
        # The collection has just removed all cyclic garbage, so that none is frozen.
        gc.freeze()
        # Frozen objects may become cyclic garbage later. It stays until as many objects are frozen as there were.
        if self._added > self._max_objects:
            gc.unfreeze()
            self._thaws = True


def freeze_survivors() -> None:
    """Freeze the objects that full collections of this process and its forks leave.

    For Spark's Python workers: they collect garbage after each task or question. Each collection would visit all modules that were
    loaded and all metadata that is held, for 40 ms or more.
    """
    if not any(isinstance(each, _Freezer) for each in gc.callbacks):
        gc.callbacks.append(_Freezer())


def is_spark_worker() -> bool:
    """Return whether this process is a Python worker of Spark, or the daemon that forks them."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name in _WORKERS


def freeze_survivors_of_worker() -> None:
    """Call ``freeze_survivors`` if a daemon of Spark has forked this process."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name in _DAEMONS:
        freeze_survivors()


_POLARS_LOST_THREADS = threading.Event()


def _record_polars() -> None:
    if "polars" in sys.modules:
        _POLARS_LOST_THREADS.set()


# A child has polars without its thread pool: a query would wait forever.
run_after_fork(_record_polars)


def can_use_polars() -> bool:
    """Return whether the threads of polars exist.

    They do not in a child that forked after polars was loaded.
    """
    return not _POLARS_LOST_THREADS.is_set()


def limit_threads(count: int) -> None:
    """Limit the threads of Arrow and polars to ``count``."""
    import pyarrow as pa  # noqa: PLC0415  # loads NumPy, whose threads the caller may want to limit first

    # Both use all processors of the machine by default, but a Spark task owns only some.
    pa.set_cpu_count(count)
    # polars reads it once, when it is loaded.
    set_environment("POLARS_MAX_THREADS", str(count))


def ignore_pandas_notice() -> None:
    """Ignore PySpark's warning about new versions of pandas.

    PySpark raises it once for each of its modules that uses pandas. Ours work with the versions that the package allows.
    """
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)


def set_environment(name: str, value: str) -> None:
    """Set an environment variable permanently.

    It applies to this process and its children.
    """
    os.environ[name] = value


def replace_environment(variables: Mapping[str, str]) -> None:
    """Replace all environment variables, for a fork that continues as another process."""
    os.environ.clear()
    os.environ.update(variables)


class _NoPandas:
    """Finder of modules that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004  # signature of a finder
        if name == "pandas":
            raise ModuleNotFoundError("this process does not use pandas", name=name)


def hide_pandas() -> None:
    """Keep pandas out of this process: an import of it fails from now on.

    For programs that never use it. Does nothing if pandas is loaded.
    """
    # pyarrow imports an installed pandas to convert the first list, which takes 0.4 s.
    sys.meta_path.insert(0, _NoPandas)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside the block.

    >>> with environment({"TZ": "UTC"}):
    ...     os.environ["TZ"]
    'UTC'
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
