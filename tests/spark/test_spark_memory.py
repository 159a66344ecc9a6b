"""Memory of a writer's task is bounded by ``write-buffer-size``, whatever the rows are many or wide: what is more goes to disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.session")

from once_kit import armed

from manifest.schema.validation import build_schema
from pyspark_paimon import Table
from pyspark_paimon.spark.wire.arrow_stream import blob_frame, decode_blobs

pytestmark = pytest.mark.spark

TASK = """
import json, resource, sys
import numpy as np, pyarrow as pa
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon import Table
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.spark.write.writer import RowsWriter

path, count, buffer = sys.argv[1], int(sys.argv[2]), sys.argv[3]
STEP = 1 << 16

def batches():
    for start in range(0, count, STEP):
        ids = (np.arange(start, start + STEP) * 7919) % (count + 1)
        text = pa.array(np.char.add(np.char.mod("%d", ids), "x" * 150))
        yield pa.RecordBatch.from_arrays([pa.array(ids), text.cast(pa.string())], names=["id", "v"])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

request = WriteRequest(commit_id="memory", mode="upsert", options={"write-buffer-size": buffer})
writer = RowsWriter(path, wire_jobs.RowsJob(request=request, route=wire_jobs.ByBucket()), None)
next(batches())
before = peak()
message = writer.write(batches())
writer.commit([message])
print(json.dumps({"before": before, "peak": peak(), "rows": message.rows}))
"""


@pytest.mark.long
def test_a_task_with_a_small_buffer_spills_and_loses_nothing(spark, tmp_path, monkeypatch, set_thresholds):
    table = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"})
    rows = spark.range(0, 300_000, 1, 2).selectExpr("id % 280000 AS id", "concat('v', id) AS v")
    with armed(tmp_path, monkeypatch, set_thresholds) as faults:
        faults.register(spark)
        written = Table.open(table.path, spark=spark).write(rows, options={"write-buffer-size": "2 mb"})
        visits = faults.visits("files")
    assert written.rows == 300_000
    assert len(visits) == 2
    assert all(visit["spills"] >= 1 for visit in visits), visits
    found = table.scan(columns=["id"]).to_arrow().column("id")
    assert len(found) == len(found.unique()) == 280_000
    assert table.scan("v = 'v299999' OR id = 20000").count() == 2


@pytest.mark.long
@pytest.mark.parametrize("count", [1 << 20, 1 << 22])
def test_the_memory_of_a_task_does_not_grow_with_its_rows(tmp_path, count):
    Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"})
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", TASK, str(tmp_path / "t"), str(count), "32 mb"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False, timeout=280)
    assert run.returncode == 0, run.stderr[-3000:]
    told = json.loads(run.stdout)
    assert told["rows"] == count
    assert told["peak"] - told["before"] < 600, "megabytes, of which the rows would take far more"


@pytest.mark.long
def test_the_memory_of_a_client_is_that_of_compressed_rows(tmp_path):
    schema = build_schema("id INT, v STRING", primary_keys=["id"], options={"bucket": "4"})
    types = pa.schema([("id", pa.int32()), ("v", pa.string())])

    def batches():
        for start in range(0, 400_000, 4000):
            yield pa.record_batch([pa.array(range(start, start + 4000), pa.int32()), pa.array(["wide " * 400] * 4000)], schema=types)

    frame = blob_frame(pa.RecordBatchReader.from_batches(types, batches()), schema, 4, kinds=False)
    assert frame.nbytes < 100 << 20
    assert max(sum(part.nbytes for part in decode_blobs(one)) for one in frame.to_batches(max_chunksize=1)) <= 8 << 20
