"""The bitmap index, versions 1 and 2: bytes, answers, and reading by range."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.format.bitmap_reader import BitmapReader
from fileindex.format.bitmap_writer import write_bitmap
from fileindex.format.container import ContainerReader, Payload
from fileindex.format.registry import INDEX_TYPES
from fileindex.keys.group_by import ColumnRows, GroupedColumn, group_rows
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op, StartsWith
from fileindex.rowset.result import REMAIN, RowSet
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.plain_value import plain_array
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, matches, type_name

A = ColumnRef("a")
INT, TEXT, DOUBLE = ColumnType(Kind.INT), ColumnType(Kind.VARCHAR), ColumnType(Kind.DOUBLE)
BITMAP_TYPES = [column_type for column_type in ATOMIC_TYPES if INDEX_TYPES["bitmap"].supports(column_type)]
BOTH = pytest.mark.parametrize("version", [1, 2])


def built(array, column_type, version=2, block_size=16384, batches=1):
    rows = ColumnRows(column_type)
    size = max(1, -(-len(array) // batches))
    for first in range(0, len(array), size):
        rows.append(plain_array(array.slice(first, size), column_type))
    return write_bitmap(rows.group(), column_type, version=version, block_size=block_size)


def reader_of(array, column_type, version=2, **options):
    return BitmapReader(Payload.of(built(array, column_type, version, **options)), column_type)


def rows(reader, leaf):
    result = reader.evaluate(leaf)
    assert isinstance(result, RowSet)
    return list(result.rows)


def ints(*values):
    return pa.array(values, pa.int32())


GOLDEN = [
    (
        2,
        INT,
        ints(0, 1, None),
        "02000000030000000201fffffffd0000001200000001000000000000000000 00001c0000000200000000ffffffffffffffff00000001fffffffeffffffff",
    ),
    (1, INT, ints(0, 1, None), "01000000030000000201fffffffd00000000ffffffff00000001fffffffe"),
    (
        2,
        TEXT,
        pa.array(["a", None, "b", None, "a"]),
        (
            "020000000500000002010000000000000014000000010000000161000000000000001e"
            "00000002000000016100000014000000140000000162fffffffdffffffff"
            "3a300000010000000000010010000000010003003a30000001000000000001001000000000000400"
        ),
    ),
    (
        1,
        TEXT,
        pa.array(["a", None, "b", None, "a"]),
        (
            "01000000050000000201000000000000000161000000140000000162fffffffd"
            "3a300000010000000000010010000000010003003a30000001000000000001001000000000000400"
        ),
    ),
    (2, INT, ints(None, None, None), "02000000030000000001000000000000001600000000000000003a300000010000000000020010000000000001000200"),
    (1, INT, ints(None, None, None), "01000000030000000001000000003a300000010000000000020010000000000001000200"),
    (2, INT, ints(None), "02000000010000000001ffffffff000000120000000000000000"),
    (1, INT, ints(None), "01000000010000000001ffffffff"),
    (2, INT, ints(), "020000000000000000000000000000000000"),
    (1, INT, ints(), "01000000000000000000"),
    (
        2,
        INT,
        ints(1, 1, 2),
        (
            "020000000300000002000000000100000001000000000000001c0000000200000001000000000000001400000002fffffffdffffffff"
            "3a30000001000000000001001000000000000100"
        ),
    ),
    (2, INT, ints(1, 2), "020000000200000002000000000100000001000000000000001c0000000200000001ffffffffffffffff00000002fffffffeffffffff"),
    (
        2,
        TEXT,
        pa.array(["0", "1", "1", None, "0", "1"]),
        (
            "02000000060000000201fffffffc00000012000000010000000130000000000000001e000000020000000130000000000000001400000001310000001400000016"
            "3a300000010000000000010010000000000004003a300000010000000000020010000000010002000500"
        ),
    ),
    (
        2,
        TEXT,
        pa.array(["a", None, None, "b", None, None]),
        (
            "020000000600000002010000000000000018000000010000000161000000000000001e000000020000000161ffffffffffffffff0000000162fffffffcffffffff"
            "3a3000000100000000000300100000000100020004000500"
        ),
    ),
    (
        2,
        ColumnType(Kind.TINYINT),
        pa.array([-1], pa.int8()),
        "0200000001000000010000000001ff000000000000000d00000001ffffffffffffffffff",
    ),
    (
        2,
        ColumnType(Kind.SMALLINT),
        pa.array([-2], pa.int16()),
        "0200000001000000010000000001fffe000000000000000e00000001fffeffffffffffffffff",
    ),
    (
        2,
        ColumnType(Kind.BIGINT),
        pa.array([-2]),
        "0200000001000000010000000001fffffffffffffffe000000000000001400000001fffffffffffffffeffffffffffffffff",
    ),
    (
        2,
        ColumnType(Kind.FLOAT),
        pa.array([1.5], pa.float32()),
        "02000000010000000100000000013fc000000000000000000010000000013fc00000ffffffffffffffff",
    ),
    (
        2,
        DOUBLE,
        pa.array([-0.0, 0.0, math.nan]),
        (
            "020000000300000003000000000180000000000000000000000000000034000000038000000000000000ffffffffffffffff"
            "0000000000000000fffffffeffffffff7ff8000000000000fffffffdffffffff"
        ),
    ),
    (
        2,
        ColumnType(Kind.TIMESTAMP, precision=9),
        pa.array([1000005999], pa.timestamp("ns")),
        "020000000100000001000000000100000000000f424500000000000000140000000100000000000f4245ffffffffffffffff",
    ),
]


@pytest.mark.parametrize(("version", "column_type", "array", "expected"), GOLDEN)
def test_payloads_have_the_bytes_of_the_java_writer(version, column_type, array, expected):
    assert built(array, column_type, version).hex() == expected.replace(" ", "")


def test_blocks_are_filled_to_their_size():
    expected = (
        "020000000500000005000000000200000001000000000000000400000028000000440000000300000001ffffffffffffffff00000002fffffffeffffffff"
        "00000003fffffffdffffffff0000000200000004fffffffcffffffff00000005fffffffbffffffff"
    )
    assert built(ints(1, 2, 3, 4, 5), INT, block_size=40).hex() == expected


JAVA_BOOLEANS = [
    (
        "02000000050000000201fffffffb0000001200000001000000000000000016000000020000000000000000140100000014000000143a30000001000000000001"
        "0010000000010003003a30000001000000000001001000000000000200"
    ),
    "01000000050000000201fffffffb000000000001000000143a300000010000000000010010000000010003003a30000001000000000001001000000000000200",
]


@pytest.mark.parametrize("payload", JAVA_BOOLEANS)
def test_booleans(payload):
    kind = ColumnType(Kind.BOOLEAN)
    array = pa.array([True, False, True, False, None])
    assert built(array, kind, int(payload[:2])).hex() == payload
    reader = BitmapReader(Payload.of(bytes.fromhex(payload)), kind)
    assert rows(reader, Compare(A, Op.EQ, True)) == [0, 2]
    assert rows(reader, IsNull(A)) == [4]


@BOTH
def test_integers(version):
    reader = reader_of(ints(0, 1, None), INT, version)
    assert rows(reader, Compare(A, Op.EQ, 0)) == [0]
    assert rows(reader, Compare(A, Op.EQ, 1)) == [1]
    assert rows(reader, IsNull(A)) == [2]
    assert rows(reader, In(A, (0, 1, 2))) == [0, 1]
    assert not reader.evaluate(Compare(A, Op.EQ, 2)).remains


@BOTH
def test_texts(version):
    reader = reader_of(pa.array(["a", None, "b", None, "a"]), TEXT, version)
    assert rows(reader, Compare(A, Op.EQ, "a")) == [0, 4]
    assert rows(reader, Compare(A, Op.EQ, "b")) == [2]
    assert rows(reader, IsNull(A)) == [1, 3]
    assert rows(reader, In(A, ("a", "b"))) == [0, 2, 4]
    assert not reader.evaluate(Compare(A, Op.EQ, "c")).remains
    assert rows(reader, Compare(A, Op.NE, "a")) == [2]


@BOTH
def test_a_column_of_nulls(version):
    reader = reader_of(ints(None, None, None), INT, version)
    assert rows(reader, IsNull(A)) == [0, 1, 2]
    assert not reader.evaluate(IsNull(A, negated=True)).remains


@BOTH
def test_many_texts_of_one_prefix(version):
    numbers = np.random.default_rng(3).integers(0, 20_000, 100_000)
    missing = np.random.default_rng(4).random(100_000) < 0.01
    array = pa.array([f"ssssssssss{number}" for number in numbers.tolist()], mask=missing)
    reader = reader_of(array, TEXT, version, batches=7)
    wanted = int(numbers[50_000])
    assert rows(reader, Compare(A, Op.EQ, f"ssssssssss{wanted}")) == np.flatnonzero((numbers == wanted) & ~missing).tolist()
    assert rows(reader, IsNull(A)) == np.flatnonzero(missing).tolist()


@pytest.mark.parametrize("column_type", BITMAP_TYPES, ids=type_name)
def test_answers_hold_all_matching_rows_and_only_those_where_they_say_so(column_type):
    @settings(max_examples=30, deadline=None)
    @given(columns(column_type), leaves_on(A, column_type), st.sampled_from([1, 2]), st.sampled_from([1, 30, 60, 16384]), st.integers(1, 4))
    def check(values, leaf, version, block_size, batches):
        reader = reader_of(arrow_column(values, column_type), column_type, version, block_size=block_size, batches=batches)
        expected = [row for row, value in enumerate(values) if matches(leaf, {A: value})]
        result = reader.evaluate(leaf)
        found = list(range(len(values))) if result is REMAIN else list(result.rows)
        assert set(found) >= set(expected)
        if result.exact:
            assert found == expected
        answers = isinstance(leaf, In | IsNull) or (isinstance(leaf, Compare) and leaf.op in {Op.EQ, Op.NE})
        if answers and not (column_type.kind in {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ} and column_type.precision == 9):
            assert result.exact or column_type.kind is Kind.FLOAT

    check()


def test_nanoseconds_share_keys_so_that_inequality_says_nothing():
    kind = ColumnType(Kind.TIMESTAMP, precision=9)
    reader = reader_of(pa.array([1, 2, 5000], pa.timestamp("ns")), kind)
    assert rows(reader, Compare(A, Op.EQ, 1)) == [0, 1]
    assert not reader.evaluate(Compare(A, Op.EQ, 1)).exact
    assert reader.evaluate(Compare(A, Op.NE, 1)) is REMAIN
    assert reader.evaluate(In(A, (1,), negated=True)) is REMAIN


def test_both_zeros_are_found_by_either():
    reader = reader_of(pa.array([-0.0, 0.0, 1.0, math.nan]), DOUBLE)
    assert rows(reader, Compare(A, Op.EQ, 0.0)) == rows(reader, Compare(A, Op.EQ, -0.0)) == [0, 1]
    assert rows(reader, Compare(A, Op.NE, 0.0)) == [2, 3]
    assert rows(reader, Compare(A, Op.EQ, math.nan)) == [3]


def test_a_literal_that_a_float_column_cannot_hold_says_nothing():
    kind = ColumnType(Kind.FLOAT)
    reader = reader_of(pa.array([0.1], pa.float32()), kind)
    assert reader.evaluate(Compare(A, Op.NE, 0.1)) is REMAIN
    assert reader.evaluate(Compare(A, Op.EQ, 1e300)) is REMAIN


def test_ranges_and_prefixes_say_nothing():
    assert reader_of(ints(1), INT).evaluate(Compare(A, Op.LT, 0)) is REMAIN
    assert reader_of(pa.array(["a"]), TEXT).evaluate(StartsWith(A, "b")) is REMAIN


def test_a_key_larger_than_a_block_gets_a_block_of_its_own():
    long = ["x" * 20_000, "y" * 20_000, "a"]
    reader = reader_of(pa.array(long), TEXT, block_size=64)
    assert [rows(reader, Compare(A, Op.EQ, text)) for text in long] == [[0], [1], [2]]


def test_a_lookup_in_a_large_index_reads_the_directory_and_one_block():
    kind = ColumnType(Kind.BIGINT)
    payload = built(pa.array(np.random.default_rng(5).permutation(200_000)), kind)
    container = ContainerReader.of(payload)
    reader = BitmapReader(Payload(container.read, 0, len(payload)), kind)
    assert len(rows(reader, Compare(A, Op.EQ, 77))) == 1
    assert container.bytes_read < 80_000 < len(payload) // 30


def test_a_set_not_run_optimised_is_read():
    payload = "02000000040000000100000000010000000100000000000000100000000100000001000000000000001800000000"
    body = "3a300000010000000000030010000000" + "0000010002000300"
    reader = BitmapReader(Payload.of(bytes.fromhex(payload[:-8] + body)), INT)
    assert rows(reader, Compare(A, Op.EQ, 1)) == [0, 1, 2, 3]


def test_an_entry_without_a_length_is_read_to_the_end_of_its_set():
    payload = built(ints(1, 1, 2), INT)
    patched = payload.replace(bytes.fromhex("0000000000000014"), bytes.fromhex("00000000ffffffff"), 1)
    assert patched != payload
    assert rows(BitmapReader(Payload.of(patched), INT), Compare(A, Op.EQ, 1)) == [0, 1]


@pytest.mark.parametrize("payload", ["", "03" + "00" * 17, "02ffffffff" + "00" * 13, "02000000010000000200" + "00" * 8])
def test_a_head_that_does_not_hold_together_is_refused(payload):
    with pytest.raises(CorruptIndex):
        BitmapReader(Payload.of(bytes.fromhex(payload)), INT)


def test_a_row_that_the_file_does_not_have_is_refused():
    payload = built(ints(1, 2), INT).replace(b"\xff\xff\xff\xfe\xff\xff\xff\xff", b"\xff\xff\xff\x00\xff\xff\xff\xff")
    with pytest.raises(CorruptIndex, match="row 255, but the file has 2 rows"):
        BitmapReader(Payload.of(payload), INT).evaluate(Compare(A, Op.EQ, 2))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([2**63, 2**58, 2**40]).flatmap(lambda most: st.lists(st.integers(-most, most - 1) | st.integers(-3, 3), max_size=60))
)
def test_grouping_brings_equal_keys_together_in_row_order(values):
    keys, starts, positions = group_rows(np.array(values, dtype=np.int64))
    expected = {key: [at for at, value in enumerate(values) if value == key] for key in sorted(set(values))}
    assert {key: positions[starts[at] : starts[at + 1]].tolist() for at, key in enumerate(keys.tolist())} == expected
    assert keys.tolist() == list(expected)
    assert (keys.dtype, positions.dtype) == (np.int64, np.uint32)
    column = GroupedColumn(len(values), np.zeros(0, np.uint32), np.array(values, np.int64))
    assert column.codes.dtype == np.uint32
    assert column.codes.tolist() == [list(expected).index(value) for value in values]
