"""The bit-sliced index: bytes, the answers of known data, and the model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyroaring import BitMap

from fileindex.build.options import FileIndexOptions
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.bsi import BsiReader, write_bsi
from fileindex.format.container import ContainerReader, Payload, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.keys.group_by import ColumnRows
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, StartsWith
from fileindex.rowset.bit_sliced import BitSlices
from fileindex.rowset.flags import serialize_slices
from fileindex.rowset.result import REMAIN, RowSet
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import TIMESTAMPS, ColumnType, Kind
from sparkexpr.values.plain_value import plain_array
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, matches, type_name

A = ColumnRef("a")
INT, LONG = ColumnType(Kind.INT), ColumnType(Kind.BIGINT)
BSI_TYPES = [column_type for column_type in ATOMIC_TYPES if INDEX_TYPES["bsi"].supports(column_type)]

MIXED = [1, 2, None, -2, -2, -1, None, 2, 0, 5, None]
POSITIVE = [0, 1, None, 3, 4, 5, 6, 0, None]
NEGATIVE = [None, -1, None, -3, -4, -5, -6, -1, None]


def built(array, column_type):
    rows = ColumnRows(column_type)
    rows.append(plain_array(array, column_type))
    return write_bsi(rows.group())


def reader_of(values, column_type=INT):
    return BsiReader(Payload.of(built(arrow_column(values, column_type), column_type)), column_type)


def rows(reader, leaf):
    result = reader.evaluate(leaf)
    assert isinstance(result, RowSet)
    return list(result.rows)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            MIXED,
            "010000000b01010000000000000000" + "0000000000000005"
            "3a30000001000000000004001000000000000100070008000900000000033a3000000100000000000100100000000000 0900"
            "3a3000000100000000000100100000000100 07003a3000000100000000000000100000000900"
            "010100000000000000000000000000000002"
            "3a30000001000000000002001000000003000400050000000002"
            "3a30000001000000000000001000000005003a30000001000000000001001000000003000400",
        ),
        (
            POSITIVE,
            (
                "01000000090101000000000000000000000000000000063b300000010000060002000000010003000400000000033a300000010000000000020010000000010003000500"
                "3a300000010000000000010010000000030006003a30000001000000000002001000000004000500060000"
            ),
        ),
        (
            NEGATIVE,
            (
                "0100000009000101000000000000000000000000000000063b300000010000050002000100000003000400000000033a30000001000000000003001000000001000300050007 00"
                "3a300000010000000000010010000000030006003a3000000100000000000200100000000400050006 00"
            ),
        ),
        (
            [1, 1, 2],
            (
                "01000000030101000000000000000000000000000000023a300000010000000000020010000000000001000200000000023a30000001000000000001001000000000000100"
                "3a300000010000000000000010000000020000"
            ),
        ),
        ([0, 0], "01000000020101000000000000000000000000000000003a300000010000000000010010000000000001000000000000"),
        ([None, None], "01000000020000"),
        ([], "01000000000000"),
    ],
)
def test_payloads_have_the_bytes_of_the_java_writer(values, expected):
    assert built(arrow_column(values, INT), INT).hex() == expected.replace(" ", "")


ALL_OF_MIXED = [0, 1, 3, 4, 5, 7, 8, 9]
ALL_OF_POSITIVE = [0, 1, 3, 4, 5, 6, 7]
FACTS = [
    (MIXED, Op.EQ, 2, [1, 7]),
    (MIXED, Op.EQ, -2, [3, 4]),
    (MIXED, Op.EQ, 100, []),
    (MIXED, Op.NE, 2, [0, 3, 4, 5, 8, 9]),
    (MIXED, Op.NE, -2, [0, 1, 5, 7, 8, 9]),
    (MIXED, Op.NE, 100, ALL_OF_MIXED),
    (MIXED, Op.LT, 2, [0, 3, 4, 5, 8]),
    (MIXED, Op.LE, 2, [0, 1, 3, 4, 5, 7, 8]),
    (MIXED, Op.LT, -1, [3, 4]),
    (MIXED, Op.LE, -1, [3, 4, 5]),
    (MIXED, Op.GT, -2, [0, 1, 5, 7, 8, 9]),
    (MIXED, Op.GE, -2, ALL_OF_MIXED),
    (MIXED, Op.GT, 2, [9]),
    (MIXED, Op.GE, 2, [1, 7, 9]),
    (POSITIVE, Op.EQ, 0, [0, 7]),
    (POSITIVE, Op.EQ, 1, [1]),
    (POSITIVE, Op.EQ, -1, []),
    (POSITIVE, Op.NE, 2, ALL_OF_POSITIVE),
    (POSITIVE, Op.NE, 3, [0, 1, 4, 5, 6, 7]),
    (POSITIVE, Op.LT, 3, [0, 1, 7]),
    (POSITIVE, Op.LE, 3, [0, 1, 3, 7]),
    (POSITIVE, Op.LT, -1, []),
    (POSITIVE, Op.GT, -2, ALL_OF_POSITIVE),
    (POSITIVE, Op.GT, 1, [3, 4, 5, 6]),
    (POSITIVE, Op.GE, 1, [1, 3, 4, 5, 6]),
    (NEGATIVE, Op.EQ, 1, []),
    (NEGATIVE, Op.EQ, -1, [1, 7]),
    (NEGATIVE, Op.NE, -3, [1, 4, 5, 6, 7]),
    (NEGATIVE, Op.LT, -3, [4, 5, 6]),
    (NEGATIVE, Op.LE, -3, [3, 4, 5, 6]),
    (NEGATIVE, Op.LT, 1, [1, 3, 4, 5, 6, 7]),
    (NEGATIVE, Op.GT, -3, [1, 7]),
    (NEGATIVE, Op.GE, -3, [1, 3, 7]),
    (NEGATIVE, Op.GT, 1, []),
]


@pytest.mark.parametrize(("values", "op", "literal", "expected"), FACTS)
def test_comparisons(values, op, literal, expected):
    assert rows(reader_of(values), Compare(A, op, literal)) == expected


def test_lists_and_nulls():
    reader = reader_of(MIXED)
    assert rows(reader, In(A, (-1, 1, 2, 3))) == [0, 1, 5, 7]
    assert rows(reader, In(A, (-1, 1, 2, 3), negated=True)) == [3, 4, 8, 9]
    assert rows(reader, In(A, ())) == []
    assert rows(reader, In(A, (), negated=True)) == ALL_OF_MIXED
    assert rows(reader, IsNull(A)) == [2, 6, 10]
    assert rows(reader, IsNull(A, negated=True)) == ALL_OF_MIXED


@pytest.mark.parametrize(
    ("op", "expected"),
    [(Op.GT, [0, 1, 3, 4, 5]), (Op.GE, [0, 1, 3, 4, 5]), (Op.NE, [0, 1, 3, 4, 5]), (Op.LT, []), (Op.LE, []), (Op.EQ, [])],
)
def test_the_least_long_as_a_literal(op, expected):
    assert rows(reader_of([-100, -1, None, 0, 1, 50], LONG), Compare(A, op, -(2**63))) == expected


@pytest.mark.parametrize(
    ("column_type", "values"),
    [(LONG, [1, -(2**63)]), (ColumnType(Kind.DECIMAL, precision=38), [1, 10**30]), (ColumnType(Kind.DECIMAL, precision=20), [-(2**63)])],
)
def test_a_file_with_a_number_that_it_cannot_hold_has_no_such_index(column_type, values):
    types = {"a": column_type}
    writer = DataFileIndexWriter.create(FileIndexOptions.parse({"file-index.bsi.columns": "a"}, types), types)
    writer.write(pa.record_batch({"a": arrow_column(values, column_type)}))
    assert ContainerReader.of(write_index_container(writer.finish())).entries() == ()
    assert writer.omitted[0].startswith("bsi of 'a'")


@pytest.mark.parametrize("column_type", BSI_TYPES, ids=type_name)
def test_answers_are_those_of_the_model(column_type):
    @settings(max_examples=30, deadline=None)
    @given(columns(column_type), leaves_on(A, column_type))
    def check(values, leaf):
        if any(isinstance(value, int) and not -(2**63) < value < 2**63 for value in values):
            return
        expected = [row for row, value in enumerate(values) if matches(leaf, {A: value})]
        result = reader_of(values, column_type).evaluate(leaf)
        lossy = column_type.kind in TIMESTAMPS and column_type.precision == 9
        if lossy:
            assert result is REMAIN or set(result.rows) >= set(expected)
        else:
            assert list(result.rows) == expected
            assert result.exact

    check()


def test_nanoseconds_are_asked_as_microseconds_without_losing_rows():
    kind = ColumnType(Kind.TIMESTAMP, precision=9)
    reader = reader_of([1, 2, 5000], kind)
    assert rows(reader, Compare(A, Op.GT, 1)) == [0, 1, 2]
    assert rows(reader, Compare(A, Op.LT, 2)) == [0, 1]
    assert rows(reader, Compare(A, Op.GT, 1000)) == [2]
    assert not reader.evaluate(Compare(A, Op.GT, 1)).exact
    assert reader.evaluate(Compare(A, Op.NE, 1)) is REMAIN


def test_a_least_number_above_zero_is_honoured():
    payload = "0100000003" + "01" + "010000000000000005" + "0000000000000006" + "3a30000001000000000002001000000000000100 0200" + "00000001"
    payload += "3a3000000100000000000000100000000100" + "00"
    reader = BsiReader(Payload.of(bytes.fromhex(payload)), INT)
    assert [rows(reader, Compare(A, Op.EQ, number)) for number in (4, 5, 6, 7)] == [[], [0, 2], [1], []]
    assert rows(reader, Compare(A, Op.LT, 6)) == [0, 2]
    assert rows(reader, Compare(A, Op.GT, 3)) == [0, 1, 2]


def test_many_rows():
    numbers = np.random.default_rng(2).integers(1, 1001, 100_000).astype(np.int32)
    missing = np.arange(100_000) % 5 == 0
    rows_of = ColumnRows(INT)
    rows_of.append(pa.array(numbers, mask=missing))
    reader = BsiReader(Payload.of(write_bsi(rows_of.group())), INT)
    for op, found in [
        (Op.EQ, numbers == 500),
        (Op.LT, numbers < 500),
        (Op.LE, numbers <= 500),
        (Op.GT, numbers > 500),
        (Op.GE, numbers >= 500),
    ]:
        assert rows(reader, Compare(A, op, 500)) == np.flatnonzero(found & ~missing).tolist()
    assert rows(reader, Compare(A, Op.LT, 1)) == []
    assert len(rows(reader, Compare(A, Op.LE, 1100))) == 80_000


def test_prefixes_say_nothing():
    assert reader_of([1]).evaluate(StartsWith(A, "x")) is REMAIN


@pytest.mark.parametrize(
    "payload",
    ["", "0200000000" + "0000", "01ffffffff" + "0000", "010000000101", "01000000010102" + "00" * 30, "0100000001010100" + "00" * 40],
)
def test_a_payload_that_does_not_hold_together_is_refused(payload):
    with pytest.raises(CorruptIndex):
        BsiReader(Payload.of(bytes.fromhex(payload)), INT)


def test_slices_compare_like_numbers():
    numbers, at = np.array([0, 3, 7, 7, 12]), np.array([2, 3, 5, 8, 9])
    of_rows = np.zeros(10, dtype=np.uint32)
    of_rows[at] = numbers
    slices = BitSlices(BitMap(at.tolist()), 4, [BitMap.deserialize(data) for data in serialize_slices(of_rows, 4)].__getitem__)
    for number in range(-1, 20):
        assert list(slices.equal(number)) == at[numbers == number].tolist()
        assert list(slices.below(number)) == at[numbers < number].tolist()
