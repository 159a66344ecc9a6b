"""Operations, questions and their answers as text between a client and a server."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyspark_paimon.operations
import pyspark_paimon.operations.history
import pyspark_paimon.request
from fileindex.predicate.tree import ColumnRef, Compare, Op
from paimon_base.errors import InvalidArgument
from paimon_base.thresholds import use_thresholds
from pyspark_paimon import Table
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.operations.alter import AlterSchema
from pyspark_paimon.operations.analyze import Analyze, ReadStatistics
from pyspark_paimon.operations.change_files import ChangeFiles
from pyspark_paimon.operations.change_rows import DeleteRows, MergeRows, UpdateRows, WriteRows
from pyspark_paimon.operations.compact import Compact, MovePostponed
from pyspark_paimon.operations.copy_files import CopyFiles, CopySchemas
from pyspark_paimon.operations.copy_history import CopyHistory
from pyspark_paimon.operations.create import CreateTable
from pyspark_paimon.operations.expire import ExpireSnapshots, ListOrphans, RemoveOrphans
from pyspark_paimon.operations.history.branches import CreateBranch, DeleteBranch, FastForward, RenameBranch
from pyspark_paimon.operations.history.consumers import ClearConsumers, ResetConsumer
from pyspark_paimon.operations.history.restore import Restore
from pyspark_paimon.operations.history.rollback import Rollback
from pyspark_paimon.operations.history.tags import CreateDueTags, CreateTag, DeleteTag, ExpireTags, RenameTag, ReplaceTag
from pyspark_paimon.operations.index_advice import AdviseIndexes, GivenFilter
from pyspark_paimon.operations.listings import ListFiles, ListHistory, ListIndexes
from pyspark_paimon.operations.manifests import CompactManifests
from pyspark_paimon.operations.missing_files import RemoveUnexistingFiles
from pyspark_paimon.operations.partitions import DropPartitions, ExpirePartitions, MarkPartitionsDone
from pyspark_paimon.operations.purge import CheckPurge, FindHolders, ForgetHistory, RewriteStored
from pyspark_paimon.operations.rescale import Rescale
from pyspark_paimon.operations.rewrite_file_index import RewriteFileIndex
from pyspark_paimon.operations.tasks import CountDynamicBuckets, PlanTasks
from pyspark_paimon.request.assignments import Assignments
from pyspark_paimon.request.merge import Clause, MergeRequest, join_of, sides_of
from pyspark_paimon.request.operation import Operation, Question, Request, parse_request
from pyspark_paimon.request.requests import DeleteRequest, ScanRequest, TravelRequest, WriteRequest
from pyspark_paimon.request.scan_questions import (
    AggregateCheaply,
    AggregateRows,
    CountCheaply,
    CountRows,
    DescribeTree,
    GroupCheaply,
    IfSmall,
    MeasureScan,
    PlanScan,
    ReadRows,
)
from pyspark_paimon.request.state import Pin, SchemaOf, Snapshots, Start
from tests.build import keyed

SCAN = ScanRequest(columns=("id",), snapshot_id=1, predicate=Compare(ColumnRef("id"), Op.EQ, 2))
QUESTIONS: list[Question[Any]] = [
    SchemaOf(),
    SchemaOf(id=0),
    Pin(travel=TravelRequest(snapshot_id=1)),
    Start(travel=TravelRequest()),
    Snapshots(),
    *(ListHistory(view=view) for view in ("tags", "branches", "schemas", "partitions", "consumers")),
    ListFiles(snapshot_id=1),
    ListFiles(snapshot_id=None),
    ListIndexes(view="file_indexes", snapshot_id=1),
    ListIndexes(view="index_health", snapshot_id=1),
    AdviseIndexes(
        filters=(GivenFilter(text="city = 'Oslo'", predicate=Compare(ColumnRef("city"), Op.EQ, "Oslo")),), snapshot_id=1, most_bytes=1 << 20
    ),
    ReadStatistics(snapshot_id=2),
    ReadStatistics(snapshot_id=None),
    PlanScan(request=SCAN),
    DescribeTree(request=SCAN),
    MeasureScan(request=SCAN),
    CountCheaply(request=SCAN),
    AggregateCheaply(request=SCAN.model_copy(update={"predicate": None})),
    GroupCheaply(request=SCAN.model_copy(update={"predicate": None}), by=("city",), counted=("city",)),
    GroupCheaply(request=SCAN.model_copy(update={"predicate": None}), by=("id",)),
    ReadRows(request=SCAN),
    CountRows(request=SCAN),
    AggregateRows(request=SCAN),
    IfSmall(question=ReadRows(request=SCAN).to_text(), most_bytes=1 << 20),
    IfSmall(question=CountRows(request=SCAN).to_text(), most_bytes=0),
    ListOrphans(older_than_ms=2**62),
    PlanTasks(operation=Compact(commit_id="c").to_text()),
    CountDynamicBuckets(snapshot_id=1),
    CheckPurge(),
    FindHolders(predicate=Compare(ColumnRef("id"), Op.EQ, 2)),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    options = {"bucket": "1", "file-index.bloom-filter.columns": "city"}
    table = Table.create(tmp_path_factory.mktemp("wire") / "t", "id BIGINT, city STRING", primary_keys=["id"], options=options)
    table.write(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Lima", "Rome"]}))
    table.analyze()
    table.create_tag("v1")
    table.create_branch("side", "v1")
    table.reset_consumer("nightly", 1)
    return table


def operations(table: Table) -> list[Operation[Any]]:
    schema = table.table_schema
    rows = pa.table({"id": [3, 4], "city": ["Roma", "Oulu"]})
    changed = DeleteRequest(commit_id="c", batch_id=3, predicate=None)
    wanted = MergeRequest(
        source=rows,
        join=join_of("id", sides_of(schema, rows.schema)),
        clauses=(Clause(when="matched", condition=None, action="update", values={}),),
        pending=schema,
    )
    return [
        CreateTable(table_schema=schema),
        AlterSchema(changes=()),
        CreateTag(name="a"),
        ReplaceTag(name="v1"),
        RenameTag(name="v1", new_name="v2"),
        DeleteTag(name="v1", dry_run=True),
        ExpireTags(),
        CreateBranch(name="b", tag="v1"),
        DeleteBranch(name="b"),
        FastForward(name="b"),
        Rollback(timestamp_millis=5),
        Restore(commit_id="c", tag="v1"),
        ResetConsumer(name="nightly", following=None),
        ClearConsumers(including="n.*", excluding="x"),
        CreateDueTags(),
        RenameBranch(name="side", new_name="other"),
        CompactManifests(commit_id="c"),
        Rescale(commit_id="c", buckets=4),
        MarkPartitionsDone(partitions=({"day": "1"},)),
        DropPartitions(commit_id="c", partitions=({"day": "1"},)),
        ExpirePartitions(commit_id="c"),
        RemoveUnexistingFiles(commit_id="c", dry_run=True),
        CopySchemas(target="/w/copy"),
        CopyHistory(target="/w/copy"),
        CopyFiles(commit_id="c", source="/w/t", tag="v1", predicate=Compare(ColumnRef("day"), Op.EQ, 2)),
        ExpireSnapshots(retain_min=1),
        RewriteStored(commit_id="c", row_filter=Compare(ColumnRef("id"), Op.EQ, 2)),
        ForgetHistory(commit_id="c"),
        RemoveOrphans(older_than_ms=0),
        Analyze(commit_id="c", columns=("id",)),
        Compact(commit_id="c", full=True),
        MovePostponed(commit_id="c"),
        RewriteFileIndex(commit_id="c"),
        ChangeFiles(commit_id="c", predicate=None),
        WriteRows(request=WriteRequest(commit_id="c", mode="upsert"), rows=rows),
        DeleteRows(request=changed),
        UpdateRows(request=changed, values=Assignments.of({"city": "Oulu"}, schema)),
        MergeRows(request=changed, merge=wanted),
    ]


def known(base: type[Request[Any]]) -> set[str]:
    """Return the names of all classes of ``operations`` and ``request`` that can be sent."""
    found = set()
    packages = (pyspark_paimon.operations, pyspark_paimon.operations.history, pyspark_paimon.request)
    for loaded in (
        import_module(f"{package.__name__}.{module.name}") for package in packages for module in pkgutil.iter_modules(package.__path__)
    ):
        for name, value in vars(loaded).items():
            if inspect.isclass(value) and issubclass(value, base) and value.__module__ == loaded.__name__ and not inspect.isabstract(value):
                found.add(name)
    return found


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
def test_a_question_and_its_answer_come_back_from_text_as_they_were(table: Table, question: Question[Any]) -> None:
    assert parse_request(question.to_text(), Question, "q") == question
    answer = LocalEngine(table.path).ask(question)
    again = question.answer_of(question.answer_text(answer))
    assert again == answer
    assert type(again) is type(answer)


def test_operations_come_back_from_text_as_they_were(table: Table) -> None:
    for operation in operations(table):
        again = parse_request(operation.to_text(), Operation, "o")
        assert again.to_text() == operation.to_text()
        with pytest.raises(InvalidArgument):
            parse_request(operation.to_text(), Question, "q")


def test_every_operation_and_question_is_tried_here(table: Table) -> None:
    assert {type(question).__name__ for question in QUESTIONS} == known(Question)
    assert {type(operation).__name__ for operation in operations(table)} == known(Operation)


def test_answers_of_operations_come_back_as_they_were(table: Table) -> None:
    engine = LocalEngine(table.path)
    for operation in (
        CreateTag(name="x"),
        DeleteTag(name="x", dry_run=True),
        ExpireSnapshots(dry_run=True),
        RemoveOrphans(older_than_ms=0),
    ):
        answer = engine.run(operation)
        assert operation.answer_of(operation.answer_text(answer)) == answer


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_question_about_rows_is_answered_only_up_to_the_given_bytes(tmp_path: Path, rows: int) -> None:
    table = keyed(tmp_path / "t", "id BIGINT, city STRING")
    if rows:
        table.write(pa.table({"id": range(rows), "city": ["Oslo"] * rows}))
    engine = LocalEngine(table.path)
    request = ScanRequest(columns=("id", "city"), snapshot_id=1 if rows else None)
    size = engine.scan_bytes(request)
    assert size == table.scan().plan().file_size
    for question, expected in ((ReadRows(request=request), None), (CountRows(request=request), rows)):
        text = engine.ask(IfSmall(question=question.to_text(), most_bytes=size))
        assert text is not None
        answer: Any = question.answer_of(text)
        assert (answer if expected is not None else answer.num_rows) == rows
        assert (engine.ask(IfSmall(question=question.to_text(), most_bytes=size - 1)) is None) == bool(rows) or not size


def test_rows_beyond_the_size_of_an_answer_are_left_to_tasks(table: Table) -> None:
    engine = LocalEngine(table.path)
    request = ScanRequest(columns=("id", "city"), snapshot_id=1)
    question = ReadRows(request=request)
    whole = engine.ask(question)
    assert whole is not None
    with use_thresholds(answer_bytes=whole.nbytes):
        assert engine.ask(question) == whole
    with use_thresholds(answer_bytes=whole.nbytes - 1):
        assert engine.ask(question) is None


def test_a_lookup_counts_pages_and_not_files(table: Table) -> None:
    engine = LocalEngine(table.path)
    with use_thresholds(open_cost_bytes=10):
        assert engine.scan_bytes(SCAN) == 10
        assert engine.scan_bytes(SCAN.model_copy(update={"predicate": None})) > 100


@pytest.mark.parametrize("question", [PlanScan(request=SCAN), SchemaOf()])
def test_only_questions_about_rows_depend_on_the_size(table: Table, question: Question[Any]) -> None:
    with pytest.raises(InvalidArgument, match="question about the rows"):
        LocalEngine(table.path).ask(IfSmall(question=question.to_text(), most_bytes=1))


def test_writes_are_small_until_a_large_bucket_is_due(tmp_path: Path) -> None:
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}
    table = Table.create(tmp_path / "t", "id BIGINT, city STRING", primary_keys=["id"], options=options)
    write = WriteRows(request=WriteRequest(commit_id="c", mode="upsert"), rows=pa.table({"id": [1], "city": ["x"]}))
    change = DeleteRequest(commit_id="c", predicate=SCAN.predicate)
    for expected in (True, True, False):
        engine = LocalEngine(table.path)
        assert write.is_small(engine, 100) == expected
        scanned = engine.scan_bytes(SCAN) if table.snapshots().num_rows else 0
        assert DeleteRows(request=change).is_small(engine, 100 + scanned) == expected
        table.write(pa.table({"id": range(100), "city": [f"city {number}" for number in range(100)]}))
    assert write.is_small(LocalEngine(table.path), 1 << 20)


def test_a_merge_and_tasks_are_small_by_the_bytes_of_all_files(table: Table) -> None:
    engine = LocalEngine(table.path)
    size = table.scan().plan().file_size
    by_name = {type(operation).__name__: operation for operation in operations(table)}
    for name in ("MergeRows", "Compact", "RewriteFileIndex"):
        assert by_name[name].is_small(engine, size), name
        assert not by_name[name].is_small(engine, size - 1), name
    assert by_name["CreateTag"].is_small(engine, 0)
    assert not by_name["ExpireSnapshots"].is_small(engine, 1 << 30)
