"""Values of ``:name`` and ``?`` become literals that mean the same values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table
from pyspark_paimon.plugins.sql.text.parameters import with_parameters

UTC = dt.UTC
VALUES: list[tuple[Any, str]] = [
    (None, "NULL"),
    (True, "TRUE"),
    (np.bool_(False), "FALSE"),
    (-5, "-5"),
    (2**40, "1099511627776"),
    (np.int16(7), "7"),
    (1.5, "1.5E0"),
    (1e22, "1e+22"),
    (float("nan"), "double('nan')"),
    (float("-inf"), "double('-inf')"),
    (Decimal("1.50"), "CAST('1.50' AS DECIMAL(3, 2))"),
    (Decimal("0.001"), "CAST('0.001' AS DECIMAL(3, 3))"),
    (Decimal("1E+3"), "CAST('1000' AS DECIMAL(4, 0))"),
    ("it's", "'it''s'"),
    (b"\x00\xff", "X'00ff'"),
    (dt.date(2026, 1, 31), "DATE'2026-01-31'"),
    (dt.datetime(2026, 1, 31, 1, 2, 3, 4), "TIMESTAMP_NTZ'2026-01-31 01:02:03.000004'"),  # noqa: DTZ001
    (dt.datetime(2026, 1, 31, tzinfo=UTC), "TIMESTAMP_LTZ'2026-01-31 00:00:00+00:00'"),
    ([1, "a"], "array(1, 'a')"),
]


@pytest.mark.parametrize(("value", "literal"), VALUES, ids=repr)
def test_a_value_becomes_a_literal(value: Any, literal: str) -> None:
    assert with_parameters("SELECT :v, :v", {"v": value}) == f"SELECT {literal}, {literal}"
    assert with_parameters("SELECT ?, 1", (value,)) == f"SELECT {literal}, 1"


@given(st.text(), st.text(alphabet="'\\:?%x \n"))
def test_any_text_is_found_by_its_literal(first: str, second: str) -> None:
    texts = [text for text in (first, second) if text.isprintable() or "\n" in text]
    table = Table.create("memory://parameters/t", "s STRING", if_not_exists=True)
    table.write([{"s": text} for text in texts], mode="overwrite")
    for text in texts:
        condition = with_parameters("s = :text", {"text": text})
        assert set(table.scan(condition).to_arrow()["s"].to_pylist()) == {text}, condition


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        ("SELECT ':a' /* :a */ FROM t WHERE m[':a'] = :a -- :a", {"a": 1}, "SELECT ':a' /* :a */ FROM t WHERE m[':a'] = 1 -- :a"),
        ("SELECT a::int, x.b:c, `d`:e FROM t", {}, "SELECT a::int, x.b:c, `d`:e FROM t"),
        ("SELECT '?' FROM t WHERE a=? AND b=?", [1, 2], "SELECT '?' FROM t WHERE a=1 AND b=2"),
        ("SELECT :a", {"a": 1, "more": 2}, "SELECT 1"),
    ],
)
def test_only_parameters_are_replaced(text: str, args: Any, expected: str) -> None:
    assert with_parameters(text, args) == expected


@pytest.mark.parametrize(
    ("text", "args", "words"),
    [
        ("SELECT :a, :b", {"a": 1}, r"':b' at position 12 has no value in args: a"),
        ("SELECT ?, ?", [1], r"'\?' number 2 at position 11"),
        ("SELECT ?", [1, 2], r"the statement has 1 '\?', but args has 2 values"),
        ("SELECT :a", {"a": object()}, "'a' is object: give None, bool"),
        ("SELECT :a", {"a": Decimal("NaN")}, "'a' is Decimal"),
        ("SELECT :a", "a", "must be a dict"),
    ],
)
def test_a_missing_or_odd_value_is_refused(text: str, args: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        with_parameters(text, args)


def test_backslashes_are_plain_where_the_session_says_so() -> None:
    assert with_parameters("SELECT :p", {"p": "a\\b"}) == "SELECT 'a\\\\b'"
    assert with_parameters("SELECT :p", {"p": "a\\b"}, lambda: False) == "SELECT CAST(X'615c62' AS STRING)"


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        ("DELETE FROM t WHERE v > 3 -:n AND day = 1", {"n": -5}, "DELETE FROM t WHERE v > 3 - -5 AND day = 1"),
        ("SELECT 3-?", [-5.5], "SELECT 3- -5.5E0"),
        ("SELECT id=?AND x LIMIT?", [3, 1], "SELECT id=3 AND x LIMIT 1"),
        ("SELECT LIMIT:n", {"n": 1}, "SELECT LIMIT 1"),
        ("SELECT CAST(x AS STRUCT<date:STRING>), :n", {"n": 1}, "SELECT CAST(x AS STRUCT<date:STRING>), 1"),
    ],
)
def test_a_literal_joins_no_neighbour(text: str, args: Any, expected: str) -> None:
    assert with_parameters(text, args) == expected


def test_a_numpy_time_becomes_no_number() -> None:
    assert with_parameters("?", [np.datetime64("2026-01-31T01:02:03")]) == "TIMESTAMP_NTZ'2026-01-31 01:02:03'"
    with pytest.raises(InvalidArgument, match="datetime64"):
        with_parameters("?", [np.datetime64("2026-01-31", "ns")])
