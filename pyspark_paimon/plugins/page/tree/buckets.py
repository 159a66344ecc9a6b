"""Trees of buckets: files by level and key range."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lsm.compaction.policy import CompactionPolicy
from lsm.levels.sorted_runs import KeyOf, Levels, interval_partition, key_decoder
from lsm.scan.bucket_pruner import section_starts
from manifest.entry.data_file import DataFileMeta
from manifest.row.binary_row import decode_row
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType
from pyspark_paimon.request.partition_spec import display_partition, display_value
from pyspark_paimon.results.tree_report import TreeBox, TreeBucket
from sparkexpr.values.arrays import Int64s
from sparkexpr.values.column_type import Plain

MOST_BOXES = 3000
"""Largest number of boxes in a report: a page can draw as many at once."""
_MOST_IN_A_LANE = 160
_MOST_LANES = 16
_FEWEST = 6
_FIRST, _IN_THE_FIRST = 40, 40
"""Number of buckets with more boxes than _FEWEST, and their number of boxes."""
T = TypeVar("T")
Shares: TypeAlias = npt.NDArray[np.float64]
_LEAST = 1e-4
"""Width of a single key, as a share of the picture."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A live file of a bucket.

    deleted: Number of retracting rows and of rows marked by a deletion vector.
    kept: Whether the filter keeps the file.
    """

    partition: bytes
    bucket: int
    file: DataFileMeta
    deleted: int
    kept: bool


def bucket_trees(files: Iterable[TreeFile], schema: TableSchema, *, most_boxes: int = MOST_BOXES) -> tuple[TreeBucket, ...]:
    """Return the tree of every bucket.

    The result is ordered by partition and bucket.
    If there are too many buckets to give each a useful number of boxes, only the buckets with the most kept bytes have boxes.
    """
    grouped: defaultdict[tuple[bytes, int], list[TreeFile]] = defaultdict(list)
    for file in files:
        grouped[file.partition, file.bucket].append(file)
    drawn = sorted(grouped, key=lambda key: -sum(item.file.file_size * (1 + 9 * item.kept) for item in grouped[key]))
    drawn = drawn[: max(most_boxes // _FEWEST, 1)]
    share = max(_FEWEST, most_boxes // max(len(drawn), 1))
    limits = {key: max(share, _IN_THE_FIRST) if position < _FIRST else share for position, key in enumerate(drawn)}
    drawing = (_KeyedDrawing if schema.is_primary_key_table else _Drawing)(schema)
    partition_order = key_decoder(schema.partition_types)
    ordered = sorted(grouped, key=lambda key: (partition_order(key[0]), key[1]))
    return tuple(drawing.tree(key, grouped[key], limits.get(key, 0)) for key in ordered)


class _Drawing:
    """Picture of a bucket of an append table: files side by side."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema

    def tree(self, key: tuple[bytes, int], members: list[TreeFile], limit: int) -> TreeBucket:
        """Return the tree of a bucket, with at most about ``limit`` boxes."""
        members.sort(key=lambda item: (item.file.level, item.file.min_sequence_number, item.file.file_name))
        files = [item.file for item in members]
        placed = self._place(files)
        lanes = self._lanes(members, placed, limit) if limit else []
        boxes = [
            self._box(number, members_of_box, members, placed) for number, (_, groups) in enumerate(lanes) for members_of_box in groups
        ]
        runs, trigger, largest = self._runs(files)
        return TreeBucket(
            partition=display_partition(decode_row(key[0], self._schema.partition_types), self._schema),
            bucket=key[1],
            files=len(files),
            kept=sum(item.kept for item in members),
            rows=sum(file.row_count for file in files),
            deleted=sum(item.deleted for item in members),
            size=sum(file.file_size for file in files),
            runs=runs,
            trigger=trigger,
            largest_run=largest,
            level_0_files=sum(file.level == 0 for file in files),
            lanes=tuple(name for name, _ in lanes),
            sections=tuple(round(share, 5) for share in placed.sections),
            boxes=tuple(boxes),
        )

    def _place(self, files: Sequence[DataFileMeta]) -> Placement:
        return place_by_rows(files)

    def _lanes(self, members: Sequence[TreeFile], placed: Placement, limit: int) -> list[tuple[str, list[Sequence[int]]]]:  # noqa: ARG002  # see _KeyedDrawing
        """Return the rows of the picture, from the top."""
        return [("", group_neighbours(range(len(members)), min(limit, _MOST_IN_A_LANE)))]

    def _runs(self, files: Sequence[DataFileMeta]) -> tuple[int, int, int]:
        """Return the most runs of a section, the trigger of compaction, and the bytes of the largest run."""
        return 1, self._schema.kind.options.num_sorted_run_compaction_trigger, sum(file.file_size for file in files)

    def _key_range(self, files: Sequence[DataFileMeta]) -> tuple[str | None, str | None]:  # noqa: ARG002  # see _KeyedDrawing
        return None, None

    def _box(self, lane: int, member_positions: Sequence[int], members: Sequence[TreeFile], placed: Placement) -> TreeBox:
        items = [members[position] for position in member_positions]
        files = [item.file for item in items]
        left, right = (
            min(placed.left[position] for position in member_positions),
            max(placed.right[position] for position in member_positions),
        )
        low, high = self._key_range(files)
        return TreeBox(
            lane=lane,
            left=round(left, 5),
            width=round(right - left, 5),
            level=files[0].level,
            name=files[0].file_name,
            files=len(files),
            kept=sum(item.kept for item in items),
            rows=sum(file.row_count for file in files),
            deleted=sum(item.deleted for item in items),
            size=sum(file.file_size for file in files),
            low=low,
            high=high,
            first_sequence=min(file.min_sequence_number for file in files),
            last_sequence=max(file.max_sequence_number for file in files),
            created_millis=max((file.creation_time for file in files if file.creation_time is not None), default=None),
            indexed=sum(file.embedded_index is not None or file.index_file is not None for file in files),
            index_bytes=sum(len(file.embedded_index or b"") for file in files),
        )


