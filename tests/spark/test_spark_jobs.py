"""The parts of Spark jobs that need no server: tasks, commit hooks, commands and messages, called as Spark calls them."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark.sql.datasource")

from lsm.write.compaction_job import compact_together
from manifest.io.errors import CommitConflict
from manifest.schema.validation import build_schema
from manifest.snapshot.snapshot import ReadState, SnapshotKey
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Table, UnknownColumn
from pyspark_paimon.frames.spark_types import spark_schema
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.operations.compact import Compact
from pyspark_paimon.operations.create import CreateTable
from pyspark_paimon.operations.expire import ExpireSnapshots
from pyspark_paimon.request.plan_json import plan_from_json, plan_to_json
from pyspark_paimon.request.requests import ScanRequest, WriteRequest
from pyspark_paimon.request.scan_questions import CountCheaply
from pyspark_paimon.request.tasks import TaskWork
from pyspark_paimon.results.results import Outcome
from pyspark_paimon.spark.driver import commit, job_files
from pyspark_paimon.spark.driver.commit import commit_tasks
from pyspark_paimon.spark.driver.job_files import answer_file, answer_once, exclusively, is_running, mark_started, stored_answer
from pyspark_paimon.spark.driver.options import flag, travel
from pyspark_paimon.spark.driver.outcome import job_name, outcome, run_command
from pyspark_paimon.spark.read.reader import PaimonReader
from pyspark_paimon.spark.server import schema as server_schema
from pyspark_paimon.spark.wire import jobs as wire_jobs
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import BLOB, TASK, blob_frame, decode_blobs
from pyspark_paimon.spark.write.writer import RowsWriter, writer_for


@pytest.fixture
def table(tmp_path):
    made = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"})
    made.write(pa.table({"id": [1, 2, 3, 4], "v": ["a", "b", "c", "d"]}))
    return made


def job(*, owned: bool = True) -> wire_jobs.RowsJob:
    route = wire_jobs.ByBucket() if owned else wire_jobs.Unrouted()
    return wire_jobs.RowsJob(request=WriteRequest(commit_id=str(uuid.uuid4()), mode="upsert"), route=route)


def batches(*ids: int, v: str = "new"):
    return iter([pa.RecordBatch.from_pydict({"id": list(ids), "v": [v] * len(ids)})])


def content(table: Table) -> dict:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def data_files(tmp_path) -> set:
    return set(tmp_path.rglob("*.parquet"))


def test_a_writer_survives_the_trip_to_its_tasks_and_back_to_the_driver(table):
    writer = pickle.loads(pickle.dumps(RowsWriter(table.path, job(), None)))
    message = pickle.loads(pickle.dumps(writer.write(batches(1, 5))))
    assert message.rows == 2
    writer.commit([message, writer.write(iter(()))])
    assert content(table) == {1: "new", 2: "b", 3: "c", 4: "d", 5: "new"}


def test_an_abort_after_the_commit_deletes_nothing(table, tmp_path):
    writer = RowsWriter(table.path, job(), None)
    message = writer.write(batches(1, 2, 3, 4))
    writer.commit([message])
    before = data_files(tmp_path)
    writer.abort([message])
    assert data_files(tmp_path) == before
    assert set(content(table).values()) == {"new"}


def test_an_abort_without_a_commit_deletes_what_the_tasks_made(table, tmp_path):
    before = data_files(tmp_path)
    writer = RowsWriter(table.path, job(), None)
    message = writer.write(batches(1, 2, 3, 4))
    assert data_files(tmp_path) > before
    writer.abort([message, None])
    assert data_files(tmp_path) == before


def test_a_commit_hook_that_runs_twice_commits_once(table):
    writer = RowsWriter(table.path, job(), None)
    message = writer.write(batches(9))
    writer.commit([message])
    writer.commit([message])
    assert table.snapshots().num_rows == 2


def test_a_bucket_in_two_tasks_of_a_staged_write_is_not_committed(table, tmp_path):
    before = data_files(tmp_path)
    writer = RowsWriter(table.path, job(), None)
    messages = [writer.write(batches(1)), writer.write(batches(1))]
    with pytest.raises(CommitConflict, match="two tasks"):
        writer.commit(messages)
    writer.abort(messages)
    assert data_files(tmp_path) == before


def test_tasks_that_share_a_bucket_number_their_rows_in_ranges_of_their_own(table):
    writer = writer_for({"path": table.path}, spark_schema(table.table_schema.fields), overwrite=False)
    first = table.files().column("max_sequence_number").to_pylist()
    assert writer.first_sequence == max(first) + 1
    late = RowsWriter(table.path, wire_jobs.RowsJob.model_validate_json(writer.job), writer.first_sequence + (1 << 32))
    messages = [late.write(batches(1, v="late")), writer.write(batches(1, v="early"))]
    writer.commit(messages)
    assert content(table)[1] == "late"


def test_a_plain_write_that_loses_a_race_is_still_the_newest(table):
    writer = writer_for({"path": table.path}, spark_schema(table.table_schema.fields), overwrite=False)
    message = writer.write(batches(1, 2, v="plain"))
    table.write(pa.table({"id": [1] * 50, "v": ["rival"] * 50}))
    writer.commit([message])
    assert content(table)[1] == "plain"


@pytest.mark.parametrize("write_only", [False, True], ids=["as the table says", "write-only"])
def test_compaction_follows_a_plain_write_that_makes_it_due(tmp_path, write_only):
    options = {"bucket": "2", "num-sorted-run.compaction-trigger": "3"}
    made = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options=options)
    given = {"path": made.path, **({"write-only": "true"} if write_only else {})}
    for low in (0, 30):
        writer = writer_for(given, spark_schema(made.table_schema.fields), overwrite=False)
        tasks = [
            RowsWriter(made.path, wire_jobs.RowsJob.model_validate_json(writer.job), writer.first_sequence + (at << 32)) for at in range(3)
        ]
        writer.commit([task.write(batches(*range(low + at, low + 60, 3))) for at, task in enumerate(tasks)])
    kinds = made.snapshots().column("commit_kind").to_pylist()
    levels = set(made.files().column("level").to_pylist())
    assert content(made) == dict.fromkeys(range(90), "new")
    if write_only:
        assert (kinds, levels) == (["APPEND", "APPEND"], {0})
    else:
        assert (kinds[-1], 0 in levels) == ("COMPACT", False)
        commit_id = wire_jobs.RowsJob.model_validate_json(writer.job).request.commit_id
        told = Outcome.model_validate_json(outcome(FileStore.open(made.path), commit_id))
        assert (told.snapshot_id, told.compact_snapshot_id) == (len(kinds) - 1, len(kinds))


def round_of(operation: TaskOperation, table: Table) -> wire_jobs.TasksJob:
    base = operation.plan(FileStore.open(table.path)).base
    return wire_jobs.TasksJob(operation=operation.to_text(), identity=operation.commit_id, base=base)


def test_a_compaction_that_loses_a_race_is_a_conflict_and_leaves_the_table(table, tmp_path):
    table.write(pa.table({"id": [1, 2, 3, 4], "v": ["x"] * 4}))
    store = FileStore.open(table.path)
    request = Compact(commit_id=str(uuid.uuid4()), full=True)
    slow = [
        message
        for bucket in (0, 1)
        for message in compact_together(
            store, [(bytes.fromhex("000000000000000000000000"), bucket)], full=True, commit_id=request.commit_id
        )
    ]
    assert len(slow) == 2
    table.compact(full=True)
    files = data_files(tmp_path)
    with pytest.raises(CommitConflict, match="other commits changed 2 buckets"):
        commit_tasks(FileStore.open(table.path), round_of(request, table), request, TaskWork(slow))
    assert content(table) == dict.fromkeys((1, 2, 3, 4), "x")
    assert data_files(tmp_path) < files


def test_the_outcome_of_a_commit_tells_its_counts(table, monkeypatch):
    before = set(table.files()["file_name"].to_pylist())
    writer = RowsWriter(table.path, job(), None)
    writer.commit([writer.write(batches(7, 8, 7))])
    commit_id = wire_jobs.RowsJob.model_validate_json(writer.job).request.commit_id
    found = Outcome.model_validate_json(outcome(FileStore.open(table.path), commit_id))
    monkeypatch.setattr("pyspark_paimon.spark.driver.outcome.stored_answer", lambda _: None)
    noted = Outcome.model_validate_json(outcome(FileStore.open(table.path), commit_id))
    assert noted.model_copy(update={"counts": {**noted.counts, "retries": 0}}) == found  # no snapshot knows how often its commit was tried
    assert (found.snapshot_id, found.counts["rows"], found.counts["files"]) == (2, 3, table.files().num_rows - 2)
    assert (found.counts["bytes_written"], found.counts["compacted_files"]) == (
        sum(row["file_size"] for row in table.files().to_pylist() if row["file_name"] not in before),
        0,
    )
    assert outcome(FileStore.open(table.path), "nobody") is None


def test_the_outcome_of_a_commit_outlives_its_snapshot_but_not_its_table(table):
    writer = RowsWriter(table.path, job(), None)
    commit_id = wire_jobs.RowsJob.model_validate_json(writer.job).request.commit_id
    writer.commit([writer.write(batches(7))])
    known = outcome(FileStore.open(table.path), commit_id)
    table.write(pa.table({"id": [1], "v": ["z"]}))
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert outcome(FileStore.open(table.path), commit_id) == known
    shutil.rmtree(table.path)
    again = Table.create(table.path, "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"})
    for _ in range(4):
        again.write(pa.table({"id": [1], "v": ["z"]}))
    again.expire_snapshots(retain_max=1, retain_min=1)
    assert outcome(FileStore.open(table.path), commit_id) is None


def test_a_command_with_one_id_runs_once(tmp_path):
    built = build_schema("id INT", primary_keys=["id"], options={"bucket": "1"}).to_json()
    command_id, operation = str(uuid.uuid4()), CreateTable(table_schema=built)
    run_command(str(tmp_path / "t"), command_id, operation)
    run_command(str(tmp_path / "t"), command_id, operation)
    assert Table.open(tmp_path / "t").primary_keys == ("id",)


def test_a_question_is_not_an_operation_nor_an_operation_a_question(table):
    text = ExpireSnapshots(retain_min=1).to_text()
    with pytest.raises(InvalidArgument, match="must be a question"):
        server_schema({"path": table.path, rpc.QUESTION: text})
    with pytest.raises(InvalidArgument, match="is invalid"):
        rpc.parse_command(
            rpc.Command(id="x", operation=CountCheaply(request=ScanRequest(columns=(), snapshot_id=None)).to_text()).model_dump_json()
        )


def test_a_reader_reads_its_splits_in_every_form(table):
    request = ScanRequest(columns=("v", "id"), snapshot_id=1)
    wanted = spark_schema([table.table_schema.field(name) for name in request.columns])
    reader = pickle.loads(pickle.dumps(PaimonReader(table.path, request.model_dump_json(), wanted)))
    found = [batch for split in reader.partitions() for batch in reader.read(split)]
    assert pa.Table.from_batches(found).sort_by("id").column("v").to_pylist() == ["a", "b", "c", "d"]
    assert found[0].schema.field("id").nullable is False


def test_blobs_send_a_bucket_to_one_task_and_keep_the_order_of_its_rows(set_thresholds):
    set_thresholds(idle_core_bytes=1)
    schema = build_schema("p STRING, id INT, n INT", primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "4"})
    rows = pa.table({"p": [str(i % 3) for i in range(1000)], "id": [i % 50 for i in range(1000)], "n": list(range(1000))})
    frame = blob_frame(rows.to_reader(100), schema, 3, kinds=False)
    seen: dict[tuple, list] = {}
    for task in range(3):
        for batch in frame.filter(pc.equal(frame.column(TASK), task)).to_batches():
            for part in decode_blobs(batch):
                for row in part.to_pylist():
                    seen.setdefault((row["p"], row["id"]), []).append((task, row["n"]))
    assert sum(map(len, seen.values())) == 1000
    assert all(len({task for task, _ in found}) == 1 for found in seen.values())
    assert all(found == sorted(found) for found in seen.values())
    assert len({found[0][0] for found in seen.values()}) == 3
    assert frame.schema.names == ["task", "ordinal", BLOB]


def test_a_few_local_rows_are_one_task_and_more_have_as_many_as_they_are_worth():
    schema = build_schema("p STRING, id INT", primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "2"})
    few = pa.table({"p": [f"p{i % 200}" for i in range(1000)], "id": pa.array(range(1000), pa.int32())})
    frame = blob_frame(few.to_reader(), schema, 64, kinds=False)
    assert set(frame.column(TASK).to_pylist()) == {0}
    assert frame.num_rows <= 256, "what a task has in common travels together"
    wide = pa.table({"p": ["p"] * 300 + ["q"] * 300, "id": pa.array(range(600), pa.int32()), "v": [f"{i:0100000}" for i in range(600)]})
    schema = build_schema("p STRING, id INT, v STRING", primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "8"})
    assert set(blob_frame(wide.to_reader(), schema, 4, kinds=False).column(TASK).to_pylist()) == {0, 1, 2, 3}


def test_large_buckets_have_blobs_of_their_own_and_small_ones_share_those_of_their_task(set_thresholds):
    set_thresholds(idle_core_bytes=1)
    schema = build_schema("p STRING, id INT", primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "2"})
    rows = pa.table({"p": ["large"] * 5000 + [f"small {i}" for i in range(50)], "id": pa.array(range(5050), pa.int32())})
    frame = blob_frame(rows.to_reader(), schema, 2, kinds=False)
    partitions = [
        {name for part in decode_blobs(one) for name in part.column("p").to_pylist()} for one in frame.to_batches(max_chunksize=1)
    ]
    assert sum(found == {"large"} for found in partitions) == 2
    assert len(partitions) <= 2 + 4 * 2


def test_blobs_of_wide_rows_are_bounded_in_bytes_and_long_inputs_are_cut():
    schema = build_schema("id INT, v STRING", primary_keys=["id"], options={"bucket": "1"})
    rows = pa.table({"id": pa.array(range(600), pa.int32()), "v": [f"{i:0100000}" for i in range(600)]})
    frame = blob_frame(rows.to_reader(), schema, 1, kinds=False)
    sizes = [sum(part.nbytes for part in decode_blobs(one)) for one in frame.to_batches(max_chunksize=1)]
    assert len(sizes) >= 8
    assert max(sizes) <= 8 << 20
    assert sum(part.num_rows for one in frame.to_batches() for part in decode_blobs(one)) == 600


def test_who_asks_for_the_outcome_of_a_commit_that_is_being_made_waits_for_it(table):
    writer = RowsWriter(table.path, job(), None)
    commit_id = wire_jobs.RowsJob.model_validate_json(writer.job).request.commit_id
    message = writer.write(batches(7))
    name = job_name(FileStore.open(table.path), commit_id)
    writer.mark(name)

    def slowly():
        time.sleep(0.3)
        writer.commit([message])

    hook = threading.Thread(target=slowly)
    hook.start()
    found = outcome(FileStore.open(table.path), commit_id)
    hook.join()
    assert Outcome.model_validate_json(found).snapshot_id == 2
    assert not is_running(name)


def test_who_asks_for_the_outcome_of_a_job_that_was_given_up_hears_at_once(table):
    writer = writer_for({"path": table.path}, spark_schema(table.table_schema.fields), overwrite=False)
    commit_id = wire_jobs.RowsJob.model_validate_json(writer.job).request.commit_id
    assert is_running(writer.name)
    writer.abort([None])
    assert not is_running(writer.name)
    assert outcome(FileStore.open(table.path), commit_id) is None


def test_the_mark_of_a_driver_that_died_holds_nobody_up(monkeypatch):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    monkeypatch.setattr(os, "getppid", lambda: int(dead.stdout))
    mark_started("a job of a dead driver")
    assert not is_running("a job of a dead driver")


def test_a_change_that_conflicts_with_what_it_read_is_not_assigned_again(tmp_path, monkeypatch):
    made = Table.create(tmp_path / "t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "-1"})
    made.write(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    computed = job(owned=False).model_copy(update={"read": ReadState(FileStore.open(made.path).snapshots.get(1).key)})
    writer = RowsWriter(made.path, computed, 100)
    message = writer.write(batches(1, 2, v="computed"))
    made.write(pa.table({"id": [1], "v": ["newer"]}))
    runs, once = [], commit.rebucket
    monkeypatch.setattr(commit, "rebucket", lambda *args, **how: runs.append(args) or once(*args, **how))
    monkeypatch.setattr("lsm.commit.rebucket.rebucket", lambda *args, **how: runs.append(args) or once(*args, **how))
    with pytest.raises(CommitConflict, match="have changed since snapshot 1"):
        writer.commit([message])
    assert len(runs) == 1
    assert content(made) == {1: "newer", 2: "b"}


def test_a_plan_comes_back_from_json_as_it_was(table):
    plan = table.scan("id = 1").plan()
    assert plan_from_json(plan_to_json(plan)) == plan


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "request.state.FormatTheDisk", "arguments": {}}',
        '{"name": "operations.no_such_module.Snapshots", "arguments": {}}',
        '{"name": "request.scan_questions.ScanPlan", "arguments": {}}',
        '{"name": "request.scan_questions.PlanScan", "arguments": {}}',
        '{"name": "request.state.Snapshots", "arguments": {"more": 1}}',
        '{"name": "operations.listings.ListFiles", "arguments": {"snapshot_id": "x"}}',
        "no json",
    ],
)
def test_a_question_that_is_not_understood_is_refused(text):
    with pytest.raises(InvalidArgument, match=r"paimon\.question"):
        rpc.parse_question(text)


def test_questions_commands_and_jobs_come_back_from_json_as_they_were():
    question = CountCheaply(request=ScanRequest(columns=("a",), snapshot_id=None))
    command = ExpireSnapshots(retain_min=3)
    assert rpc.parse_question(question.to_text()) == question
    assert rpc.parse_command(rpc.Command(id="x", operation=command.to_text()).model_dump_json()) == ("x", command)
    assert rpc.parse_job(job().model_dump_json()).job == "rows"
    tasks = wire_jobs.TasksJob(operation="{}", identity="c-2", base=SnapshotKey(7, "list"))
    assert rpc.parse_job(tasks.model_dump_json()) == tasks


def test_an_answer_travels_in_the_metadata_of_a_column():
    answer = json.dumps({"text": 'é\n"quoted"'})
    assert rpc.answer_of(rpc.answer_schema(answer)) == answer
    with pytest.raises(InvalidArgument, match="not this package"):
        rpc.answer_of(spark_schema(build_schema("id INT").fields))


def test_options_of_a_read_are_checked():
    assert flag({"x": "TRUE"}, "x")
    with pytest.raises(InvalidArgument, match="true or false"):
        flag({"x": "maybe"}, "x")
    with pytest.raises(InvalidArgument, match="not a number"):
        travel({"scan.snapshot-id": "three"})


def test_a_plain_write_is_checked_before_any_row_moves(table):
    with pytest.raises(Exception, match="'w' is unknown"):
        writer_for({"path": table.path}, spark_schema(build_schema("id BIGINT, w STRING").fields), overwrite=False)
    with pytest.raises(UnknownColumn):
        table.table_schema.field("w")


def test_answers_of_yesterday_are_deleted_but_not_looked_for_at_each_command(tmp_path, monkeypatch):
    monkeypatch.setattr(job_files, "_directory", lambda: tmp_path)

    def answer_of_last_week(name: str) -> None:
        answer_once(name, lambda: "done")
        os.utime(answer_file(name), (time.time() - 7 * 86400,) * 2)

    answer_of_last_week("first")
    answer_once("second", lambda: "done")
    assert stored_answer("first") == "done", "the directory was looked at a moment ago"
    os.utime(tmp_path / "swept", (time.time() - 3600,) * 2)
    answer_once("third", lambda: "done")
    assert [stored_answer(name) for name in ("first", "second", "third")] == [None, "done", "done"]


def test_a_command_waits_for_its_own_repetition_only(tmp_path, monkeypatch):
    monkeypatch.setattr(job_files, "_directory", lambda: tmp_path)
    code = (
        "import sys, pathlib; from pyspark_paimon.spark.driver import job_files\n"
        f"job_files._directory = lambda: pathlib.Path({str(tmp_path)!r})\n"
        "with job_files.exclusively('one'): print('inside', flush=True); sys.stdin.readline()"
    )
    entered = threading.Event()

    def enter() -> None:
        with exclusively("one"):
            entered.set()

    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "inside\n"
        with exclusively("two"):
            pass
        waiting = threading.Thread(target=enter)
        waiting.start()
        assert not entered.wait(0.3)
        other.stdin.write("\n")
        other.stdin.flush()
        waiting.join(20)
    assert entered.is_set()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["locks"]
