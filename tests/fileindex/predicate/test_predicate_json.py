"""A predicate travels as JSON text and comes back equal, bit for bit; anything else is refused."""

from __future__ import annotations

import json
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.json import MAX_DEPTH, from_json, to_json
from fileindex.predicate.tree import TRUE, And, ColumnRef, Compare, In, IsNull, Op, StartsWith, leaves
from paimon_base.errors import InvalidFilter
from tests.fileindex.index_models import ATOMIC_TYPES, leaves_on, trees

A = ColumnRef("a")
COLUMNS = st.builds(ColumnRef, st.text(max_size=5), st.none() | st.text(max_size=5))
TREES = trees(st.tuples(COLUMNS, st.sampled_from(ATOMIC_TYPES)).flatmap(lambda pair: leaves_on(*pair)))


def exact(predicate):
    """Literals with their type, floats by their bits: NaN is not equal to itself."""
    found = []
    for leaf in leaves(predicate):
        values = [leaf.value] if isinstance(leaf, Compare) else list(leaf.values) if isinstance(leaf, In) else []
        for value in values:
            is_nan = isinstance(value, float) and math.isnan(value)
            found.append((type(value), "nan" if is_nan else struct.pack(">d", value) if isinstance(value, float) else value))
    return found


@settings(max_examples=50, deadline=None)
@given(TREES)
def test_every_tree_comes_back(predicate):
    text = to_json(predicate)
    assert text.isascii()
    back = from_json(text)
    assert exact(back) == exact(predicate)
    assert to_json(back) == text
    assert repr(back) == repr(predicate)


@pytest.mark.parametrize(
    "value", [0.1, -0.0, 5e-324, math.inf, -math.inf, 2**63 - 1, -(2**63), 10**38 - 1, True, 1, "é\0😀", b"\x00\xff", b"", ""]
)
def test_literals_keep_type_and_value(value):
    back = from_json(to_json(Compare(A, Op.EQ, value)))
    assert (type(back.value), back) == (type(value), Compare(A, Op.EQ, value))
    if isinstance(value, float):
        assert math.copysign(1, back.value) == math.copysign(1, value)


def test_the_text_is_readable():
    predicate = And((In(A, (1.5, b"hi"), negated=True), StartsWith(ColumnRef("m", "k"), "x")))
    assert json.loads(to_json(predicate)) == {
        "and": [
            {"in": {"column": "a", "key": None, "values": [{"float": "0x1.8000000000000p+0"}, {"bytes": "6869"}], "negated": True}},
            {"starts_with": {"column": "m", "key": "k", "prefix": "x", "negated": False}},
        ]
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "null",
        "[]",
        "{}",
        '{"and":[],"or":[]}',
        '{"and":{}}',
        '{"and":[null]}',
        '{"not":{"column":"a"}}',
        '{"is_null":{"column":"a","key":null}}',
        '{"is_null":{"column":"a","key":null,"negated":0}}',
        '{"is_null":{"column":"a","key":null,"negated":true,"more":1}}',
        '{"is_null":{"column":1,"key":null,"negated":true}}',
        '{"is_null":{"column":"a","key":2,"negated":true}}',
        '{"is_null":{"column":"a","column":"b","key":null,"negated":true}}',
        '{"compare":{"column":"a","key":null,"op":"~","value":1}}',
        '{"compare":{"column":"a","key":null,"op":["="],"value":1}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":null}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":1.5}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":NaN}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":{"float":"x"}}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":{"float":"0x1p99999"}}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":{"bytes":"6"}}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":{"pickle":"6"}}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":[1]}}',
        '{"compare":{"column":"a","key":null,"op":"=","value":' + "9" * 5000 + "}}",
        '{"in":{"column":"a","key":null,"values":1,"negated":false}}',
        '{"in":{"column":"a","key":null,"values":[null],"negated":false}}',
        '{"starts_with":{"column":"a","key":null,"prefix":1,"negated":false}}',
    ],
)
def test_text_that_is_no_predicate_is_refused(text):
    with pytest.raises(InvalidFilter):
        from_json(text)


@settings(max_examples=50, deadline=None)
@given(TREES, st.data())
def test_damaged_text_is_refused_or_is_another_predicate(predicate, data):
    text = to_json(predicate)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.text(max_size=2)) + text[at + 1 :]
    try:
        back = from_json(damaged)
    except InvalidFilter:
        return
    assert to_json(from_json(to_json(back))) == to_json(back)


def test_depth_is_bounded_in_both_directions():
    deep = IsNull(A)
    for _ in range(MAX_DEPTH):
        deep = And((deep,))
    assert from_json(to_json(deep)) == deep
    with pytest.raises(InvalidFilter, match="deeper"):
        to_json(And((deep,)))
    with pytest.raises(InvalidFilter, match="deeper"):
        from_json('{"and":[' * (MAX_DEPTH + 1) + to_json(TRUE) + "]}" * (MAX_DEPTH + 1))
    with pytest.raises(InvalidFilter):
        from_json('{"and":[' * 100_000)
