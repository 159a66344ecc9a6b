"""A fork that carries a function out and hands its value back, or is killed: the parent imports everything and runs no thread."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import pkgutil
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Ended:
    """How a fork ended: its ``value``, or the text of its ``error``, or the ``signal`` that killed it; ``hung`` if we had to."""

    value: Any = None
    error: str = ""
    signal: int = 0
    hung: bool = False

    @property
    def verdict(self) -> str | None:
        """What is wrong with the end itself; None if there is a value."""
        if self.hung:
            return "hang"
        return "abort" if self.signal else "untyped error" if self.error else None


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Import what forks need, once, so that each starts with it."""
    for room in ("sparkexpr", "paimon_base", "fileindex", "manifest", "lsm", "pyspark_paimon"):
        package = importlib.import_module(room)
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            if ".spark" not in found.name and not found.name.endswith(("__main__", ".demo")) and ".cli" not in found.name:
                importlib.import_module(found.name)
    importlib.import_module("pyarrow.parquet")
    importlib.import_module("pyarrow.compute")
    gc.freeze()  # a fork copies no page for a collection of what it never made


def forked(function: Callable[[], Any], *, kill_after: float | None = None, seconds: float = PATIENCE_SECONDS) -> Ended:
    """Carry ``function`` out in a fork; ``kill_after`` so many seconds it is killed."""
    warm_up()
    with tempfile.TemporaryFile() as answer:
        pid = os.fork()
        if pid == 0:
            _child(function, answer.fileno())
        hung = False
        watched = os.pidfd_open(pid)
        try:
            deadline = time.monotonic() + (seconds if kill_after is None else kill_after)
            while not select.select([watched], [], [], max(0.0, deadline - time.monotonic()))[0]:
                if time.monotonic() >= deadline:
                    hung = kill_after is None
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    break
            _, status = os.waitpid(pid, 0)
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise
        finally:
            os.close(watched)
        if os.WIFSIGNALED(status):
            return Ended(signal=os.WTERMSIG(status), hung=hung)
        answer.seek(0)
        good, value = pickle.loads(answer.read())
        return Ended(value=value) if good else Ended(error=value)


def _child(function: Callable[[], Any], answer: int) -> None:
    write, finish = os.write, os._exit  # a disk that fails may stand before them soon
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    os.dup2(quiet, 1)
    try:
        content = pickle.dumps((True, function()))
    except BaseException:  # noqa: BLE001 -- whatever it is, the parent tells it
        content = pickle.dumps((False, traceback.format_exc()))
    view = memoryview(content)
    while view:
        view = view[write(answer, view) :]
    finish(0)
