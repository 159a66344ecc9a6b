"""Payloads built in memory, and their readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from fileindex.format.container import PartCache
from fileindex.predicate.tree import ColumnRef, Predicate
from fileindex.sorted_index.bitmap_payload_reader import BitmapIndexReader
from fileindex.sorted_index.btree_reader import BTreeIndexReader
from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from fileindex.sorted_index.index_meta import SortedIndexMeta
from fileindex.sorted_index.key_codec import supports
from fileindex.sorted_index.kinds import open_sorted_index, sorted_index_writer
from fileindex.sorted_index.sorted_rows import sort_rows
from sparkexpr.values.column_type import ColumnType, Plain
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, matches, type_name

A = ColumnRef("a")
KEY_TYPES = [column_type for column_type in ATOMIC_TYPES if supports(column_type)]
TYPE_NAMES = [type_name(column_type) for column_type in KEY_TYPES]


@dataclass(frozen=True)
class BuiltPayload:
    kind: SortedIndexKind
    column_type: ColumnType
    data: bytes
    meta: SortedIndexMeta
    row_count: int

    def open(self, data: bytes | None = None, hold: PartCache | None = None) -> BTreeIndexReader | BitmapIndexReader:
        content = self.data if data is None else data
        return open_sorted_index(
            self.kind,
            lambda offset, length: content[offset : offset + length],
            len(content),
            column_type=self.column_type,
            row_count=self.row_count,
            meta=self.meta,
            hold=hold,
        )


def build(
    kind: SortedIndexKind,
    column_type: ColumnType,
    values: Sequence[Plain],
    *,
    block_size: int | str = "16kb",
    compression: str = "none",
    step: int = 1000,
) -> BuiltPayload:
    """A payload of the values, given to the writer in batches of ``step`` rows: a value may lie in several."""
    size = "block-size" if kind == "btree" else "dictionary-block-size"
    raw = {f"{kind}-index.{size}": str(block_size), f"{kind}-index.compression": compression}
    parts: list[bytes] = []
    writer = sorted_index_writer(SortedIndexOptions.parse(kind, "a", raw), column_type, parts.append)
    rows = sort_rows([arrow_column(values[:3], column_type), arrow_column(values[3:], column_type)], column_type)
    positions = [position for position, count in enumerate(rows.counts.tolist()) for _ in range(count)]
    for first in range(0, len(positions), step):
        batch = rows.values.take(pa.array(positions[first : first + step], pa.int64()))
        writer.add(batch, rows.ordinals[first : first + step])
    writer.add_nulls(rows.null_ordinals)
    meta = writer.finish()
    data = b"".join(parts)
    assert writer.size == len(data)
    assert writer.row_count == len(values)
    return BuiltPayload(kind, column_type, data, meta, len(values))


def matching_rows(predicate: Predicate, values: Sequence[Plain]) -> set[int]:
    return {row for row, value in enumerate(values) if matches(predicate, {A: value})}
