"""The range-bitmap index: bytes, the answers of known data, the dictionary's chunks, and the model."""

from __future__ import annotations

import math
import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.format.container import ContainerReader, Payload
from fileindex.format.range_bitmap_reader import RangeBitmapReader
from fileindex.format.range_bitmap_writer import write_range_bitmap
from fileindex.format.registry import INDEX_TYPES
from fileindex.keys.group_by import ColumnRows
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, StartsWith
from fileindex.rowset.result import REMAIN, RowSet
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.plain_value import plain_array
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, matches, type_name

A = ColumnRef("a")
INT, TEXT, DOUBLE, TINY = ColumnType(Kind.INT), ColumnType(Kind.VARCHAR), ColumnType(Kind.DOUBLE), ColumnType(Kind.TINYINT)
DECIMAL = ColumnType(Kind.DECIMAL, precision=10, scale=2)
RANGE_TYPES = [column_type for column_type in ATOMIC_TYPES if INDEX_TYPES["range-bitmap"].supports(column_type)]


def built(array, column_type, chunk_size=None):
    rows = ColumnRows(column_type)
    rows.append(plain_array(array, column_type))
    return write_range_bitmap(rows.group(), column_type, chunk_size=chunk_size)


def reader_of(values, column_type=INT, chunk_size=None):
    return RangeBitmapReader(Payload.of(built(arrow_column(values, column_type), column_type, chunk_size)), column_type)


def rows(reader, leaf):
    result = reader.evaluate(leaf)
    assert isinstance(result, RowSet)
    assert result.exact
    return list(result.rows)


@pytest.mark.parametrize(
    ("values", "column_type", "chunk_size", "expected"),
    [
        (
            [1, 3, 5, 7, 9, None, None, 10],
            INT,
            None,
            (
                "00000015010000000800000006000000010000000a000000420000000d01000000010000000400000019000000000100000001000000000000000000000005"
                "000000140000000400000003000000050000000700000009 0000000a00000022010300000013000000180000000000000016000000160000001400"
                "00002a000000143b3000000100000500020000000400070000003a300000010000000000020010000000010003000700"
                "3a300000010000000000010010000000020003003a30000001000000000001001000000004000700"
            ),
        ),
        (
            [10, 20, 30, 5, 15],
            INT,
            None,
            (
                "00000015010000000500000005000000050000001e0000003e0000000d010000000100000004000000190000000001000000050000000000000000000000040000"
                "0010000000040000000a0000000f000000140000001e0000002201030000000f000000180000000000000014000000140000001400000028000000123b30000001"
                "000004000100000004003a300000010000000000010010000000000001003a300000010000000000010010000000010004003a3000000100000000000000100000"
                "000200"
            ),
        ),
        (
            [1, 2, 3, 4, 5],
            INT,
            8,
            (
                "000000150100000005000000050000000100000005000000570000000d010000000200000008000000320000000000000019010000000100000000000000000000"
                "00020000000800000004010000000400000003000000080000000100000004000000040000000200000003000000050000002201030000000f0000001800000000"
                "00000014000000140000001400000028000000123b30000001000004000100000004003a300000010000000000010010000000010003003a300000010000000000"
                "010010000000020003003a3000000100000000000000100000000400"
            ),
        ),
        (
            ["b", "a", None, "cc", "a"],
            TEXT,
            None,
            (
                "000000180100000005000000030000000161000000026363000000420000000d0100000001000000040000001a0000000001000000016100000000000000000000"
                "0002000000080000000b000000000000000500000001620000000263630000001a01020000001800000010000000000000001200000012000000123a3000000100"
                "0000000003001000000000000100030004003a30000001000000000000001000000000003a3000000100000000000000100000000300"
            ),
        ),
        (
            [3, -1, 3],
            TINY,
            None,
            (
                "0000000f010000000300000002ff03000000450000000d0100000002000000080000002c000000000000001601ff00000000000000000000000000000000000000"
                "0101030000000100000000000000000000000000000001000000120101000000160000000800000000000000143a3000000100000000000200100000000000"
                "010002003a30000001000000000001001000000000000200"
            ),
        ),
        (
            [7, 7],
            INT,
            None,
            (
                "0000001501000000020000000100000007000000070000002e0000000d010000000100000004000000190000000001000000070000000000000000000000000000"
                "000000000004000000120101000000140000000800000000000000083a300000010000000000010010000000000001003a30000000000000"
            ),
        ),
        (
            [125, -300],
            DECIMAL,
            None,
            (
                "0000001d010000000200000002fffffffffffffed4000000000000007d0000003a0000000d0100000001000000040000001d0000000001fffffffffffffed40000"
                "000000000000000000010000000800000008000000000000007d000000120101000000140000000800000000000000123a30000001000000000001001000000000"
                "0001003a3000000100000000000000100000000000"
            ),
        ),
    ],
)
def test_payloads_have_the_bytes_of_the_java_writer(values, column_type, chunk_size, expected):
    assert built(arrow_column(values, column_type), column_type, chunk_size).hex() == expected.replace(" ", "")


