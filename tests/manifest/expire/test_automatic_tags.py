"""Tags that commits make by themselves: one for each period that is over, as the engine's rules have it."""

import time
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from manifest.expire.after_commit import after_commit
from manifest.snapshot.manager import SnapshotManager
from manifest.store import FileStore
from pyspark_paimon import Table, UnsupportedOption


@pytest.fixture
def clock(monkeypatch):
    """Commits are made when ``clock.at`` says."""

    class Clock:
        def at(self, text):
            self.now = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9

    found = Clock()
    found.now = time.time_ns()
    monkeypatch.setattr("manifest.commit.attempt.time.time_ns", lambda: found.now)
    return found


def made(path, **options):
    every = {"tag.automatic-creation": "process-time", "sink.process-time-zone": "UTC", "snapshot.num-retained.min": "100"}
    return Table.create(path, "id INT", options=every | {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()})


def written(table, clock, *times):
    for at in times:
        clock.at(at)
        table.write(pa.table({"id": pa.array([1], pa.int32())}))
    return {row["tag_name"]: row["snapshot_id"] for row in table.tags().to_pylist()}


def test_the_first_snapshot_of_a_day_gets_the_name_of_the_day_before(tmp_path, clock):
    table = made(tmp_path / "t")
    assert written(table, clock, "2024-03-01 10:00", "2024-03-01 23:59") == {"2024-02-29": 1}
    assert written(table, clock, "2024-03-02 00:00", "2024-03-02 12:00") == {"2024-02-29": 1, "2024-03-01": 3}
    assert written(table, clock, "2024-03-05 01:00") == {"2024-02-29": 1, "2024-03-01": 3, "2024-03-04": 5}, (
        "days without a commit have none"
    )
    assert table.scan(tag="2024-03-01").count() == 3
    assert table.scan(tag="2024-03-04").snapshot_id == 5


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"tag__creation_period": "hourly"}, ["2024-03-01 09", "2024-03-01 10", "2024-03-01 12"]),
        (
            {"tag__creation_period": "hourly", "tag__period_formatter": "without_dashes_and_spaces"},
            ["2024030109", "2024030110", "2024030112"],
        ),
        ({"tag__creation_period": "two-hours"}, ["2024-03-01 08", "2024-03-01 10"]),
        ({"tag__creation_period_duration": "30 min"}, ["202403010930", "202403011000", "202403011030", "202403011230"]),
        ({"tag__creation_period": "hourly", "tag__creation_delay": "20 min"}, ["2024-03-01 09", "2024-03-01 12"]),
        ({"tag__creation_period": "hourly", "tag__automatic_completion": "true"}, ["2024-03-01 09", "2024-03-01 10", "2024-03-01 11"]),
        ({"tag__creation_period": "hourly", "tag__num_retained_max": "2"}, ["2024-03-01 10", "2024-03-01 12"]),
    ],
)
def test_periods_formats_delays_and_how_many(tmp_path, clock, options, names):
    table = made(tmp_path / "t", **options)
    assert sorted(written(table, clock, "2024-03-01 10:05", "2024-03-01 10:40", "2024-03-01 11:05", "2024-03-01 13:10")) == names


def test_a_batch_write_names_the_newest_of_its_day(tmp_path, clock):
    table = made(tmp_path / "t", tag__automatic_creation="batch", tag__num_retained_max="2")
    assert written(table, clock, "2024-03-01 10:05", "2024-03-01 10:40") == {"batch-write-2024-03-01": 2}
    assert written(table, clock, "2024-03-02 10:05", "2024-03-03 10:40") == {"batch-write-2024-03-02": 3, "batch-write-2024-03-03": 4}
    named = made(tmp_path / "n", tag__automatic_creation="batch", tag__batch__customized_name="newest")
    assert written(named, clock, "2024-03-02 10:05", "2024-03-03 10:40") == {"newest": 2}


def test_a_tag_whose_time_is_over_goes_with_its_files(tmp_path, clock, monkeypatch):
    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + timedelta(hours=2)

    table = made(tmp_path / "t", tag__default_time_retained="1 h")
    assert written(table, clock, "2024-03-01 10:00", "2024-03-01 10:05") == {"2024-02-29": 1}
    monkeypatch.setattr("manifest.expire.tags.datetime", Later)  # what expiry takes for now
    assert written(table, clock, "2024-03-01 10:10") == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tag.automatic-creation", "sometimes"),
        ("tag.creation-period", "weekly"),
        ("tag.period-formatter", "slashes"),
        ("tag.creation-delay", "2 d"),
        ("tag.num-retained-max", "0"),
        ("sink.process-time-zone", "Mars/Base"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path, key, value):
    with pytest.raises(UnsupportedOption, match=key):
        Table.create(tmp_path / "t", "id INT", options={"tag.automatic-creation": "process-time", key: value})


def test_a_commit_before_the_next_tag_looks_at_no_older_snapshot(tmp_path, clock, monkeypatch):
    table = made(tmp_path / "t")
    written(table, clock, "2024-03-01 10:00", "2024-03-01 11:00", "2024-03-01 12:00")
    seen = []
    original = SnapshotManager.get
    monkeypatch.setattr(SnapshotManager, "get", lambda self, number: seen.append(number) or original(self, number))
    after_commit(FileStore.open(tmp_path / "t"), 3, None)
    assert set(seen) == {3}
