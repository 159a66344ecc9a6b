"""File indexes over Spark: rewritten by tasks and committed once by the driver, listed and judged by questions."""

from __future__ import annotations

import pickle
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.datasource")

from manifest.io.errors import CommitConflict
from pyspark_paimon import Table
from pyspark_paimon.operations.rewrite_file_index import RewriteFileIndex
from pyspark_paimon.operations.tasks import PlanTasks
from pyspark_paimon.results.results import Outcome
from pyspark_paimon.spark.driver.outcome import outcome
from pyspark_paimon.spark.server import schema as answer
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.write.writer import TasksWriter

FAR = 2**62
ATTRS = pa.map_(pa.string(), pa.int32())
OPTIONS = {"file-index.bitmap.columns": "city,attrs[clicks]", "file-index.in-manifest-threshold": "1 b"}


@pytest.fixture
def table(tmp_path) -> Table:
    """Two partitions with two files each, and options that their files do not follow yet."""
    made = Table.create(tmp_path / "t", "id BIGINT, city STRING, attrs MAP<STRING, INT>, day STRING", partition_keys=["day"])
    for part in range(2):
        ids = range(part * 20, part * 20 + 20)
        attrs = pa.array([[("clicks", at)] for at in ids], ATTRS)
        made.write(pa.table({"id": ids, "city": [f"c{at % 4}" for at in ids], "attrs": attrs, "day": ["mon", "tue"] * 10}))
    return made.alter_options(OPTIONS)


def job(table: Table) -> wire_jobs.TasksJob:
    operation = RewriteFileIndex(commit_id=str(uuid.uuid4()))
    plan = operation.plan(table_store(table))
    return wire_jobs.TasksJob(operation=operation.to_text(), identity=operation.commit_id, base=plan.base)


def rows(table: Table, chosen=slice(None)) -> pa.RecordBatch:
    """The job's rows, as a client makes them of the server's answer."""
    question = PlanTasks(operation=RewriteFileIndex(commit_id="c").to_text())
    plan = question.answer_of(rpc.answer_of(answer({"path": table.path, rpc.QUESTION: question.to_text()})))
    tasks = sorted(plan.tasks, key=lambda task: (task.partition, task.file))[chosen]
    columns = [pa.array([getattr(task, name) for task in tasks]) for name in rpc.TASK_COLUMNS]
    return pa.RecordBatch.from_arrays(columns, names=list(rpc.TASK_COLUMNS))


def side_files(table: Table) -> list[str]:
    return sorted(path.name for path in Path(table.path).rglob("*.index"))


def test_tasks_make_side_files_and_the_driver_commits_them(table):
    writer = pickle.loads(pickle.dumps(TasksWriter(table.path, job(table))))
    messages = [pickle.loads(pickle.dumps(writer.write(iter([rows(table, chosen)])))) for chosen in (slice(0, 3), slice(3, 4), slice(0, 0))]
    assert [len(message.messages) for message in messages] == [3, 1, 0]
    assert table.file_indexes().num_rows == 0
    writer.commit(messages)
    assert table.file_indexes().num_rows == 8
    writer.abort(messages)
    assert sorted(table.files()["file_index"].to_pylist()) == side_files(table)
    assert table.scan("attrs['clicks'] = 33").to_arrow()["id"].to_pylist() == [33]


@pytest.mark.slow
def test_an_aborted_rewrite_leaves_no_side_file(table):
    writer = TasksWriter(table.path, job(table))
    messages = [writer.write(iter([rows(table)])), None]
    assert len(side_files(table)) == 4
    writer.abort(messages)
    assert side_files(table) == []
    assert table.snapshots().num_rows == 2


def test_a_task_that_fails_deletes_its_side_files(table):
    damaged = Path(
        table.path,
        "day=tue",
        "bucket-0",
        table.files().filter(pa.compute.equal(table.files()["partition"], "day=tue"))["file_name"][0].as_py(),
    )
    damaged.write_bytes(b"damaged")
    with pytest.raises(Exception, match="Parquet"):
        TasksWriter(table.path, job(table)).write(iter([rows(table)]))
    assert side_files(table) == []


def test_files_of_a_killed_task_are_orphans_that_carry_the_commit_id(table):
    killed = job(table)
    TasksWriter(table.path, killed).write(iter([rows(table, slice(0, 2))]))
    found = [orphan.path for orphan in table.list_orphan_files(FAR)]
    assert len(found) == 2
    assert all(killed.identity in path for path in found)
    table.remove_orphan_files(FAR)
    assert side_files(table) == []
    assert table.scan().count() == 40


def test_a_repeated_commit_hook_commits_once(table):
    writer = TasksWriter(table.path, job(table))
    messages = [writer.write(iter([rows(table)]))]
    writer.commit(messages)
    writer.commit(messages)
    assert table.snapshots().num_rows == 3
    assert len(side_files(table)) == 4


def test_files_that_were_removed_meanwhile_are_a_conflict_and_the_others_are_committed(table):
    writer = TasksWriter(table.path, job(table))
    messages = [writer.write(iter([rows(table)]))]
    table.alter_options({"compaction.min.file-num": "2"}).compact(full=True, partitions=[{"day": "mon"}])
    with pytest.raises(CommitConflict, match="2 files"):
        writer.commit(messages)
    told = Outcome.model_validate_json(outcome(table_store(table), wire_jobs.TasksJob.model_validate_json(writer.job).identity))
    assert told.counts["rewritten"] == 2
    assert sorted(name for name in table.files()["file_index"].to_pylist()) == side_files(table)
    assert table.rewrite_file_index().rewritten == 0


