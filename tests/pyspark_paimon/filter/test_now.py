"""The current date and time in filters."""

from __future__ import annotations

import datetime as dt
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_paimon import InvalidFilter, Table, time_zone
from pyspark_paimon.filter.now_literals import _calendar

NOW = dt.datetime(2024, 3, 31, 23, 30, 0, 250_000, tzinfo=dt.UTC)  # in Tokyo it is April
DDL = "id INT, d DATE, w TIMESTAMP(6), z TIMESTAMP_LTZ(6)"


@pytest.fixture
def table(tmp_path, monkeypatch) -> Table:
    made = Table.create(tmp_path / "t", DDL)
    moments = [NOW + dt.timedelta(days=day) for day in range(-40, 3)]
    made.write(
        pa.table(
            {
                "id": pa.array(range(len(moments)), pa.int32()),
                "d": pa.array([moment.date() for moment in moments]),
                "w": pa.array([moment.replace(tzinfo=None) for moment in moments], pa.timestamp("us")),
                "z": pa.array(moments, pa.timestamp("us", "UTC")),
            }
        )
    )
    monkeypatch.setattr(time, "time_ns", lambda: int(NOW.timestamp() * 10**6) * 1000)
    return made


def found(table: Table, text: str) -> list[int]:
    return sorted(table.scan(text, columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("d = current_date", [40]),
        ("d = current_date()", [40]),
        ("d > current_date - 2", [39, 40, 41, 42]),
        ("d = current_date + INTERVAL 1 DAY", [41]),
        ("d = current_date - INTERVAL 2 WEEKS", [26]),
        ("d = current_date - INTERVAL '1' MONTH", [9]),  # 29 February
        ("z = now()", [40]),
        ("z >= current_timestamp", [40, 41, 42]),
        ("z > now() - INTERVAL 1 DAY", [40, 41, 42]),
        ("z >= (now() - INTERVAL 24 HOURS)", [39, 40, 41, 42]),
        ("now() - INTERVAL 1 SECOND < z", [40, 41, 42]),
        ("w = localtimestamp()", [40]),
        ("w BETWEEN localtimestamp() - INTERVAL 1 DAY AND localtimestamp()", [39, 40]),
        ("d IN (current_date, DATE '2024-03-30')", [39, 40]),
    ],
)
def test_the_present_is_a_constant(table, text, ids):
    with time_zone("UTC"):
        assert found(table, text) == ids
        assert found(table, f"NOT ({text})") == [row for row in range(43) if row not in ids]


def test_the_date_is_that_of_the_zone(table):
    with time_zone("Asia/Tokyo"):
        assert found(table, "d = current_date") == [41]
        assert found(table, "z = now()") == [40]
    with time_zone("Europe/Berlin"):  # 1 April 01:30; the clocks went forward on 31 March, which has 23 hours
        assert found(table, "z > now() - INTERVAL 1 DAY") == [40, 41, 42]
        assert found(table, "z >= now() - INTERVAL 2 DAYS") == [39, 40, 41, 42]


@pytest.mark.parametrize(("zone", "day"), [("+09:00", 41), ("-09:30", 40), ("+00:29", 40), ("+00:30", 41)])
def test_the_zone_may_be_an_offset(table, zone, day):
    with time_zone(zone):
        assert found(table, "d = current_date") == [day]
        assert found(table, "d = current_date()") == [day]
        assert found(table, "z > now() - INTERVAL 1 DAY") == [40, 41, 42]
        assert found(table, "w <= localtimestamp()") == list(range(day if zone[0] == "-" else 41))


def test_the_present_moves_between_calls(table, monkeypatch):
    with time_zone("UTC"):
        assert found(table, "d = current_date") == [40]
        monkeypatch.setattr(time, "time_ns", lambda: int((NOW + dt.timedelta(days=1)).timestamp() * 10**6) * 1000)
        assert found(table, "d = current_date") == [41]
        assert table.delete("d < current_date").rows == 41
        assert table.update("id = 42", set={"d": "current_date", "z": "now()"}).rows == 1
    assert table.scan("id = 42").to_arrow()["d"].to_pylist() == [(NOW + dt.timedelta(days=1)).date()]


@pytest.mark.parametrize(
    "text",
    [
        "d > current_date - INTERVAL 1.5 DAYS",
        "d > current_date - INTERVAL 1 HOUR",
        "z > now() - 7",
        "z > now() - INTERVAL 1 FORTNIGHT",
        "z > now() - INTERVAL 99999 YEARS",
    ],
)
def test_other_intervals_are_refused(table, text):
    with pytest.raises(InvalidFilter):
        table.scan(text).count()


@given(st.dates(), st.integers(-200, 200))
def test_months_end_at_their_last_day(day, count):
    if not 1 <= (day.year * 12 + day.month - 1 + count) // 12 <= 9999:
        return
    moved = _calendar(day, "MONTH", count)
    assert (moved.year * 12 + moved.month) - (day.year * 12 + day.month) == count
    assert moved.day == day.day or (moved.day < day.day and (moved == dt.date.max or (moved + dt.timedelta(1)).day == 1))
