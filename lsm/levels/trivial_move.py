"""Trivial move of a large base from level 0.

Universal compaction picks the newest runs, and its output may not go to level 0. A table loaded with ``write-only`` has all older
rows on level 0 too. Then a pick includes them, however large they are. Once the base is on the deepest level, Paimon's size rules
leave it alone. The move only changes metadata. The result is a valid merge tree: deeper levels are older, and each level is one
sorted run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsm.levels.sorted_runs import KeyOf, LevelRun, SortedRun, interval_partition
from lsm.levels.universal import CompactUnit
from manifest.entry.data_file import DataFileMeta

Pick = Callable[[Sequence[LevelRun]], CompactUnit | None]


def trivial_move(runs: Sequence[LevelRun], max_level: int, key_of: KeyOf, pick: Pick, min_file_size: int) -> SortedRun | None:
    """Return the files to move to ``max_level`` before compacting.

    None: compact the pick unchanged. The bucket must have files on level 0 only. The moved files are the oldest ones, form one sorted run
    and are older than all others. At most one may be below ``min_file_size``, because small files should be merged.
    They move if the pick contains one of them, but would not contain them on ``max_level``.

    Args:
        runs: All runs of the bucket, newest first (``Levels.runs``).
        max_level: Deepest level of the bucket.
        key_of: Makes serialised keys comparable.
        pick: Strategy. It must not keep state between calls.
        min_file_size: Size in bytes from which a compaction moves a file without overlaps.
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
    """Count the oldest files before the second small one."""
    small = [at for at, file in enumerate(reversed(files)) if file.file_size < min_file_size]
    return small[1] if len(small) > 1 else len(files)


def _is_run_below(files: Sequence[DataFileMeta], newer: Sequence[DataFileMeta], key_of: KeyOf) -> bool:
    """Return whether the files are one run older than ``newer``.

    Their key ranges must be disjoint, and their sequence numbers smaller than all of ``newer``.
    """
    if newer and max(file.max_sequence_number for file in files) >= min(file.min_sequence_number for file in newer):
        return False
    return all(len(section) == 1 for section in interval_partition(files, key_of))


__all__ = ["Pick", "trivial_move"]
