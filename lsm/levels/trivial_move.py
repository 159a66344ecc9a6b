"""A base on level 0 that moves to the deepest level as it is, so that small newer runs need not be merged into it.

Universal compaction picks the newest runs, and its output may not go to level 0. Where all older rows lie on level 0, too (a
table loaded with ``write-only``, then compacted by its writers), such a pick swallows them, however large they are. Once the
base lies on the deepest level, Paimon's own rule for sizes leaves it alone. Moving it costs a line of metadata, and what
comes of it is a merge tree as Paimon's: deeper levels are older, and each level is one sorted run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsm.levels.sorted_runs import KeyOf, LevelRun, SortedRun, interval_partition
from lsm.levels.universal import CompactUnit
from manifest.entry.data_file import DataFileMeta

Pick = Callable[[Sequence[LevelRun]], CompactUnit | None]


def trivial_move(runs: Sequence[LevelRun], max_level: int, key_of: KeyOf, pick: Pick, min_file_size: int) -> SortedRun | None:
    """The files that had better move to ``max_level`` before ``pick`` is followed; None if it may be followed as it is.

    They are the oldest of a bucket that has files on level 0 only, as many as are one sorted run and older than all others,
    with at most one below ``min_file_size`` among them: small files are there to be merged. They move if the pick takes one
    of them, but would leave them alone on ``max_level``.

    Args:
        runs: All runs of the bucket, newest first (``Levels.runs``).
        max_level: The bucket's deepest level.
        key_of: Makes serialised keys comparable.
        pick: What the strategy makes of runs; it must not remember that it was asked.
        min_file_size: Bytes from which on a compaction moves a file that overlaps nothing.
    """
    picked = pick(runs) if runs and runs[-1].level == 0 else None
    if picked is None:
        return None
    taken = {file.file_name for file in picked.files}
    files = [file for run in runs for file in run.run.files]
    for first in range(len(files) - _most_files(files, min_file_size), len(files)):
        newer, base = files[:first], files[first:]
        if _is_run_below(base, newer, key_of) and not taken.isdisjoint(file.file_name for file in base):
            moved = SortedRun(tuple(sorted(base, key=lambda file: key_of(file.min_key))))
            then = pick([*runs[:first], LevelRun(max_level, moved)])
            if then is None or not then.full:
                return moved
    return None


def _most_files(files: Sequence[DataFileMeta], min_file_size: int) -> int:
    """How many of the oldest files there are up to the second small one."""
    small = [at for at, file in enumerate(reversed(files)) if file.file_size < min_file_size]
    return small[1] if len(small) > 1 else len(files)


def _is_run_below(files: Sequence[DataFileMeta], newer: Sequence[DataFileMeta], key_of: KeyOf) -> bool:
    """Whether no key is in two of the files, and each of their rows is older than all that is newer."""
    if newer and max(file.max_sequence_number for file in files) >= min(file.min_sequence_number for file in newer):
        return False
    return all(len(section) == 1 for section in interval_partition(files, key_of))


__all__ = ["Pick", "trivial_move"]
