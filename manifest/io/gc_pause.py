"""Making many objects without Python's search for cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Put off the search for cycles while objects are made that have none.

    Thousands of new objects make the collector look at everything that the process holds: as long as half of a plan takes. Threads that
    make other objects meanwhile find theirs collected a little later. Where the collector is off, it stays off.

    >>> with gc_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


__all__ = ["gc_paused"]
