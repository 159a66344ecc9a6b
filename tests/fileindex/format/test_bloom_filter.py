"""The bloom filter: sizing, bytes, and that it never denies a value it was given."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.format.bloom_filter import BloomFilterBuilder, BloomFilterReader, BloomSize, FittedBloomFilterBuilder, bit_positions
from fileindex.format.container import ContainerReader, Payload
from fileindex.format.registry import INDEX_TYPES
from fileindex.format.same_options import has_same_options
from fileindex.predicate.tree import ColumnRef, Compare, In, IsNull, Op
from fileindex.rowset.result import REMAIN, SKIP
from paimon_base.errors import CorruptIndex
from paimon_base.thresholds import use_thresholds
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.plain_value import from_scalar, plain_array
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, type_name

A = ColumnRef("a")
BLOOM_TYPES = [column_type for column_type in ATOMIC_TYPES if INDEX_TYPES["bloom-filter"].supports(column_type)]


def built(array, column_type, items=10, fpp=0.1):
    builder = BloomFilterBuilder(column_type, BloomSize.of(items, fpp))
    builder.add(plain_array(array, column_type))
    return builder.finish()


@pytest.mark.parametrize(
    ("items", "fpp", "bits", "hashes"),
    [
        (1_000_000, 0.1, 4792536, 3),
        (10_000, 0.1, 47928, 3),
        (10_000, 0.02, 81424, 6),
        (2_000, 0.0001, 38344, 13),
        (200, 0.001, 2880, 10),
        (150, 0.1, 720, 3),
        (100, 0.1, 480, 3),
        (20, 0.1, 96, 3),
        (10, 0.1, 48, 3),
        (1, 0.1, 8, 6),
        (0, 0.1, 8, 1),
        (5, 1.0, 8, 1),
    ],
)
def test_a_filter_is_sized_as_by_the_java_writer(items, fpp, bits, hashes):
    assert BloomSize.of(items, fpp) == BloomSize(bits, hashes)


def test_a_filter_never_has_more_hash_functions_than_java_reads():
    assert BloomSize.of(10, 1e-60).hashes == 127


@pytest.mark.parametrize(("items", "fpp"), [(-1, 0.1), (10, 0.0), (10, 1.5), (10, math.nan), (2**31 - 1, 1e-9)])
def test_parameters_that_give_no_filter_are_refused(items, fpp):
    with pytest.raises(ValueError, match="bloom filter"):
        BloomSize.of(items, fpp)


@pytest.mark.parametrize(
    ("array", "column_type", "payload"),
    [
        (pa.array([1, 2, 3], pa.int32()), ColumnType(Kind.INT), "892001504000"),
        (pa.array(["a", "hello"]), ColumnType(Kind.VARCHAR), "008024700000"),
        (pa.array([b"a"]), ColumnType(Kind.VARBINARY), "000000700000"),
        (pa.array([-1], pa.int8()), ColumnType(Kind.TINYINT), "008000001001"),
        (pa.array([-1.0], pa.float32()), ColumnType(Kind.FLOAT), "000100202000"),
        (pa.array([1000], pa.timestamp("ms")), ColumnType(Kind.TIMESTAMP, precision=3), "488000000000"),
        (pa.array([1000005], pa.timestamp("us")), ColumnType(Kind.TIMESTAMP, precision=6), "000000210200"),
        (pa.array([1000005999], pa.timestamp("ns")), ColumnType(Kind.TIMESTAMP, precision=9), "000000210200"),
        (pa.array([None, None], pa.int32()), ColumnType(Kind.INT), "000000000000"),
    ],
)
def test_payloads_have_the_bytes_of_the_java_writer(array, column_type, payload):
    assert built(array, column_type).hex() == "00000003" + payload


@pytest.mark.parametrize("column_type", BLOOM_TYPES, ids=type_name)
def test_no_value_that_was_added_is_denied(column_type):
    @settings(max_examples=15, deadline=None)
    @given(columns(column_type))
    def check(values):
        reader = BloomFilterReader(Payload.of(built(arrow_column(values, column_type), column_type, 40, 0.001)), column_type)
        for value in values:
            if value is not None:
                assert reader.evaluate(Compare(A, Op.EQ, value)) is REMAIN
                assert reader.evaluate(In(A, (value,))) is REMAIN

    check()


def test_batches_add_up_to_the_filter_of_the_whole_column():
    kind = ColumnType(Kind.VARCHAR)
    array = pa.array([f"value {number}" for number in range(300_000)])
    builder = BloomFilterBuilder(kind, BloomSize.of(20_000, 0.1))
    for first in range(0, len(array), 70_000):
        builder.add(array.slice(first, 70_000))
    assert builder.finish() == built(array, kind, 20_000, 0.1)


def test_a_filter_of_many_bits_has_the_same_bits_set(set_thresholds):
    kind = ColumnType(Kind.BIGINT)
    array = pa.array(range(1000))
    expected = built(array, kind, 1000, 0.01)
    set_thresholds(bloom_spread_bits=1)
    assert built(array, kind, 1000, 0.01) == expected


@pytest.mark.parametrize(
    "predicate", [Compare(A, Op.NE, 1), Compare(A, Op.LT, 1), In(A, (1,), negated=True), IsNull(A), IsNull(A, negated=True)]
)
def test_everything_but_equality_remains(predicate):
    kind = ColumnType(Kind.INT)
    assert BloomFilterReader(Payload.of(built(pa.array([], pa.int32()), kind)), kind).evaluate(predicate) is REMAIN


def test_a_list_is_skipped_only_if_all_of_it_is_absent():
    kind = ColumnType(Kind.INT)
    reader = BloomFilterReader(Payload.of(built(pa.array([1, 2], pa.int32()), kind, 1000, 0.001)), kind)
    assert reader.evaluate(In(A, (77, 2))) is REMAIN
    assert reader.evaluate(In(A, (77, 78))) is SKIP
    assert reader.evaluate(In(A, ())) is SKIP


@pytest.mark.parametrize("count", [30, 1024, 5000])
def test_a_long_list_is_skipped_only_if_all_of_it_is_absent(count):
    kind = ColumnType(Kind.BIGINT)
    reader = BloomFilterReader(Payload.of(built(pa.array(range(10)), kind, 10_000, 1e-9)), kind)
    absent = tuple(range(100, 100 + count))
    assert reader.evaluate(In(A, absent)) is SKIP
    assert reader.evaluate(In(A, (*absent, 7))) is REMAIN
    assert reader.evaluate(In(A, (7, *absent))) is REMAIN


@pytest.mark.sizes
@pytest.mark.parametrize("items", [None, 1, 500, 19_000, 2_000_000])
@pytest.mark.parametrize(("rows", "distinct"), [(1, 1), (1000, 1000), (100_000, 100_000), (100_000, 7), (200_000, 20_000)])
def test_a_filter_has_room_for_the_values_of_its_file_and_at_most_for_the_items_of_its_option(rows, distinct, items):
    kind = ColumnType(Kind.BIGINT)
    options = {"fpp": "0.01", **({} if items is None else {"items": str(items)})}
    room = distinct if items is None else min(distinct, items)
    builder, model = INDEX_TYPES["bloom-filter"].hashing(kind, options), BloomFilterBuilder(kind, BloomSize.of(room, 0.01))
    for first in range(0, rows, 30_000):
        values = pa.array([at % distinct for at in range(first, min(rows, first + 30_000))])
        builder.add(values)
        model.add(values)
    payload, exact = builder.finish(), model.finish()
    assert payload == exact or (room > 65536 // 4 and abs(len(payload) - len(exact)) < len(exact) // 10)
    for stored in (payload, exact):
        assert has_same_options("bloom-filter", Payload.of(stored), kind, options, rows)
        assert not has_same_options("bloom-filter", Payload.of(stored), kind, {"fpp": "0.2"}, rows)
    if room > 1:
        assert not has_same_options("bloom-filter", Payload.of(payload), kind, {**options, "items": str(room // 3)}, rows)
    if room < distinct // 2:
        assert not has_same_options("bloom-filter", Payload.of(payload), kind, {"fpp": "0.01"}, rows)


@given(st.sets(st.integers(0, 300)), st.integers(0, 400), st.floats(0.001, 0.4))
def test_a_filter_stays_the_one_of_its_options(values, items, fpp):
    kind, options = ColumnType(Kind.BIGINT), {"items": str(items), "fpp": str(fpp)}
    builder = INDEX_TYPES["bloom-filter"].hashing(kind, options)
    builder.add(pa.array([*values, None], pa.int64()))
    payload = builder.finish()
    assert len(payload) - 4 == BloomSize.of(min(items, max(1, len(values))), fpp).bits // 8
    assert has_same_options("bloom-filter", Payload.of(payload), kind, options, len(values) + 1)


def test_a_filter_for_more_values_than_the_file_has_is_not_that_of_its_options_but_paimons_default_is():
    kind = ColumnType(Kind.BIGINT)
    large = Payload.of(built(pa.array(range(10)), kind, 5000, 0.1))
    default = Payload.of(built(pa.array(range(10)), kind, 1_000_000, 0.1))
    assert not has_same_options("bloom-filter", large, kind, {}, 10)
    assert has_same_options("bloom-filter", default, kind, {}, 10)


def test_a_filter_of_nulls_alone_denies_everything():
    kind = ColumnType(Kind.INT)
    builder = INDEX_TYPES["bloom-filter"].hashing(kind, {})
    builder.add(pa.array([None, None], pa.int32()))
    reader = BloomFilterReader(Payload.of(builder.finish()), kind)
    assert reader.evaluate(Compare(A, Op.EQ, 0)) is SKIP


def test_a_zero_is_looked_for_with_both_signs():
    kind = ColumnType(Kind.DOUBLE)
    for stored in (0.0, -0.0):
        reader = BloomFilterReader(Payload.of(built(pa.array([stored]), kind, 1000, 0.001)), kind)
        assert reader.evaluate(Compare(A, Op.EQ, -stored)) is REMAIN
        assert reader.evaluate(Compare(A, Op.EQ, 1.0)) is SKIP


def test_of_a_large_filter_a_lookup_reads_single_bytes():
    kind = ColumnType(Kind.BIGINT)
    container = ContainerReader.of(b"\0" * 20 + built(pa.array(range(100)), kind, 1_000_000, 0.1))
    reader = BloomFilterReader(Payload(container.read, 20, container.size - 20), kind)
    assert reader.evaluate(Compare(A, Op.EQ, 5)) is REMAIN
    assert container.bytes_read == 4 + 3
    assert reader.evaluate(In(A, tuple(range(-100, 0)))) is SKIP
    assert container.bytes_read == 7 + 599071


@pytest.mark.parametrize(("bits", "count"), [(8, 1), (800, 3), (98_760, 7), (2**27, 7)])
def test_bits_of_one_hash_are_those_of_many(bits, count):
    hashes = np.append(np.random.default_rng(bits).integers(0, 2**64, 200, np.uint64), np.array([0, 2**31, 2**63, 2**64 - 1], np.uint64))
    payload = count.to_bytes(4, "big") + bytes(bits // 8)
    reader = BloomFilterReader(Payload.of(payload), ColumnType(Kind.BIGINT))
    expected = np.stack(list(bit_positions(hashes, BloomSize(bits, count))), axis=1).tolist()
    assert [list(reader._positions(one)) for one in hashes.view(np.int64).tolist()] == expected


@pytest.mark.parametrize("payload", ["", "000000", "00000003", "0000000000", "ffffffff00", "7fffffff00"])
def test_a_broken_filter_is_refused(payload):
    with pytest.raises(CorruptIndex):
        BloomFilterReader(Payload.of(bytes.fromhex(payload)), ColumnType(Kind.INT))


def test_a_filter_with_many_hash_functions_is_read():
    kind = ColumnType(Kind.INT)
    reader = BloomFilterReader(Payload.of(bytes.fromhex("000000c2" + "ff" * 6)), kind)
    assert reader.evaluate(Compare(A, Op.EQ, 5)) is REMAIN


def test_dates_are_found_by_their_days():
    kind = ColumnType(Kind.DATE)
    array = pa.array([dt.date(2013, 7, 4)])
    reader = BloomFilterReader(Payload.of(built(array, kind, 1000, 0.001)), kind)
    assert reader.evaluate(Compare(A, Op.EQ, from_scalar(array[0], kind))) is REMAIN
    assert reader.evaluate(Compare(A, Op.EQ, 1)) is SKIP


@pytest.mark.parametrize("distinct", [1, 2, 9, 30, 200])
@pytest.mark.parametrize("rounds", [1, 3, 40])
def test_few_values_that_repeat_often_have_room(distinct: int, rounds: int) -> None:
    values = pa.array(range(distinct), pa.int32())
    with use_thresholds(bloom_few_hashes=8):
        builder = FittedBloomFilterBuilder(ColumnType(Kind.INT), 0.1)
        for _ in range(rounds):
            builder.add(values)
        assert len(builder.finish()) == 4 + BloomSize.of(distinct, 0.1).bits // 8
