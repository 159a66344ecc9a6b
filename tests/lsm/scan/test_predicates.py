"""What can be said of a filter for a partition, a key, a bucket."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.projection import Projection, only_columns
from fileindex.predicate.tree import FALSE, TRUE, And, ColumnRef, Compare, In, IsNull, Op, Or, StartsWith, all_of, any_of
from lsm.scan.predicates import bind_constants, bucket_keys
from sparkexpr.values.column_type import ColumnType, Kind

TYPES = {
    "a": ColumnType(Kind.INT),
    "b": ColumnType(Kind.INT),
    "d": ColumnType(Kind.DOUBLE),
    "m": ColumnType(Kind.MAP, key=ColumnType(Kind.VARCHAR), value=ColumnType(Kind.INT)),
}
A, B, D = ColumnRef("a"), ColumnRef("b"), ColumnRef("d")


def eq(column, value):
    return Compare(column, Op.EQ, value)


def test_only_whole_conjuncts_over_the_columns_are_kept():
    both = Or((eq(A, 1), eq(B, 2)))
    assert only_columns(And((eq(A, 1), both, eq(B, 2))), {"a"}) == Projection(eq(A, 1), exact=False)
    assert only_columns(both, {"a", "b"}) == Projection(both, exact=True)
    assert only_columns(None, {"a"}) == Projection(TRUE, exact=True)


def test_a_constant_column_decides_its_leaves():
    assert bind_constants(Or((eq(A, 1), eq(B, 2))), {"a": 1}, TYPES) == TRUE
    assert bind_constants(Or((eq(A, 1), eq(B, 2))), {"a": 3}, TYPES) == eq(B, 2)
    assert bind_constants(And((eq(A, 1), eq(B, 2))), {"a": 3}, TYPES) == FALSE


def test_a_missing_column_is_null_also_inside_maps():
    assert bind_constants(eq(A, 1), {"a": None}, TYPES) == FALSE
    assert bind_constants(Compare(A, Op.NE, 1), {"a": None}, TYPES) == FALSE
    assert bind_constants(IsNull(A), {"a": None}, TYPES) == TRUE
    assert bind_constants(IsNull(ColumnRef("m", "k")), {"m": None}, TYPES) == TRUE
    assert bind_constants(IsNull(ColumnRef("m", "k"), negated=True), {"m": None}, TYPES) == FALSE


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (eq(A, 1), [(1,)]),
        (In(A, (1, 2, 1)), [(1,), (2,)]),
        (Or((eq(A, 1), In(A, (2, 3)))), [(1,), (2,), (3,)]),
        (And((In(A, (1, 2)), In(A, (2, 3)), eq(B, 7))), [(2,)]),
        (And((eq(A, 1), eq(A, 2))), None),
        (In(A, (1, 2), negated=True), None),
        (Or((eq(A, 1), eq(B, 1))), None),
        (Or((eq(A, 1), And((eq(A, 2), eq(B, 2))))), None),
        (Compare(A, Op.GE, 1), None),
        (IsNull(A), None),
        (In(A, tuple(range(1001))), None),
        (TRUE, None),
    ],
)
def test_bucket_keys_come_from_equalities_only(predicate, expected):
    assert bucket_keys(predicate, ["a"], TYPES) == expected


def test_every_bucket_key_column_needs_a_value():
    assert bucket_keys(eq(A, 1), ["a", "b"], TYPES) is None
    assert bucket_keys(And((In(A, (1, 2)), eq(B, 3))), ["a", "b"], TYPES) == [(1, 3), (2, 3)]
    assert bucket_keys(And((In(A, tuple(range(40))), In(B, tuple(range(40))))), ["a", "b"], TYPES) is None


def test_zero_is_looked_for_with_both_signs():
    (plus,), (minus,) = bucket_keys(eq(D, 0.0), ["d"], TYPES)
    assert str(plus) == "0.0"
    assert str(minus) == "-0.0"


def test_a_map_entry_is_no_bucket_key():
    assert bucket_keys(eq(ColumnRef("m", "a"), 1), ["m"], TYPES) is None


LEAVES = st.one_of(
    st.builds(Compare, st.sampled_from([A, B]), st.sampled_from(list(Op)), st.integers(-2, 2)),
    st.builds(In, st.sampled_from([A, B]), st.lists(st.integers(-2, 2), max_size=3).map(tuple), st.booleans()),
    st.builds(IsNull, st.sampled_from([A, B]), st.booleans()),
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3).flatmap(lambda c: st.sampled_from([all_of(*c), any_of(*c)])), max_leaves=6
)


@given(TREES, st.none() | st.integers(-2, 2), st.none() | st.integers(-2, 2))
def test_binding_constants_never_changes_the_answer(predicate, a, b):
    import pyarrow as pa

    row = pa.record_batch({"a": pa.array([a], pa.int32()), "b": pa.array([b], pa.int32())})
    expected = mask(predicate, row, TYPES)[0].as_py()
    assert mask(bind_constants(predicate, {"a": a}, TYPES), row, TYPES)[0].as_py() == expected
    assert bind_constants(predicate, {"a": a, "b": b}, TYPES) == (TRUE if expected else FALSE)


def test_a_prefix_on_a_constant_is_decided_too():
    types = {"s": ColumnType(Kind.VARCHAR, length=9)}
    assert bind_constants(StartsWith(ColumnRef("s"), "ab"), {"s": "abc"}, types) == TRUE
    assert bind_constants(StartsWith(ColumnRef("s"), "ab", negated=True), {"s": "abc"}, types) == FALSE
