"""The exact filter against the row-by-row model, for every type and every way Arrow may hold a column."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import FALSE, TRUE, And, ColumnRef, Compare, In, IsNull, Op, Or, StartsWith, negate
from paimon_base.errors import InvalidFilter, UnknownColumn, UnsupportedType
from sparkexpr.values.column_type import ColumnType, Kind
from tests.fileindex.index_models import ATOMIC_TYPES, arrow_column, columns, leaves_on, literals, matches, trees, type_name

A = ColumnRef("a")
TEXT = ColumnType(Kind.VARCHAR)
DOUBLE = ColumnType(Kind.DOUBLE)
TEXT_TO_LONG = ColumnType(Kind.MAP, key=TEXT, value=ColumnType(Kind.BIGINT))


def rows(predicate, array, column_type):
    found = mask(predicate, pa.record_batch({"a": array}), {"a": column_type})
    assert found.null_count == 0
    return np.flatnonzero(found.to_numpy(zero_copy_only=False)).tolist()


def other_forms(array):
    """The same column as Arrow may also hold it."""
    yield array
    yield pa.concat_arrays([array, array])[len(array) :]
    yield array.dictionary_encode()
    if pa.types.is_string(array.type):
        yield array.cast(pa.large_string())
        yield array.cast(pa.string_view())
        yield array.dictionary_encode().cast(pa.dictionary(pa.int16(), pa.large_string()))
    if pa.types.is_binary(array.type):
        yield array.cast(pa.large_binary())
        yield array.cast(pa.binary_view())


@pytest.mark.parametrize("column_type", ATOMIC_TYPES, ids=type_name)
def test_the_mask_is_true_exactly_where_the_model_says_so(column_type):
    @settings(max_examples=30, deadline=None)
    @given(columns(column_type), trees(leaves_on(A, column_type)))
    def check(values, predicate):
        expected = [row for row, value in enumerate(values) if matches(predicate, {A: value})]
        for array in other_forms(arrow_column(values, column_type)):
            assert rows(predicate, array, column_type) == expected, array.type

    check()


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(ATOMIC_TYPES).flatmap(lambda kind: st.tuples(st.just(kind), columns(kind), trees(leaves_on(A, kind)))))
def test_a_predicate_and_its_negation_never_match_the_same_row_and_miss_only_nulls(case):
    column_type, values, predicate = case
    array = arrow_column(values, column_type)
    yes, no = set(rows(predicate, array, column_type)), set(rows(negate(predicate), array, column_type))
    assert not yes & no
    assert {row for row, value in enumerate(values) if value is not None} <= yes | no


ENTRIES = st.lists(st.tuples(st.sampled_from(["k", "j", ""]), st.none() | literals(TEXT_TO_LONG.value)), max_size=5)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.none() | ENTRIES, max_size=20), st.integers(0, 5), trees(leaves_on(ColumnRef("m", "k"), TEXT_TO_LONG.value)))
def test_a_map_entry_is_the_last_value_of_its_key_and_null_where_there_is_none(maps, skipped, predicate):
    array = pa.array(maps, TEXT_TO_LONG.arrow)[skipped:]
    found = mask(predicate, pa.record_batch({"m": array}), {"m": TEXT_TO_LONG}).to_pylist()
    expected = [matches(predicate, {ColumnRef("m", "k"): dict(entries or ()).get("k")}) for entries in maps[skipped:]]
    assert found == expected


def test_a_null_map_matches_nothing_even_if_entries_lie_under_it():
    entries = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["k", "k"]), pa.array([1, 1]), mask=pa.array([True, False]))
    found = mask(Compare(ColumnRef("m", "k"), Op.EQ, 1), pa.record_batch({"m": entries}), {"m": TEXT_TO_LONG})
    assert found.to_pylist() == [False, True]


def test_nan_equals_itself_and_is_greater_than_infinity():
    array = pa.array([math.nan, math.inf, 0.0, None])
    assert rows(Compare(A, Op.EQ, math.nan), array, DOUBLE) == [0]
    assert rows(Compare(A, Op.GT, math.inf), array, DOUBLE) == [0]
    assert rows(Compare(A, Op.LT, math.nan), array, DOUBLE) == [1, 2]
    assert rows(In(A, (math.nan,), negated=True), array, DOUBLE) == [1, 2]


def test_the_two_zeros_are_equal():
    array = pa.array([0.0, -0.0, 1.0])
    assert rows(Compare(A, Op.EQ, -0.0), array, DOUBLE) == [0, 1]
    assert rows(Compare(A, Op.LT, 0.0), array, DOUBLE) == []
    assert rows(In(A, (0.0,)), array, DOUBLE) == [0, 1]


def test_a_float_column_is_compared_with_the_literal_itself_not_with_its_rounding():
    array = pa.array([0.1], pa.float32())
    kind = ColumnType(Kind.FLOAT)
    assert rows(Compare(A, Op.EQ, 0.1), array, kind) == []
    assert rows(Compare(A, Op.GT, 0.1), array, kind) == [0]
    assert rows(In(A, (0.1, float(np.float32(0.1)))), array, kind) == [0]


def test_texts_are_ordered_by_utf8_bytes():
    assert rows(Compare(A, Op.GT, "\uffff"), pa.array(["😀", "\uffff", "z"]), TEXT) == [0]


def test_a_table_of_several_chunks_gives_a_mask_of_its_rows():
    table = pa.table({"a": pa.chunked_array([[1, 2], [], [3]])})
    found = mask(Compare(A, Op.GE, 2), table, {"a": ColumnType(Kind.BIGINT)})
    assert found.to_pylist() == [False, True, True]
    empty = mask(Compare(A, Op.GE, 2), table.slice(0, 0), {"a": ColumnType(Kind.BIGINT)})
    assert (empty.type, len(empty)) == (pa.bool_(), 0)


def test_no_filter_keeps_all_rows_and_an_empty_or_none():
    array = pa.array([1, None])
    kind = ColumnType(Kind.BIGINT)
    assert rows(TRUE, array, kind) == [0, 1]
    assert rows(FALSE, array, kind) == []
    assert rows(And((TRUE, Or((TRUE, FALSE)))), array, kind) == [0, 1]


def test_is_null_works_on_nested_columns():
    array = pa.array([[1], None])
    assert rows(IsNull(A), array, ColumnType(Kind.ARRAY)) == [1]


def test_a_column_that_the_table_lacks_is_named():
    with pytest.raises(UnknownColumn, match="unknown column 'b'"):
        rows(IsNull(ColumnRef("b")), pa.array([1]), ColumnType(Kind.INT))


@pytest.mark.parametrize(
    ("predicate", "column_type"),
    [
        (Compare(A, Op.EQ, "x"), ColumnType(Kind.INT)),
        (Compare(A, Op.EQ, True), ColumnType(Kind.INT)),
        (Compare(A, Op.EQ, 1), DOUBLE),
        (Compare(A, Op.EQ, 2**40), ColumnType(Kind.INT)),
        (Compare(A, Op.EQ, None), ColumnType(Kind.INT)),
        (In(A, (1, None)), ColumnType(Kind.INT)),
        (StartsWith(A, "1"), ColumnType(Kind.INT)),
        (IsNull(ColumnRef("a", "k")), ColumnType(Kind.INT)),
    ],
)
def test_a_literal_or_operation_of_another_type_is_refused(predicate, column_type):
    with pytest.raises(InvalidFilter):
        rows(predicate, pa.array([1, 2], pa.int32()).cast(column_type.arrow), column_type)


def test_an_arrow_column_of_another_type_is_refused():
    with pytest.raises(UnsupportedType, match="cannot hold a column of type DATE"):
        rows(Compare(A, Op.EQ, 1), pa.array(["x"]), ColumnType(Kind.DATE))


def test_prefixes_are_compared_character_by_character():
    array = pa.array(["é", "e", "", None, "éa"])
    assert rows(StartsWith(A, "é"), array, TEXT) == [0, 4]
    assert rows(StartsWith(A, ""), array, TEXT) == [0, 1, 2, 4]
    assert rows(StartsWith(A, "é", negated=True), array, TEXT) == [1, 2]
