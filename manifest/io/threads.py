"""Thread pools that work without new threads.

If the process cannot start a thread, running threads do the work, or the caller does it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from manifest.io.errors import OutOfThreads
from manifest.io.file_io import FileIO

_P = ParamSpec("_P")
_T = TypeVar("_T")
_R = TypeVar("_R")


class WorkerPool(ThreadPoolExecutor):
    """Thread pool that copes with too few threads.

    Without any thread, it runs work in the caller's thread.
    """

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Run the work in a thread, else in the caller's."""
        try:
            return super().submit(fn, *args, **kwargs)
        except OutOfThreads:
            future: Future[_T] = Future()
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 -- the future raises it, as for a thread
                future.set_exception(error)
            return future

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError as error:
            if not self._threads:
                with suppress(queue.Empty):
                    self._work_queue.get_nowait()  # submit() runs it: no thread may run it later
                raise OutOfThreads from error


def map_in_threads(work: Callable[[_T], _R], items: Sequence[_T], threads: int) -> list[_R]:
    """Return ``work`` of every item, in order.

    The first error is raised after running calls have ended. Other calls are cancelled.

    >>> map_in_threads(len, ["a", "bb"], threads=2)
    [1, 2]
    """
    if threads <= 1 or len(items) <= 1:
        return list(map(work, items))
    with WorkerPool(min(threads, len(items)), "paimon-work") as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def start_some(threads: Sequence[threading.Thread]) -> list[threading.Thread]:
    """Start threads while possible and return the started ones."""
    started: list[threading.Thread] = []
    for thread in threads:
        try:
            thread.start()
        except RuntimeError:
            break
        started.append(thread)
    return started


def start_one(thread: threading.Thread) -> None:
    """Start a thread. Raises ``OutOfThreads``."""
    if not start_some([thread]):
        raise OutOfThreads


def run_parallel(file_io: FileIO, jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
    """Yield the result of each job in order.

    Far storage runs ``FileIO.max_concurrency`` jobs at once, local files one after the other. Raises the first error. Jobs after the last requested
    result may not run.
    """
    for start in range(0, len(jobs), file_io.max_concurrency):
        yield from file_io.run_parallel(*jobs[start : start + file_io.max_concurrency])
