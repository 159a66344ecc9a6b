"""Which commits a driver is making right now, so that whoever asks for the outcome of one waits for its end.

A cancelled operation ends for the client at once, but a commit hook that has begun runs to its end: asked meanwhile, the table
would say "not there", which is about to be wrong. The mark is a lock on a file, which the system takes away if the process dies.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from pyspark_paimon.spark_answers import answer_file

PATIENCE_SECONDS = 60.0
"""How long a question waits for what runs; a client that gets no answer then says that it does not know."""
_LOOK_SECONDS = 0.02
T = TypeVar("T")


@contextmanager
def running(name: str) -> Iterator[None]:
    """Mark what ``name`` stands for as running in the block; several processes may do so at a time.

    >>> with running("a nightly commit"):
    ...     ended("a nightly commit", within=0)
    False
    >>> ended("a nightly commit", within=0)
    True
    """
    with answer_file(name, "running").open("wb") as file:  # swept with old answers: another process may hold it too
        with suppress(OSError):  # a disk without locks: nobody waits
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


def ended(name: str, *, within: float) -> bool:
    """Whether ``name`` is not running, at the latest ``within`` so many seconds."""
    until = time.monotonic() + within
    while _is_running(name):
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def after_its_end(name: str, look: Callable[[], T | None]) -> T | None:
    """What ``look`` finds of ``name``; if that runs and there is nothing to find yet, what it finds in the end.

    >>> after_its_end("a nightly commit", lambda: None) is None
    True
    """
    runs = not ended(name, within=0)  # first: what ends after the look would be missed
    found = look()
    if found is None and runs:
        ended(name, within=PATIENCE_SECONDS)
        found = look()
    return found


def _is_running(name: str) -> bool:
    try:
        with answer_file(name, "running").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no such file, or a disk without locks
        return False
    return False


__all__ = ["after_its_end", "ended", "running"]
