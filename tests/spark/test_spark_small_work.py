"""Small work over Spark Connect: the driver answers without a job, and answers as a job or this process would."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from paimon_base.thresholds import use_thresholds
from pyspark_paimon import InvalidArgument, NullInKey, SchemaMismatch, Table
from pyspark_paimon.operations.history.tags import CreateTag
from pyspark_paimon.spark.client.engine import SparkEngine, few_rows
from pyspark_paimon.spark.client.scan_engine import SparkScans
from pyspark_paimon.spark.wire import rpc
from tests.build import tuples

pytestmark = [pytest.mark.spark, pytest.mark.small]

DDL = "id BIGINT, n BIGINT, s STRING"
TABLES = {
    "fixed buckets": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "dynamic buckets": {"primary_keys": ["id"], "options": {"bucket": "-1"}},
    "lookup changelog": {"primary_keys": ["id"], "options": {"bucket": "1", "changelog-producer": "lookup"}},
    "vectors": {"primary_keys": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
    "aggregation": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true"},
    },
    "append": {"options": {"bucket": "-1"}},
}  # fmt: skip


@pytest.fixture
def jobs(monkeypatch):
    """Names of the requests by which the client executed something."""
    from pyspark.sql.connect.client.core import SparkConnectClient

    found = []
    for name in ("_execute", "_execute_and_fetch_as_iterator"):
        original = getattr(SparkConnectClient, name)

        def record(self, *args, _original=original, _name=name, **kwargs):
            found.append(_name)
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(SparkConnectClient, name, record)
    return found


@pytest.fixture
def round_trips(monkeypatch):
    """Names of the analysis requests that the client sends."""
    from pyspark.sql.connect.client.core import SparkConnectClient

    found = []
    original = SparkConnectClient._analyze

    def record(self, method, **kwargs):
        found.append(method)
        return original(self, method, **kwargs)

    monkeypatch.setattr(SparkConnectClient, "_analyze", record)
    return found


def rows(start: int, stop: int, text: str) -> pa.Table:
    ids = list(range(start, stop))
    return pa.table({"id": ids, "n": [number * 10 for number in ids], "s": [f"{text} {number}" for number in ids]})


def content(table: Table, *args, **options) -> list[tuple]:
    return tuples(table.scan(*args, **options))


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_small_work_needs_no_job_and_has_the_results_of_this_process(spark, tmp_path, jobs, made):
    served = Table.create(tmp_path / "served", DDL, **made, spark=spark)
    local = Table.create(tmp_path / "local", DDL, **made)
    has_keys = "primary_keys" in made
    both = (served, local)
    sums = made["options"].get("merge-engine") == "aggregation"

    def same(work) -> None:
        first, second = (work(table) for table in both)
        for name in ("rows", "files", "inserted", "updated", "deleted", "buckets", "snapshot_id"):
            assert getattr(first, name, None) == getattr(second, name, None), name
        assert content(served) == content(local) != []

    same(lambda table: table.write(rows(0, 20, "first")))
    same(lambda table: table.write(rows(15, 25, "second")))
    same(lambda table: table.delete("id IN (3, 4)"))
    if not sums:
        same(lambda table: table.update("id = 5", values={"s": "changed"}))
        same(lambda table: table.merge(rows(20, 30, "third"), on=["id"]).when_matched_update_all().when_not_matched_insert_all().execute())
    same(lambda table: table.compact(full=True))
    same(lambda table: table.create_tag("v1"))
    for filter_ in ("id = 7", "n > 100", "s LIKE 'second%'", "id = -1"):
        assert content(served, filter_) == content(local, filter_)
        assert served.scan(filter_).count() == local.scan(filter_).count()
    assert served.scan(order_by="n DESC", limit=3).to_arrow() == local.scan(order_by="n DESC", limit=3).to_arrow()
    assert served.scan("n > 50").aggregate({"n": ["min", "max"]}) == local.scan("n > 50").aggregate({"n": ["min", "max"]})
    if has_keys:
        assert served.lookup([7, 8]) == local.lookup([7, 8])
    assert str(served.scan("id = 7").explain()).count("ms")
    assert served.snapshots().num_rows == local.snapshots().num_rows
    assert jobs == []


@pytest.mark.parametrize("most", [None, 0])
def test_an_explanation_is_one_round_trip_and_a_job_if_tasks_read(spark, tmp_path, jobs, round_trips, most):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "2"}, spark=spark)
    table.write(rows(0, 100, "first"))
    scan = table.scan("n > 500 AND s <> 'first 60'")
    jobs.clear()
    round_trips.clear()
    with use_thresholds(**({} if most is None else {"driver_bytes": most})):
        found = scan.explain()
        assert round_trips == ["schema"]
        assert bool(jobs) == (most is not None)
        planned = scan.explain(analyze=False)
    here = Table.open(tmp_path / "t").scan("n > 500 AND s <> 'first 60'").explain()
    assert [(stage.name, stage.kept, stage.dropped) for stage in found.stages] == [
        (stage.name, stage.kept, stage.dropped) for stage in here.stages
    ]
    assert found.stages[-1].kept == 48
    assert found.summary == planned.summary
    assert found.summary.startswith(here.summary)
    assert "to_spark(): Spark's own Parquet reader" in found.summary or "our reader reads all files" in found.summary
    assert len(planned.stages) < len(found.stages)


def test_work_beyond_the_limit_is_a_job_with_the_same_result(spark, tmp_path, jobs):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "2"}, spark=spark)
    table.write(rows(0, 100, "first"))
    assert jobs == []
    with use_thresholds(driver_bytes=10):
        for work in (
            lambda: content(table, "n > 10"),
            table.scan("n > 10").count,
            lambda: table.update("id = 5", values={"s": "changed"}).rows,
            lambda: table.delete("id = 6").rows,
            lambda: table.compact(full=True).buckets,
        ):
            jobs.clear()
            assert work()
            assert jobs
    with use_thresholds(sent_bytes=10):
        jobs.clear()
        assert table.write(rows(200, 210, "more")).rows == 10
        assert jobs
    assert len(content(table)) == 109


def test_a_write_whose_compaction_is_large_is_a_job(spark, tmp_path, jobs):
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "3"}
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options=options, spark=spark)
    with use_thresholds(driver_bytes=1000):
        needed = []
        for number in range(3):
            jobs.clear()
            table.write(rows(0, 50, f"write {number}"))
            needed.append(bool(jobs))
    assert needed == [False, False, True]
    assert {row["level"] for row in table.files().to_pylist()} == {3}


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda table: table.write(pa.table({"id": [None], "n": [1], "s": ["x"]})), NullInKey),
        (lambda table: table.write(pa.table({"id": [1], "n": ["one"], "s": ["x"]})), SchemaMismatch),
        (lambda table: table.create_tag("v1"), InvalidArgument),
        (lambda table: table.scan("nope = 1").to_arrow(), Exception),
    ],
)
def test_errors_of_small_work_keep_their_types(spark, tmp_path, jobs, work, error):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write(rows(0, 3, "x"))
    table.create_tag("v1")
    with pytest.raises(error):
        work(table)
    assert table.snapshots().num_rows == 1
    assert jobs == []


def test_a_write_with_a_known_id_is_done_once(spark, tmp_path, jobs):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    first = table.write(rows(0, 3, "x"), commit_id="nightly")
    again = table.write(rows(0, 3, "y"), commit_id="nightly")
    assert (first.replayed, again.replayed, again.snapshot_id) == (False, True, first.snapshot_id)
    assert content(table)[0] == (0, 0, "x 0")
    with use_thresholds(driver_bytes=0):
        assert table.write(rows(0, 3, "z"), commit_id="nightly").replayed
    assert table.snapshots().num_rows == 1


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_is_asked_for(spark, tmp_path, monkeypatch, arrives):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    original, lost = SparkScans._ask, []

    def ask(self, question, session=None):
        if isinstance(question, rpc.RunSmall) and not lost:
            lost.append(question)
            if arrives:
                original(self, question, session)
            raise ConnectionError("the connection was reset")
        return original(self, question, session)

    monkeypatch.setattr(SparkScans, "_ask", ask)
    if arrives:
        assert table.write(rows(0, 3, "x")).snapshot_id == 1
    else:
        with pytest.raises(ConnectionError) as failed:
            table.write(rows(0, 3, "x"), commit_id="nightly")
        assert "repeat the call with commit_id='nightly'" in failed.value.__notes__[0]
        assert not table.write(rows(0, 3, "x"), commit_id="nightly").replayed
    assert table.snapshots().num_rows == 1


def test_a_request_that_arrives_twice_runs_once(spark, tmp_path):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write(rows(0, 3, "x"))
    engine = SparkEngine(table.path, spark)
    message = rpc.RunSmall(id=str(uuid.uuid4()), operation=CreateTag(name="v1").to_text(), most_bytes=1)
    assert engine._ask(message) == engine._ask(message) is not None
    with pytest.raises(InvalidArgument):
        engine._ask(message.model_copy(update={"id": str(uuid.uuid4())}))


def test_only_operations_can_be_run(spark, tmp_path):
    table = Table.create(tmp_path / "t", DDL, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    engine = SparkEngine(table.path, spark)
    with pytest.raises(InvalidArgument, match="the request is unknown"):
        engine._ask(rpc.RunSmall(id="x", operation=rpc.AskServer().to_text(), most_bytes=1))


def test_few_rows_are_those_below_the_threshold():
    from lsm.rows_in.arrow import ArrowRows

    table = rows(0, 10, "x")
    for most, expected in ((table.nbytes, table), (table.nbytes - 1, None), (0, None)):
        with use_thresholds(sent_bytes=most):
            few, stream = few_rows(ArrowRows(pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=3)))))
        assert few == expected
        assert stream.reader.read_all() == table
