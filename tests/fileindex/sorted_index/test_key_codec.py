"""Bytes and order of keys."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.keys.hashing import text_buffers
from fileindex.sorted_index.key_codec import KeyCodec, is_less, key_list, supports
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.float_order import total_order_key
from sparkexpr.values.plain_value import plain_array, plain_values
from tests.fileindex.index_models import arrow_column, literals
from tests.fileindex.sorted_index.payloads import KEY_TYPES, TYPE_NAMES

BYTES = [
    (ColumnType(Kind.BOOLEAN), True, "01"),
    (ColumnType(Kind.TINYINT), -2, "fe"),
    (ColumnType(Kind.SMALLINT), -2, "feff"),
    (ColumnType(Kind.INT), 1000, "e8030000"),
    (ColumnType(Kind.BIGINT), -1, "ff" * 8),
    (ColumnType(Kind.DATE), 1, "01000000"),
    (ColumnType(Kind.TIME), 86_399_999, "ff5b2605"),
    (ColumnType(Kind.FLOAT), math.nan, "0000c07f"),
    (ColumnType(Kind.FLOAT), -0.0, "00000080"),
    (ColumnType(Kind.DOUBLE), -math.nan, "000000000000f87f"),
    (ColumnType(Kind.DECIMAL, precision=18, scale=2), -1, "ff" * 8),
    (ColumnType(Kind.DECIMAL, precision=19, scale=2), 0, "00"),
    (ColumnType(Kind.DECIMAL, precision=19, scale=2), 127, "7f"),
    (ColumnType(Kind.DECIMAL, precision=19, scale=2), 128, "0080"),
    (ColumnType(Kind.DECIMAL, precision=19, scale=2), -128, "80"),
    (ColumnType(Kind.DECIMAL, precision=19, scale=2), -129, "ff7f"),
    (ColumnType(Kind.CHAR, length=4), "é", "c3a9"),
    (ColumnType(Kind.TIMESTAMP, precision=3), -1, "ff" * 8),
    (ColumnType(Kind.TIMESTAMP, precision=6), -1, "ff" * 8 + "d8fc3c"),
    (ColumnType(Kind.TIMESTAMP, precision=6), 1000, "0100000000000000" + "00"),
    (ColumnType(Kind.TIMESTAMP_LTZ, precision=9), -1, "ff" * 8 + "bf843d"),
    (ColumnType(Kind.TIMESTAMP_LTZ, precision=9), 1_000_127, "0100000000000000" + "7f"),
]


@pytest.mark.parametrize(("column_type", "value", "stored"), BYTES)
def test_keys_have_the_bytes_of_the_engine(column_type, value, stored):
    codec = KeyCodec(column_type)
    assert codec.encode(codec.keys(arrow_column([value], column_type))).to_pylist() == [bytes.fromhex(stored)]


@pytest.mark.parametrize("column_type", KEY_TYPES, ids=TYPE_NAMES)
def test_keys_order_as_values_and_come_back_from_their_bytes(column_type):
    codec = KeyCodec(column_type)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(literals(column_type), min_size=2, max_size=20))
    def check(values):
        ordered = sorted(values, key=lambda value: (1, value.encode()) if isinstance(value, str) else total_order_key(value))
        keys = codec.keys(arrow_column(ordered, column_type))
        assert is_less(keys, or_equal=True).all()
        same = [repr(value) == repr(following) for value, following in pairwise(ordered)]
        assert (~is_less(keys, or_equal=False)).tolist() == same
        bounds, data = text_buffers(codec.encode(keys))
        decoded = codec.decode(data, bounds)
        assert key_list(decoded) == key_list(keys)
        assert repr(plain_values(plain_array(codec.values(decoded), column_type), column_type)) == repr(ordered)
        for value, key in zip(ordered, key_list(keys), strict=True):
            assert key in codec.literals(value)

    check()


MALFORMED = [
    (ColumnType(Kind.INT), b"abc"),
    (ColumnType(Kind.INT), b""),
    (ColumnType(Kind.BOOLEAN), b"\2"),
    (ColumnType(Kind.DECIMAL, precision=19, scale=0), b""),
    (ColumnType(Kind.DECIMAL, precision=19, scale=0), bytes(17)),
    (ColumnType(Kind.TIMESTAMP, precision=6), bytes(8)),
    (ColumnType(Kind.TIMESTAMP, precision=6), bytes(10)),
    (ColumnType(Kind.TIMESTAMP, precision=6), bytes(8) + b"\xff"),
    (ColumnType(Kind.TIMESTAMP, precision=6), bytes(8) + b"\xff\xff\xff\x7f"),
    (ColumnType(Kind.TIMESTAMP, precision=9), b"\xff" * 7 + b"\x7f\0"),
    (ColumnType(Kind.TIMESTAMP, precision=9), bytes(7) + b"\x80\0"),
]


@pytest.mark.parametrize(("column_type", "stored"), MALFORMED)
def test_bytes_that_are_no_key_are_refused(column_type, stored):
    with pytest.raises(CorruptIndex):
        KeyCodec(column_type).decode(np.frombuffer(stored, np.uint8), np.array([0, len(stored)]))


def test_texts_that_are_not_utf_8_have_no_value():
    codec = KeyCodec(ColumnType(Kind.VARCHAR))
    keys = codec.decode(np.array([0xFF], np.uint8), np.array([0, 1]))
    with pytest.raises(CorruptIndex, match="UTF-8"):
        codec.values(keys)


def test_some_types_have_no_keys():
    assert not any(supports(ColumnType(kind)) for kind in (Kind.BINARY, Kind.VARBINARY, Kind.ARRAY, Kind.MAP, Kind.ROW))
    with pytest.raises(CorruptIndex, match="BINARY"):
        KeyCodec(ColumnType(Kind.BINARY))
