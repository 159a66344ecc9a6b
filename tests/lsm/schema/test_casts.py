"""Casts of old columns to new types: what the engine answered for each pair of types, value by value, must be what we answer."""

from __future__ import annotations

import datetime as dt
import json
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.schema.cast import cast_values
from lsm.schema.evolution import SchemaMapping
from manifest.io.errors import CastFailed
from manifest.stats.column_stats import ColumnBounds
from manifest.types.cast_rules import Cast, cast_of, keeps_order, may_null
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind

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
def test_every_pair_of_types_is_rated_and_cast_as_the_engine_does(monkeypatch, old):
    monkeypatch.setenv("TZ", "UTC")  # the engine's when it was asked
    source = DataType.from_json(old)
    for target_text, rating, values in (fact[1:] for fact in FACTS if fact[0] == old):
        target = DataType.from_json(target_text)
        assert cast_of(source, target) is Cast(rating), target_text
        if not values:
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


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]
NEAR_CHANGES = ["2024-03-31", "2024-10-27", "2024-03-10", "2024-11-03", "2024-04-07", "2024-10-06"]
CLOCKS = st.datetimes(dt.datetime.fromisoformat("1950-01-01"), dt.datetime.fromisoformat("2037-12-31")) | st.builds(
    lambda day, minutes: dt.datetime.fromisoformat(day) + dt.timedelta(minutes=minutes), st.sampled_from(NEAR_CHANGES), st.integers(0, 300)
)


@given(st.sampled_from(ZONES), st.lists(st.none() | CLOCKS, min_size=1, max_size=8), st.sampled_from([3, 6]))
def test_wall_clocks_and_moments_change_by_the_zone_of_the_reader(zone, clocks, precision):
    """Python's zones with ``fold=0`` are the model: what a zone skips goes by the offset before, what comes twice is the first."""
    zoned, local = DataType(Kind.TIMESTAMP_LTZ, precision=precision), DataType(Kind.TIMESTAMP, precision=precision)
    step = 10 ** (6 - precision)
    clocks = [clock and clock.replace(microsecond=clock.microsecond // step * step) for clock in clocks]
    moments = [clock and clock.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC) for clock in clocks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        assert cast_values(pa.array(clocks, local.arrow), local, zoned).to_pylist() == moments
        shown = [moment and moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for moment in moments]
        array = pa.array(moments, zoned.arrow)
        assert cast_values(array, zoned, local).to_pylist() == shown
        assert cast_values(array, zoned, DataType(Kind.DATE)).to_pylist() == [clock and clock.date() for clock in shown]
        text = cast_values(array, zoned, DataType(Kind.VARCHAR, length=2**31 - 1)).to_pylist()
        assert text == [clock and clock.isoformat(" ", "milliseconds" if precision == 3 else "microseconds") for clock in shown]


def test_a_zone_without_a_name_is_told(monkeypatch):
    monkeypatch.setenv("TZ", "Nowhere/Here")
    with pytest.raises(CastFailed, match=r"'Nowhere/Here'.*set TZ"):
        cast_values(pa.array([0], pa.timestamp("us")), DataType(Kind.TIMESTAMP, precision=6), DataType(Kind.TIMESTAMP_LTZ, precision=6))


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


@pytest.mark.parametrize("scale", [0, 18, 20, 21, 30, 37, 38])
def test_a_double_becomes_the_decimal_of_its_shortest_text(scale: int) -> None:
    step = Decimal(1).scaleb(-scale)
    values = [0.1, 0.25, -0.5, -0.0, 1e-25, 2.5e-22, -1.2345678901234567e-21, 5e-324, 0.1]
    values += [1.005, 9.5, -(2.0**33) / 3] if scale < 28 else []
    expected = [Decimal(repr(value)).quantize(step, context=Context(prec=80, rounding=ROUND_HALF_UP)) for value in values]
    found = cast_values(pa.array([*values, None]), DataType(Kind.DOUBLE), DataType(Kind.DECIMAL, precision=38, scale=scale))
    assert found.to_pylist() == [*expected, None]
