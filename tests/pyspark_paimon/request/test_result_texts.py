"""Results and plans print as one sentence; their members have all figures."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from paimon_base.texts import count_text, list_text, size_text
from pyspark_paimon import FsckResult, Table, TableChangeResult, WriteResult
from pyspark_paimon.results.message import Result
from pyspark_paimon.results.results import MaintenanceResult, Removal
from tests.build import keyed

ROWS = pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return keyed(tmp_path / "t", "id BIGINT, city STRING")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (WriteResult(rows=0, files=0, snapshot_id=None), "nothing to commit"),
        (WriteResult(rows=1, files=2, snapshot_id=3, seconds=0.054), "1 row in 2 files, 0.05 s, snapshot 3"),
        (
            WriteResult(rows=1200, files=1, snapshot_id=3, compact_snapshot_id=4),
            "1,200 rows in 1 file, 0.00 s, snapshot 3, compacted in snapshot 4",
        ),
        (
            WriteResult(rows=1, files=1, snapshot_id=3, compact_lost=True),
            "1 row in 1 file, 0.00 s, snapshot 3, the compaction lost to another commit",
        ),
        (
            WriteResult(rows=1, files=1, snapshot_id=3, compact_lost=True, compact_error="OSError: disk full"),
            "1 row in 1 file, 0.00 s, snapshot 3, the compaction failed, and the next write or compaction repeats it (OSError: disk full)",
        ),
        (WriteResult(rows=0, files=0, snapshot_id=3, replayed=True), "already committed by snapshot 3"),
        (WriteResult(rows=2, files=0, snapshot_id=None, removal=Removal(rows=2)), "dry run: would remove 2 rows"),
        (Removal(), "nothing"),
        (Removal(tags=("a",), partitions=("day=1", "day=2")), "1 tag, 2 partitions"),
        (TableChangeResult(), "nothing to do"),
        (TableChangeResult(tags=("a", "b")), "tags a, b"),
        (MaintenanceResult(), "no step was due"),
        (MaintenanceResult(seconds={"tags": 0.1}, errors={"tags": "the storage failed"}), "tags: the storage failed"),
    ],
)
def test_a_result_prints_as_a_sentence(result: Result, text: str) -> None:
    assert str(result) == text
    assert repr(result) == f"{type(result).__name__}({text})"


def test_results_and_plans_of_a_table_print_short(table: Table) -> None:
    written = table.write(ROWS)
    assert str(written).startswith("2 rows in 1 file, ")
    assert written.counters is not None
    table.write(ROWS.slice(0, 1))
    plan = table.scan().plan()
    assert repr(plan) == f"ScanPlan(snapshot 2: 1 split, 2 files, {size_text(plan.file_size)})"
    assert repr(plan.splits[0]) == f"DataSplit(bucket 0: 2 files, {size_text(plan.file_size)}, to merge)"
    assert str(table.compact(full=True)).startswith("2 files became 1: ")
    assert str(table.compact(full=True)) == "nothing to compact"
    assert str(table.expire_snapshots()) == "nothing to expire"
    results = [
        table.analyze(),
        table.rewrite_file_index(),
        table.create_tag("a"),
        table.rollback_to(1, dry_run=True),
        table.maintenance(),
        table.fsck(),
    ]
    for result in results:
        assert isinstance(result, Result)
        assert len(str(result)) < 300
        assert "=" not in str(result)


def test_a_check_counts_objects_in_the_singular_too() -> None:
    result = FsckResult(depth="quick", counts={"branches": 1, "file indexes": 1, "manifest lists": 2, "tags": 0}, problem_count=1)
    assert str(result) == "1 problem (quick, 0.00 s): 1 branch, 1 file index, 2 manifest lists"


def test_counts_and_lists_have_no_special_cases() -> None:
    assert [count_text(count, "index", "indexes") for count in (0, 1, 2)] == ["0 indexes", "1 index", "2 indexes"]
    assert list_text(None, "") == ""
