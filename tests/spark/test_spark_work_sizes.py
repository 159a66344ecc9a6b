"""Tasks, files and buckets follow from what there is to do, whatever ``spark.sql.shuffle.partitions`` says."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from lsm.rows_in.arrow import ArrowRows
from manifest.snapshot.snapshot import EMPTY_TABLE
from manifest.store import FileStore
from pyspark_paimon import Table
from pyspark_paimon.frames.spark_types import arrow_for_spark
from pyspark_paimon.operations.compact import Compact
from pyspark_paimon.request.requests import SparkRows, WriteRequest
from pyspark_paimon.request.tasks import Task
from pyspark_paimon.spark.client import estimate as estimates
from pyspark_paimon.spark.client.ownership import Target
from pyspark_paimon.spark.client.staging import stage_rows, stage_tasks
from pyspark_paimon.spark.wire import jobs as wire_jobs

pytestmark = pytest.mark.spark

ROWS, CORES = 1000, 2
TABLES = {
    "fixed": {"primary_keys": ["id"], "options": {"bucket": "16"}},
    "partitioned": {"primary_keys": ["p", "id"], "partition_keys": ["p"], "options": {"bucket": "4"}},
    "dynamic": {"primary_keys": ["id"]},
    "partitioned and dynamic": {"primary_keys": ["p", "id"], "partition_keys": ["p"]},
}


@pytest.fixture(autouse=True, scope="module")
def default_partitions(spark):
    """What a server has that nobody has set up for small machines."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def frame(spark, rows=ROWS):
    return spark.range(rows).selectExpr("id", "concat('day ', id % 3) AS p", "concat('v', id) AS v")


def local(rows=ROWS):
    return pa.table({"id": range(rows), "p": [f"day {i % 3}" for i in range(rows)], "v": [f"v{i}" for i in range(rows)]})


def made(path, kind, **more):
    wanted = {**TABLES[kind], **more}
    return Table.create(path, "id BIGINT NOT NULL, p STRING NOT NULL, v STRING", **wanted)


def job_of(spark, path, rows, known_buckets=0):
    given = SparkRows(rows, arrow_for_spark(rows.schema)) if not isinstance(rows, pa.Table) else ArrowRows(rows.to_reader())
    target = Target(str(path), FileStore.open(path).schema, EMPTY_TABLE, lambda: known_buckets)
    return stage_rows(spark, given, target, WriteRequest(commit_id="a-commit", mode="upsert"))


def tasks_of(frame):
    """The tasks of a frame's last stage, from its plan."""
    plan = frame._explain_string()
    if re.search(r"Coalesce 1\b|Exchange SinglePartition", plan):
        return 1
    return int(re.search(r"Exchange shufflepartitionidpassthrough\(.*, (\d+)\), REPARTITION", plan)[1])


@pytest.mark.parametrize("kind", TABLES)
def test_a_few_rows_are_one_task_in_any_table(spark, tmp_path, kind):
    made(tmp_path / "t", kind)
    for rows in (local(), frame(spark)):
        assert tasks_of(job_of(spark, tmp_path / "t", rows).frame) == 1


@pytest.mark.parametrize(
    ("rows", "least", "most"),
    [pytest.param(500_000, 1, 2, marks=pytest.mark.long), (12_000_000, 3, 7), pytest.param(200_000_000, 8, 8, marks=pytest.mark.long)],
)
def test_many_rows_have_as_many_tasks_as_they_are_worth_and_the_cores_can_do(spark, tmp_path, rows, least, most):
    for kind in ("fixed", "partitioned"):
        made(tmp_path / kind, kind)
        assert least <= tasks_of(job_of(spark, tmp_path / kind, numbers(spark, rows)).frame) <= most
    made(tmp_path / "two", "fixed", options={"bucket": "2"})
    assert tasks_of(job_of(spark, tmp_path / "two", numbers(spark, rows)).frame) <= 2


def numbers(spark, rows):
    return spark.range(rows).selectExpr("id", "'p' AS p", "'v' AS v")


