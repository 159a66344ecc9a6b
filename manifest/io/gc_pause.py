"""Python's cyclic garbage collector paused while many objects are made."""

from __future__ import annotations

import gc
import os
import threading
from types import TracebackType


class _Pause:
    """How many threads are making objects now; the first puts the collector off, the last puts it on again, if it was on."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._resume)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._makers = 0
        self._was_on = False

    def _resume(self) -> None:
        """A child of a fork has one thread: what others were making stays behind with them."""
        if self._makers and self._was_on:
            gc.enable()
        self._forget()

    def __enter__(self) -> None:
        with self._lock:
            if not self._makers:
                self._was_on = gc.isenabled()
                gc.disable()
            self._makers += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            if self._makers == 1 and self._was_on:
                gc.enable()
            self._makers = max(0, self._makers - 1)


_PAUSE = _Pause()


def gc_paused() -> _Pause:
    """Put off the search for cycles while objects are made that have none.

    Thousands of new objects make the collector look at everything that the process holds: as long as half of a plan takes. Threads that
    make other objects meanwhile find theirs collected a little later. It is on again once the last of several threads is done; where
    it is off, it stays off.

    >>> with gc_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    return _PAUSE


__all__ = ["gc_paused"]
