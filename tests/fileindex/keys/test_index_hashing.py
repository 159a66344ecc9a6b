"""The bloom filter's hashes: fixed values, and the vectorised XXH64 against the library."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.keys.hashing import hash_array, wang_mix, xxh64
from paimon_base.thresholds import Thresholds
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.plain_value import plain_array

LONG_VALUE = Thresholds().long_value_bytes


def digest(array, column_type):
    return [f"{value:016x}" for value in hash_array(plain_array(array, column_type), column_type).tolist()]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0000000000000000"),
        (1, "5bca7c69b794f8ce"),
        (2, "b795033f6f2a0674"),
        (-1, "5bca868437950d03"),
        (42, "0f3db82f1e7b6f7a"),
        (127, "897cf79712f9ec7c"),
        (-128, "e547e8444a8fcdd1"),
        (123456789, "e61ef031a43fdaf8"),
        (2147483647, "c6d8bcc4d61c69a4"),
        (-2147483648, "111ec0fd6aa8626c"),
        (2**63 - 1, "81ad52718398e837"),
        (-(2**63), "3be7d0f7780de548"),
    ],
)
def test_integers_are_mixed_with_arithmetic_shifts(value, expected):
    assert digest(pa.array([value]), ColumnType(Kind.BIGINT)) == [expected]


def test_narrow_integers_dates_and_times_are_sign_extended():
    expected = [f"{int(value) % 2**64:016x}" for value in wang_mix(np.array([-1, 7]))]
    for kind, arrow in [(Kind.TINYINT, pa.int8()), (Kind.SMALLINT, pa.int16()), (Kind.INT, pa.int32()), (Kind.DATE, pa.date32())]:
        assert digest(pa.array([-1, 7], pa.int32()).cast(arrow), ColumnType(kind)) == expected
    assert digest(pa.array([7], pa.time32("ms")), ColumnType(Kind.TIME)) == expected[1:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "ef46db3751d8e999"),
        ("a", "d24ec4f1a98c6e5b"),
        ("abc", "44bc2cf5ad770999"),
        ("hello", "26c7827d889f6da3"),
        ("paimon", "088c6247bf3815e4"),
        ("中文", "a75c8d077a3f4f51"),
        ("\0", "e934a84adb052768"),
        ("x" * 32, "e2df261fc2ec30eb"),
        ("x" * 33, "b3fa465f554208a6"),
    ],
)
@pytest.mark.parametrize("copies", [1, 40], ids=["by the library", "vectorised"])
def test_texts_are_hashed_as_utf8(text, expected, copies):
    assert digest(pa.array([text] * copies), ColumnType(Kind.VARCHAR)) == [expected] * copies


@pytest.mark.parametrize(
    ("kind", "arrow", "value", "expected"),
    [
        (Kind.FLOAT, pa.float32(), 1.0, "fb6ad38c4fe8a116"),
        (Kind.DOUBLE, pa.float64(), 1.0, "edaa95f0a3df28fe"),
        (Kind.FLOAT, pa.float32(), math.nan, "67c27c6d9936ae63"),
        (Kind.DOUBLE, pa.float64(), math.nan, "13d2d3f2cc0e846e"),
        (Kind.FLOAT, pa.float32(), 0.0, "0000000000000000"),
        (Kind.DOUBLE, pa.float64(), 0.0, "0000000000000000"),
        (Kind.FLOAT, pa.float32(), -0.0, "111ec0fd6aa8626c"),
        (Kind.DOUBLE, pa.float64(), -0.0, "3be7d0f7780de548"),
        (Kind.FLOAT, pa.float32(), 1.5, "ad39e1c6b4e29348"),
        (Kind.DOUBLE, pa.float64(), 1.5, "3dddff49a005b9c8"),
    ],
)
def test_floats_are_hashed_by_their_bits(kind, arrow, value, expected):
    assert digest(pa.array([value], arrow), ColumnType(kind)) == [expected]


def test_every_nan_hashes_alike():
    patterns = np.array([0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8000000000001], dtype=np.uint64).view(np.float64)
    assert set(digest(pa.array(patterns), ColumnType(Kind.DOUBLE))) == {"13d2d3f2cc0e846e"}


def test_timestamps_are_hashed_as_milliseconds_or_microseconds():
    nanos = pa.array([-1_000_005_999, 1_000_005_999], pa.int64())
    micros = [f"{int(value) % 2**64:016x}" for value in wang_mix(np.array([-1_000_006, 1_000_005]))]
    assert digest(nanos.cast(pa.timestamp("ns")), ColumnType(Kind.TIMESTAMP, precision=9)) == micros
    millis = pa.array([-1, 5], pa.timestamp("ms", "UTC"))
    expected = [f"{int(value) % 2**64:016x}" for value in wang_mix(np.array([-1, 5]))]
    assert digest(millis, ColumnType(Kind.TIMESTAMP_LTZ, precision=3)) == expected


def test_nulls_are_passed_over():
    assert digest(pa.array([None, "a", None]), ColumnType(Kind.VARCHAR)) == ["d24ec4f1a98c6e5b"]
    assert digest(pa.array([None, 1]), ColumnType(Kind.BIGINT)) == ["5bca7c69b794f8ce"]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 80) | st.sampled_from([LONG_VALUE - 1, LONG_VALUE, LONG_VALUE + 40]), max_size=8),
    st.integers(1, 60),
    st.integers(0, 9),
    st.sampled_from([pa.binary(), pa.large_binary()]),
    st.integers(0, 2**32),
)
def test_xxh64_of_an_array_is_that_of_each_value(lengths, copies, offset, arrow, seed):
    random = Random(seed)
    values = [random.randbytes(length) for length in lengths for _ in range(copies)]
    random.shuffle(values)
    found = xxh64(pa.array(values, arrow)[offset:])
    assert found.tolist() == [xxhash.xxh64_intdigest(value) for value in values[offset:]]
