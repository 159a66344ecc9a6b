"""As ``test_spark_exactly_once_cluster.py``, for tables on an S3 server that driver and executors reach by their own environment.

The server allows tables below one prefix of the bucket; the thin clients have no credentials.
"""

from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.session")
pytest.importorskip("psutil", reason="the cluster's processes are found by psutil")

from cluster import running_cluster
from faults import wait_until
from once_kit import (
    BEFORE,
    ROWS,
    armed,
    changes,
    content,
    executor_is_replaced,
    files,
    kinds,
    made_table,
    session_at,
    settled,
    worker_is_replaced,
    writing,
)
from thin_client import NoThinClient, thin_python

from pyspark_paimon import Table
from tests.stores.s3_server import BUCKET, SECRET

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

ALLOWED = f"s3://{BUCKET}/allowed"
CLIENT = """
import json, os, sys
import pyarrow as pa
from pyspark_paimon import Catalog, Table, spark_session

url, warehouse, outside = sys.argv[1:4]
address, _, token = url.partition("/;token=")
spark = spark_session(address, token=token)
told = {"credentials": [name for name in os.environ if name.startswith("AWS_") and "KEY" in name]}
table = Table.create(f"{warehouse}/default.db/t", "id BIGINT, city STRING", primary_keys=["id"], spark=spark, options={"bucket": "2"})
told["local rows"] = table.write(pa.table({"id": range(1000), "city": ["a"] * 1000})).rows
told["frame"] = table.write(spark.range(500, 1500).selectExpr("id", "'b' AS city")).rows
spark.sql(f"CREATE TEMPORARY VIEW t USING paimon OPTIONS (path '{warehouse}/default.db/t')")
spark.sql("INSERT INTO t VALUES (5000, 'sql')")
told["deleted"] = table.delete("id < 10").rows
told["updated"] = table.update("id = 5000", values={"city": "more sql"}).rows
told["compacted"] = table.compact(full=True).files_after
told["counts"] = {row.city: row["count"] for row in table.scan().to_spark().groupBy("city").count().collect()}
told["problems"] = [str(problem) for problem in table.fsck("deep").problems]
try:
    Table.create(f"{outside}/t", "id INT", spark=spark)
except Exception as error:
    told["outside"] = type(error).__name__
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def cluster(s3, tmp_path_factory):
    """Two executors, a server, and what they need to reach the store."""
    try:
        thin_python()
    except NoThinClient as error:
        pytest.skip(str(error))
    settings = s3.environment() | {"PYSPARK_PAIMON_ROOTS": f"{ALLOWED}:{tmp_path_factory.getbasetemp()}"}
    with running_cluster(tmp_path_factory.mktemp("cluster"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def remote(cluster):
    made = session_at(cluster.url)
    yield made
    made.client.close()


@pytest.fixture
def place(s3, monkeypatch):
    """A new empty place on the store, which this process reaches, too."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    return f"{ALLOWED}/{uuid.uuid4()}"


@pytest.fixture
def path(place):
    return made_table(place)


@pytest.fixture
def faults(tmp_path, monkeypatch, set_thresholds):
    with armed(tmp_path, monkeypatch, set_thresholds) as made:
        yield made


def test_a_thin_client_needs_no_credentials_and_keeps_to_the_prefix(cluster):
    told = json.loads(cluster.client(CLIENT, f"{ALLOWED}/{uuid.uuid4()}", f"s3://{BUCKET}/elsewhere").splitlines()[-1])
    assert told == {
        "credentials": [],
        "local rows": 1000,
        "frame": 1000,
        "deleted": 10,
        "updated": 1,
        "compacted": 2,
        "counts": {"a": 490, "b": 1000, "more sql": 1},
        "problems": [],
        "outside": "PathNotAllowed",
    }
    logs = [log for log in cluster.home.rglob("*.log") if log.is_file()]
    assert logs
    for log in logs:
        assert SECRET.encode() not in log.read_bytes(), log


def test_a_killed_python_worker_is_replaced(remote, path, faults):
    worker_is_replaced(remote, path, faults)


