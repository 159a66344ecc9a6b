"""Parallel execution of storage jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from manifest.io.file_io import FileIO


def run_parallel(file_io: FileIO, jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
    """Yield the result of each job in order.

    Far storage runs ``FileIO.lanes`` jobs at once, local files one after the other. Raises the first error. Jobs after the last requested
    result may not run.
    """
    for start in range(0, len(jobs), file_io.lanes):
        yield from file_io.together(*jobs[start : start + file_io.lanes])


__all__ = ["run_parallel"]
