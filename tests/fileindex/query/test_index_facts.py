"""Known data and known answers: what Paimon's own tests say of its file indexes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.bloom_filter import BloomFilterBuilder, BloomFilterReader, BloomSize, bit_positions
from fileindex.format.bsi import BsiReader
from fileindex.format.container import ContainerReader, Payload, write_index_container
from fileindex.keys.hashing import hash_array
from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op
from fileindex.query.evaluate import evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.query.top_n import top_n
from fileindex.rowset.bit_sliced import BitSlices
from fileindex.rowset.result import REMAIN, SKIP, RowSet
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.index_models import type_name

A = ColumnRef("a")
INT, LONG, TEXT, BYTES = (ColumnType(kind) for kind in (Kind.INT, Kind.BIGINT, Kind.VARCHAR, Kind.VARBINARY))
POSITIVE = [0, 1, None, 3, 4, 5, 6, 0, None]
NEGATIVE = [None, -1, None, -3, -4, -5, -6, -1, None]


def container_of(table, types, raw):
    writer = DataFileIndexWriter.create(FileIndexOptions.parse(raw, types), types)
    for batch in table.to_batches(max_chunksize=3000):
        writer.write(batch)
    return ContainerReader.of(write_index_container(writer.finish()))


def rows(predicate, container, types, row_count):
    notes = IndexMetrics()
    result = evaluate(predicate, container, types, row_count, notes)
    assert not notes.warnings
    return list(result.rows) if isinstance(result, RowSet) else [] if result is SKIP else None


def test_empty_markers_are_read_as_one_whatever_their_types_are_called():
    container = ContainerReader.of(write_index_container([("a", "b", None), ("a", "c", None)]))
    notes = IndexMetrics()
    assert evaluate(Compare(A, Op.EQ, 1), container, {"a": INT}, 5, notes) is SKIP
    assert evaluate(IsNull(A), container, {"a": INT}, 5, notes) is REMAIN
    assert not notes.warnings


@pytest.mark.parametrize("kind", [BYTES, LONG], ids=type_name)
def test_a_filter_for_10000_values_lets_less_than_3_percent_of_a_million_others_through(kind):
    rng = np.random.default_rng(4)
    values = pa.array([b"", *(rng.bytes(int(size)) for size in rng.integers(1, 401, 10_000))]) if kind is BYTES else pa.array(range(10_000))
    others = rng.integers(2**40, 2**62, 1_000_000)
    probes = pa.array(others.view("S8")) if kind is BYTES else pa.array(others)
    size = BloomSize.of(10_000, 0.02)
    builder = BloomFilterBuilder(kind, size)
    builder.add(values)
    payload = builder.finish()
    bits = np.unpackbits(np.frombuffer(payload, np.uint8, offset=4), bitorder="little").astype(bool)

    def through(array):
        return np.logical_and.reduce([bits[positions] for positions in bit_positions(hash_array(array, kind), size)])

    assert through(values).all()
    assert through(probes).mean() < 0.03
    reader = BloomFilterReader(Payload.of(payload), kind)
    assert [reader.evaluate(Compare(A, Op.EQ, value)).remains for value in probes[:200].to_pylist()] == through(probes[:200]).tolist()


@pytest.mark.parametrize("version", ["1", "2"])
def test_rows_of_a_text_are_found_between_nulls(version):
    types = {"a": TEXT}
    table = pa.table({"a": ["a", None, None, "b", None, None]})
    container = container_of(table, types, {"file-index.bitmap.columns": "a", "file-index.bitmap.a.version": version})
    asked = [Compare(A, Op.EQ, "a"), Compare(A, Op.EQ, "b"), IsNull(A), In(A, ("a", "b")), Compare(A, Op.EQ, "c")]
    assert [rows(predicate, container, types, 6) for predicate in asked] == [[0], [3], [1, 2, 4, 5], [0, 3], []]


@pytest.mark.sizes
@pytest.mark.parametrize(
    ("values", "predicate", "expected"),
    [
        (POSITIVE, Compare(A, Op.LE, 3), [0, 1, 3, 7]),
        (POSITIVE, Compare(A, Op.LT, -1), []),
        (POSITIVE, Compare(A, Op.LE, -1), []),
        (POSITIVE, Compare(A, Op.GE, -2), [0, 1, 3, 4, 5, 6, 7]),
        (POSITIVE, Compare(A, Op.NE, -2), [0, 1, 3, 4, 5, 6, 7]),
        (POSITIVE, In(A, (-1, 1, 2, 3)), [1, 3]),
        (POSITIVE, In(A, (-1, 1, 2, 3), negated=True), [0, 4, 5, 6, 7]),
        (POSITIVE, IsNull(A), [2, 8]),
        (NEGATIVE, Compare(A, Op.EQ, -2), []),
        (NEGATIVE, Compare(A, Op.NE, -2), [1, 3, 4, 5, 6, 7]),
        (NEGATIVE, Compare(A, Op.LE, 1), [1, 3, 4, 5, 6, 7]),
        (NEGATIVE, Compare(A, Op.GE, 1), []),
        (NEGATIVE, In(A, (-1, -4, -2, 3)), [1, 4, 7]),
        (NEGATIVE, In(A, (-1, -4, -2, 3), negated=True), [3, 5, 6]),
        (NEGATIVE, IsNull(A), [0, 2, 8]),
    ],
)
def test_bit_sliced_numbers_of_one_sign(values, predicate, expected):
    types = {"a": INT}
    container = container_of(pa.table({"a": pa.array(values, pa.int32())}), types, {"file-index.bsi.columns": "a"})
    assert rows(predicate, container, types, len(values)) == expected


def test_a_half_may_claim_a_greater_number_than_it_holds():
    inner = (
        "010000000000000000000000000000000a3a3000000100000000000300100000000000010002000a00000000043a30000001000000000000001000000001003a3000000100"
        "0000000001001000000002000a003a3000000100000000000000100000000a003a30000000000000"
    )
    reader = BsiReader(Payload.of(bytes.fromhex("010000000b01" + inner + "00")), INT)
    found = {number: list(reader.evaluate(Compare(A, Op.EQ, number)).rows) for number in (0, 1, 2, 3, 6, 10)}
    assert found == {0: [0], 1: [1], 2: [2], 3: [], 6: [10], 10: []}
    assert list(reader.evaluate(Compare(A, Op.GE, 2)).rows) == [2, 10]


def test_slices_of_one_number_and_of_none():
    ones = BitSlices(BitMap(range(5)), 1, [BitMap()].__getitem__)
    assert list(ones.equal(0)) == list(ones.below(1)) == [0, 1, 2, 3, 4]
    assert not ones.below(0)
    assert not ones.equal(1)
    none = BitSlices(BitMap(), 1, [BitMap()].__getitem__)
    assert not none.equal(0)
    assert not none.below(1)


def test_a_comparison_reads_no_slice_that_cannot_change_its_rows():
    asked = []

    def read(bit):
        asked.append(bit)
        return BitMap(range(16)) if bit == 5 else BitMap()

    slices = BitSlices(BitMap(range(32)), 6, read)
    assert len(slices.below(0b100000)) == 16
    assert asked == [5]
    assert not slices.equal(0b011111)
    assert asked == [5, 4]


@pytest.mark.sizes
def test_ranges_over_many_texts():
    rng = np.random.default_rng(8)
    numbers, missing = rng.integers(0, 1_000_000, 10_000), rng.random(10_000) < 0.5
    texts = [f"hello-{number}" for number in numbers.tolist()]
    table, types = pa.table({"a": pa.array(texts, mask=missing)}), {"a": TEXT}
    container = container_of(table, types, {"file-index.range-bitmap.columns": "a", "file-index.range-bitmap.a.chunk-size": "512b"})
    known = table["a"].drop_null().to_pylist()
    asked = [Compare(A, op, literal) for op in Op for literal in (*known[:4], "hello-", "hello-5000005", "z")]
    asked += [In(A, tuple(known[at : at + 5]), negated) for at in (5, 10) for negated in (False, True)] + [
        IsNull(A),
        IsNull(A, negated=True),
    ]
    for predicate in asked:
        assert rows(predicate, container, types, 10_000) == np.flatnonzero(mask(predicate, table, types).to_numpy()).tolist()


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("some", [True, False])
def test_the_first_of_many_texts(nulls_first, some):
    rng = np.random.default_rng(9)
    numbers, missing = rng.integers(0, 3000, 10_000), rng.random(10_000) < 0.01
    types, table = {"a": TEXT}, pa.table({"a": pa.array([f"hello-{number}" for number in numbers.tolist()], mask=missing)})
    container = container_of(table, types, {"file-index.range-bitmap.columns": "a"})
    among = BitMap(np.flatnonzero(rng.random(10_000) < 0.3).tolist()) if some else None
    how = {"ascending": True, "nulls_first": nulls_first, "strict": True, "candidates": among, "row_count": 10_000, "notes": IndexMetrics()}
    found = top_n(container, A, types, 150, **how).rows
    wanted = range(10_000) if among is None else among
    nulls, texts = [row for row in wanted if missing[row]], [row for row in wanted if not missing[row]]
    texts.sort(key=lambda row: (f"hello-{numbers[row]}", -row))
    expected = (nulls + texts if nulls_first else texts + nulls)[:150]
    assert list(found) == sorted(expected)


def test_two_columns_with_three_indexes():
    types = {"f0": INT, "f1": INT}
    table = pa.table({"f0": pa.array([1, 1, 2], pa.int32()), "f1": pa.array([1, 2, 3], pa.int32())})
    raw = {"file-index.bitmap.columns": "f0", "file-index.bsi.columns": "f0", "file-index.bloom-filter.columns": "f1"}
    container = container_of(table, types, raw)
    assert sorted(entry.index_type for entry in container.of_column("f0")) == ["bitmap", "bsi"]
    assert [entry.index_type for entry in container.of_column("f1")] == ["bloom-filter"]
    for entry in container.of_column("f0"):
        alone = ContainerReader.of(write_index_container([("f0", entry.index_type, container.payload(entry).whole())]))
        assert rows(Compare(ColumnRef("f0"), Op.EQ, 1), alone, types, 3) == [0, 1]


def test_a_range_and_an_equality_on_columns_of_different_indexes():
    types = {"event": TEXT, "price": INT}
    raw = {"file-index.bitmap.columns": "event", "file-index.bsi.columns": "price"}
    files = [(["A", "B", "B", "C"], [4, 2, 3, 3], []), (["A", "B", "C", "D", "D"], [4, 3, 4, 2, 4], [2])]
    for events, prices, expected in files:
        table = pa.table({"event": events, "price": pa.array(prices, pa.int32())})
        wanted = Compare(ColumnRef("event"), Op.EQ, "C"), Compare(ColumnRef("price"), Op.GT, 3)
        container = container_of(table, types, raw)
        found = [rows(predicate, container, types, len(events)) for predicate in wanted]
        assert sorted(set(found[0]) & set(found[1])) == expected
