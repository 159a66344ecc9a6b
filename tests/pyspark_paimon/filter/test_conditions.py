"""Conditions of terms: comparisons are found, and no row changes."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import ColumnRef, Op
from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.ast import (
    And,
    Casting,
    Comparison,
    Computation,
    ComputedCondition,
    Constant,
    GivenValue,
    Membership,
    NanTest,
    Not,
    NullSafeEqual,
    NullTest,
    Or,
    Prefix,
    Term,
    Truth,
)
from pyspark_paimon.filter.bind import bind
from pyspark_paimon.filter.conditions import combine, condition_of, terms_of
from pyspark_paimon.filter.from_arrow import arrow_condition, arrow_term
from sparkexpr.values.column_type import ColumnType, Kind
from tests.examples import some

TYPES = {"k": ColumnType(Kind.INT), "x": ColumnType(Kind.DOUBLE), "s": ColumnType(Kind.VARCHAR, length=99), "b": ColumnType(Kind.BOOLEAN)}
VALUES: dict[str, list[Any]] = {
    "k": [None, -(2**31), -1, 0, 3, 2**31 - 1],
    "x": [None, math.nan, -math.inf, -0.0, 0.0, 5e-324, 1.5, math.inf],
    "s": [None, "", "a", "ab", "a%", "a_b", "ä\0", "\U0001f600"],
    "b": [None, True, False],
}
ROWS = pa.record_batch(
    {
        name: pa.array([values[at * step % len(values)] for at in range(120)], TYPES[name].arrow)
        for step, (name, values) in enumerate(VALUES.items(), 1)
    }
)
K, X, S, B = map(ColumnRef, "kxsb")


def of_column(name: str) -> st.SearchStrategy[Term]:
    """Tests of one column with literals of its type."""
    column, values = ColumnRef(name), st.sampled_from(VALUES[name]).map(GivenValue)
    sides = st.tuples(st.just(column), values) | st.tuples(values, st.just(column))
    tests = st.builds(Computation, st.sampled_from([*(op.value for op in Op), "<=>"]), sides)
    tests |= st.builds(lambda items: Computation("in", (column, *items)), st.lists(values, min_size=1, max_size=3))
    tests |= st.just(Computation("isnull", (column,)))
    if name == "x":
        tests |= st.just(Computation("isnan", (column,)))
    if name == "s":
        texts = st.sampled_from([value for value in VALUES["s"] if value is not None]).map(GivenValue)
        tests |= st.builds(lambda text: Computation("startswith", (column, text)), texts)
        tests |= st.builds(lambda text: Computation("like", (column, text, GivenValue("\\"))), texts)
    return tests | st.just(B) | st.sampled_from([None, True, False]).map(GivenValue)


TERMS = st.recursive(
    st.sampled_from("kxsb").flatmap(of_column),
    lambda terms: (
        st.builds(Computation, st.sampled_from(["and", "or"]), st.lists(terms, min_size=2, max_size=3).map(tuple))
        | terms.map(lambda term: Computation("not", (term,)))
        | terms.map(lambda term: Computation("coalesce", (term, GivenValue(False))))
    ),
    max_leaves=6,
)


def selected(condition: Any) -> list[bool]:
    found: list[bool] = mask(bind(condition, TYPES), ROWS, TYPES).to_pylist()
    return found


@given(TERMS)
@settings(max_examples=some(100), deadline=None)
def test_a_condition_selects_the_rows_of_its_term(term: Term) -> None:
    assert selected(condition_of(term)) == selected(ComputedCondition(term))
    negated = Computation("not", (term,))
    assert selected(condition_of(negated)) == selected(ComputedCondition(negated))


@pytest.mark.parametrize(
    ("term", "condition"),
    [
        (K, Truth(K)),
        (GivenValue(None), Constant(None)),
        (Computation("<", (K, GivenValue(3))), Comparison(K, Op.LT, 3)),
        (Computation("<", (GivenValue(3), K)), Comparison(K, Op.GT, 3)),
        (Computation("<", (K, Computation("+", (GivenValue(1), GivenValue(2))))), Comparison(K, Op.LT, 3)),
        (Computation("in", (K, Casting(GivenValue("1"), TYPES["k"]))), Membership(K, (1,))),
        (Computation("<=>", (GivenValue(None), K)), NullSafeEqual(K, None)),
        (Computation("in", (K, GivenValue(1), GivenValue(None))), Membership(K, (1, None))),
        (Computation("isnull", (K,)), NullTest(K)),
        (Computation("isnan", (X,)), NanTest(X)),
        (Computation("startswith", (S, GivenValue("a"))), Prefix(S, "a")),
        (Computation("like", (S, GivenValue("a%"), GivenValue("\\"))), Prefix(S, "a")),
        (Computation("and", (B, GivenValue(True))), And((Truth(B), Constant(True)))),
        (Computation("or", (B, Computation("not", (B,)))), Or((Truth(B), Not(Truth(B))))),
    ],
    ids=str,
)
def test_comparisons_with_literals_are_found(term: Term, condition: object) -> None:
    assert condition_of(term) == condition
    assert condition_of(condition_of(term)) == condition


@pytest.mark.parametrize(
    "term",
    [
        Computation("<", (K, X)),
        Computation("in", (K, X)),
        Computation("+", (K, K)),
        Computation("coalesce", (Computation("isnull", (K,)), B)),
    ],
    ids=str,
)
def test_others_are_computed(term: Term) -> None:
    assert condition_of(term) == ComputedCondition(term)


@pytest.mark.parametrize("value", [3, "true", Decimal(1)])
def test_other_literals_are_no_conditions(value: Any) -> None:
    with pytest.raises(InvalidFilter, match="is not a condition"):
        bind(condition_of(GivenValue(value)), TYPES)


def test_patterns_are_texts() -> None:
    with pytest.raises(InvalidFilter, match="a pattern must be a text, not 3"):
        condition_of(Computation("startswith", (S, GivenValue(3))))


def test_terms_are_combined_to_terms_and_conditions_to_conditions() -> None:
    test = NullTest(K)
    assert combine("and", (B, B)) == Computation("and", (B, B))
    assert combine("or", (B, test)) == Or((Truth(B), test))
    assert combine("not", (test,)) == Not(test)
    assert terms_of((B, test)) is None


def test_lists_of_arrow_stay_arrays_and_cannot_be_computed() -> None:
    listed = pc.field("k").isin([1, 2])
    assert isinstance(arrow_condition(listed), And)
    assert selected(arrow_condition(listed | pc.field("b"))) == selected(
        ComputedCondition(
            Computation("or", (Computation("coalesce", (Computation("in", (K, GivenValue(1), GivenValue(2))), GivenValue(False))), B))
        )
    )
    with pytest.raises(InvalidFilter, match="test of a list"):
        arrow_term(listed, ColumnRef)
    with pytest.raises(InvalidFilter, match="test of a list inside 'coalesce'"):
        arrow_condition(pc.coalesce(listed, pc.scalar(False)))


@pytest.mark.parametrize("function", [pc.starts_with, pc.match_like, pc.ends_with, pc.match_substring])
def test_arrow_patterns_that_ignore_case_are_refused(function: Any) -> None:
    for column in (pc.field("s"), pc.utf8_lower(pc.field("s"))):
        with pytest.raises(InvalidFilter, match="with these options is not supported"):
            arrow_condition(function(column, "a", ignore_case=True))
        arrow_condition(function(column, "a"))
