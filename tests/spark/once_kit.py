"""A table, a write that accidents happen to, and what must be true of both afterwards."""

from __future__ import annotations

import os
import signal
import threading
import uuid
from contextlib import contextmanager
from pathlib import PurePosixPath
from types import SimpleNamespace

import pyarrow as pa
from faults import Faults

from manifest.storage.resolve import file_io_for
from pyspark_paimon import Table
from pyspark_paimon.spark.client.session import RUNTIME_CONF

ROWS = 3000
BEFORE = dict.fromkeys(range(ROWS), "old")
AFTER = {**BEFORE, **dict.fromkeys(range(ROWS // 2, ROWS + ROWS // 2), "new")}
LATER = 2**62


def url_of(session) -> str:
    return f"sc://{session.client._builder.endpoint}/;token={session.client.token}"


def session_at(url: str):
    from pyspark.sql.connect.session import SparkSession

    made = SparkSession.builder.remote(url).create()
    for key, value in {**RUNTIME_CONF, "spark.sql.shuffle.partitions": "2"}.items():
        made.conf.set(key, value)
    return made


def made_table(folder) -> str:
    """A table in a directory or below a URI, with the rows ``BEFORE``."""
    table = Table.create(f"{folder}/t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "2"})
    table.write(pa.table({"id": list(BEFORE), "v": list(BEFORE.values())}))
    return table.path


@contextmanager
def armed(folder, monkeypatch, set_thresholds):
    """Faults that clients of this process are exposed to, and the id of the write that they are meant for."""
    made = Faults(folder / "faults")
    made.used(monkeypatch)
    set_thresholds(idle_core_bytes=1)  # a few rows are worth a task for each core
    made.commit_id = str(uuid.uuid4())
    with made.released_in_the_end():
        yield made


def changes(session):
    return session.range(ROWS // 2, ROWS + ROWS // 2, 1, 2).selectExpr("id", "'new' AS v")


def content(path) -> dict[int, str]:
    rows = Table.open(path).scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def kinds(path) -> list[str]:
    return Table.open(path).snapshots().column("commit_kind").to_pylist()


def files(path) -> set[PurePosixPath]:
    """Files of buckets, wherever the table is."""
    io, root = file_io_for(path)
    buckets = [status.name for status in io.list(root) if status.is_dir and status.name.startswith("bucket-")]
    return {PurePosixPath(root, bucket, status.name) for bucket in buckets for status in io.list(f"{root}/{bucket}")}


def settled(session, path, commit_id, *, orphans: bool | None = None) -> None:
    """The write is there once; its repetition is a no-op; what was made in vain bears its id and is removed as orphans."""
    assert content(path) == AFTER
    before, known = kinds(path), files(path)
    assert before.count("APPEND") == 2
    table = Table.open(path, spark=session)
    again = table.write(changes(session), commit_id=commit_id)
    assert (again.replayed, again.snapshot_id, again.rows) == (True, before.index("APPEND", 1) + 1, ROWS)
    assert kinds(path) == before
    assert files(path) == known
    without_orphans(path, commit_id, orphans=orphans)
    assert content(path) == AFTER


def without_orphans(path, commit_id, *, orphans: bool | None = None) -> None:
    table = Table.open(path)
    table.expire_snapshots()
    found = table.list_orphan_files(older_than=LATER)
    assert all(commit_id in orphan.path for orphan in found)
    assert orphans is None or bool(found) == orphans
    table.remove_orphan_files(older_than=LATER)
    assert table.list_orphan_files(older_than=LATER) == []


@contextmanager
def writing(session, path, commit_id, do=None):
    """A write that runs beside the block; ``.result`` or ``.error`` once it has ended."""
    done = SimpleNamespace(result=None, error=None)

    def run():
        try:
            table = Table.open(path, spark=session)
            done.result = (do or (lambda table: table.write(changes(session), commit_id=commit_id)))(table)
        except Exception as error:  # noqa: BLE001  # the test looks at it
            done.error = error

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        thread.join(60)
        assert not thread.is_alive()


def worker_is_replaced(remote, path, faults) -> None:
    """One of two Python workers is killed while it holds its files."""
    faults.register(remote)
    faults.order("files", "hold", times=2)
    with writing(remote, path, faults.commit_id) as write:
        held = faults.wait_for("files", 2)
        os.kill(held[0]["pid"], signal.SIGKILL)
        faults.release("files")
    assert (write.error, write.result.rows) == (None, ROWS)
    settled(remote, path, faults.commit_id, orphans=True)


def executor_is_replaced(cluster, remote, path, faults) -> None:
    """An executor is killed with the files that its tasks hold."""
    faults.register(remote)
    faults.order("files", "hold", times=2)
    with writing(remote, path, faults.commit_id) as write:
        faults.wait_for("files", 2)
        cluster.kill_executor()
        faults.wait_for("files", 3)
        faults.release("files")
    assert (write.error, write.result.rows) == (None, ROWS)
    settled(remote, path, faults.commit_id, orphans=True)
