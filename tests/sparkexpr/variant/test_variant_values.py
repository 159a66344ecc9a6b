"""VARIANT values: encoder and decoder are inverse, agree with PySpark's, and extraction of many rows agrees with the decoder."""

from __future__ import annotations

import contextlib
import json
import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paimon_base.errors import CorruptVariant, InvalidArgument, InvalidFilter, OutOfRange
from pyspark_paimon import Variant
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.variant.codes import MOST_NESTED
from sparkexpr.variant.decoding import decode, key_names
from sparkexpr.variant.encoding import encode, encode_json, reencode
from sparkexpr.variant.extraction import get_values
from sparkexpr.variant.path import parse_path, path_text
from sparkexpr.variant.rows import VariantRows

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.sampled_from([-129, -128, 127, 128, -32769, 32767, 1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63)]),
    st.floats(allow_nan=False),
    st.builds(lambda number, scale: Decimal(f"{number}E-{scale}"), st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38)),
    st.sampled_from([Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal("1E-38"), Decimal("0.000"), Decimal("1E+10")]),
    TEXTS,
    st.sampled_from(["", "x" * 63, "x" * 64, "é🙂\0", "ü" * 40]),
    st.binary(max_size=70),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5), max_leaves=30)
JSON_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from([1 << 63, -(1 << 63) - 1, 10**38, 10**38 - 1])
)
JSONS = st.recursive(JSON_LEAVES, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=6), max_leaves=30)


@given(VALUES)
@example({"": {"": [None, [], {}]}})
@example({f"k{at:04}": at for at in range(300)})
@example([*range(300)])
@example(["y" * 70_000, {"a": "z" * 300}])
def test_what_is_encoded_is_decoded(value: Any) -> None:
    found = Variant.of(value)
    assert same(found.to_python(), value)
    assert same(decode(*reencode(found.value + b"behind", found.metadata)), value)


def same(found: Any, value: Any) -> bool:
    """Equal, and of one type: a DECIMAL of 1.0 is no DOUBLE."""
    if isinstance(value, dict):
        return isinstance(found, dict) and found.keys() == value.keys() and all(same(found[key], value[key]) for key in value)
    if isinstance(value, list):
        return isinstance(found, list) and len(found) == len(value) and all(map(same, found, value))
    signs = isinstance(value, float) and math.copysign(1, found) != math.copysign(1, value)
    return type(found) is type(value) and found == value and not signs


@given(JSONS)
def test_json_is_encoded_byte_for_byte_as_by_pyspark(value: Any) -> None:
    utils = pytest.importorskip("pyspark.sql.variant_utils")
    text = json.dumps(value, ensure_ascii=False)
    assert encode_json(text) == utils.VariantUtils.parse_json(text)


@given(JSONS)
def test_json_comes_back_as_json(value: Any) -> None:
    def plain(text: str) -> Any:
        return json.loads(
            text, parse_int=Decimal, parse_float=lambda number: Decimal(number) if "e" not in number.lower() else float(number)
        )

    def loose(one: Any) -> Any:
        if isinstance(one, dict):
            return {key: loose(inner) for key, inner in one.items()}
        if isinstance(one, list):
            return [loose(inner) for inner in one]
        return float(one) if isinstance(one, Decimal | float) else one

    text = json.dumps(value)
    assert loose(plain(Variant.from_json(text).to_json())) == loose(plain(text))


