"""Long chains of comparisons mean what the parser makes of them, link by link."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter import from_sql
from pyspark_paimon.filter.from_sql import sql_condition

_NAMES = st.sampled_from(
    ["a", "B_1", "`with space`", "date", "interval", "TRUE", "null", "current_date", "m['k']", "a.b", "select", "not a"]
)
_VALUES = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(
        ["1.50", "-0.0", "0", "-7", "'x'", "''", "'a AND b'", "'it''s'", "'back\\\\slash'", "-'x'", "1e3", "7L", "1.", "b", "'a' 'b'"]
    ),
)
_LINKS = st.tuples(
    _NAMES, st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", " LIKE "]), _VALUES, st.sampled_from(["", " "])
)
_PLAIN = st.tuples(
    st.sampled_from(["a", "`b c`"]), st.sampled_from(["=", ">=", "<>"]), st.sampled_from(["1", "-2.5", "'x y'"]), st.just(" ")
)


def _said(text: str) -> object:
    try:
        return sql_condition(text)
    except InvalidFilter as error:
        return str(error)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(_PLAIN, min_size=64, max_size=70), st.lists(_LINKS, max_size=2), st.sampled_from(["AND", "or", " Or", "AND\n"]), st.booleans()
)
def test_a_chain_is_what_the_parser_makes_of_it(plain: list, odd: list, word: str, mixed: bool) -> None:  # type: ignore[type-arg]
    links = [f"{name}{space}{op}{space}{value}" for name, op, value, space in (*plain, *odd)]
    text = f" {word} ".join(links) + (" OR a = 2" if mixed else "")
    found = _said(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(from_sql, "parse_chain", lambda *_: None)
        assert found == _said(text)


def test_of_two_mistakes_in_a_chain_the_one_is_told_that_the_parser_meets_first() -> None:
    for odd in ("select<0 AND current_date <= 'a AND b'", "TRUE>'x' AND current_date == -0.0"):
        text = " AND ".join(["a = 1"] * 70) + f" AND {odd}"
        said = _said(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(from_sql, "parse_chain", lambda *_: None)
            assert said == _said(text)
        assert "CURRENT_DATE" not in str(said)


def test_only_what_is_a_chain_as_a_whole_is_taken_for_one() -> None:
    long = [f"a <> {at}" for at in range(100)]
    taken = [
        from_sql.parse_chain(text, from_sql.sql_condition) is not None
        for text in (
            " AND ".join(long),
            " or ".join(long),
            " AND ".join(long) + " OR a = 1",
            " AND ".join(long) + " AND",
            " AND ".join([*long, "b IS NULL"]),
            " AND ".join(long) + " -- and so on",
            " AND ".join(long).replace("a <> 7 ", "true = 7 "),
            " AND ".join(long[:3]) + " " * 1000,
        )
    ]
    assert taken == [True, True, False, False, False, False, False, False]