class _KeyedDrawing(_Drawing):
    """Picture of a bucket of a primary-key table: levels above one another."""

    def __init__(self, schema: TableSchema) -> None:
        super().__init__(schema)
        self._key_of: KeyOf = key_decoder(schema.key_types)

    def _place(self, files: Sequence[DataFileMeta]) -> Placement:
        return place_by_keys(files, self._key_of, self._schema.key_types)

    def _lanes(self, members: Sequence[TreeFile], placed: Placement, limit: int) -> list[tuple[str, list[Sequence[int]]]]:
        # Level 0 has a row for each file, newest first; each further level has one row.
        levels: defaultdict[int, list[int]] = defaultdict(list)
        for position, item in enumerate(members):
            levels[item.file.level].append(position)
        newest = levels.pop(0, [])[::-1]
        fresh = group_neighbours(newest, min(_MOST_LANES, max(limit // 2, 1) if levels else limit))
        lanes: list[tuple[str, list[Sequence[int]]]] = [("L0", [group]) for group in fresh]
        share = max((limit - len(fresh)) // max(len(levels), 1), 1)
        for level, member_positions in sorted(levels.items()):
            lanes.append(
                (f"L{level}", group_neighbours(sorted(member_positions, key=placed.left.__getitem__), min(share, _MOST_IN_A_LANE)))
            )
        return lanes

    def _runs(self, files: Sequence[DataFileMeta]) -> tuple[int, int, int]:
        # A run is a level, or on level 0 the files of one task.
        runs: Counter[int | str] = Counter()
        for file in files:
            runs[file.level or writer_prefix(file.file_name)] += file.file_size
        most = max(len(section) for section in interval_partition(files, self._key_of))
        policy = CompactionPolicy.of(self._schema.kind)
        trigger = policy.strategy.trigger_of(Levels(self._key_of, list(files), policy.number_of_levels).runs)
        return most, trigger, max(runs.values())

    def _key_range(self, files: Sequence[DataFileMeta]) -> tuple[str | None, str | None]:
        low = min((file.min_key for file in files), key=self._key_of)
        return self._text(low), self._text(max((file.max_key for file in files), key=self._key_of))

    def _text(self, key: bytes) -> str:
        types = self._schema.key_types
        return ", ".join(display_value(value, type_) for value, type_ in zip(decode_row(key, types), types, strict=True))


def writer_prefix(name: str) -> str:
    """Return the common name prefix of files of one task.

    On level 0 the files of a task are one sorted run.

    >>> writer_prefix("data-8f14e45f-1.parquet")
    'data-8f14e45f'
    """
    return name.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class Placement:
    """Left and right edges of files, and starts of sections.

    All values are shares of the bucket's keys, from 0 to 1.
    """

    left: tuple[float, ...]
    right: tuple[float, ...]
    sections: tuple[float, ...]


def place_by_keys(files: Sequence[DataFileMeta], key_of: KeyOf, types: Sequence[DataType]) -> Placement:
    """Place files by their key ranges.

    The distance of two keys is the number of rows between them. The rows of a file are spread evenly over its key range.

    Cost: O(n log n) in the number of files.
    """
    key_by_bytes = {file.min_key: key_of(file.min_key) for file in files} | {file.max_key: key_of(file.max_key) for file in files}
    order = {key: rank for rank, key in enumerate(sorted(set(key_by_bytes.values())))}
    first = {order[key]: data for data, key in key_by_bytes.items()}
    low = np.array([order[key_by_bytes[file.min_key]] for file in files], np.int64)
    high = np.array([order[key_by_bytes[file.max_key]] for file in files], np.int64)
    key_positions = _key_positions([decode_row(first[rank], types) for rank in range(len(order))])
    edges = _edges(key_positions, low, high, np.array([file.row_count for file in files], np.float64))
    turn = np.lexsort((high, low))
    starts = section_starts(np.zeros(low.size, np.int64), low[turn], high[turn])
    begins = edges[2 * low[turn][starts]]
    return Placement(tuple(edges[2 * low].tolist()), tuple(edges[2 * high + 1].tolist()), tuple(begins[1:].tolist()))


def place_by_rows(files: Sequence[DataFileMeta]) -> Placement:
    """Place files one after the other.

    For tables without keys. The width of a file is its number of rows.
    """
    rows = np.array([max(file.row_count, 1) for file in files], np.float64)
    edges = np.concatenate([[0.0], np.cumsum(rows)]) / rows.sum()
    return Placement(tuple(edges[:-1].tolist()), tuple(edges[1:].tolist()), ())


def _key_positions(keys: Sequence[Sequence[Plain]]) -> Shares:
    """Return positions of sorted keys between 0 and 1.

    Numbers and texts are placed by their values.
    """
    share = np.zeros(len(keys))
    for column in range(len(keys[0]) - 1, -1, -1):
        share = _column_positions([key[column] for key in keys], share)
    return np.maximum.accumulate(np.clip(np.nan_to_num(share), 0, 1))


def _column_positions(values: Sequence[Plain], rest: Shares) -> Shares:
    """Return the positions of a column's values.

    Between two whole numbers, ``rest`` decides: the positions of the following key columns.
    """
    present = [value for value in values if value is not None]
    if not present or all(value == present[0] for value in present):
        return rest
    step = 1.0  # distance of whole numbers; texts and fractions have none
    if all(isinstance(value, str | bytes) for value in present):
        numbers, step = _text_numbers(values), 0.0
    else:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
        step = 0.0 if any(isinstance(value, float) for value in present) else 1.0
    low, high = (np.nanmin(numbers), np.nanmax(numbers)) if not np.isnan(numbers).all() else (0.0, 0.0)
    numbers = np.where(np.isnan(numbers), low, numbers)
    return np.asarray((numbers - low + step * rest) / max(float(high - low) + step, _TINY))


def _text_numbers(values: Sequence[Plain]) -> Shares:
    """Convert texts to numbers: six bytes from the first difference."""
    data = [b"" if value is None else value.encode() if isinstance(value, str) else bytes(value) for value in values]  # type: ignore[arg-type]
    first, last = min(filter(None, data)), max(data)
    skip = next((position for position, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return np.array([float(int.from_bytes(item[skip : skip + 6].ljust(6, b"\0"))) for item in data])


def _edges(key_positions: Shares, low: Int64s, high: Int64s, rows: Shares) -> Shares:
    """Return the shares of rows before and after each key.

    The two values of a key are adjacent.
    """
    steps = np.full(2 * key_positions.size - 1, _LEAST)  # a key, the gap to the next, the next...
    steps[1::2] = np.diff(key_positions)
    reach = np.concatenate([[0.0], np.cumsum(steps)])
    thickness = np.zeros(steps.size + 1)
    each = np.maximum(rows, 1) / (reach[2 * high + 1] - reach[2 * low])
    np.add.at(thickness, 2 * low, each)
    np.subtract.at(thickness, 2 * high + 1, each)
    weight = np.maximum(np.cumsum(thickness)[:-1], 0) * steps
    weight = np.maximum(weight, weight.sum() * _LEAST * (steps > 0))
    edges = np.concatenate([[0.0], np.cumsum(weight)])
    return np.asarray(edges / edges[-1])


def group_neighbours(items: Sequence[T], max_groups: int) -> list[Sequence[T]]:
    """Split items into at most ``max_groups`` groups of similar size.

    >>> group_neighbours([1, 2, 3], 5), group_neighbours([1, 2, 3, 4, 5], 2)
    ([[1], [2], [3]], [[1, 2], [3, 4, 5]])
    """
    count = min(max_groups, len(items))
    cuts = [len(items) * position // count for position in range(count + 1)] if count else []
    return [items[start:end] for start, end in pairwise(cuts)]