def test_keys_are_sorted_and_numbered_in_the_order_of_their_use() -> None:
    found = encode({"b": {"a": 1}, "a": 2})
    assert key_names(found.metadata) == ("b", "a")
    assert list(decode(*found)) == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (datetime(2024, 1, 31, 12, 30, 0, 500, tzinfo=UTC), '"2024-01-31 13:30:00.0005+01:00"'),
        (datetime(2024, 1, 31, 12, 30), '"2024-01-31 12:30:00"'),  # noqa: DTZ001
        (date(1, 1, 1), '"0001-01-01"'),
        (b"\0\xff", '"AP8="'),
        (1e7, "1.0E7"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        (np.float32(0.1), "0.1"),
        (Decimal("1.500"), "1.5"),
        (Decimal("100.00"), "100"),
        ('a"\\\x1f\n/', '"a\\"\\\\\\u001F\\n/"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    ],
)
def test_json_text_is_as_sparks(value: Any, shown: str) -> None:
    assert Variant.of(value).to_json("Europe/Berlin") == shown


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1: 2}, "texts as keys"),
        ([{1}], "type set"),
        (10**38, "more than 38 digits"),
        ([-(10**5000)], "more than 38 digits"),
        (Decimal("0." + "1" * 5000), "more than 38 digits"),
        (Decimal("1E-39"), "more than 38 digits"),
        (Decimal("NaN"), "not a DECIMAL"),
        ("\ud800", "surrogate"),
        ("x" * ((1 << 24) + 1), "too large"),
    ],
)
def test_what_the_encoding_cannot_hold_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        Variant.of(value)


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", '{"a":1,"a":2}', "1x", "'a'", "[" * 2000])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="JSON"):
        Variant.from_json(text)
    with pytest.raises(InvalidArgument, match="row 1"):
        Variant.parse_array(["1", text])


def test_deep_nesting_is_refused_by_the_encoder_and_read_until_python_ends() -> None:
    value: Any = 1
    for _ in range(MOST_NESTED):
        value = [value]
    assert Variant.of(value).to_python() == value
    with pytest.raises(InvalidArgument, match="nests deeper"):
        Variant.of([value])
    deep = b"\x00"
    for _ in range(2000):
        deep = _array(deep)
    with pytest.raises(CorruptVariant, match="nests too deeply"):
        decode(deep, b"\x01\x00\x00")
    with pytest.raises(CorruptVariant, match="nests too deeply"):
        get_values(Variant.array([Variant(deep, b"\x01\x00\x00")]), [0], ColumnType(Kind.VARIANT), "UTC", strict=False)


def _array(inner: bytes) -> bytes:
    return bytes([3 << 2 | 3, 1]) + (0).to_bytes(4, "little") + len(inner).to_bytes(4, "little") + inner


def test_dates_outside_of_python_are_shown_as_text() -> None:
    far = bytes([11 << 2]) + (2_932_897).to_bytes(4, "little")
    assert Variant(far, b"\x01\x00\x00").to_json() == '"+10000-01-01"'
    with pytest.raises(OutOfRange, match="years 1 to 9999"):
        Variant(far, b"\x01\x00\x00").to_python()


@given(VALUES, st.data())
def test_damaged_bytes_raise_only_the_typed_error(value: Any, data: st.DataObject) -> None:
    found = encode(value)
    parts = [bytearray(found.value), bytearray(found.metadata)]
    part = data.draw(st.sampled_from(parts))
    at = data.draw(st.integers(0, len(part) - 1))
    if data.draw(st.booleans()):
        del part[at:]
    else:
        part[at] = data.draw(st.integers(0, 255))
    damaged = Variant(bytes(parts[0]), bytes(parts[1]))
    try:
        damaged.to_json()
        damaged.to_python()
    except (CorruptVariant, OutOfRange):
        pass
    rows = pa.StructArray.from_arrays([pa.array([damaged.value]), pa.array([damaged.metadata])], names=["value", "metadata"])
    for path in ((), ("a",), (0,)):
        with contextlib.suppress(CorruptVariant):
            get_values(rows, path, ColumnType(Kind.VARCHAR, length=2**31 - 1), "UTC", strict=False)


@given(st.lists(st.none() | VALUES, max_size=6), st.lists(st.sampled_from(["a", "", "é", 0, 1]), max_size=3))
@example([{"a": [{"b": 1}]}, {"b": 0, "a": [{"c": 2}]}, None, [[7]]], ["a", 0])
@example([{f"k{at}": at for at in range(300)} | {"a": [*range(300)]}], ["a", 1])
def test_a_path_of_many_rows_is_that_of_each(values: list[Any], path: list[str | int]) -> None:
    def at(value: Any) -> Any:
        for step in path:
            is_there = (isinstance(value, dict) and step in value) or (
                isinstance(value, list) and isinstance(step, int) and step < len(value)
            )
            if not is_there:
                return ...
            value = value[step]
        return value

    rows = VariantRows.of(pa.concat_arrays([Variant.array([0]), Variant.array(values), Variant.array([1])]).slice(1, len(values)))
    for step in path:
        rows = rows.step(step)
    wanted = [... if value is None else at(value) for value in values]
    found = [decode(*rows.values(np.array([row]))[0]) if there else ... for row, there in enumerate(rows.present.tolist())]
    assert all(one is other if one is ... or other is ... else same(one, other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        ("9999999-01-01", Kind.DATE, None),
        (1e303, Kind.TIMESTAMP_LTZ, None),
        ("2024-01-01T", Kind.TIMESTAMP, None),
        ("1970-01-01 00:00:00 PST", Kind.TIMESTAMP_LTZ, datetime(1970, 1, 1, 8, tzinfo=UTC)),
        ("1970-01-01 00:00:00 JST", Kind.TIMESTAMP, datetime(1970, 1, 1)),  # noqa: DTZ001
        ("1970-01-01 00:00:00 XYZ", Kind.TIMESTAMP, None),
        (2.0**63, Kind.BIGINT, (1 << 63) - 1),
        (2.0**64, Kind.BIGINT, None),
        ("-0x1.8p1", Kind.DOUBLE, -3.0),
        ("0x1p9999", Kind.DOUBLE, float("inf")),
        ("0x1", Kind.DOUBLE, None),
        ("+nan", Kind.DOUBLE, None),
        ("١٢.٣", Kind.DECIMAL, Decimal("12.300000")),
        (datetime(1, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC), Kind.DECIMAL, Decimal("-62132730893.210988")),
        (5e-324, Kind.VARCHAR, "4.9E-324"),
        (np.float32(1e-45), Kind.VARCHAR, "1.4E-45"),
    ],
)
def test_rare_values_are_cast_as_by_spark(value: Any, kind: Kind, wanted: Any) -> None:
    column_type = ColumnType(kind, precision=38 if kind is Kind.DECIMAL else 6, scale=6 if kind is Kind.DECIMAL else 0)
    assert get_values(Variant.array([value]), (), column_type, "Europe/Berlin", strict=False).to_pylist() == [wanted]


def test_a_clock_at_the_end_of_time_is_no_instant_before_it() -> None:
    clock = Variant(bytes([13 << 2]) + struct.pack("<q", (1 << 63) - 1), Variant.of(1).metadata)
    found = get_values(Variant.array([clock]), (), ColumnType(Kind.TIMESTAMP_LTZ, precision=6), "America/New_York", strict=False)
    assert found.null_count == 1


@pytest.mark.parametrize("path", ["", "a", "$.", "$a", "$[", "$[x]", "$['a]", "$..a", "$[-1]", "$['']", "$[99999999999]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidFilter, match="is not a path"):
        parse_path(path)


@given(st.lists(st.text(min_size=1) | st.integers(0, 99), max_size=4))
def test_a_path_is_that_of_its_text(steps: list[str | int]) -> None:
    try:
        text = path_text(tuple(steps))
    except InvalidFilter:
        assert any(isinstance(step, str) and ("?" in step or {"'", '"'} <= set(step)) for step in steps)
    else:
        assert parse_path(text) == tuple(steps)


def test_aware_timestamps_are_instants() -> None:
    zoned = datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert Variant.of(zoned).to_python() == datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 2", 1),
        ("{}{}", {}),
        ("[1] x", [1]),
        ("true x", True),
        ('"a"b', "a"),
        ("{}x", {}),
        ("  1\t", 1),
        ("[1]]", [1]),
        *((text, None) for text in ("1x", "truex", "1,2", "1]", "1.5.5", "-", "", "nul")),
    ],
)
def test_the_first_value_of_a_text_counts_as_in_spark(text, expected) -> None:
    if expected is None:
        with pytest.raises(InvalidArgument, match="cannot be read as JSON"):
            Variant.parse_array([text])
    else:
        assert Variant.decode_array(Variant.parse_array([text])) == [expected]
