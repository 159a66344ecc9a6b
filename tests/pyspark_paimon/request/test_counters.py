"""What writes, compactions and reads counted is what they did, in plain numbers that anybody can ship."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.snapshot.manager import SnapshotManager
from pyspark_paimon import Table


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table.create(tmp_path / "t", "id BIGINT, n INT", ["id"], options={"bucket": "2", "file-index.bitmap.columns": "n"})


def rows(start: int, count: int = 100) -> pa.Table:
    return pa.table({"id": range(start, start + count), "n": pa.array([i % 7 for i in range(count)], pa.int32())})


def test_a_write_counts_what_came_in_and_what_was_written(table: Table) -> None:
    given = rows(0)
    counters = table.write(given).counters
    files = table.files()
    assert (counters.rows, counters.files, counters.retries) == (100, 2, 0)
    assert counters.bytes_written == sum(files["file_size"].to_pylist())
    assert counters.bytes_in >= given.nbytes
    assert {"write", "flush", "commit", "compact"} == set(counters.millis)
    assert min(counters.millis.values()) >= 0
    flat = counters.as_dict()
    assert json.loads(json.dumps(flat)) == flat
    assert flat["millis.commit"] == counters.millis["commit"]
    deleted = table.delete("id < 10").counters
    assert (deleted.rows, set(deleted.millis)) == (10, {"find", "commit", "compact"})


def test_a_lost_race_is_counted(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter((False, False, *[True] * 9))
    create = SnapshotManager.try_create
    monkeypatch.setattr(SnapshotManager, "try_create", lambda self, *given: next(taken) and create(self, *given))
    assert table.write(rows(0)).counters.retries == 2
    again = table.write(rows(0), commit_id="once")
    assert again.counters is not None
    assert table.write(rows(0), commit_id="once").counters is None


def test_a_compaction_counts_the_same_as_its_result(table: Table) -> None:
    table.write(rows(0))
    table.write(rows(50))
    done = table.compact(full=True)
    counters = done.counters
    assert counters.as_dict() == {
        **{name: getattr(done, name) for name in ("buckets", "files_before", "files_after", "rows", "bytes_read", "bytes_written")},
        "retries": 0,
        "millis.merge": counters.millis["merge"],
        "millis.commit": counters.millis["commit"],
    }


def test_a_scan_counts_its_last_read(table: Table) -> None:
    table.write(rows(0))
    table.write(rows(1000))
    scan = table.scan("id < 50")
    assert scan.counters is None
    assert scan.to_arrow().num_rows == 50
    counters = scan.counters
    assert (counters.rows, counters.files, counters.manifests_pruned, counters.splits) == (50, 2, 1, 2)
    assert counters.rows_decoded >= 50
    assert 0 < counters.bytes_read <= counters.bytes_planned
    assert set(counters.millis) == {"plan", "read"}
    assert table.scan("n = 99").to_arrow().num_rows == 0
    batches = scan.to_batches()
    first = next(batches)
    batches.close()
    assert scan.counters.rows == first.num_rows, "who stops early has counted what came"
    assert replace(scan, _filter_text="x").counters is None, "another scan has not been read"
    assert scan.narrowed("id < 5").counters is None
    assert pickle.loads(pickle.dumps(scan)).to_arrow().num_rows == 50


def test_a_sorted_scan_counts_too(table: Table) -> None:
    table.write(rows(0))
    scan = table.scan(order_by="id", limit=3)
    assert scan.to_arrow()["id"].to_pylist() == [0, 1, 2]
    assert (scan.counters.rows, scan.counters.batches) == (3, 1)
