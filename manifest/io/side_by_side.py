"""Many jobs at a storage: as many under way at once as that is worth there, one after the other with local files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from manifest.io.file_io import FileIO


def side_by_side(file_io: FileIO, jobs: Sequence[Callable[[], Any]]) -> Iterator[Any]:
    """What each job gives, in order, or the first error of one; what is not taken may not be done. See ``FileIO.together``."""
    for start in range(0, len(jobs), file_io.lanes):
        yield from file_io.together(*jobs[start : start + file_io.lanes])


__all__ = ["side_by_side"]
