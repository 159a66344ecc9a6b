"""Times as people give them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.request.validate import cutoff_of, millis_of


def test_a_moment_is_the_same_however_it_is_said() -> None:
    moment = datetime(2024, 1, 31, 10, tzinfo=UTC)
    for said in (
        1_706_695_200_000,
        moment,
        moment.replace(tzinfo=None),
        moment.astimezone(timezone(timedelta(hours=5))),
        "2024-01-31T10:00:00",
        "2024-01-31 11:00+01:00",
    ):
        assert millis_of(said) == 1_706_695_200_000
    assert millis_of(date(2024, 1, 31)) == millis_of("2024-01-31") == 1_706_659_200_000


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