def table_store(table: Table):
    from manifest.store import FileStore

    return FileStore.open(table.path)


@pytest.mark.spark
def test_a_spark_client_rewrites_lists_and_judges_indexes_as_a_process_does(spark, table):
    over = Table.open(table.path, spark=spark)
    some = over.rewrite_file_index([{"day": "mon"}])
    assert (some.files, some.rewritten, some.snapshot_id) == (2, 2, 3)
    assert some.bytes_read > 0 < some.bytes_written
    rest = over.rewrite_file_index()
    assert (rest.files, rest.rewritten, rest.snapshot_id) == (4, 2, 4)
    again = over.rewrite_file_index()
    assert (again.files, again.rewritten, again.snapshot_id) == (4, 0, None)
    for view in ("file_indexes", "index_health"):
        assert getattr(over, view)().equals(getattr(table, view)())
    assert set(over.file_indexes()["storage_type"].to_pylist()) == {"FILE"}
    over.alter_options(dict.fromkeys(OPTIONS))
    assert over.rewrite_file_index().rewritten == 4
    assert over.file_indexes().num_rows == 0
    assert table.scan().count() == 40
    assert table.list_orphan_files(FAR) == []


@pytest.mark.spark
def test_a_map_entry_reaches_its_index_from_every_filter_language(spark, table):
    import pyarrow.compute as pc
    from pyspark.sql import functions as sf

    over = Table.open(table.path, spark=spark)
    over.alter_options({"file-index.in-manifest-threshold": "1 mb"}).rewrite_file_index()
    conditions = ("attrs['clicks'] = 33", sf.col("attrs")["clicks"] == 33, pc.map_lookup(pc.field("attrs"), "clicks", "first") == 33)
    for condition in conditions:
        for opened in (table, over):
            scan = opened.scan(condition)
            assert sum(len(split.files) for split in scan.plan().splits) == 1, condition
            assert scan.to_arrow()["id"].to_pylist() == [33]


@pytest.mark.spark
def test_progress_counts_tasks_over_connect(spark, table):
    events = []
    Table.open(table.path, spark=spark, progress=events.append).rewrite_file_index()
    assert {event.stage for event in events} - {"start"} == {"rewrite-file-index"}
    assert events[-1].done == events[-1].total
    assert events[-1].unit == "tasks"


SLOW = {"file-index.bloom-filter.columns": "id", "file-index.bloom-filter.id.items": "20000000"}
"""Large filters keep tasks busy for a while."""


@pytest.fixture(params=["rewrite", "compact"])
def slow_job(request, tmp_path):
    """A table, a method that rearranges its files in slow tasks, and the part of a new file's name that has the commit id."""
    if request.param == "rewrite":
        made = Table.create(tmp_path / "slow", "id BIGINT")
        for part in range(12):
            made.write(pa.table({"id": [part]}))
        made.alter_options(SLOW)
        return made, lambda opened: opened.rewrite_file_index(), lambda name: name.partition(".parquet-")[2][:36]
    made = Table.create(tmp_path / "slow", "id BIGINT", primary_keys=["id"], options={"bucket": "8", "write-only": "true"})
    for _ in range(2):  # one run alone would only move to another level
        made.write(pa.table({"id": range(12)}))
    made.alter_options(SLOW)
    return made, lambda opened: opened.compact(full=True), lambda name: name.removeprefix("data-")[:36]


@pytest.mark.spark
def test_a_cancelled_job_changes_nothing_and_its_orphans_carry_one_commit_id(spark, slow_job):
    """If the driver was faster than the cancellation nevertheless, everything is there."""
    table, work, commit_of = slow_job
    before, snapshots = data_and_index_files(table), table.snapshots().num_rows
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(work, Table.open(table.path, spark=spark))
        while not job.done() and data_and_index_files(table) == before:
            time.sleep(0.02)
        spark.interruptAll()
        failed = job.exception() is not None
    indexed = {row["file_index"] for row in table.files().to_pylist()} - {None}
    assert (bool(indexed), table.snapshots().num_rows - snapshots) == ((False, 0) if failed else (True, 1))
    assert table.scan().count() == 12
    wait_until_still(table)
    left = {Path(orphan.path).name for orphan in table.list_orphan_files(FAR) if "/bucket-" in orphan.path}
    assert len({commit_of(name) for name in left}) <= 1
    assert left <= data_and_index_files(table) - before
    table.remove_orphan_files(FAR)
    assert data_and_index_files(table) >= before
    if failed:
        assert data_and_index_files(table) == before


def data_and_index_files(table: Table) -> set[str]:
    return {path.name for path in Path(table.path).rglob("bucket-*/*")}


def wait_until_still(table: Table) -> None:
    """Tasks that are being killed may finish the file that they are writing."""
    sizes = None
    while sizes != (sizes := [path.stat().st_size for path in sorted(Path(table.path).rglob("bucket-*/*"))]):
        time.sleep(1)
