"""Old files under new schemas: by id, with nulls and casts, and refusals that name the column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from fileindex.predicate.projection import UNKNOWN, Projection
from fileindex.predicate.tree import FALSE, And, ColumnRef, Compare, IsNull, Op, Or
from lsm.schema.evolution import SchemaMapping, can_cast, is_same, to_read_schema
from manifest.io.errors import UnsupportedTable
from manifest.types.cast_rules import keeps_order
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import Kind

INT, BIGINT, STRING = DataType(Kind.INT), DataType(Kind.BIGINT), DataType(Kind.VARCHAR, length=2**31 - 1)
DOUBLE, FLOAT, DATE = DataType(Kind.DOUBLE), DataType(Kind.FLOAT), DataType(Kind.DATE)


def decimal(precision, scale):
    return DataType(Kind.DECIMAL, precision=precision, scale=scale)


def timestamp(precision):
    return DataType(Kind.TIMESTAMP, precision=precision)


def row(*fields):
    return DataType(Kind.ROW, fields=tuple(DataField(*field) for field in fields))


def array_of(element):
    return DataType(Kind.ARRAY, element=element)


def map_of(key, value):
    return DataType(Kind.MAP, key=key, value=value)


LOSSLESS = [
    (INT, BIGINT, [1, None, -5], [1, None, -5]),
    (INT, DOUBLE, [3], [3.0]),
    (BIGINT, FLOAT, [16777217], [16777216.0]),
    (FLOAT, DOUBLE, [0.5], [0.5]),
    (INT, decimal(12, 2), [7, -2147483648], [Decimal("7.00"), Decimal("-2147483648.00")]),
    (BIGINT, decimal(38, 18), [9223372036854775807], [Decimal("9223372036854775807.000000000000000000")]),
    (decimal(5, 2), decimal(10, 4), [Decimal("1.25")], [Decimal("1.2500")]),
    (decimal(5, 2), DOUBLE, [Decimal("1.25")], [1.25]),
    (DATE, timestamp(3), [dt.date(2020, 1, 2)], [dt.datetime(2020, 1, 2)]),  # noqa: DTZ001 -- a zoneless type
    (timestamp(3), timestamp(6), [dt.datetime(2020, 1, 2, 3)], [dt.datetime(2020, 1, 2, 3)]),  # noqa: DTZ001
    (INT, STRING, [12, None], ["12", None]),
    (DataType(Kind.BOOLEAN), STRING, [True, False], ["true", "false"]),
    (DataType(Kind.VARCHAR, length=3), DataType(Kind.VARCHAR, length=9), ["abc"], ["abc"]),
]


@pytest.mark.parametrize(("old", "new", "values", "expected"), LOSSLESS, ids=lambda v: str(v) if isinstance(v, DataType) else "")
def test_values_of_an_old_type_read_as_the_new_one(old, new, values, expected):
    assert can_cast(old, new)
    found = to_read_schema(pa.array(values, old.arrow), old, new)
    assert found.type == new.arrow
    assert found.to_pylist() == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (DATE, INT),
        (DOUBLE, timestamp(3)),
        (DataType(Kind.BOOLEAN), DATE),
        (DataType(Kind.TIME, precision=3), DataType(Kind.TIME)),
        (array_of(INT), STRING),
        (array_of(DATE), array_of(INT)),
        (map_of(INT, INT), map_of(BIGINT, INT)),
    ],
)
def test_a_change_without_a_cast_is_refused_and_names_the_column(old, new):
    mapping = SchemaMapping.of([DataField(1, "c", new)], [DataField(1, "c", old)], 3)
    with pytest.raises(UnsupportedTable, match=r"'c'.*schema 3"):
        mapping.check(["c"])


def test_columns_map_by_id_through_renames_drops_and_reuse_of_a_name():
    old = [DataField(0, "id", INT), DataField(1, "a", INT), DataField(2, "b", STRING)]
    new = [DataField(0, "id", INT), DataField(1, "a2", BIGINT), DataField(3, "c", INT), DataField(4, "b", INT)]
    mapping = SchemaMapping.of(new, old, 0)
    assert {name: source and source.name for name, source in mapping.sources.items()} == {"id": "id", "a2": "a", "c": None, "b": None}


def test_nested_fields_map_by_id_too_and_missing_ones_are_null():
    old = array_of(row((10, "x", INT), (11, "y", STRING)))
    new = array_of(row((11, "z", STRING), (12, "w", DOUBLE), (10, "x", BIGINT)))
    values = pa.array([[{"x": 1, "y": "a"}, None], None, [], [{"x": None, "y": "b"}]], old.arrow)
    for array in (values, values.slice(1), values.slice(3, 1)):
        found = to_read_schema(array, old, new)
        assert found.type == new.arrow
        expected = [
            None if rows is None else [None if r is None else {"z": r["y"], "w": None, "x": r["x"]} for r in rows]
            for rows in array.to_pylist()
        ]
        assert found.to_pylist() == expected


def test_a_row_of_dropped_fields_only_is_null_as_paimon_reads_it():
    old, new = row((3, "a", INT)), row((4, "a", INT))
    lists = pa.array([[{"a": 1}], [], None], array_of(old).arrow)
    assert to_read_schema(lists, array_of(old), array_of(new)).to_pylist() == [None] * 3
    beside_old, beside_new = row((1, "kept", INT), (2, "inner", old)), row((1, "kept", INT), (2, "inner", new))
    rows = pa.array([{"kept": 1, "inner": {"a": 1}}, None, {"kept": None, "inner": None}], beside_old.arrow)
    assert to_read_schema(rows, beside_old, beside_new).to_pylist() == [{"kept": 1, "inner": None}, None, {"kept": None, "inner": None}]


def test_maps_and_multisets_convert_inside():
    old, new = map_of(STRING, row((5, "x", INT))), map_of(STRING, row((5, "y", BIGINT)))
    values = pa.array([[("k", {"x": 1})], None, [("l", None)]], old.arrow)
    assert to_read_schema(values.slice(1), old, new).to_pylist() == [None, [("l", None)]]
    assert to_read_schema(values, old, new).to_pylist()[0] == [("k", {"y": 1})]
    bag, wide = DataType(Kind.MULTISET, element=INT), DataType(Kind.MULTISET, element=BIGINT)
    assert to_read_schema(pa.array([[(3, 2)]], bag.arrow), bag, wide).to_pylist() == [[(3, 2)]]


def test_a_predicate_on_the_file_says_only_what_is_true_of_it():
    old = [DataField(1, "a", INT), DataField(2, "m", map_of(STRING, INT)), DataField(3, "w", INT), DataField(5, "t", INT)]
    new = [DataField(1, "b", INT), DataField(2, "n", map_of(STRING, INT)), DataField(3, "w", BIGINT), DataField(5, "t", STRING)]
    mapping = SchemaMapping.of([*new, DataField(4, "x", INT)], old, 0)
    on_b, on_w, on_t = Compare(ColumnRef("b"), Op.GT, 1), Compare(ColumnRef("w"), Op.EQ, 5), Compare(ColumnRef("t"), Op.EQ, "5")
    assert mapping.to_file(on_b) == Projection(Compare(ColumnRef("a"), Op.GT, 1), exact=True)
    assert mapping.to_file(Or((on_b, on_t))) == UNKNOWN
    assert mapping.to_file(And((on_t, IsNull(ColumnRef("n", "k"))))) == Projection(IsNull(ColumnRef("m", "k")), exact=False)
    assert mapping.to_file(IsNull(ColumnRef("x"))) == UNKNOWN
    assert mapping.to_file(Or((on_b, on_w))) == Projection(Or((Compare(ColumnRef("a"), Op.GT, 1), on_w)), exact=True)
    assert mapping.to_file(Compare(ColumnRef("w"), Op.EQ, 2**40)) == Projection(FALSE, exact=True)


def test_bounds_follow_casts_that_keep_the_order_and_are_unknown_after_others():
    new = [DataField(1, "a", decimal(12, 1)), DataField(2, "s", STRING), DataField(3, "n", INT), DataField(4, "t", timestamp(6))]
    mapping = SchemaMapping.of(new, [DataField(1, "a", INT), DataField(2, "s", INT), DataField(4, "t", timestamp(3))], 0)
    assert mapping.bound("a", 12) == (120, True)
    assert mapping.bound("s", 12) == (None, False)
    assert mapping.bound("n", None) == (None, True)
    assert mapping.bound("t", -1) == (-1000, True)
    assert keeps_order(INT, BIGINT)
    assert not keeps_order(INT, STRING)


def test_length_and_nullability_do_not_make_a_type_another():
    assert is_same(DataType(Kind.VARCHAR, nullable=False, length=3), STRING)
    assert is_same(timestamp(4), timestamp(6))
    assert not is_same(timestamp(3), timestamp(4))
    assert not is_same(timestamp(6), timestamp(4))
    assert not is_same(DataType(Kind.VARCHAR, length=9), DataType(Kind.VARCHAR, length=3))
    assert not is_same(DataType(Kind.CHAR, length=3), DataType(Kind.CHAR, length=9))
    assert not is_same(INT, BIGINT)


def test_a_number_that_is_no_time_of_a_day_is_told():
    time = DataType(Kind.TIME, precision=3)
    assert to_read_schema(pa.array([86_399_999, None], pa.int32()), time, time).type == pa.time32("ms")
    with pytest.raises(pa.ArrowInvalid, match="86400000"):
        to_read_schema(pa.array([86_400_000], pa.int32()), time, time)
