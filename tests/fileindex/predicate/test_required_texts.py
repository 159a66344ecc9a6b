"""Texts that a condition requires: every row that matches contains them, whatever the pattern, and what is not proven is not required."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.required_texts import _MAPPED_CASE, AllOf, AnyOf, Contains, required_texts
from fileindex.predicate.tree import ColumnRef, ComputedPredicate
from paimon_base.errors import InvalidFilter
from sparkexpr.expression.functions import call
from sparkexpr.expression.tree import ColumnValue, LiteralValue
from sparkexpr.expression.types import TEXT_TYPE
from sparkexpr.values.column_type import ColumnType, Kind

S = ColumnValue("s", None, TEXT_TYPE)
TYPES = {"s": ColumnType(Kind.VARCHAR, length=2**31 - 1)}
LETTERS = "abkKiAßſİ\u212aσςΣé\u0307😀 \n%_.\\"
TEXTS = st.lists(st.none() | st.text(LETTERS, max_size=8), min_size=1, max_size=12)


def text(value: str) -> LiteralValue:
    return LiteralValue(value, TEXT_TYPE)


def like(value, pattern: str):
    return call("like", [value, text(pattern), text("\\")])


def required(test):
    return required_texts(ComputedPredicate(test))


def holds(requirement, value: str) -> bool:
    match requirement:
        case None:
            return True
        case Contains(ColumnRef("s", None), texts):
            return all(part.lower() in value.encode().lower() for part in texts)
        case AllOf(children):
            return all(holds(child, value) for child in children)
        case AnyOf(children):
            return any(holds(child, value) for child in children)
    raise AssertionError(requirement)


def sound(test, values: list[str | None]) -> None:
    predicate = ComputedPredicate(test)
    batch = pa.record_batch({"s": pa.array(values, pa.string())})
    matching = [value for value, found in zip(values, mask(predicate, batch, TYPES).to_pylist(), strict=True) if found]
    requirement = required_texts(predicate)
    assert not [value for value in matching if not holds(requirement, value)], requirement


def wrapped(draw, depth: int = 2):
    value = S
    for name in draw(st.lists(st.sampled_from(["lower", "upper", "trim", "ltrim", "rtrim", "substring", "reverse"]), max_size=depth)):
        value = call(name, [value, LiteralValue(draw(st.integers(-3, 3)), ColumnType(Kind.INT))] if name == "substring" else [value])
    return value


@st.composite
def patterns(draw):
    """A condition that is a LIKE, a part, an equality or an RLIKE of a function of the column, and values near it."""
    kind = draw(st.sampled_from(["like", "contains", "startswith", "endswith", "=", "in", "rlike"]))
    value = wrapped(draw)
    if kind == "rlike":
        regex = st.recursive(
            st.sampled_from([*"abkKiA ", "é", "😀", "ß", ".", r"\.", "[ab]", "[^a]", r"\d", r"\Qa.b\E", "^", "(?:ab)", "K"]),
            lambda parts: st.one_of(
                st.tuples(parts, parts).map("".join),
                st.tuples(parts, parts).map(lambda two: f"(?:{two[0]}|{two[1]})"),
                st.tuples(parts, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "+?"])).map(
                    lambda two: f"(?:{two[0]}){two[1]}"
                ),
                st.tuples(st.sampled_from("abk"), st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{3,}"])).map("".join),
            ),
            max_leaves=6,
        )
        pattern = draw(st.sampled_from(["", "(?i)", "(?s)"])) + draw(regex) + draw(st.sampled_from(["", "$"]))
        return call("rlike", [value, text(pattern)])
    literal = draw(st.text(LETTERS, max_size=4))
    if kind == "like":
        return like(value, draw(st.lists(st.sampled_from([*"abkKiA ß", "%", "_", "\\%", "ab", "😀"]), max_size=6).map("".join)))
    if kind == "in":
        return call("in", [value, text(literal), text(draw(st.text(LETTERS, max_size=3)))])
    return call(kind, [value, text(literal)])


@settings(max_examples=400, deadline=None)
@given(st.data(), TEXTS)
def test_each_matching_row_contains_what_is_required(data, values):
    parts = []
    for _ in range(data.draw(st.integers(1, 3))):
        try:
            parts.append(data.draw(patterns()))
        except InvalidFilter:
            parts.append(like(S, "%ab%"))
    test = parts[0] if len(parts) == 1 else call(data.draw(st.sampled_from(["and", "or"])), parts)
    near = [str(one.value) for part in parts for one in part.arguments[1:] if isinstance(one, LiteralValue) and one.type == TEXT_TYPE]
    sound(test, [*values, *near, *(value.upper() for value in near), *(value.lower() for value in near), "ab aab aabb KAB k\u212a"])


@pytest.mark.parametrize(
    ("test", "texts"),
    [
        (like(S, "%abc%d_e%"), (b"abc", b"d", b"e")),
        (like(S, r"a\%b\_%"), (b"a%b_",)),
        (call("contains", [S, text("é😀")]), ("é😀".encode(),)),
        (call("rlike", [S, text("^ab+c?d")]), (b"ab", b"b", b"d")),
        (call("rlike", [S, text("x{3}y")]), (b"xxxy",)),
        (call("rlike", [S, text("(?i)aBc")]), (b"abc",)),
        (call("rlike", [S, text(r"\QA.B\E.*(foo)")]), (b"A.B",)),
        (like(call("lower", [S]), "%abcide%"), (b"abc", b"de")),
        (like(call("lower", [S]), "%éab%"), (b"ab",)),
        (like(call("upper", [S]), "%GOOD-FOX%"), (b"GOOD-", b"OX")),
        (like(call("trim", [call("lower", [S])]), "%abc"), (b"abc",)),
        (call("=", [call("lower", [S]), text("abc")]), (b"abc",)),
    ],
)
def test_known_requirements(test, texts):
    found = required(test)
    assert isinstance(found, AllOf | Contains)
    assert (found.children[0] if isinstance(found, AllOf) else found) == Contains(ColumnRef("s"), texts)


@pytest.mark.parametrize(
    "test",
    [
        like(S, "%"),
        like(call("reverse", [S]), "%abc%"),
        like(call("concat", [S, S]), "%abc%"),
        like(call("lower", [S]), "%ik%"),
        call("rlike", [S, text("a|.")]),
        call("rlike", [S, text("(abc)*")]),
        call("or", [like(S, "%abc%"), call("=", [call("length", [S]), LiteralValue(3, ColumnType(Kind.INT))])]),
        call("not", [like(S, "%abc%")]),
        call("contains", [S, text("\ud83d")]),
        call("=", [S, S]),
    ],
)
def test_what_is_not_proven_is_not_required(test):
    assert required(test) is None


def test_a_negated_condition_requires_nothing():
    assert required_texts(ComputedPredicate(like(S, "%abc%"), negated=True)) is None


def test_of_alternatives_one_holds():
    assert required(call("rlike", [S, text("(cat|dog)")])) == AnyOf(
        (Contains(ColumnRef("s"), (b"cat",)), Contains(ColumnRef("s"), (b"dog",)))
    )


@pytest.mark.parametrize(("name", "function"), [("lower", str.lower), ("upper", str.upper)])
def test_only_ascii_letters_become_the_letters_that_a_mapped_case_requires(name, function):
    others = {letter for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000 for letter in function(chr(code))}
    proven = {chr(code) for code in range(128) if _MAPPED_CASE[name].fullmatch(chr(code))}
    assert not proven & others
    changed = {chr(code) for code in range(128) if function(chr(code)) != chr(code)}
    assert {chr(code) for code in range(128)} - others - changed == proven