JAVA_ALL_NULL = bytes.fromhex("0000000d01000000050000000000000011" + "0000000d01" + "00" * 12 + "0000020a01400000000800000200")
JAVA_ALL_NULL += b"".join(np.array([8 * bit, 8], dtype=">i4").tobytes() for bit in range(64)) + bytes.fromhex("3a30000000000000") * 65


@pytest.mark.parametrize("payload", [JAVA_ALL_NULL, built(pa.nulls(5, pa.int32()), INT)], ids=["64 slices", "ours"])
def test_a_column_of_nulls(payload):
    reader = RangeBitmapReader(Payload.of(payload), INT)
    assert rows(reader, IsNull(A)) == [0, 1, 2, 3, 4]
    for leaf in (IsNull(A, negated=True), Compare(A, Op.EQ, 0), Compare(A, Op.GT, 0), Compare(A, Op.NE, 0), In(A, (), negated=True)):
        assert rows(reader, leaf) == []


def test_no_rows():
    reader = reader_of([])
    for leaf in (IsNull(A), IsNull(A, negated=True), Compare(A, Op.EQ, 0), Compare(A, Op.GT, 0)):
        assert rows(reader, leaf) == []


@pytest.mark.parametrize(
    ("op", "literal", "expected"),
    [
        (Op.EQ, 1, [0]),
        (Op.EQ, 2, []),
        (Op.EQ, 3, [1]),
        (Op.EQ, 4, []),
        (Op.EQ, 5, [2]),
        (Op.GT, 0, [0, 1, 2, 3, 4, 7]),
        (Op.GT, 1, [1, 2, 3, 4, 7]),
        (Op.GT, 6, [3, 4, 7]),
        (Op.GT, 9, [7]),
        (Op.GE, 0, [0, 1, 2, 3, 4, 7]),
        (Op.GE, 1, [0, 1, 2, 3, 4, 7]),
        (Op.GE, 6, [3, 4, 7]),
        (Op.GE, 9, [4, 7]),
        (Op.LT, 1, []),
        (Op.LE, 1, [0]),
        (Op.LT, 11, [0, 1, 2, 3, 4, 7]),
        (Op.NE, 3, [0, 2, 3, 4, 7]),
    ],
)
def test_comparisons(op, literal, expected):
    assert rows(reader_of([1, 3, 5, 7, 9, None, None, 10]), Compare(A, op, literal)) == expected


@pytest.mark.parametrize("column_type", RANGE_TYPES, ids=type_name)
def test_answers_are_those_of_the_model(column_type):
    @settings(max_examples=30, deadline=None)
    @given(columns(column_type), leaves_on(A, column_type), st.sampled_from([None, 0, 9, 40]))
    def check(values, leaf, chunk_size):
        result = reader_of(values, column_type, chunk_size).evaluate(leaf)
        assert list(result.rows) == [row for row, value in enumerate(values) if matches(leaf, {A: value})]
        assert result.exact

    check()


@pytest.mark.parametrize("chunk_size", [0, 128, 16384])
def test_every_number_is_found_in_its_chunk_and_others_between_them(chunk_size):
    numbers = np.random.default_rng(11).choice(2_000_000, 10_000, replace=False).astype(np.int32) - 1_000_000
    array = pa.array(numbers)
    reader = RangeBitmapReader(Payload.of(built(array, INT, chunk_size)), INT)
    ordered = np.sort(numbers)
    for number in [*numbers[:60].tolist(), -1_000_001, 0, 1_000_001]:
        assert len(rows(reader, Compare(A, Op.LT, int(number)))) == int(np.searchsorted(ordered, number))
        assert len(rows(reader, Compare(A, Op.LE, int(number)))) == int(np.searchsorted(ordered, number, side="right"))


