"""ORDER BY as Spark sorts: nulls where they are told, NaN greatest, both zeros equal; and the first rows of a stream."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import cmp_to_key

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import FALSE, TRUE
from lsm.keys.order_by import RowOrder, TopRows
from lsm.keys.sort import SortColumn
from paimon_base.errors import UnsupportedType
from sparkexpr.values.column_type import ColumnType, Kind

FLOATS = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -1.5])
TYPES = {
    "i": (pa.int32(), ColumnType(Kind.INT), st.integers(-3, 3)),
    "f": (pa.float64(), ColumnType(Kind.DOUBLE), FLOATS),
    "g": (pa.float32(), ColumnType(Kind.FLOAT), FLOATS),
    "s": (pa.string(), ColumnType(Kind.VARCHAR), st.sampled_from(["", "a", "a\0", "ab", "b", "ä", "🙂"])),
    "x": (pa.binary(), ColumnType(Kind.VARBINARY), st.sampled_from([b"", b"\0", b"a", b"\xff"])),
    "b": (pa.bool_(), ColumnType(Kind.BOOLEAN), st.booleans()),
    "d": (
        pa.decimal128(5, 1),
        ColumnType(Kind.DECIMAL, precision=5, scale=1),
        st.sampled_from([Decimal("-1.0"), Decimal("0.5"), Decimal(7)]),
    ),
    "t": (pa.date32(), ColumnType(Kind.DATE), st.sampled_from([dt.date(1969, 1, 1), dt.date(2024, 1, 1)])),
}
ROWS = st.lists(st.tuples(*(st.none() | values for _, _, values in TYPES.values())), max_size=30)
SORT_COLUMN = st.builds(SortColumn, st.sampled_from(list(TYPES)), st.booleans(), st.booleans() | st.none())
ORDERS = st.lists(SORT_COLUMN, min_size=1, max_size=3, unique_by=lambda column: column.name).map(lambda columns: RowOrder(tuple(columns)))


def table_of(rows):
    return pa.table({name: pa.array([row[at] for row in rows], kind) for at, (name, (kind, _, _)) in enumerate(TYPES.items())})


def value_key(value):
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def compare(order):
    """The model: Spark's comparison of two rows, given as dicts."""

    def of(left, right):
        for column in order.columns:
            a, b = left[column.name], right[column.name]
            if (a is None) != (b is None):
                return -1 if (a is None) == column.nulls_first else 1
            if a is None or value_key(a) == value_key(b):
                continue
            return -1 if (value_key(a) < value_key(b)) == column.ascending else 1
        return 0

    return of


def ranked(table, order):
    """The values of the sort columns, as the model orders them; both zeros spelled alike."""
    rows = sorted(table.to_pylist(), key=cmp_to_key(compare(order)))
    return [[value_key(row[name]) if row[name] is not None else None for name in order.names] for row in rows]


def spelled(table, order):
    return [[value_key(value) if value is not None else None for value in row.values()] for row in table.select(order.names).to_pylist()]


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, order=ORDERS)
def test_rows_are_sorted_as_spark_compares_them(rows, order):
    table = table_of(rows)
    assert spelled(order.sorted(table), order) == ranked(table, order)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, order=ORDERS, limit=st.integers(0, 8), cut=st.integers(1, 5))
def test_the_first_rows_of_a_stream_are_those_of_the_sorted_table(rows, order, limit, cut):
    table = table_of(rows)
    top = TopRows(order, limit)
    for batch in table.to_batches(max_chunksize=cut):
        top.add(batch)
    assert spelled(top.rows(table.schema), order) == ranked(table, order)[:limit]


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, order=ORDERS, limit=st.integers(0, 8), later=ROWS)
def test_a_row_outside_the_bound_is_not_among_the_first(rows, order, limit, later):
    column_type = TYPES[order.columns[0].name][1]
    types = {name: column_type for name, (_, column_type, _) in TYPES.items()}
    everything = table_of([*rows, *later])
    for ties in (False, True):
        top = TopRows(order, limit)
        for batch in table_of(rows).to_batches():
            top.add(batch)
        bound = top.bound(column_type, ties=ties)
        found = table_of(later)
        kept = found if bound == TRUE else found.slice(0, 0) if bound == FALSE else found.filter(mask(bound, found, types))
        for batch in kept.to_batches():
            top.add(batch)
        assert spelled(top.rows(everything.schema), order) == ranked(everything, order)[:limit]


def test_rows_that_tie_keep_their_order():
    table = pa.table({"a": [1, 0, 1, 0], "n": [0, 1, 2, 3]})
    assert RowOrder((SortColumn("a", ascending=False),)).sorted(table)["n"].to_pylist() == [0, 2, 1, 3]


@pytest.mark.parametrize("last", [1, None])
def test_rows_that_tie_in_the_first_of_several_columns_stay_wanted(last):
    kind = TYPES["i"][1]
    top = TopRows(RowOrder((SortColumn("i"), SortColumn("s"))), 2)
    top.add(pa.record_batch({"i": pa.array([last, last], pa.int32()), "s": ["x", "y"]}))
    later = pa.table({"i": pa.array([last, 2], pa.int32())})
    kept = later.filter(mask(top.bound(kind), later, {"i": kind}))
    assert last in kept["i"].to_pylist()


def test_rows_that_tie_in_the_only_column_are_wanted_if_asked_for():
    kind = TYPES["i"][1]
    top = TopRows(RowOrder((SortColumn("i"),)), 2)
    top.add(pa.record_batch({"i": pa.array([0, 1], pa.int32())}))
    later = pa.table({"i": pa.array([0, 1, 2], pa.int32())})
    kept = [later.filter(mask(top.bound(kind, ties=ties), later, {"i": kind}))["i"].to_pylist() for ties in (False, True)]
    assert kept == [[0], [0, 1]]


def test_nested_values_have_no_order():
    with pytest.raises(UnsupportedType):
        RowOrder((SortColumn("a"),)).sorted(pa.table({"a": pa.array([[1], [2]])}))
