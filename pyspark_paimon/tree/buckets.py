"""Trees of buckets: files by level and key range."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fileindex.base.column_type import Plain
from lsm.levels.sorted_runs import KeyOf, interval_partition, key_decoder
from manifest.entry.data_file import DataFileMeta
from manifest.row.binary_row import decode_row
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.request.partition_spec import display_partition, display_value
from pyspark_paimon.request.tree_report import TreeBox, TreeBucket
from pyspark_paimon.tree.placement import Placement, group_neighbours, place_by_keys, place_by_rows

MOST_BOXES = 3000
"""Largest number of boxes in a report: a page can draw as many at once."""
_MOST_IN_A_LANE = 160
_MOST_LANES = 16
_FEWEST = 6
_FIRST, _IN_THE_FIRST = 40, 40
"""Number of buckets with more boxes than _FEWEST, and their number of boxes."""


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
    limits = {key: max(share, _IN_THE_FIRST) if at < _FIRST else share for at, key in enumerate(drawn)}
    texts = _Texts(schema)
    ordered = sorted(grouped, key=lambda key: (texts.partition_order(key[0]), key[1]))
    return tuple(_tree(key, grouped[key], texts, limits.get(key, 0)) for key in ordered)


class _Texts:
    """Comparison and display of keys and partitions."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self.has_keys = schema.is_primary_key_table
        self.key_types = schema.key_types if self.has_keys else ()
        self.key_of: KeyOf = key_decoder(self.key_types)
        self.partition_order: KeyOf = key_decoder(schema.partition_types)

    def key(self, key: bytes) -> str:
        values = decode_row(key, self._schema.key_types)
        return ", ".join(display_value(value, type_) for value, type_ in zip(values, self._schema.key_types, strict=True))

    def partition(self, partition: bytes) -> str:
        values: Sequence[Plain] = decode_row(partition, self._schema.partition_types)
        return display_partition(values, self._schema)


def _tree(key: tuple[bytes, int], members: list[TreeFile], texts: _Texts, limit: int) -> TreeBucket:
    members.sort(key=lambda item: (item.file.level, item.file.min_sequence_number, item.file.file_name))
    files = [item.file for item in members]
    placed = place_by_keys(files, texts.key_of, texts.key_types) if texts.has_keys else place_by_rows(files)
    lanes = _lanes(members, placed if texts.has_keys else None, limit) if limit else []
    boxes = [_box(number, at, members, placed, texts) for number, (_, groups) in enumerate(lanes) for at in groups]
    runs, largest = _runs(files, texts)
    return TreeBucket(
        partition=texts.partition(key[0]),
        bucket=key[1],
        files=len(files),
        kept=sum(item.kept for item in members),
        rows=sum(file.row_count for file in files),
        deleted=sum(item.deleted for item in members),
        size=sum(file.file_size for file in files),
        runs=runs,
        largest_run=largest,
        level_0_files=sum(file.level == 0 for file in files),
        lanes=tuple(name for name, _ in lanes),
        sections=tuple(round(share, 5) for share in placed.sections),
        boxes=tuple(boxes),
    )


def _runs(files: Sequence[DataFileMeta], texts: _Texts) -> tuple[int, int]:
    """Return the most runs of a section, and the largest.

    The largest run is in bytes. A run is a level, or on level 0 the files of one task.
    """
    if not texts.has_keys:
        return 1, sum(file.file_size for file in files)
    runs: Counter[int | str] = Counter()
    for file in files:
        runs[file.level or writer_prefix(file.file_name)] += file.file_size
    return max(len(section) for section in interval_partition(files, texts.key_of)), max(runs.values())


def writer_prefix(name: str) -> str:
    """Return the common name prefix of files of one task.

    On level 0 the files of a task are one sorted run.

    >>> writer_prefix("data-8f14e45f-1.parquet")
    'data-8f14e45f'
    """
    return name.rpartition("-")[0]


def _lanes(members: Sequence[TreeFile], keyed: Placement | None, limit: int) -> list[tuple[str, list[Sequence[int]]]]:
    """Return the rows of the picture, from the top.

    Level 0 has a row for each file, newest first; each further level has one row.
    """
    if keyed is None:
        return [("", group_neighbours(range(len(members)), min(limit, _MOST_IN_A_LANE)))]
    levels: defaultdict[int, list[int]] = defaultdict(list)
    for at, item in enumerate(members):
        levels[item.file.level].append(at)
    newest = levels.pop(0, [])[::-1]
    fresh = group_neighbours(newest, min(_MOST_LANES, max(limit // 2, 1) if levels else limit))
    lanes: list[tuple[str, list[Sequence[int]]]] = [("L0", [group]) for group in fresh]
    share = max((limit - len(fresh)) // max(len(levels), 1), 1)
    for level, found in sorted(levels.items()):
        lanes.append((f"L{level}", group_neighbours(sorted(found, key=keyed.left.__getitem__), min(share, _MOST_IN_A_LANE))))
    return lanes


def _box(lane: int, at: Sequence[int], members: Sequence[TreeFile], placed: Placement, texts: _Texts) -> TreeBox:
    items = [members[position] for position in at]
    files = [item.file for item in items]
    left, right = min(placed.left[position] for position in at), max(placed.right[position] for position in at)
    low, high = min(files, key=lambda file: _order(texts, file.min_key)), max(files, key=lambda file: _order(texts, file.max_key))
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
        low=texts.key(low.min_key) if texts.has_keys else None,
        high=texts.key(high.max_key) if texts.has_keys else None,
        first_sequence=min(file.min_sequence_number for file in files),
        last_sequence=max(file.max_sequence_number for file in files),
        created_millis=max((file.creation_time for file in files if file.creation_time is not None), default=None),
        indexed=sum(file.embedded_index is not None or file.index_file is not None for file in files),
        index_bytes=sum(len(file.embedded_index or b"") for file in files),
    )


def _order(texts: _Texts, key: bytes) -> Any:
    return texts.key_of(key) if texts.has_keys else ()


__all__ = ["MOST_BOXES", "TreeFile", "bucket_trees", "writer_prefix"]