def test_a_killed_executor_is_replaced(cluster, remote, path, faults):
    executor_is_replaced(cluster, remote, path, faults)


def test_a_driver_s_worker_that_dies_after_the_commit_has_committed(remote, path, faults):
    faults.register(remote)
    faults.order("publish", "die at after-link")
    result = Table.open(path, spark=remote).write(changes(remote), commit_id=faults.commit_id)
    assert faults.visits("abort")
    assert (result.snapshot_id, result.rows) == (2, ROWS)
    settled(remote, path, faults.commit_id, orphans=False)


def test_a_driver_s_worker_that_dies_before_the_commit_leaves_nothing(remote, path, faults):
    faults.register(remote)
    faults.order("publish", "die")
    with pytest.raises(Exception, match=r"crashed|exited|EOF|reset"):
        Table.open(path, spark=remote).write(changes(remote), commit_id=faults.commit_id)
    assert content(path) == BEFORE
    assert kinds(path) == ["APPEND"]
    assert not [file for file in files(path) if faults.commit_id in file.name], "the abort has deleted the rows' files"
    assert Table.open(path, spark=remote).write(changes(remote), commit_id=faults.commit_id).snapshot_id == 2
    settled(remote, path, faults.commit_id)


def test_a_compaction_whose_executor_is_killed_is_done(cluster, remote, path, faults):
    Table.open(path).write(pa.table({"id": [1, 2, 3, 4], "v": ["x"] * 4}), options={"write-only": "true"})
    expected = content(path)
    faults.register(remote)
    faults.order("files", "hold", times=2)
    with writing(remote, path, "", lambda table: table.compact(full=True)) as compaction:
        faults.wait_for("files", 2)
        cluster.kill_executor()
        faults.wait_for("files", 3)
        faults.release("files")
    assert (compaction.error, compaction.result.files_after) == (None, 2)
    assert content(path) == expected
    assert Table.open(path).fsck("deep").problems == ()


def test_a_stream_from_table_to_table_writes_each_batch_once_whoever_is_killed(cluster, remote, place, tmp_path):
    """From one table to another, both on the store; an executor goes, then the server behind a batch's commit, and the next one goes on.

    The query's checkpoint is on a disk that both servers see. Spark takes note of a batch after the table's commit, so that the second
    server makes the last one again.
    """
    source = Table.create(f"{place}/source", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2", "write-only": "true"})
    copy = Table.create(f"{place}/copy", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"})
    for number in range(7):
        source.write(pa.table({"id": range(100 * number, 100 * number + 100), "v": [f"v{number}"] * 100}))
    source.delete("id < 50")
    expected = sorted(row["id"] for row in source.scan().to_arrow().to_pylist())

    def started(session):
        options = {"read.changelog": "true", "scan.snapshot-id": "1", "read.stream.maxFilesPerTrigger": "2"}
        frame = session.readStream.format("paimon").options(**options).load(source.path)
        settings = {"checkpointLocation": str(tmp_path / "checkpoint")}
        return frame.writeStream.format("paimon").options(**settings).trigger(availableNow=True).start(copy.path)

    def batches():
        return [row["commit_identifier"] for row in copy.snapshots().to_pylist() if row["commit_kind"] != "COMPACT"]

    def reached(session, count, query=None):
        """The query, gone on until there are so many batches; one for which no worker came up is started again: Spark gives it ten seconds."""
        running = [query or started(session)]

        def look():
            error = running[-1].exception()
            if error is not None:
                assert "failed to connect back" in str(error)
                running.append(started(session))
            return len(batches()) >= count or not running[-1].isActive

        wait_until(look, f"{count} batches", 300, pause=0.2)
        return running[-1]

    query = reached(remote, 2)
    cluster.kill_executor()
    reached(remote, 4, query)
    cluster.stop_server()
    done = batches()
    cluster.start_server()
    again = session_at(cluster.url)
    assert reached(again, 10**9).exception() is None
    assert done < batches() == list(range(len(batches()))), "there was something left to do, and each batch is there once"
    assert sorted(row["id"] for row in copy.scan().to_arrow().to_pylist()) == expected
    assert copy.fsck("deep").problems == ()
    again.client.close()