@pytest.mark.long
def test_writers_of_dynamic_buckets_are_as_many_as_new_rows_fill_or_the_table_has(spark, tmp_path):
    made(tmp_path / "t", "partitioned and dynamic", options={"dynamic-bucket.target-row-num": "4000000"})
    many = numbers(spark, 12_000_000)
    expected = estimates.estimate(many, arrow_for_spark(many.schema))
    found = job_of(spark, tmp_path / "t", many)
    assert found.job.writers == -(-expected.rows // 4_000_000) < found.job.tasks == tasks_of(found.frame)
    assert job_of(spark, tmp_path / "t", many, known_buckets=4).job.writers == 4
    assert job_of(spark, tmp_path / "t", many, known_buckets=500).job.writers == found.job.tasks
    made(tmp_path / "u", "dynamic")
    found = job_of(spark, tmp_path / "u", many)
    assert found.job.writers == found.job.tasks == tasks_of(found.frame) == -(-expected.rows // 2_000_000)


def test_new_keys_of_a_dataframe_fill_one_bucket_after_the_other(spark, tmp_path):
    table = made(tmp_path / "t", "dynamic", spark=spark)
    assert table.write(frame(spark)).files == 1
    assert table.write(frame(spark, 2 * ROWS)).files == 1
    assert table.scan().count() == 2 * ROWS
    store = FileStore.open(tmp_path / "t")
    assert [entry.row_count for entry in store.index_entries(store.snapshots.latest())] == [2 * ROWS]


@pytest.mark.long
def test_tasks_that_share_partitions_and_buckets_know_every_key_once(spark, tmp_path, set_thresholds):
    set_thresholds(idle_core_bytes=1)
    table = made(tmp_path / "t", "partitioned and dynamic", options={"dynamic-bucket.target-row-num": "500"}, spark=spark)
    table.write(frame(spark))
    table.write(frame(spark).selectExpr("id", "p", "'again' AS v").union(frame(spark, 10).selectExpr("id + 1000", "p", "v")))
    assert table.scan().count() == table.scan("v = 'again'").count() + 10 == ROWS + 10
    buckets = {(file["partition"], file["bucket"]) for file in table.files().to_pylist()}
    assert len({partition for partition, _ in buckets}) == 3
    assert {bucket for _, bucket in buckets} == {0, 1}, "333 keys a partition, of 1000 that could be of one"


@pytest.mark.long
def test_what_nobody_can_estimate_is_shared_among_the_cores(spark, tmp_path):
    source = made(tmp_path / "source", "fixed", spark=spark)
    source.write(local())
    read = source.scan().to_spark(native=False)
    assert estimates.estimate(read, arrow_for_spark(read.schema)) == estimates.Estimate()
    made(tmp_path / "t", "dynamic")
    assert job_of(spark, tmp_path / "t", read).job.writers == CORES
    made(tmp_path / "f", "fixed")
    assert tasks_of(job_of(spark, tmp_path / "f", read).frame) == 4 * CORES


def test_a_compaction_of_many_small_buckets_has_few_tasks(spark):
    operation = Compact(commit_id="a-commit")
    job = wire_jobs.TasksJob(operation=operation.to_text(), identity=operation.commit_id, base=EMPTY_TABLE)
    for size, tasks in ((1000, 2), (64 << 20, 4 * CORES)):
        buckets = [Task("", bucket, size) for bucket in range(500)]
        assert tasks_of(stage_tasks(spark, buckets, operation, job).frame) == tasks


def test_the_cores_of_a_server_are_those_that_it_cuts_a_range_for(spark):
    assert estimates.cores(spark) == CORES


def test_jobs_have_names_that_tell_operation_table_and_share(spark, tmp_path, monkeypatch):
    seen, make = [], type(spark.client)._execute_plan_request_with_metadata

    def watched(self, *args, **how):
        request = make(self, *args, **how)
        seen.extend(request.tags)
        return request

    monkeypatch.setattr(type(spark.client), "_execute_plan_request_with_metadata", watched)
    table = made(tmp_path / "flights", "fixed", options={"bucket": "2", "num-sorted-run.compaction-trigger": "50"}, spark=spark)
    table.write(local(50))
    table.write(local(50))
    table.compact(full=True)
    rows = table.scan().to_batches()
    assert next(iter(rows)).num_rows > 0
    assert spark.getTags() == set(), "what a caller runs between rows has no name of ours"
    assert list(dict.fromkeys(seen)) == ["paimon write flights", "paimon compact flights (2 buckets)", "paimon scan flights"]


def test_explain_tells_which_reader_of_a_dataframe_reads_what_and_why(spark, tmp_path):
    table = made(tmp_path / "t", "fixed", options={"bucket": "1", "num-sorted-run.compaction-trigger": "50"}, spark=spark)
    table.write(local(50))
    table.write(local(50))
    assert (
        "our reader reads all files (no file can be read without a merge or deletion vector)" in table.scan().explain(analyze=False).summary
    )
    table.compact(full=True)
    told = table.scan().explain(analyze=False).summary.splitlines()[1]
    assert told.startswith("to_spark(): Spark's own Parquet reader reads 1 of 1 file, ")
    assert "a filter on columns" in table.scan("id = 7").explain(analyze=False).summary
    hint = "to_spark().filter(...): Spark filters what the readers return, and no file is skipped"
    assert hint in table.scan().explain(analyze=False).summary
    assert hint not in table.scan("id = 7").explain(analyze=False).summary
    assert "to_spark" not in Table.open(table.path).scan().explain(analyze=False).summary
