"""Counting values: sums that no machine word holds, NaN, both zeros, texts, slices, nothing at all."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.aggregate.names import AGGREGATES
from lsm.aggregate.summary import ColumnSummary, RowSummary
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import ColumnType, Kind

ALL = frozenset(AGGREGATES)
WIDEST = 10**38 - 1


@settings(deadline=None)
@given(
    st.lists(st.none() | st.integers(-WIDEST, WIDEST) | st.sampled_from([WIDEST, -WIDEST, 0, 2**64, -(2**96)]), max_size=30),
    st.integers(0, 5),
)
def test_sums_of_decimals_are_exact_at_any_size(values, skip):
    array = pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(38, 0)).slice(skip)
    found = ColumnSummary(ColumnType(Kind.DECIMAL, precision=38), ALL)
    found.add(array)
    present = [value for value in values[skip:] if value is not None]
    assert (found.count, found.total) == (len(present), sum(present))
    assert (found.least, found.greatest) == (min(present, default=None), max(present, default=None))


@settings(deadline=None)
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**63 - 1, -(2**63)]), max_size=30), st.integers(0, 5))
def test_sums_of_bigints_do_not_wrap(values, skip):
    found = ColumnSummary(ColumnType(Kind.BIGINT), ALL)
    found.add(pa.chunked_array([pa.array(values, pa.int64()).slice(skip), pa.array([], pa.int64())]))
    assert found.total == sum(value for value in values[skip:] if value is not None)


@pytest.mark.parametrize("kind", [Kind.TINYINT, Kind.SMALLINT, Kind.INT])
def test_narrow_numbers_are_summed_widely(kind):
    found = ColumnSummary(ColumnType(kind), ALL)
    found.add(pa.array([-100, 27, None, 100, 100], ColumnType(kind).arrow))
    assert (found.least, found.greatest, found.total) == (-100, 100, 127)


def test_what_another_process_counted_is_added_bit_for_bit():
    types = {"f": DataType(Kind.DOUBLE), "s": DataType(Kind.VARCHAR, length=9), "b": DataType(Kind.VARBINARY, length=9)}
    wanted = {"f": ALL, "s": ALL - {"sum"}, "b": ALL - {"sum"}}
    here, there = RowSummary.of(wanted, types), RowSummary.of(wanted, types)
    there.add(pa.record_batch({"f": [0.1, float("nan"), None], "s": ["", "b\0", None], "b": [b"\0", b"", b"\xff"]}))
    here.merge_json(there.to_json())
    assert repr(here) == repr(there)
    assert (here.rows, here.columns["s"].greatest, here.columns["b"].least) == (3, "b\0", b"")
