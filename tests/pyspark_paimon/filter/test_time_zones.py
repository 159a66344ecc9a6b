"""Filters on TIMESTAMP_LTZ read wall clocks in the session's zone: Python's ``zoneinfo`` is the model."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.json import from_json, to_json
from pyspark_paimon import InvalidArgument, InvalidFilter, Table, time_zone
from pyspark_paimon.filter.parse import bind_filter
from sparkexpr.values.column_type import ColumnType, Kind
from sparkexpr.values.time_zone import instant_of, session_zone, wall_of, zone_named
from tests.build import ids

ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo",
    "Pacific/Apia", "Africa/Casablanca",
]  # fmt: skip
TYPES = {
    "z": ColumnType(Kind.TIMESTAMP_LTZ, precision=6),
    "t": ColumnType(Kind.TIMESTAMP, precision=6),
    "d": ColumnType(Kind.DATE),
}
EDGES = [
    "2024-03-31T00:59:59", "2024-03-31T01:30:00", "2024-10-27T00:30:00", "2024-10-27T01:30:00", "2024-03-10T07:30:00", "2024-11-03T05:30:00",
    "2024-11-03T06:30:00", "2010-11-07T02:30:30", "2010-11-07T03:29:00", "2024-04-06T15:15:00", "2024-10-05T15:45:00", "2018-11-04T02:59:59",
    "2018-11-04T03:00:00", "2018-02-18T01:30:00", "2011-12-30T09:59:59", "2011-12-30T10:00:00", "2023-12-31T23:30:00", "1969-12-31T22:15:00",
]  # fmt: skip
INSTANTS = [dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in EDGES]
INSTANT = st.sampled_from(INSTANTS).flatmap(
    lambda edge: st.integers(-200, 200).map(lambda minutes: edge + dt.timedelta(minutes=minutes, microseconds=7))
)


def wall(instant: dt.datetime, zone: str) -> dt.datetime:
    return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def instant(clock: dt.datetime, zone: str) -> dt.datetime:
    return clock.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC)


def kept(text: Any, rows: list[dict[str, Any]]) -> list[bool]:
    predicate = bind_filter(text, TYPES)
    assert predicate is not None
    batch = pa.RecordBatch.from_pylist(rows, pa.schema([(name, kind.arrow) for name, kind in TYPES.items()]))
    there = from_json(to_json(predicate))  # as tasks read it, in whatever zone they are
    with time_zone("Asia/Tokyo"):
        return [bool(one) for one in np.asarray(mask(there, batch, TYPES))]


MODELS: dict[str, Callable[[dict[str, Any], str, dt.datetime], bool]] = {
    "hour(z) = {hour}": lambda row, zone, clock: wall(row["z"], zone).hour == clock.hour,
    "minute(z) <> {minute}": lambda row, zone, clock: wall(row["z"], zone).minute != clock.minute,
    "CAST(z AS DATE) = DATE '{day}'": lambda row, zone, clock: wall(row["z"], zone).date() == clock.date(),
    "CAST(z AS DATE) <> DATE '{day}'": lambda row, zone, clock: wall(row["z"], zone).date() != clock.date(),
    "CAST(z AS DATE) < DATE '{day}'": lambda row, zone, clock: wall(row["z"], zone).date() < clock.date(),
    "CAST(z AS DATE) <= '{day}'": lambda row, zone, clock: wall(row["z"], zone).date() <= clock.date(),
    "NOT (CAST(z AS DATE) >= DATE '{day}')": lambda row, zone, clock: wall(row["z"], zone).date() < clock.date(),
    "to_date(z) > DATE '{day}'": lambda row, zone, clock: wall(row["z"], zone).date() > clock.date(),
    "year(z) = {year}": lambda row, zone, clock: wall(row["z"], zone).year == clock.year,
    "{year} < year(z)": lambda row, zone, clock: wall(row["z"], zone).year > clock.year,
    "dayofmonth(z) = {dayofmonth}": lambda row, zone, clock: wall(row["z"], zone).day == clock.day,
    "z = TIMESTAMP '{clock}'": lambda row, zone, clock: row["z"] == instant(clock, zone),
    "z >= '{clock}'": lambda row, zone, clock: row["z"] >= instant(clock, zone),
    "z < TIMESTAMP '{clock} UTC'": lambda row, zone, clock: row["z"] < clock.replace(tzinfo=dt.UTC),
    "z <= DATE '{day}'": lambda row, zone, clock: row["z"] <= instant(clock.replace(hour=0, minute=0, second=0, microsecond=0), zone),
    "z > d": lambda row, zone, clock: row["z"] > instant(dt.datetime.combine(row["d"], dt.time()), zone),
    "z = t": lambda row, zone, clock: row["z"] == instant(row["t"], zone),
    "CAST(z AS TIMESTAMP_NTZ) = t": lambda row, zone, clock: wall(row["z"], zone) == row["t"],
    "CAST(t AS TIMESTAMP) = z": lambda row, zone, clock: row["z"] == instant(row["t"], zone),
    "coalesce(z, t) > TIMESTAMP '{clock}'": lambda row, zone, clock: row["z"] > instant(clock, zone),
    "datediff(z, DATE '{day}') = 0": lambda row, zone, clock: wall(row["z"], zone).date() == clock.date(),
    "date_add(z, 1) > DATE '{day}'": lambda row, zone, clock: wall(row["z"], zone).date() >= clock.date(),
    "t = TIMESTAMP_NTZ '{clock}'": lambda row, zone, clock: row["t"] == clock,
    "t > '{clock}'": lambda row, zone, clock: row["t"] > clock,
    "hour(t) = {hour}": lambda row, zone, clock: row["t"].hour == clock.hour,
}


@given(st.sampled_from(ZONES), st.lists(INSTANT, min_size=1, max_size=6), INSTANT, st.sampled_from(sorted(MODELS)))
@settings(deadline=None, max_examples=400)
def test_a_filter_reads_wall_clocks_as_the_zone_has_them(zone: str, instants: list[dt.datetime], literal: dt.datetime, form: str) -> None:
    clock = wall(literal, zone)
    rows = [{"z": one, "t": wall(one, zone), "d": wall(one, zone).date()} for one in [*instants, literal]]
    text = form.format(
        clock=clock.isoformat(" "), day=clock.date(), hour=clock.hour, minute=clock.minute, year=clock.year, dayofmonth=clock.day
    )
    with time_zone(zone):
        assert kept(text, rows) == [MODELS[form](row, zone, clock) for row in rows], text


@given(st.sampled_from(ZONES), st.lists(INSTANT, min_size=1, max_size=6), st.sampled_from(["day", "month", "year", "hour"]))
@settings(deadline=None)
def test_instants_are_truncated_in_the_zone(zone: str, instants: list[dt.datetime], unit: str) -> None:
    def start(one: dt.datetime) -> dt.datetime:
        shown = one.astimezone(ZoneInfo(zone))
        fields = {
            "hour": ["minute"],
            "day": ["hour", "minute"],
            "month": ["day", "hour", "minute"],
            "year": ["month", "day", "hour", "minute"],
        }
        cut = shown.replace(second=0, microsecond=0, **{name: int(name in {"day", "month"}) for name in fields[unit]})
        first, again = (cut.replace(fold=fold).astimezone(dt.UTC) for fold in (0, 1))
        return again if cut.replace(fold=1).utcoffset() == shown.utcoffset() and first <= again else first

    with time_zone(zone):
        predicate = f"date_trunc('{unit}', z) = z"
        rows = [{"z": start(one)} for one in instants]
        assert kept(predicate, rows) == [start(row["z"]) == row["z"] for row in rows]


@pytest.mark.parametrize("zone", ["UTC", "GMT", "CET", "Asia/Tokyo", "Etc/GMT-3", "Europe/Berlin", "+05:30", "GMT+2", "Z"])
@pytest.mark.parametrize("between", [" ", "T"])
@pytest.mark.parametrize("space", ["", " "])
def test_a_literal_may_name_its_zone(zone: str, between: str, space: str) -> None:
    if space == "" and zone[0] not in "+Z":
        space = " "
    known = zone_named(zone)
    offset = dt.timedelta(hours=5, minutes=30) if zone == "+05:30" else dt.timedelta(hours=2) if zone == "GMT+2" else None
    clock = dt.datetime(2024, 7, 1, 12, 30)  # noqa: DTZ001  # a wall clock
    moment = (clock - offset).replace(tzinfo=dt.UTC) if offset is not None else instant(clock, known)
    rows = [{"z": moment}, {"z": moment + dt.timedelta(seconds=1)}]
    with time_zone("America/New_York"):
        assert kept(f"z = TIMESTAMP '2024-07-01{between}12:30:00{space}{zone}'", rows) == [True, False]
        assert kept(f"z = '2024-07-01{between}12:30:00{space}{zone}'", rows) == [True, False]


def test_parameters_are_aware_or_of_the_session() -> None:
    aware = INSTANTS[1]
    with time_zone("Europe/Berlin"):
        naive = wall(aware, "Europe/Berlin")
        for value in (aware, naive, pa.scalar(aware, pa.timestamp("us", "UTC")), pa.scalar(naive)):
            predicate = bind_filter("z = :v AND t = :v", TYPES, {"v": value if not isinstance(value, pa.Scalar) else value.as_py()})
            schema = pa.schema([(name, TYPES[name].arrow) for name in ("z", "t")])
            batch = pa.RecordBatch.from_pylist([{"z": aware, "t": naive}, {"z": aware + dt.timedelta(1), "t": naive}], schema)
            assert np.asarray(mask(predicate, batch, TYPES)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("text", "column", "clock", "zone"),
    [
        ("t = CAST(TIMESTAMP_LTZ '2024-07-01 12:30:00 UTC' AS TIMESTAMP)", "t", "2024-07-01T21:30:00", "Asia/Tokyo"),
        ("year(TIMESTAMP_LTZ '2024-12-31 20:00:00 UTC') = year(d)", "d", "2025-01-01", "Asia/Tokyo"),
        ("t = CAST(TIMESTAMP_LTZ '2024-07-01 12:30:00.123456 UTC' AS TIMESTAMP)", "t", "2024-07-01T08:30:00.123456", "America/New_York"),
    ],
)
def test_a_constant_is_turned_into_the_other_kind_of_timestamp_at_once(text: str, column: str, clock: str, zone: str) -> None:
    right = dt.date.fromisoformat(clock) if column == "d" else dt.datetime.fromisoformat(clock)
    other = right + dt.timedelta(days=-1)
    with time_zone(zone):
        assert kept(text, [{column: right}, {column: other}]) == [True, False]


def test_a_wall_clock_beside_an_instant_is_read_in_the_zone() -> None:
    noon = dt.datetime(2024, 7, 1, 12, 30, tzinfo=dt.UTC)
    text = "coalesce(z, TIMESTAMP_NTZ '2024-07-01 21:30:00') = TIMESTAMP '2024-07-01 12:30:00 UTC'"
    with time_zone("Asia/Tokyo"):
        assert kept(text, [{"z": None}, {"z": noon}, {"z": noon + dt.timedelta(hours=9)}]) == [True, True, False]


@pytest.mark.parametrize(
    ("clock", "value", "precision", "found"),
    [
        ("2024-07-01 12:30:00", 1_719_837_000_000_000, 6, True),
        ("2024-07-01 12:30:00.000001", 1_719_837_000_000_001, 6, True),
        ("2024-07-01 12:30:00.000000001", 1_719_837_000_000_000, 6, False),
        ("2024-07-01 12:30:00.000001", 1_719_837_000_000_001_000, 9, True),
        ("2024-07-01 12:30:00.000000001", 1_719_837_000_000_000_001, 9, True),
        ("2500-01-01 00:00:00", 16_725_225_600_000_000, 6, True),  # beyond the nanoseconds of 64 bits
    ],
)
def test_a_computed_instant_keeps_its_nanoseconds_and_its_century(clock: str, value: int, precision: int, found: bool) -> None:
    types = {"n": ColumnType(Kind.TIMESTAMP_LTZ, precision=precision)}
    predicate = bind_filter(f"coalesce(n, TIMESTAMP '{clock} UTC') = TIMESTAMP '{clock} UTC'", types)
    assert predicate is not None
    values = pa.array([None, value, value + 1], pa.int64()).cast(types["n"].arrow)
    assert np.asarray(mask(predicate, pa.record_batch({"n": values}), types)).tolist() == [True, found, False]


def test_an_expression_of_arrow_computes_in_utc() -> None:
    with time_zone("Asia/Tokyo"):
        assert kept(pc.hour(pc.field("z")) == 1, [{"z": INSTANTS[1]}]) == [True]


def test_a_filter_of_a_text_that_is_held_follows_the_zone() -> None:
    text = "z >= TIMESTAMP '2024-01-01 00:00:00' AND year(TIMESTAMP '2023-12-31 23:30:00 UTC') = 2024"
    rows = [{"z": dt.datetime(2023, 12, 31, 23, tzinfo=dt.UTC)}]
    for zone, found in (("Europe/Berlin", True), ("UTC", False), ("Europe/Berlin", True), ("America/New_York", False)):
        with time_zone(zone):
            assert kept(text, rows) == [found]


def test_the_zone_is_that_of_the_process_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    assert session_zone() == "Asia/Kathmandu"
    with time_zone("Europe/Berlin"):
        assert session_zone() == "Europe/Berlin"
        with time_zone(lambda: "GMT-02:30"):
            assert session_zone() == "-02:30"
    assert session_zone() == "Asia/Kathmandu"
    monkeypatch.setenv("TZ", "Nowhere/Here")
    with pytest.raises(InvalidArgument, match=r"'Nowhere/Here' of this process.*set TZ"):
        session_zone()
    assert kept("hour(t) = 1 AND d = DATE '2024-03-31'", [{"t": wall(INSTANTS[1], "UTC"), "d": INSTANTS[1].date()}]) == [True]
    with pytest.raises(InvalidArgument, match="set TZ"):
        kept("hour(z) = 1", [])
    with pytest.raises(InvalidArgument, match="'Mars/Base'"), time_zone("Mars/Base"):
        pass


@given(st.sampled_from(ZONES), INSTANT)
def test_single_readings_are_those_of_columns(zone: str, one: dt.datetime) -> None:
    nanos = math.floor(one.timestamp()) * 10**9 + 5
    shown = wall(one.replace(microsecond=0), zone)
    reading = (shown - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)  # noqa: DTZ001  # as above
    assert wall_of(nanos, zone) == reading * 10**9 + 5
    assert instant_of(reading * 10**9 + 5, zone) == math.floor(instant(shown, zone).timestamp()) * 10**9 + 5


def test_years_beyond_every_calendar_are_refused() -> None:
    with time_zone("Europe/Berlin"), pytest.raises(InvalidFilter, match="year"):
        kept("z < '99999-01-01 00:00:00'", [])


def test_a_table_is_pruned_and_partitioned_in_the_zone(tmp_path: Any) -> None:
    table = Table.create(tmp_path / "t", "id BIGINT, z TIMESTAMP_LTZ(6), p TIMESTAMP_LTZ(3)", partition_keys=["p"])
    base = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    for day in range(8):
        table.write([{"id": day * 24 + hour, "z": base + dt.timedelta(day, hour * 3600), "p": base} for hour in range(24)])
    with time_zone("Asia/Tokyo"):
        scan = table.scan("CAST(z AS DATE) = DATE '2024-01-04'")
        assert ids(scan) == list(range(63, 87))
        assert sum(len(split.files) for split in scan.plan().splits) < 8
        assert table.scan("p = '2024-01-01 09:00:00'").count() == 192
        table.drop_partitions([{"p": "2024-01-01 09:00:00"}])
    assert table.count() == 0
