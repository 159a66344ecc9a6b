"""Plain values: scalars and arrays in both directions, for every type, exactly."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings

from paimon_base.errors import InvalidFilter, UnsupportedType
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.plain_value import from_scalar, is_plain, plain_array, to_scalar
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, literals, type_name

DECIMAL = ColumnType(Kind.DECIMAL, precision=5, scale=2)


def same(left, right):
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("column_type", ATOMIC_TYPES, ids=type_name)
def test_a_literal_becomes_a_scalar_of_the_columns_arrow_type_and_comes_back(column_type):
    @settings(max_examples=20, deadline=None)
    @given(literals(column_type))
    def check(value):
        scalar = to_scalar(value, column_type)
        assert scalar.type == column_type.arrow
        assert same(from_scalar(scalar, column_type), value)

    check()
    assert from_scalar(to_scalar(None, column_type), column_type) is None


@pytest.mark.parametrize("column_type", ATOMIC_TYPES, ids=type_name)
def test_the_physical_form_of_an_array_is_its_plain_values(column_type):
    @settings(max_examples=15, deadline=None)
    @given(columns(column_type))
    def check(values):
        array = arrow_column([None, *values], column_type)[1:]
        physical = plain_array(array, column_type)
        found = [int(value) if isinstance(value, Decimal) else value for value in physical.to_pylist()]
        assert all(map(same, found, values))
        doubled = plain_array(pa.chunked_array([array, array]), column_type)
        assert [chunk.to_string() for chunk in doubled.chunks] == [physical.to_string()] * 2

    check()


def test_what_people_know_the_values_as():
    assert from_scalar(pa.scalar(dt.date(1969, 12, 31)), ColumnType(Kind.DATE)) == -1
    assert from_scalar(pa.scalar(Decimal("-3.00")), DECIMAL) == -300
    assert from_scalar(pa.scalar(dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)), ColumnType(Kind.TIMESTAMP_LTZ, precision=3)) == 1000
    assert to_scalar(86_399_999, ColumnType(Kind.TIME)).as_py() == dt.time(23, 59, 59, 999000)


@pytest.mark.parametrize(
    ("value", "column_type"),
    [
        (128, ColumnType(Kind.TINYINT)),
        (-32769, ColumnType(Kind.SMALLINT)),
        (2**31, ColumnType(Kind.INT)),
        (2**63, ColumnType(Kind.BIGINT)),
        (86_400_000, ColumnType(Kind.TIME)),
        (-1, ColumnType(Kind.TIME)),
        (100_000, DECIMAL),
        (1.0, ColumnType(Kind.INT)),
        (1, ColumnType(Kind.DOUBLE)),
        (True, ColumnType(Kind.INT)),
        (1, ColumnType(Kind.BOOLEAN)),
        ("a", ColumnType(Kind.VARBINARY)),
        (b"a", ColumnType(Kind.VARCHAR)),
        ("\ud800", ColumnType(Kind.VARCHAR)),
    ],
)
def test_a_value_of_another_type_or_range_is_refused(value, column_type):
    assert not is_plain(value, column_type)
    with pytest.raises(InvalidFilter, match=column_type.kind):
        to_scalar(value, column_type)


def test_a_scalar_that_loses_digits_is_refused():
    with pytest.raises(InvalidFilter):
        from_scalar(pa.scalar(Decimal("1.234")), DECIMAL)
    with pytest.raises(InvalidFilter):
        from_scalar(pa.scalar("x"), ColumnType(Kind.INT))


def test_an_array_of_a_type_that_the_column_cannot_have_is_refused():
    for array, column_type in [
        (pa.array(["x"]), ColumnType(Kind.INT)),
        (pa.array([1, 2]), ColumnType(Kind.DATE)),
        (pa.array([[1]]), DECIMAL),
    ]:
        with pytest.raises(UnsupportedType, match="cannot hold a column"):
            plain_array(array, column_type)


def test_dictionaries_views_and_run_ends_are_expanded():
    text = pa.array(["a", None, "a"])
    kind = ColumnType(Kind.VARCHAR)
    forms = [text.dictionary_encode(), text.cast(pa.large_string()), text.cast(pa.string_view()), text.dictionary_encode().cast(text.type)]
    forms.append(pa.RunEndEncodedArray.from_arrays([1, 2, 3], text))
    assert all(plain_array(form, kind).to_pylist() == ["a", None, "a"] for form in forms)


def test_an_empty_chunked_array_keeps_its_physical_type():
    assert plain_array(pa.chunked_array([], pa.date32()), ColumnType(Kind.DATE)).type == pa.int32()
