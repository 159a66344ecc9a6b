"""Order of keys against Python's own sort of the decoded values."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lsm.keys.encoding
from lsm.keys.encoding import WordColumn
from lsm.keys.sort import sort_rows
from paimon_base.errors import UnsupportedType
from tests.odd_bytes import odd_bytes, odd_texts


def java_bits(value: float) -> int:
    if math.isnan(value):
        return 2**64
    bits = struct.unpack(">Q", struct.pack(">d", value))[0]
    return (~bits & (2**64 - 1)) if bits >> 63 else bits | (1 << 63)


TYPES = {
    "bigint": (pa.int64(), st.integers(-(2**63), 2**63 - 1), lambda v: v),
    "tinyint": (pa.int8(), st.integers(-128, 127), lambda v: v),
    "int, few values": (pa.int32(), st.integers(0, 3), lambda v: v),
    "boolean": (pa.bool_(), st.booleans(), lambda v: v),
    "string": (pa.string(), odd_texts | st.text(max_size=30), lambda v: v.encode()),
    "string of few letters": (pa.string(), st.text(alphabet="a\0\u00ff\U0001f600", max_size=20), lambda v: v.encode()),
    "binary": (pa.binary(), odd_bytes | st.binary(max_size=20), lambda v: v),
    "double": (pa.float64(), st.floats(), java_bits),
    "decimal": (pa.decimal128(38, 2), st.decimals(-(10**20), 10**20, places=2), lambda v: v),
    "date": (pa.date32(), st.dates(), lambda v: v),
    "timestamp": (pa.timestamp("us"), st.datetimes(), lambda v: v),
}
TYPED_COLUMNS = st.sampled_from(sorted(TYPES))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the first draw of text builds its tables
@given(st.data(), st.lists(TYPED_COLUMNS, min_size=1, max_size=3), st.booleans())
def test_rows_are_in_key_order_stable_and_grouped(data: st.DataObject, names: list[str], runs: bool) -> None:
    count = data.draw(st.integers(0, 40))
    columns, rows = [], [()] * count
    for name in names:
        kind, values, order = TYPES[name]
        column = data.draw(st.lists(st.none() | values, min_size=count, max_size=count))
        columns.append(pa.array([None, *column], kind).slice(1))
        rows = [(*row, (0, 0) if value is None else (1, order(value))) for row, value in zip(rows, column, strict=True)]
    done = sort_rows([WordColumn.of(column) for column in columns], runs=runs)
    expected = sorted(range(count), key=lambda row: (rows[row], row))
    assert done.order.tolist() == expected
    assert done.starts.tolist() == [p for p in range(count) if p == 0 or rows[expected[p]] != rows[expected[p - 1]]]


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3)), max_size=30), st.booleans())
def test_user_sequence_orders_within_a_key_and_its_nulls_lose_in_both_directions(rows: list, descending: bool) -> None:
    keys, sequence = pa.array([r[0] for r in rows], pa.int32()), pa.array([r[1] for r in rows], pa.int32())
    done = sort_rows([WordColumn.of(keys)], [WordColumn.of(sequence, descending=descending)])

    def rank(row: int) -> tuple:
        key, version = rows[row]
        return (key, (0, 0) if version is None else (1, -version if descending else version), row)

    assert done.order.tolist() == sorted(range(len(rows)), key=rank)
    assert len(done.starts) == len({row[0] for row in rows})


@pytest.mark.parametrize("spread", [2**20, 2**44, 2**63])
def test_many_rows_sort_right_whether_their_range_packs_beside_the_position_or_not(spread: int) -> None:
    values = np.random.default_rng(1).integers(-(spread // 2), spread // 2, 20_000)
    values[:5000] = values[5000:10_000]
    done = sort_rows([WordColumn.of(pa.array(values))])
    assert done.order.tolist() == np.argsort(values, kind="stable").tolist()
    assert len(done.starts) == len(np.unique(values))


def test_wide_decimals_and_long_strings_tell_their_last_digit() -> None:
    decimals = pa.array([Decimal(f"{7 * 10**35 + d}") for d in (1, 0, -1)], pa.decimal128(38, 0))
    assert sort_rows([WordColumn.of(decimals)]).order.tolist() == [2, 1, 0]
    long = "x" * 6000
    assert sort_rows([WordColumn.of(pa.array([long + "b", long, long + "a"]))]).order.tolist() == [1, 2, 0]


def test_all_nans_are_one_key_and_the_zeros_are_two() -> None:
    other_nan = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
    done = sort_rows([WordColumn.of(pa.array([math.nan, 0.0, -0.0, other_nan, math.inf]))])
    assert done.order.tolist() == [2, 1, 4, 0, 3]
    assert len(done.starts) == 4


def test_a_key_of_a_nested_type_is_refused() -> None:
    with pytest.raises(UnsupportedType, match="list"):
        WordColumn.of(pa.array([[1]]))


def test_more_text_than_32_bit_offsets_count_is_sorted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lsm.keys.encoding, "_MAX_OFFSET", 10)
    column = pa.chunked_array([["pear", "fig"], ["apple", "fig"]])
    assert lsm.keys.encoding.one_array(column).type == pa.large_string()
    assert sort_rows([WordColumn.of(column)]).order.tolist() == [2, 1, 3, 0]
