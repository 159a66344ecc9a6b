"""Casts of old columns to new types: what the engine answered for each pair of types, value by value, must be what we answer."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fileindex.base.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind
from lsm.schema.cast import cast_values
from lsm.schema.evolution import SchemaMapping, can_cast
from manifest.io.errors import CastFailed
from manifest.stats.column_stats import ColumnBounds
from manifest.types.cast_rules import Cast, cast_of, keeps_order, may_null, why_not_built
from manifest.types.data_type import DataField, DataType

FACTS = json.loads((Path(__file__).parent / "cast_facts.json").read_text())
DIGITS = {"ms": 3, "us": 6, "ns": 9}


def moment(text, unit):
    """An ISO local date-time as an integer of the unit, whatever its year."""
    whole, _, fraction = text.partition(".")
    whole = whole if whole.count(":") == 2 else f"{whole}:00"
    seconds = pa.array([whole.replace("T", " ")]).cast(pa.timestamp("s"))[0].value
    return seconds * 10 ** DIGITS[unit] + int((fraction + "0" * 9)[: DIGITS[unit]])


def value(kind, text):
    if kind is Kind.BOOLEAN:
        return text == "true"
    if kind in INTEGERS:
        return int(text)
    if kind in FLOATS:
        return float(text)
    if kind is Kind.DECIMAL:
        return Decimal(text)
    return dt.date.fromisoformat(text) if kind is Kind.DATE else dt.time.fromisoformat(text)


def array_of(data_type, texts, *, quoted):
    kind = data_type.kind
    if kind in TIMESTAMPS:
        return pa.array([None if t == "null" else moment(t, data_type.column_type.unit) for t in texts], pa.int64()).cast(data_type.arrow)
    if kind in STRINGS:
        return pa.array([None if t == "null" else t[1:-1] if quoted else t for t in texts], pa.string())
    if kind in BINARIES:
        return pa.array([bytes.fromhex(t[2:]) if quoted else t.encode("latin-1") for t in texts], pa.binary())
    return pa.array([None if t == "null" else value(kind, t) for t in texts], data_type.arrow)


@pytest.mark.parametrize("old", sorted({fact[0] for fact in FACTS}))
def test_every_pair_of_types_is_rated_and_cast_as_the_engine_does(old):
    source = DataType.from_json(old)
    for target_text, rating, values in (fact[1:] for fact in FACTS if fact[0] == old):
        target = DataType.from_json(target_text)
        assert cast_of(source, target) is Cast(rating), target_text
        if not values or why_not_built(source, target):
            continue
        done = [(text, answer) for text, answer in values if answer != "!"]
        found = cast_values(array_of(source, [text for text, _ in done], quoted=False), source, target)
        assert str(found) == str(array_of(target, [answer for _, answer in done], quoted=True)), target_text
        for refused in (text for text, answer in values if answer == "!"):
            with pytest.raises(CastFailed):
                cast_values(array_of(source, [refused], quoted=False), source, target)


def test_nulls_and_slices_stay_in_place():
    for old, new in ((Kind.INT, Kind.TINYINT), (Kind.DOUBLE, Kind.BIGINT), (Kind.INT, Kind.BOOLEAN)):
        source, target = DataType(old), DataType(new)
        column = pa.array([9, None, 300, None, 7], source.arrow)
        assert cast_values(column.slice(1, 3), source, target).to_pylist() == cast_values(column, source, target).to_pylist()[1:4]
    narrow = DataType(Kind.DECIMAL, precision=10, scale=2)
    column = pa.array([Decimal("1.50"), None, Decimal("-0.25")], narrow.arrow)
    text = DataType(Kind.VARCHAR, length=2**31 - 1)
    assert cast_values(column.slice(1), narrow, text).to_pylist() == [None, "-0.25"]
    assert cast_values(column.slice(1), narrow, DataType(Kind.INT)).to_pylist() == [None, 0]


def test_text_that_is_no_value_is_an_error_that_shows_it():
    text = DataType(Kind.VARCHAR, length=2**31 - 1)
    with pytest.raises(CastFailed, match="'twelve' is no INT"):
        cast_values(pa.array(["12", None, "twelve"]), text, DataType(Kind.INT))
    with pytest.raises(CastFailed, match="TINYINT"):
        cast_values(pa.array(["300"]), text, DataType(Kind.TINYINT))
    with pytest.raises(CastFailed, match="infinity"):
        cast_values(pa.array([float("nan")]), DataType(Kind.DOUBLE), DataType(Kind.DECIMAL, precision=10, scale=2))


def test_zoned_timestamps_are_refused_where_the_readers_zone_would_decide():
    zoned, local = DataType(Kind.TIMESTAMP_LTZ, precision=6), DataType(Kind.TIMESTAMP, precision=6)
    assert why_not_built(zoned, local)
    assert not can_cast(zoned, local)
    assert can_cast(zoned, DataType(Kind.BIGINT))
    assert can_cast(zoned, DataType(Kind.TIMESTAMP_LTZ, precision=3))


ORDERED = [
    (DataType(Kind.SMALLINT), DataType(Kind.BIGINT), st.integers(-(2**15), 2**15 - 1)),
    (DataType(Kind.INT), DataType(Kind.DECIMAL, precision=12, scale=2), st.integers(-(2**31), 2**31 - 1)),
    (DataType(Kind.BIGINT), DataType(Kind.FLOAT), st.integers(-(2**63), 2**63 - 1)),
    (DataType(Kind.FLOAT), DataType(Kind.DOUBLE), st.floats(width=32, allow_nan=False)),
    (DataType(Kind.DECIMAL, precision=20, scale=3), DataType(Kind.DOUBLE), st.decimals(-(10**16), 10**16, places=3)),
    (DataType(Kind.DATE), DataType(Kind.TIMESTAMP, precision=3), st.dates()),
]


@pytest.mark.parametrize(("old", "new", "values"), ORDERED, ids=lambda v: str(v) if isinstance(v, DataType) else "")
def test_a_cast_that_keeps_order_keeps_it(old, new, values):
    assert keeps_order(old, new)
    assert not may_null(old, new)

    @given(st.lists(values, min_size=2, max_size=20))
    def check(given_values):
        column = pa.array(sorted(given_values), old.arrow)
        found = cast_values(column, old, new)
        assert found.null_count == 0
        assert found.to_pylist() == sorted(found.to_pylist())

    check()


def test_bounds_of_a_column_that_may_turn_null_know_nothing_of_nulls():
    old, new = DataField(1, "c", DataType(Kind.BIGINT)), DataField(1, "c", DataType(Kind.DECIMAL, precision=5, scale=0))
    mapping = SchemaMapping.of([new], [old], 0)
    assert mapping.bounds("c", ColumnBounds(1, 10**9, 0, 5)) == ColumnBounds(None, None, None, 5)
    assert mapping.bounds("c", ColumnBounds(None, None, 5, 5)).all_null
    cut = SchemaMapping.of([DataField(1, "c", DataType(Kind.VARCHAR, length=2))], [DataField(1, "c", DataType(Kind.VARCHAR, length=9))], 0)
    assert cut.bounds("c", ColumnBounds("abc", "abd", 0, 5)) == ColumnBounds(None, None, 0, 5)
