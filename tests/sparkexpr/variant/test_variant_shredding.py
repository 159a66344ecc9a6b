"""Shredded VARIANTs: whatever a writer shreds comes back, and parts that contradict each other are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_base.errors import CorruptVariant
from sparkexpr.variant.decoding import decode, key_names
from sparkexpr.variant.encoding import Encoded, Keys, copy_value, encode
from sparkexpr.variant.shredding import plain_variants

NAMES = ("a", "b", "é")
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.text("xé", max_size=3)
    | st.floats(allow_nan=False)
    | st.binary(max_size=3)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, "other", ""]), inner, max_size=4)
)
SCALARS = {pa.int64(): int, pa.string(): str, pa.bool_(): bool, pa.float64(): float, pa.binary(): bytes}
SCHEMAS = st.recursive(
    st.sampled_from([None, *SCALARS]),
    lambda inner: st.lists(inner, min_size=1, max_size=1) | st.dictionaries(st.sampled_from(NAMES), inner, min_size=1),
    max_leaves=6,
)
"""What is typed: nothing, a scalar, the elements of an array (a list of one), or fields of an object (a dict)."""


def arrow_of(schema: Any, *extra: pa.Field) -> pa.DataType:
    typed = []
    if isinstance(schema, dict):
        typed = [pa.field("typed_value", pa.struct([pa.field(name, arrow_of(inner), nullable=False) for name, inner in schema.items()]))]
    elif isinstance(schema, list):
        typed = [pa.field("typed_value", pa.list_(pa.field("element", arrow_of(schema[0]), nullable=False)))]
    elif schema is not None:
        typed = [pa.field("typed_value", schema)]
    return pa.struct([*extra, pa.field("value", pa.binary()), *typed])


def shredded(value: Any, schema: Any, keys: Keys) -> dict[str, Any]:
    """The parts of a value, as Parquet's specification has them."""

    def whole(one: Any) -> bytes:
        found = encode(one)
        return copy_value(found.value, 0, len(found.value), key_names(found.metadata), keys)

    if isinstance(schema, dict) and isinstance(value, dict):
        rest = {name: inner for name, inner in value.items() if name not in schema}
        absent = {"value": None, "typed_value": None}
        typed = {name: shredded(value[name], inner, keys) if name in value else absent for name, inner in schema.items()}
        for name in schema:
            keys.id_of(name)
        return {"value": whole(rest) if rest else None, "typed_value": typed}
    if isinstance(schema, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shredded(inner, schema[0], keys) for inner in value]}
    if isinstance(schema, pa.DataType) and type(value) is SCALARS[schema]:
        return {"value": None, "typed_value": value}
    return {"value": whole(value)}


@given(st.lists(st.just(...) | VALUES, max_size=5), SCHEMAS)
def test_what_is_shredded_comes_back(values: list[Any], schema: Any) -> None:
    rows: list[Any] = []
    for value in values:
        keys = Keys()
        parts = None if value is ... else shredded(value, schema, keys)
        rows.append(None if parts is None else {"metadata": keys.metadata(), **parts})
    array = pa.array([None, *rows, None], arrow_of(schema, pa.field("metadata", pa.binary(), nullable=False))).slice(1, len(rows))
    found = plain_variants(array)
    found.validate(full=True)
    assert [... if row is None else decode(row["value"], row["metadata"]) for row in found.to_pylist()] == values


def test_what_lies_below_a_null_part_is_not_read() -> None:
    """Arrow leaves the children of a null undefined: here they contradict each other."""
    inner = pa.StructArray.from_arrays([pa.array([b""]), pa.array([{"b": {"typed_value": 1}}])], ["value", "typed_value"])
    metadata, value = encode([1]).metadata, encode([1]).value
    parts = {
        "object": pa.StructArray.from_arrays([inner], ["a"], mask=pa.array([True])),
        "array": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), inner, mask=pa.array([True])),
    }
    for name, null in parts.items():
        member = pa.StructArray.from_arrays([pa.array([value]), null], ["value", "typed_value"])
        typed = pa.StructArray.from_arrays([member], ["m"])
        array = pa.StructArray.from_arrays([pa.array([metadata]), typed], ["metadata", "typed_value"])
        (row,) = plain_variants(array).to_pylist()
        assert decode(row["value"], row["metadata"]) == {"m": [1]}, name


def test_typed_leaves_of_every_type() -> None:
    moment = datetime(2024, 1, 31, 12, 30, 0, 5)  # noqa: DTZ001
    leaves = {
        pa.int8(): -1,
        pa.int16(): 300,
        pa.int32(): 1 << 30,
        pa.float32(): 0.5,
        pa.date32(): moment.date(),
        pa.timestamp("us"): moment,
        pa.timestamp("us", "UTC"): moment.replace(tzinfo=UTC),
        pa.decimal128(5, 2): Decimal("1.50"),
        pa.decimal128(38, 38): Decimal("1E-38"),
    }
    for kind, value in leaves.items():
        typed = pa.StructArray.from_arrays([pa.array([b"\x01\x00\x00"]), pa.array([value], kind)], ["metadata", "typed_value"])
        (row,) = plain_variants(typed).to_pylist()
        assert decode(row["value"], row["metadata"]) == value


def test_names_that_metadata_lacks_are_added() -> None:
    parts = {"value": None, "typed_value": {"a": {"value": None, "typed_value": 7}}}
    array = pa.array([{"metadata": encode({"b": 1}).metadata, **parts}], arrow_of({"a": pa.int64()}, pa.field("metadata", pa.binary())))
    (row,) = plain_variants(array).to_pylist()
    assert decode(row["value"], row["metadata"]) == {"a": 7}
    assert key_names(row["metadata"]) == ("b", "a")


B = encode({"b": 1})
BOTH = Encoded(encode({"a": 1}).value, encode({"a": 1}).metadata)
MISSING = {"value": None, "typed_value": None}


@pytest.mark.parametrize(
    ("schema", "parts", "reason"),
    [
        ({"a": pa.int64()}, {"metadata": B.metadata, "value": None, "typed_value": None}, "neither a value nor a typed value"),
        ({"a": pa.int64()}, {"metadata": B.metadata, "value": b"\x0c\x01", "typed_value": {"a": MISSING}}, "a value that is not an object"),
        ({"a": pa.int64()}, {"metadata": BOTH.metadata, "value": BOTH.value, "typed_value": {"a": MISSING}}, "both typed and in the value"),
        ([pa.int64()], {"metadata": B.metadata, "value": None, "typed_value": [MISSING]}, "an element without a value"),
        ({"a": pa.int64()}, {"metadata": b"", "value": None, "typed_value": {"a": MISSING}}, "not a known version"),
        ({"a": pa.int64()}, {"metadata": B.metadata, "value": B.value[:-1], "typed_value": {"a": MISSING}}, "ends|ends before|begins"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(schema: Any, parts: Any, reason: str) -> None:
    with pytest.raises(CorruptVariant, match=reason):
        plain_variants(pa.array([parts], arrow_of(schema, pa.field("metadata", pa.binary()))))


@pytest.mark.parametrize("typed", [{"a": 1}, [1]], ids=["field", "element"])
def test_a_part_that_is_no_group_is_refused(typed: Any) -> None:
    with pytest.raises(CorruptVariant, match="has the type int64"):
        plain_variants(pa.array([{"metadata": B.metadata, "value": None, "typed_value": typed}]))
