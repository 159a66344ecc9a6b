"""Marks of running write jobs on a driver.

A question about the outcome of a job waits for the end of the job.
For a client, an operation ends when it is cancelled or the connection is lost.
On the server, tasks may continue, and a commit hook always runs to its end.
Before that, the answer "not committed" could soon be wrong.

So a job leaves a mark when its writer is created. Its commit or abort hook removes the mark; Spark calls one of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from pyspark_paimon.spark.driver.answers import answer_file

PATIENCE_SECONDS = 60.0
"""Seconds that a question waits for a running job. Then the client reports that the job may still run."""
_LOOK_SECONDS = 0.02
T = TypeVar("T")


def mark_started(name: str) -> None:
    """Mark the job ``name`` as running.

    The mark is valid until ``mark_ended``, or until the parent of this process ends.

    >>> mark_started("a nightly job"), runs("a nightly job"), mark_ended("a nightly job"), runs("a nightly job")
    (None, True, None, False)
    """
    mark = answer_file(name, "job")
    mark.unlink(missing_ok=True)
    mark.write_text(str(os.getppid()))  # Spark's process, which starts the processes of the hooks


def mark_ended(name: str) -> None:
    """Remove the mark of a job."""
    answer_file(name, "job").unlink(missing_ok=True)


def runs(name: str) -> bool:
    """Return whether the job is running."""
    try:
        os.kill(int(answer_file(name, "job").read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):  # no mark, a partial mark, or the mark of a dead process
        return False
    return True


def after_its_end(name: str, look: Callable[[], T | None]) -> T | None:
    """Wait for a job until ``look`` returns a result.

    Returns None if the job has ended without result, or still runs after ``PATIENCE_SECONDS``.

    >>> after_its_end("a nightly job", lambda: None) is None
    True
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        under_way = runs(name)  # before look(): a job that ends between both calls must not be missed
        found = look()
        if found is not None or not under_way or time.monotonic() > until:
            return found
        _wait_for_change(name)


def _wait_for_change(name: str) -> None:
    """Wait until the job ends, for about one second."""
    # The commit may be visible long before its hook ends.
    for _ in range(round(1 / _LOOK_SECONDS)):
        time.sleep(_LOOK_SECONDS)
        if not runs(name):
            return


__all__ = ["after_its_end", "mark_ended", "mark_started", "runs"]
