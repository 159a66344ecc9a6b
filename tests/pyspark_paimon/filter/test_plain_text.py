"""Plain texts mean what the general parser makes of them, and all others are left to it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.tree import ColumnRef
from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.from_sql import SparkFilter, sql_condition
from pyspark_paimon.filter.plain_text import NOT_NAMES, plain_condition
from tests.examples import some

_NAMES = st.sampled_from(
    ["a", "B_1", "`with space`", "`a``b`", "date", "interval", "TRUE", "null", "current_date", "m['k']", "a.b", "select", "not a"]
)
_VALUES = st.integers(-(10**20), 10**20).map(str) | st.sampled_from(
    [
        "1.50",
        "-0.0",
        "0",
        "007",
        "-7",
        "- 7",
        "'x'",
        "''",
        "'a AND b'",
        "'a%'",
        "'_b%c'",
        "'%'",
        "'it''s'",
        "'back\\\\slash'",
        "-'x'",
        "1e3",
        "7L",
        "1.",
        ".5",
        "b",
        "'a' 'b'",
        "NULL",
        "DATE '2024-01-01'",
        "'ü'",
        "?",
        ":p",
    ]
)
_SIGNS = st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"])
_LISTS = st.lists(_VALUES, min_size=1, max_size=4).map(", ".join)
_SPACES = st.sampled_from(["", " ", "  ", "\n", " /* and */ "])
_NOTS = st.sampled_from(["", "", "NOT ", "not\n"])


@st.composite
def terms(draw: st.DrawFn) -> str:
    name, space, no = draw(_NAMES), draw(_SPACES), draw(_NOTS)
    form = draw(st.sampled_from(["sign", "sign", "null", "list", "between", "like"]))
    match form:
        case "sign":
            return f"{name}{space}{draw(_SIGNS)}{draw(_SPACES)}{draw(_VALUES)}"
        case "null":
            return f"{name} {draw(st.sampled_from(['IS NULL', 'is not null', 'IS  NOT NULL', 'ISNULL', 'IS TRUE']))}"
        case "list":
            return f"{name} {no}IN{space}({draw(_LISTS)})"
        case "between":
            return f"{name} {no}BETWEEN {draw(_VALUES)} and {draw(_VALUES)}"
    return f"{name} {no}{draw(st.sampled_from(['LIKE', 'like', 'ILIKE', 'RLIKE']))} {draw(_VALUES)}"


@settings(deadline=None, max_examples=some(400))
@given(
    st.lists(terms(), min_size=1, max_size=4),
    st.sampled_from([" AND ", " or ", " Or\n", "AND ", " AND"]),
    st.sampled_from(["", "", "", " OR a = 2", " AND", " ;", " -- x"]),
)
def test_a_plain_text_is_what_the_parser_makes_of_it(found_terms: list[str], word: str, end: str) -> None:
    text = word.join(found_terms) + end
    plain = plain_condition(text)
    if plain is not None:
        assert plain == sql_condition(text)


def test_simple_filters_need_no_parser() -> None:
    for text in (
        "a = 1",
        "`with space` = 'x'",
        " a>=-1.50 AND b_1 <> 'ü' AND date IS NOT NULL",
        "a IN (1, 2) OR b NOT IN ('x') or c between 1 AND 2",
        "name LIKE 'Os%' AND name NOT LIKE '%o'",
        " AND ".join(f"a <> {at}" for at in range(1_000)),
    ):
        assert plain_condition(text) == sql_condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a = b",
        "a = 1 AND b = 2 OR c = 3",
        "a = 1 AND",
        "(a = 1)",
        "a.b = 1",
        "m['k'] = 1",
        "true = 1",
        "a = 1 -- x",
        "a = TRUE",
        "a = 'it''s'",
    ],
)
def test_other_texts_are_left_to_the_parser(text: str) -> None:
    assert plain_condition(text) is None


@pytest.mark.slow
def test_words_of_the_parser_are_names_where_it_reads_them_as_columns(caplog: pytest.LogCaptureFixture) -> None:
    words = {word.lower() for word in {*SparkFilter.Tokenizer.KEYWORDS, *SparkFilter.Parser.FUNCTIONS} if word.isidentifier()}
    forms = (
        "{} = 0",
        "k < 1 AND {} = 0",
        "{} IN (1, 2)",
        "{} IS NULL",
        "{} LIKE 'a%'",
        "{} BETWEEN 1 AND 2",
        "{} NOT IN (1)",
        "{} <> 'a'",
        "{} IS NOT NULL",
        "{} NOT LIKE 'b'",
    )
    caplog.set_level("CRITICAL")
    assert {word for word in words if not all(_is_column(form, word) for form in forms)} == NOT_NAMES & words
    assert ColumnRef("date") == getattr(plain_condition("date = 1"), "column", None)


def _is_column(form: str, word: str) -> bool:
    try:
        return f"ColumnRef(name='{word}', key=None)" in repr(sql_condition(form.format(word)))
    except InvalidFilter:
        return False
