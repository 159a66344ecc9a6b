"""Payloads that Paimon 2.0.0 wrote: they have its rows, and the bitmaps are byte for byte those that we write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, StartsWith
from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from fileindex.sorted_index.index_meta import SortedIndexMeta, SourceMeta
from fileindex.sorted_index.kinds import open_sorted_index, sorted_index_writer
from fileindex.sorted_index.sorted_rows import sort_rows
from manifest.store import FileStore
from sparkexpr.values.column_type import STRINGS, ColumnType
from sparkexpr.values.plain_value import canonical_array, plain_array, plain_values

GOLDEN = Path(__file__).parents[2] / "golden_indexed"
A = ColumnRef("a")


@dataclass(frozen=True)
class GoldenPayload:
    """A payload, its metadata, and the column of the files that it covers."""

    options: SortedIndexOptions
    column_type: ColumnType
    data: bytes
    meta: SortedIndexMeta
    column: pa.Array

    def open(self):
        def read(offset, length):
            return self.data[offset : offset + length]

        how = {"column_type": self.column_type, "row_count": len(self.column), "meta": self.meta}
        return open_sorted_index(self.options.kind, read, len(self.data), **how)


@cache
def payloads(kind: str) -> dict[str, GoldenPayload]:
    store = FileStore.open(str(GOLDEN / kind / "table"))
    names = {field.id: field.name for field in store.schema.fields}
    found = {}
    for entry in store.index_entries(store.snapshots.latest()):
        if entry.index_type != kind:
            continue
        indexed = entry.indexed
        name, source = names[indexed.field_id], SourceMeta.parse(indexed.source_meta)
        assert source.encode() == indexed.source_meta
        assert source.row_count == entry.row_count
        column_type = store.schema.column_types[name]
        chunks = [pq.read_table(GOLDEN / kind / "table/bucket-0" / file.name, columns=[name]).column(0) for file in source.files]
        column = canonical_array(pa.chunked_array([chunk for chunks in chunks for chunk in chunks.chunks]).combine_chunks(), column_type)
        key_meta = SortedIndexMeta.parse(indexed.index_meta)
        assert key_meta.encode() == indexed.index_meta
        options = SortedIndexOptions.parse(SortedIndexKind(kind), name, store.schema.options)
        data = (GOLDEN / kind / "table/index" / entry.file_name).read_bytes()
        found[name] = GoldenPayload(options, column_type, data, key_meta, column)
    return found


COLUMNS = json.loads((GOLDEN / "btree/table/schema/schema-0").read_text())["options"]["pk-btree.index.columns"].split(",")


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("kind", SortedIndexKind)
def test_a_payload_of_the_engine_answers_every_condition(kind, name):
    payload = payloads(kind)[name]
    batch = pa.record_batch({"a": payload.column})
    values = [
        value for value in plain_values(plain_array(payload.column.unique(), payload.column_type), payload.column_type) if value is not None
    ]
    leaves = [IsNull(A), IsNull(A, negated=True), In(A, tuple(values[:5])), In(A, tuple(values[5:]), negated=True)]
    leaves += [Compare(A, op, value) for value in values[:: max(1, len(values) // 8)] for op in Op]
    leaves += [StartsWith(A, value[:2]) for value in values[:5]] if payload.column_type.kind in STRINGS else []
    for leaf in leaves:
        expected = np.flatnonzero(mask(leaf, batch, {"a": payload.column_type}).to_numpy(zero_copy_only=False))
        answer = payload.open().evaluate(leaf)
        assert list(answer.rows) == expected.tolist()
        assert answer.exact


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("kind", SortedIndexKind)
def test_our_payload_is_that_of_the_engine(kind, name):
    golden = payloads(kind)[name]
    rows = sort_rows([golden.column], golden.column_type)
    parts = []
    writer = sorted_index_writer(golden.options, golden.column_type, parts.append)
    writer.add(rows.values, rows.ordinals, rows.counts)
    writer.add_nulls(rows.null_ordinals)
    assert writer.finish() == golden.meta
    data = b"".join(parts)
    # The engine's B-trees have the ordinals of a value in any order, and compressed bytes depend on the library.
    if kind is SortedIndexKind.BITMAP and golden.options.compression == "none":
        assert data == golden.data
    ours = GoldenPayload(golden.options, golden.column_type, data, golden.meta, golden.column)
    assert [block_content(block) for block in ours.open().walk()] == [block_content(block) for block in golden.open().walk()]


def block_content(block):
    groups = [sorted(block.ordinals[start:end].tolist()) for start, end in zip(block.starts[:-1], block.starts[1:], strict=True)]
    return repr(block.values.to_pylist()), groups
