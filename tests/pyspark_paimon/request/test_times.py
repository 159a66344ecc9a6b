"""Times as people give them."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.validate import cutoff_of, millis_of
from sparkexpr.values.time_zone import time_zone


def test_a_moment_is_the_same_however_it_is_said() -> None:
    moment = datetime(2024, 1, 31, 10, tzinfo=UTC)
    for said in (
        1_706_695_200_000,
        moment,
        moment.astimezone(timezone(timedelta(hours=5))),
        "2024-01-31T10:00:00",
        "2024-01-31 11:00+01:00",
    ):
        assert millis_of(said) == 1_706_695_200_000
    assert millis_of(date(2024, 1, 31)) == millis_of("2024-01-31") == 1_706_659_200_000


@pytest.mark.parametrize(("zone", "hour"), [("Asia/Tokyo", 19), ("America/New_York", 5), ("UTC", 10), ("+05:30", 15.5)], ids=str)
def test_a_datetime_without_a_zone_is_local_and_a_text_is_utc(zone: str, hour: float) -> None:
    wall = datetime.fromisoformat("2024-01-31") + timedelta(hours=hour)
    with time_zone(zone):
        assert millis_of(wall) == 1_706_695_200_000
        assert millis_of("2024-01-31T10:00:00") == 1_706_695_200_000


def test_now_is_now_in_any_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    for zone in ("Pacific/Auckland", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        now = datetime.now()  # noqa: DTZ005  # as people write it
        assert millis_of(now) == int(now.timestamp() * 1000)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("seconds", [1_706_695_200, 1_000_000_000, 4_102_444_800])
def test_seconds_are_doubted(seconds: int) -> None:
    with pytest.raises(InvalidArgument, match=f"are they seconds\\? Give {seconds}000"):
        millis_of(seconds)
    assert millis_of(seconds * 1000) == seconds * 1000
    assert millis_of(0) == 0


def test_orphans_are_a_day_old_unless_the_caller_says_otherwise() -> None:
    day = timedelta(days=1)
    before = datetime.now(UTC)
    cutoff = cutoff_of(None)
    after = datetime.now(UTC)
    assert int((before - day).timestamp() * 1000) <= cutoff <= (after - day).timestamp() * 1000
    assert cutoff_of(0) == 0
    assert cutoff_of(date(2024, 1, 31)) == 1_706_659_200_000
