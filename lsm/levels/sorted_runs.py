"""Sorted runs, levels of a bucket, and sections of files."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from manifest.entry.data_file import DataFileMeta
from manifest.stats.column_stats import PartitionType
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile

KeyOf: TypeAlias = Callable[[bytes], Any]
Section: TypeAlias = list["SortedRun"]


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Files with disjoint key ranges, in key order.

    Each key occurs at most once.
    """

    files: tuple[DataFileMeta, ...]

    @property
    def size(self) -> int:
        """Total size in bytes."""
        return sum([file.file_size for file in self.files])


@dataclass(frozen=True, slots=True)
class LevelRun:
    """A sorted run and its level."""

    level: int
    run: SortedRun

    @property
    def size(self) -> int:
        """Size of the run in bytes."""
        return self.run.size


@dataclass(slots=True)
class Levels:
    """LSM tree of one bucket.

    Level 0 is a set of files, newest first. Each deeper level is one sorted run.

    Args:
        key_of: Makes serialised keys comparable (``key_decoder``).
        files: Live files, in any order.
        number_of_levels: At least 2. Grows to the deepest file's level.
    """

    key_of: KeyOf
    files: list[DataFileMeta]
    number_of_levels: int
    max_level: int = field(init=False, repr=False)
    """Deepest level that files may move to."""
    _by_level: dict[int, list[DataFileMeta]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        deepest = max((file.level for file in self.files), default=0)
        self.number_of_levels = max(self.number_of_levels, deepest + 1, 2)
        self.max_level = self.number_of_levels - 1
        self._arrange()

    @property
    def highest_non_empty(self) -> int:
        """Deepest level with files, or -1."""
        return max(self._by_level, default=-1)

    @property
    def runs(self) -> list[LevelRun]:
        """All runs, newest first.

        Each file of level 0 is a run, newest first. The other non-empty levels follow.
        """
        level0 = [LevelRun(0, SortedRun((file,))) for file in self._by_level.get(0, ())]
        deeper = [LevelRun(level, SortedRun(tuple(files))) for level, files in sorted(self._by_level.items()) if level > 0]
        return level0 + deeper

    def update(self, before: Iterable[DataFileMeta], after: Iterable[DataFileMeta]) -> None:
        """Replace the files ``before`` a compaction by those ``after``."""
        gone = {(file.level, file.file_name) for file in before}
        self.files = [file for file in self.files if (file.level, file.file_name) not in gone] + list(after)
        self._arrange()

    def _arrange(self) -> None:
        by_level: dict[int, list[DataFileMeta]] = {}
        for file in self.files:
            by_level.setdefault(file.level, []).append(file)
        for level, files in by_level.items():
            if level == 0:
                files.sort(key=_newest_first)
            else:
                files.sort(key=lambda file: self.key_of(file.min_key))
                self._check(files)
        self._by_level = by_level

    def _check(self, files: Sequence[DataFileMeta]) -> None:
        for file, other in itertools.pairwise(files):
            if self.key_of(file.max_key) >= self.key_of(other.min_key):
                raise CorruptFile(other.file_name, f"overlaps {file.file_name} on level {file.level}, where key ranges must be disjoint")


def _newest_first(file: DataFileMeta) -> tuple[int, int, int, str]:
    return -file.max_sequence_number, file.min_sequence_number, file.creation_time or 0, file.file_name


def level_runs(files: Iterable[DataFileMeta]) -> list[SortedRun]:
    """Return the runs of a bucket by level, newest first.

    Each file of level 0 is a run. The files of each deeper level are one, in no order.
    """
    level0: list[DataFileMeta] = []
    deeper: dict[int, list[DataFileMeta]] = {}
    for file in files:
        if file.level:
            deeper.setdefault(file.level, []).append(file)
        else:
            level0.append(file)
    level0.sort(key=_newest_first)
    return [SortedRun((file,)) for file in level0] + [SortedRun(tuple(deeper[level])) for level in sorted(deeper)]


def interval_partition(files: Iterable[DataFileMeta], key_of: KeyOf) -> list[Section]:
    """Cut files into sections with disjoint key ranges.

    Each section has as few sorted runs as possible. Sections and runs are in key order. Cost: O(n log n) key comparisons.
    See Paimon's ``IntervalPartition``.
    """
    spans = sorted(
        [(key_of(file.min_key), key_of(file.max_key), position, file) for position, file in enumerate(files)]
    )  # the position is unique, so files are never compared
    sections: list[Section] = []
    members: list[tuple[Any, Any, int, DataFileMeta]] = []
    reach: Any = None
    for span in spans:
        if members and span[0] > reach:
            sections.append(_runs(members))
            members = []
        reach = span[1] if not members or span[1] > reach else reach
        members.append(span)
    if members:
        sections.append(_runs(members))
    return sections


def _runs(spans: Sequence[tuple[Any, Any, int, DataFileMeta]]) -> Section:
    """Assign files to as few sorted runs as possible."""
    # Append each file to the run that ends first, if it ends before the file begins.
    ends: list[tuple[Any, int]] = []
    runs: list[list[DataFileMeta]] = []
    for low, high, _, file in spans:
        if ends and low > ends[0][0]:
            run = ends[0][1]
            heapq.heapreplace(ends, (high, run))
            runs[run].append(file)
        else:
            heapq.heappush(ends, (high, len(runs)))
            runs.append([file])
    return [SortedRun(tuple(files)) for files in runs]


def key_decoder(types: Sequence[DataType]) -> KeyOf:
    """Return a function from serialised keys to comparable tuples.

    Keys are BinaryRow bytes. The function caches what it decoded.
    """
    order = PartitionType(tuple(f"key {index}" for index in range(len(types))), tuple(types)).order
    decoded: dict[bytes, Any] = {}

    def decode(data: bytes) -> Any:
        key = decoded.get(data)
        if key is None:
            key = decoded[data] = order(data)
        return key

    return decode
