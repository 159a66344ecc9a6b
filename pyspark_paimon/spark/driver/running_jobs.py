"""Which write jobs a driver has under way, so that whoever asks for the outcome of one waits for its end.

For a client an operation ends when it is cancelled or the connection is lost; on the server tasks may go on, and a commit hook
runs to its end whatever happens. Asked meanwhile, the table would say "not there", which is about to be wrong. So a job leaves a
mark when its writer is made, and takes it away when its commit or abort hook has run, of which Spark calls one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from pyspark_paimon.spark.driver.answers import answer_file

PATIENCE_SECONDS = 60.0
"""How long a question waits for what runs; a client that gets no answer then says that it does not know."""
_LOOK_SECONDS = 0.02
T = TypeVar("T")


def mark_started(name: str) -> None:
    """Note that the job ``name`` is under way, until ``mark_ended``, or as long as the process lives that started this one.

    >>> mark_started("a nightly job"), runs("a nightly job"), mark_ended("a nightly job"), runs("a nightly job")
    (None, True, None, False)
    """
    mark = answer_file(name, "job")
    mark.unlink(missing_ok=True)
    mark.write_text(str(os.getppid()))  # Spark's, which makes the hooks' processes


def mark_ended(name: str) -> None:
    """Note that the job is over."""
    answer_file(name, "job").unlink(missing_ok=True)


def runs(name: str) -> bool:
    """Whether the job is under way."""
    try:
        os.kill(int(answer_file(name, "job").read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):  # no mark, half a mark, or that of a process that is gone
        return False
    return True


def after_its_end(name: str, look: Callable[[], T | None]) -> T | None:
    """What ``look`` finds of the job; if that is under way and there is nothing to find yet, what it finds in the end.

    >>> after_its_end("a nightly job", lambda: None) is None
    True
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        under_way = runs(name)  # first: what ends after the look would be missed
        found = look()
        if found is not None or not under_way or time.monotonic() > until:
            return found
        _wait_for_change(name)


def _wait_for_change(name: str) -> None:
    """Until the job is over, or for a second: its commit may be visible long before its hook has ended."""
    for _ in range(round(1 / _LOOK_SECONDS)):
        time.sleep(_LOOK_SECONDS)
        if not runs(name):
            return


__all__ = ["after_its_end", "mark_ended", "mark_started", "runs"]
