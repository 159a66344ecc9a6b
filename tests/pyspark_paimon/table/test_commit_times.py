"""Times of commits never go back, retention is said, and an expired state names the ways to keep one."""

from __future__ import annotations

import logging
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.commit import attempt
from pyspark_paimon import SnapshotExpired, Table
from tests.build import command_line, keyed

NOW = 1_700_000_000_000
CLOCKS = st.lists(st.tuples(st.integers(-5, 5), st.sampled_from(["write", "delete", "rollback"])), min_size=2, max_size=6)


@settings(max_examples=3)
@given(steps=CLOCKS)
def test_a_timestamp_finds_the_newest_state_whatever_the_clocks_say(steps: list[tuple[int, str]]) -> None:
    rows: dict[int, list[int]] = {}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        table = keyed(f"{folder}/t", "id INT", {"bucket": "1", "num-sorted-run.compaction-trigger": "3"})
        for key, (clock, verb) in enumerate(steps):
            patched.setattr(attempt, "time", SimpleNamespace(time_ns=lambda millis=NOW + clock: millis * 1_000_000))
            if verb == "rollback" and len(rows) > 1:
                target = sorted(rows)[len(rows) // 2]
                table.rollback_to(target)
                rows = {snapshot: keys for snapshot, keys in rows.items() if snapshot <= target}
            elif verb == "delete" and rows:
                table.delete("TRUE")
            else:
                table.write([{"id": key}])
            newest = table.snapshots()["snapshot_id"].to_pylist()[-1]
            rows[newest] = sorted(table.scan().to_arrow()["id"].to_pylist())
        snapshots = table.snapshots().to_pylist()
        times = [round(row["commit_time"].timestamp() * 1000) for row in snapshots]
        assert times == sorted(times)
        for millis in range(NOW - 6, NOW + 7):
            visible = [row["snapshot_id"] for row, at in zip(snapshots, times, strict=True) if at <= millis]
            if visible and max(visible) in rows:
                scan = table.scan(timestamp=datetime.fromtimestamp(millis / 1000, UTC))
                assert sorted(scan.to_arrow()["id"].to_pylist()) == rows[max(visible)]


def test_a_clock_that_is_far_behind_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    table = keyed(tmp_path / "t", "id INT", {"bucket": "1"})
    table.write([{"id": 1}])
    late = time.time_ns() - 3_600 * 10**9
    monkeypatch.setattr(attempt, "time", SimpleNamespace(time_ns=lambda: late))
    with caplog.at_level(logging.WARNING, "pyspark_paimon"):
        table.write([{"id": 2}])
    assert "ahead of this machine's clock" in caplog.text
    times = table.snapshots()["commit_time"].to_pylist()
    assert times[0] == times[1]


def test_history_and_creation_say_how_long_states_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t"
    created = command_line(capsys, "create", path, "id BIGINT, PRIMARY KEY (id)", "-O", "snapshot.time-retained=2 h")
    table = Table.open(path)
    table.write([{"id": 1}])
    sentence = "snapshots expire after 2:00:00, except the newest 10"
    assert sentence in created
    assert sentence in command_line(capsys, "history", path)
    assert table.history().schema.metadata[b"retention"].decode() == sentence
    table.alter_options({"snapshot.num-retained.max": "20"})
    assert table.history(0).schema.metadata[b"retention"].decode() == f"{sentence}, and are at most 20"


def test_an_expired_state_names_tag_and_consumer(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id INT", {"bucket": "1"})
    for key in range(3):
        table.write([{"id": key}])
    before = table.snapshots()["commit_time"].to_pylist()[0]
    table.expire_snapshots(retain_min=1, retain_max=1)
    oldest = table.snapshots()["commit_time"].to_pylist()[0]
    asked = [lambda: table.scan(snapshot=1).count(), lambda: table.changelog(1).to_arrow()]
    asked += [lambda: table.scan(timestamp=before).count()] if before < oldest else []
    for ask in asked:
        with pytest.raises(SnapshotExpired, match=r"create_tag.*consumer.*snapshot\.time-retained"):
            ask()