@pytest.mark.parametrize("chunk_size", [0, 512, 16384])
def test_every_text_is_found_in_its_chunk(chunk_size):
    texts = [str(uuid.uuid5(uuid.NAMESPACE_OID, str(number))) for number in range(2_000)]
    reader = RangeBitmapReader(Payload.of(built(pa.array(texts), TEXT, chunk_size)), TEXT)
    ordered = sorted(texts)
    for row in range(0, 2_000, 97):
        assert rows(reader, Compare(A, Op.EQ, texts[row])) == [row]
        assert len(rows(reader, Compare(A, Op.GT, texts[row]))) == len(texts) - ordered.index(texts[row]) - 1
    assert rows(reader, Compare(A, Op.EQ, "hello-")) == []
    assert len(rows(reader, Compare(A, Op.LT, "8"))) == sum(text < "8" for text in texts)


def test_texts_longer_than_a_chunk_open_one():
    long = ["x" * 500, "y" * 500, "a", "b"]
    reader = reader_of(long, TEXT, 64)
    assert [rows(reader, Compare(A, Op.EQ, text)) for text in long] == [[0], [1], [2], [3]]


def test_zeros_and_nan():
    reader = reader_of([-0.0, 0.0, 1.0, math.nan, -1.0], DOUBLE)
    for zero in (0.0, -0.0):
        assert rows(reader, Compare(A, Op.EQ, zero)) == [0, 1]
        assert rows(reader, Compare(A, Op.LT, zero)) == [4]
        assert rows(reader, Compare(A, Op.LE, zero)) == [0, 1, 4]
        assert rows(reader, Compare(A, Op.GT, zero)) == [2, 3]
        assert rows(reader, Compare(A, Op.GE, zero)) == [0, 1, 2, 3]
    assert rows(reader, Compare(A, Op.EQ, math.nan)) == [3]
    assert rows(reader, Compare(A, Op.LT, math.nan)) == [0, 1, 2, 4]


def test_any_stored_nan_is_nan():
    payload = built(pa.array([1.0, math.nan]), DOUBLE).replace(bytes.fromhex("7ff8000000000000"), bytes.fromhex("fff0000000000001"))
    reader = RangeBitmapReader(Payload.of(payload), DOUBLE)
    assert rows(reader, Compare(A, Op.EQ, math.nan)) == [1]
    assert rows(reader, Compare(A, Op.LT, 2.0)) == [0]


def test_a_literal_that_a_float_column_cannot_hold_says_nothing():
    reader = reader_of([1.5], ColumnType(Kind.FLOAT))
    assert reader.evaluate(Compare(A, Op.LT, 0.1)) is REMAIN
    assert reader.evaluate(In(A, (0.1,), negated=True)) is REMAIN


def test_a_lookup_reads_headers_one_chunk_and_the_slices():
    values = pa.array([f"user-{number:07d}" for number in range(100_000)])
    payload = built(values, TEXT)
    container = ContainerReader.of(payload)
    reader = RangeBitmapReader(Payload(container.read, 0, len(payload)), TEXT)
    assert rows(reader, Compare(A, Op.EQ, "user-0070000")) == [70_000]
    assert container.bytes_read < len(payload) // 4


@pytest.mark.parametrize(
    "payload", ["", "7fffffff", "0000000901000000010000000200", "00000011" + "02" + "00" * 16, "0000000d01" + "00" * 12]
)
def test_a_payload_that_does_not_hold_together_is_refused(payload):
    with pytest.raises(CorruptIndex):
        RangeBitmapReader(Payload.of(bytes.fromhex(payload)), INT).evaluate(IsNull(A))


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", [0, 1, 2, 3, 5, 6]),
        ("a", [0, 1, 3]),
        ("ab", [1, 3]),
        ("abc", [3]),
        ("b", [2]),
        ("ü", [5]),
        ("\x7f", []),
        ("z", []),
        ("\U0010ffff", [6]),
    ],
)
def test_prefixes_are_a_range_of_texts(prefix, expected):
    reader = reader_of(["a", "ab", "b", "abc", None, "ü", "\U0010ffff!"], TEXT, 8)
    assert rows(reader, StartsWith(A, prefix)) == expected
    assert rows(reader, StartsWith(A, prefix, negated=True)) == [row for row in (0, 1, 2, 3, 5, 6) if row not in expected]
