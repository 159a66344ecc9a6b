"""Row blocks: no row with a value lies outside the blocks that they answer, whatever the batches, and other blocks are left out."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, Payload, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.format.row_blocks import RowBlocksBuilder, RowBlocksReader
from fileindex.format.same_options import has_same_options
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, SKIP, RowSet
from fileindex.verify.rebuild import rebuild_index
from paimon_base.errors import CorruptIndex
from paimon_base.thresholds import Thresholds
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.plain_value import plain_array
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, literals, matches, type_name

A = ColumnRef("a")
BIGINT, TEXT = ColumnType(Kind.BIGINT), ColumnType(Kind.VARCHAR)
BLOOM_TYPES = [column_type for column_type in ATOMIC_TYPES if INDEX_TYPES["bloom-filter"].supports(column_type)]


def built(array, column_type=BIGINT, block_rows=100, batch=None):
    builder = RowBlocksBuilder(column_type, block_rows)
    for first in range(0, len(array), batch or len(array) or 1):
        builder.add(plain_array(array.slice(first, batch or len(array)), column_type))
    return builder.finish()


def opened(array, column_type=BIGINT, block_rows=100):
    return RowBlocksReader(Payload.of(built(array, column_type, block_rows)), column_type)


def rows_of(result, row_count):
    return result.rows if isinstance(result, RowSet) else BitMap(range(row_count)) if result.remains else BitMap()


@pytest.mark.parametrize("column_type", BLOOM_TYPES, ids=type_name)
def test_no_row_with_a_value_is_lost(column_type):
    @settings(max_examples=20, deadline=None)
    @given(columns(column_type), st.lists(literals(column_type), max_size=4), st.integers(1, 9), st.integers(1, 50))
    def check(values, others, block_rows, batch):
        array = arrow_column(values, column_type)
        reader = RowBlocksReader(Payload.of(built(array, column_type, block_rows, batch)), column_type)
        wanted = [value for value in values if value is not None] + others
        for leaf in [Compare(A, Op.EQ, value) for value in wanted] + [In(A, tuple(wanted)), In(A, tuple(others))]:
            right = BitMap(row for row, value in enumerate(values) if matches(leaf, {A: value}))
            result = reader.evaluate(leaf)
            assert right <= rows_of(result, len(values)) <= BitMap(range(len(values)))
            assert not isinstance(result, RowSet) or not result.exact

    check()


WRITTEN_BEFORE = (
    "eNptUUEOxCAIHAhtSE806aEP3P+f9gErikXdzkEJM8CItKOAvuX4eEAiECQUsAzhnJYM1QwFI5yCm1zPndZWA9VIFjHvyBkcbepx"
    "xc1d3FAd8JEVDRuXNrpmnQjDvBJdro95a5EMwtNjDVKxQrOjvDBELW0xe9re9CbGP85uzOzZsGHuYsNAcxP2bmcoyU+tT7ph0/+B"
    "rW/mB4H3BD8="
)
"""Row blocks of 500 numbers, i // 25 * 25, in blocks of 100, compressed."""


def test_row_blocks_that_were_written_before_are_read():
    reader = RowBlocksReader(Payload.of(zlib.decompress(base64.b64decode(WRITTEN_BEFORE))), BIGINT)
    for number in range(0, 500, 25):
        start = number // 100 * 100
        assert rows_of(reader.evaluate(Compare(A, Op.EQ, number)), 500) == BitMap(range(start, start + 100))
    assert reader.evaluate(In(A, (1, 501))) == SKIP


