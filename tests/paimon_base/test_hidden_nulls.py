"""Nulls under null rows: they get values where their type allows none, at every depth, and nothing that can be seen changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_base.hidden_nulls import cast_nested

SCALARS = {
    pa.int32(): st.integers(-5, 5),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
    pa.decimal128(20, 2): st.decimals(-9, 9, places=2),
    pa.binary(40): st.binary(min_size=40, max_size=40),
    pa.timestamp("us"): st.datetimes(),
    pa.float64(): st.floats(-1, 1),
}


@st.composite
def types(draw: Any, depth: int = 3) -> Any:
    kind = draw(st.sampled_from(["scalar", "row", "row", "list", "map"])) if depth else "scalar"
    if kind == "scalar":
        return draw(st.sampled_from(list(SCALARS)))
    inner = types(depth - 1)
    if kind == "row":
        names = "abc"[: draw(st.integers(1, 3))]
        return pa.struct([pa.field(name, draw(inner), nullable=draw(st.booleans())) for name in names])
    element = pa.field("element", draw(inner), nullable=draw(st.booleans()))
    return pa.list_(element) if kind == "list" else pa.map_(pa.string(), pa.field("value", element.type, element.nullable))


def values(kind: Any, *, nullable: bool) -> Any:
    if pa.types.is_struct(kind):
        found = st.fixed_dictionaries({f.name: values(f.type, nullable=f.nullable) for f in kind})
    elif pa.types.is_map(kind):
        found = st.dictionaries(st.text(max_size=2), values(kind.item_type, nullable=kind.item_field.nullable), max_size=2).map(
            lambda pairs: list(pairs.items())
        )
    elif pa.types.is_list(kind):
        found = st.lists(values(kind.value_type, nullable=kind.value_field.nullable), max_size=3)
    else:
        found = SCALARS[kind]
    return st.none() | found if nullable else found


def loose(kind: Any) -> Any:
    """The type with nulls everywhere, as engines hand their rows over."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, loose(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), loose(kind.item_type))
    return pa.list_(loose(kind.value_type)) if pa.types.is_list(kind) else kind


def holds(array: Any) -> None:
    """Fail where a part that is not null has a null, seen or not."""
    array.validate(full=True)
    if pa.types.is_struct(array.type):
        for at in range(array.type.num_fields):
            part = array.field(at)
            assert array.type.field(at).nullable or not part.null_count
            holds(part)
    elif pa.types.is_list(array.type) or pa.types.is_map(array.type):
        holds(array.flatten() if pa.types.is_list(array.type) else array.items)


@given(data=st.data())
def test_hidden_nulls_get_values_and_nothing_else_changes(data: Any) -> None:
    kind = data.draw(types())
    rows = data.draw(st.lists(values(kind, nullable=True), max_size=6))
    first = data.draw(st.integers(0, len(rows)))
    array, strict = pa.array(rows, loose(kind)), pa.array(rows, kind)
    for given_rows, wanted in ((array, rows), (array[first:], rows[first:]), (strict, rows), (strict[first:], rows[first:])):
        done = cast_nested(given_rows, kind)
        assert done.type == kind
        assert done.to_pylist() == wanted
        holds(done)
    chunked = cast_nested(pa.chunked_array([array[:first], array[first:]], array.type), kind)
    assert chunked.to_pylist() == rows
    nothing = cast_nested(pa.nulls(3), kind)
    assert nothing.to_pylist() == [None] * 3
    holds(nothing)


def test_nulls_that_can_be_seen_are_refused() -> None:
    kind = pa.struct([pa.field("a", pa.struct([pa.field("b", pa.int32(), nullable=False)]))])
    rows = pa.array([None, {"a": {"b": None}}], loose(kind))
    with pytest.raises(pa.ArrowInvalid, match="null"):
        cast_nested(rows, kind)
