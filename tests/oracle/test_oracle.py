"""Random tables, filters and questions agree with the model; ``python -m tests.oracle --seeds 1000-2000`` tries many more."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.oracle.cases import Case, run, shrink
from tests.oracle.conditions import Condition, Params, Term
from tests.oracle.drawing import Drawing
from tests.oracle.layouts import draw_spec
from tests.oracle.planted import FAULTS, planted
from tests.oracle.tables import Spec, Step
from tests.oracle.values import TYPES, Names

FIRST_SEED = 2000
SEEDS = range(60)
"""Seeds of the quick tests: 60 tables, about 1,000 questions."""


@pytest.mark.slow("1", "3", "7", "11", "14", "16", "17", "18", "20", "21", "23", "37", "42", "44")  # long histories
@pytest.mark.parametrize("seed", SEEDS)
def test_answers_agree_with_the_model(seed: int) -> None:
    outcome = run(seed, conditions=4, changes=1)
    if outcome.wrong is not None:
        case, text = shrink(outcome.wrong)
        pytest.fail(f"{text}\nThis script repeats it:\n{case.script()}")
    assert outcome.cases == 17


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_answers_agree_with_the_model() -> None:
    for seed in (*range(1000, 1300), *range(FIRST_SEED, FIRST_SEED + 100)):  # also those that show planted faults
        outcome = run(seed)
        assert outcome.wrong is None, f"seed {seed}: {outcome.text}\n{outcome.wrong.script()}"


FIRST_SHOWN = ("statistics-intersect-or", "negated-and-stays-and")
"""Faults that the first tables show."""


@pytest.mark.parametrize("name", FIRST_SHOWN)
def test_a_planted_fault_is_found_at_once(name: str) -> None:
    assert _finds(name, 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "answers-all",
        "statistics-exclude-maximum",
        "columns-by-name",
        "statistics-forget-nulls",
        "nulls-overwrite",
        "widened-values-lose-sign",
    ],
)
def test_a_planted_fault_is_found_in_seconds(name: str) -> None:
    """``answers-all`` deleted rows that did not match."""
    assert _finds(name, 30)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FAULTS)
def test_every_planted_fault_is_found(name: str) -> None:
    assert _finds(name, 400, conditions=20)  # many tables: most faults need a certain kind of table, few a certain filter


def _finds(name: str, tables: int, **how: int) -> bool:
    for seed in range(FIRST_SEED, FIRST_SEED + tables):
        with planted(name):
            wrong = run(seed, **how).wrong
        if wrong is not None:
            assert wrong.failure() is None, f"seed {seed} is wrong without the fault"
            return True
    return False


@pytest.mark.slow
def test_each_fault_replaces_a_function() -> None:
    assert len(FAULTS) >= 40
    for name in FAULTS:
        with planted(name):
            pass


def test_a_table_that_is_not_built_is_a_failure_and_shrinks() -> None:
    spec = replace(draw_spec(random.Random(5)), engine="unknown", options=(("merge-engine", "unknown"), ("bucket", "1")), keys=("id",))
    case, text = shrink(Case(spec, Condition("flag", (), (Term("bo", "literal", (), True),)), "rows", 0), most=60)
    assert text.startswith("not built: ")
    assert not case.spec.steps


NAMES = Names(tuple((ident, ident) for ident in TYPES if ident != "z"), tuple(TYPES.items()))


@pytest.mark.slow
def test_a_failure_shrinks_and_its_script_repeats_it() -> None:
    with planted("statistics-forget-nulls"):
        wrong = next(outcome.wrong for seed in range(FIRST_SEED, FIRST_SEED + 5) if (outcome := run(seed)).wrong is not None)
        case, text = shrink(wrong, most=60)
        assert case.failure() == text
        scope: dict[str, object] = {"print": lambda text: scope.update(printed=text)}
        exec(case.script(), scope)
        assert scope["printed"] == text
    assert sum(len(step.rows) for step in case.spec.steps) < sum(len(step.rows) for step in wrong.spec.steps)


def test_the_model_knows_three_values() -> None:
    x_is_one = Condition("compare", (), (Term("i", "field", (), "x"), Term("i", "literal", (), 1)))
    rows = [{"r": {"x": 1}}, {"r": {"x": 2}}, {"r": {"x": None}}, {"r": None}]
    assert [x_is_one.judge(row) for row in rows] == [True, False, None, None]
    assert [Condition("not", (x_is_one,)).judge(row) for row in rows] == [False, True, None, None]
    assert x_is_one.sql(NAMES, Params()) == "`r`.x = 1"


def test_a_seed_draws_the_same_table_and_filters_each_time() -> None:
    assert draw_spec(random.Random(5)) == draw_spec(random.Random(5))
    first, second = (Drawing(random.Random(5), NAMES).condition().sql(NAMES, Params()) for _ in range(2))
    assert first == second


def test_every_form_of_the_grammar_is_drawn() -> None:
    drawing = Drawing(random.Random(1), NAMES)
    forms: set[str] = set()
    terms: set[str] = set()
    for _ in range(2000):
        waiting = [drawing.condition()]
        while waiting:
            condition = waiting.pop()
            forms.add(condition.form)
            terms |= {term.form for term in condition.terms}
            waiting += condition.parts
    assert forms == {"and", "or", "not", "compare", "in", "null", "between", "like", "contains", "flag"}
    assert {
        "field",
        "path",
        "get",
        "widened",
        "entry",
        "size",
        "length",
        "case",
        "coalesce",
        "concat",
        "substring",
        "upper",
        "lower",
        "trim",
        "cast",
        "%",
    } <= terms


def test_a_spec_without_rows_is_an_empty_table() -> None:
    spec = Spec("append", (), (), (("bucket", "-1"),), (Step("compact", full=True),))
    assert Case(spec, Condition("null", (), (Term("i", "column", (), "i"),)), "rows", 1).failure() is None
