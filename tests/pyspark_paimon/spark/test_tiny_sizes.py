"""What a client and a driver decide by sizes, with sizes that few rows cross."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from manifest.schema.validation import build_schema
from pyspark_paimon import UnsupportedTable
from pyspark_paimon.plugins.fsck.spark_reader import divide_units
from pyspark_paimon.request.requests import SparkRows
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.scheduling.task_packing import assign_by_size, task_count
from pyspark_paimon.spark.client import estimate, merge
from pyspark_paimon.spark.client.estimate import Estimate
from pyspark_paimon.spark.wire.arrow_stream import TASK, blob_frame, decode_blobs

ROWS = pa.table({"p": [f"p{at % 3}" for at in range(100)], "id": [at % 50 for at in range(100)], "n": list(range(100))})


@pytest.mark.parametrize("own_blob_rows", [1, 3, 1000])
def test_small_blobs_send_each_row_once_and_those_of_a_key_in_order_to_one_task(set_thresholds, own_blob_rows) -> None:
    set_thresholds(wire_blob_rows=5, wire_blob_bytes=100, wire_chunk_rows=16, wire_chunk_bytes=300, own_blob_rows=own_blob_rows)
    set_thresholds(idle_core_bytes=100, busy_core_bytes=1000, piece_cost_bytes=16)
    schema = build_schema("p STRING, id INT, n INT", primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "4"})
    frame = blob_frame(ROWS.to_reader(30), schema, 3, kinds=False)
    sizes, seen = Counter[int](), defaultdict(list)
    for task in pc.unique(frame.column(TASK)).to_pylist():
        for batch in frame.filter(pc.equal(frame.column(TASK), task)).to_batches():
            for part in decode_blobs(batch):
                sizes[part.num_rows] += 1
                for row in part.to_pylist():
                    seen[row["p"], row["id"]].append((task, row["n"]))
    assert max(sizes) <= 5
    assert sorted(n for found in seen.values() for _, n in found) == list(range(100))
    assert all(found == sorted(found) and len({task for task, _ in found}) == 1 for found in seen.values())
    assert len({found[0][0] for found in seen.values()}) > 1


def test_tasks_are_as_many_as_the_bytes_are_worth(set_thresholds) -> None:
    set_thresholds(idle_core_bytes=1000, busy_core_bytes=4000)
    assert [task_count(size, 4) for size in (0, 1000, 1001, 3999, 16_000, 20_001, 10**9)] == [1, 1, 2, 4, 4, 6, 16]


def test_small_pieces_are_spread_over_tasks(set_thresholds) -> None:
    set_thresholds(piece_cost_bytes=10)
    assert sorted(Counter(assign_by_size([100, *[1] * 10], 2)).values()) == [1, 10]
    set_thresholds(piece_cost_bytes=1)
    assert sorted(Counter(assign_by_size([9, *[1] * 10], 2)).values()) == [2, 9]


@pytest.mark.parametrize(("task_bytes", "tasks"), [(1000, 20), (100_000, 8)])
def test_a_check_has_a_task_for_so_many_bytes(set_thresholds, task_bytes, tasks) -> None:
    set_thresholds(check_task_bytes=task_bytes)
    units: Any = [SimpleNamespace(size=1000) for _ in range(20)]
    shares = divide_units(units, Depth.DEEP)
    assert len(shares) == tasks
    assert sum(map(len, shares)) == 20


@pytest.mark.parametrize("limits", [{"held_merge_rows": 99}, {"held_merge_bytes": 1000}], ids=str)
def test_a_source_that_the_driver_does_not_hold_changes_no_append_table(set_thresholds, limits) -> None:
    schema = build_schema("p STRING, id INT, n INT")
    wanted: Any = SimpleNamespace(source=ROWS, clauses=[SimpleNamespace(action="update", when="matched")])
    assert merge.merge_source(None, wanted, schema) is ROWS
    set_thresholds(**limits)
    with pytest.raises(UnsupportedTable, match="merge a part at a time"):
        merge.merge_source(None, wanted, schema)


@pytest.mark.parametrize("limits", [{}, {"fetched_merge_rows": 99}, {"fetched_merge_bytes": 4999}, {"held_merge_bytes": 1000}], ids=str)
def test_a_small_frame_is_fetched_to_be_merged(set_thresholds, monkeypatch, limits) -> None:
    monkeypatch.setattr(estimate, "estimate", lambda *_: Estimate(5000, 100))
    columns = SimpleNamespace(fields=[])
    frame = SimpleNamespace(limit=lambda count: SimpleNamespace(schema=columns, toArrow=lambda: ROWS.slice(0, count)))
    source = SparkRows(frame, ROWS.schema)
    wanted: Any = SimpleNamespace(source=source, clauses=[SimpleNamespace(action="update", when="matched")])
    set_thresholds(**limits)
    schema = build_schema("p STRING NOT NULL, id INT, n INT", primary_keys=["p"])
    found = merge.merge_source(None, wanted, schema)
    assert found is source if limits else found == ROWS