@pytest.mark.sizes
def test_other_blocks_are_left_out():
    values = pa.array(np.random.default_rng(1).permutation(20_000))
    reader = opened(values, block_rows=1000)
    found = [len(rows_of(reader.evaluate(Compare(A, Op.EQ, value)), 20_000)) // 1000 for value in values[::50].to_pylist()]
    assert min(found) == 1
    assert sum(found) < 1.5 * len(found)
    missing = [reader.evaluate(Compare(A, Op.EQ, value)) for value in range(20_000, 20_400)]
    assert missing.count(SKIP) > 300


@pytest.mark.sizes
def test_few_values_are_read_by_segments_and_many_at_once():
    data = built(pa.array(range(50_000)), block_rows=1000)
    read: list[tuple[int, int]] = []
    container = ContainerReader.of(write_index_container([("a", "bloom-filter-blocks", data)]))
    payload = Payload(
        lambda offset, length: read.append((offset, length)) or container.read(offset, length), container.entries()[0].start, len(data)
    )
    reader = RowBlocksReader(payload, BIGINT)
    read.clear()
    assert 1234 in reader.evaluate(Compare(A, Op.EQ, 1234)).rows
    assert [length for _, length in read] == [512 * 7]
    some = tuple(range(0, 500, 2))
    together = reader.evaluate(In(A, some)).rows
    apart = [rows_of(RowBlocksReader(payload, BIGINT).evaluate(Compare(A, Op.EQ, value)), 50_000) for value in some]
    assert together == BitMap.union(*apart)


@pytest.mark.sizes
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_few_values_are_found_in_segments_of_their_own(count):
    reader = opened(pa.array(range(50_000)), block_rows=1000)
    wanted = tuple(range(777, 50_000, 9_999))[:count]
    apart = [reader.evaluate(Compare(A, Op.EQ, value)).rows for value in wanted]
    assert BitMap(wanted) <= reader.evaluate(In(A, wanted)).rows == BitMap.union(*apart)


@pytest.mark.parametrize("text", [True, False])
def test_batches_and_dictionaries_give_the_same_bits(text):
    numbers = [None if number % 11 == 0 else number * 7 % 900 for number in range(5000)]
    array = pa.array([number if number is None or not text else f"text {number}" for number in numbers])
    kind = TEXT if text else BIGINT
    whole = RowBlocksBuilder(kind, 300, segments=20)
    whole.add(array)
    pieces = RowBlocksBuilder(kind, 300, segments=20)
    for first in range(0, 5000, 777):
        pieces.add(array.slice(first, 777).dictionary_encode())
    assert pieces.finish() == whole.finish()


@pytest.mark.sizes
def test_neighbours_are_joined_where_there_are_many_blocks():
    values = pa.array(range(102_500))
    payload = Payload.of(built(values))
    reader = RowBlocksReader(payload, BIGINT)
    assert (reader.block_rows, reader.blocks) == (200, 513)
    assert all(value in reader.evaluate(Compare(A, Op.EQ, value)).rows for value in range(0, 102_500, 1011))
    assert has_same_options("bloom-filter-blocks", payload, BIGINT, {"block-rows": "100"}, 102_500)
    assert not has_same_options("bloom-filter-blocks", payload, BIGINT, {"block-rows": "150"}, 102_500)
    assert not has_same_options("bloom-filter-blocks", payload, BIGINT, {"block-rows": "100"}, 102_499)


def test_what_no_block_tells_remains():
    reader = opened(pa.array(range(1000)))
    for leaf in (
        Compare(A, Op.NE, 1),
        Compare(A, Op.LT, 1),
        In(A, (1,), negated=True),
        IsNull(A),
        In(A, tuple(range(Thresholds().block_literals + 1))),
    ):
        assert reader.evaluate(leaf) is REMAIN
    assert reader.evaluate(In(A, ())) is SKIP


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"\2" + data[1:], lambda data: data[:10], lambda data: data[:8] + bytes(4) + data[12:]]
)
def test_broken_blocks_are_named(damage):
    with pytest.raises(CorruptIndex):
        RowBlocksReader(Payload.of(damage(built(pa.array(range(1000))))), BIGINT)


def container_of(values, columns="a", **options):
    types = {"a": BIGINT, **({"a#row-blocks": BIGINT} if options.pop("taken", False) else {})}
    raw = {
        "file-index.bloom-filter.columns": "a",
        **{f"file-index.bloom-filter.a.{name.replace('_', '-')}": text for name, text in options.items()},
    }
    if columns != "a":
        raw["file-index.bitmap.columns"] = "a"
    writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, types), types)
    writer.write(pa.record_batch(dict.fromkeys(types, values)))
    return ContainerReader.of(write_index_container(writer.finish()))


def kinds(container):
    return {entry.index_type for entry in container.entries()}


@pytest.mark.sizes
def test_a_bloom_filter_of_a_file_with_several_blocks_is_accompanied():
    values = pa.array(range(3000))
    assert kinds(container_of(values, block_rows="1000")) == {"bloom-filter", "bloom-filter-blocks"}
    assert b"a#row-blocks" in container_of(values, block_rows="1000").read(0, 200)
    for without in (
        container_of(values),
        container_of(values, block_rows="0"),
        container_of(values, "a and bitmap", block_rows="1000"),
        container_of(pa.array([number % 50 for number in range(3000)]), block_rows="1000"),
        container_of(values, block_rows="1000", taken=True),
    ):
        assert "bloom-filter-blocks" not in kinds(without)


def test_a_question_is_answered_with_blocks_and_damage_costs_only_time():
    container = container_of(pa.array(range(3000)), block_rows="1000")
    notes = IndexMetrics()
    result = evaluate(Compare(A, Op.EQ, 1500), container, {"a": BIGINT}, 3000, notes)
    assert 1500 in result.rows
    assert len(result.rows) < 3000
    assert list(notes.used) == ["a: bloom-filter", "a: bloom-filter-blocks"]
    assert evaluate(Compare(A, Op.EQ, 1500), container, {"a": BIGINT}, 2999, notes) is REMAIN
    assert notes.warnings["bloom-filter-blocks of 'a': it has 3000 rows, the file 2999"] == 1


@pytest.mark.sizes
def test_a_twin_finds_rows_that_the_blocks_do_not_have():
    values = pa.array(range(1000))
    payload = Payload.of(built(values))
    for rows, lie in ((values, None), (pa.array(range(1, 1001)), "bits of values"), (values.slice(500), "another number of rows")):
        rebuilt = rebuild_index(A, "bloom-filter-blocks", payload, BIGINT, {})
        rebuilt.write(rows)
        said = rebuilt.mismatch()
        assert said is None if lie is None else lie in said
