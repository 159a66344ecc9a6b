"""Whatever happens to a write, its rows are there once or not at all, and who repeats it by its commit id hears the same answer.

After each accident: the rows are those acknowledged, a repetition is a no-op, what was made in vain is found by the commit id in
its name, removed as orphans, and by nothing else.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.session")

from faults import wait_until
from once_kit import (
    BEFORE,
    LATER,
    ROWS,
    armed,
    changes,
    content,
    files,
    kinds,
    made_table,
    session_at,
    settled,
    url_of,
    without_orphans,
    writing,
)

from manifest.snapshot.snapshot import CommitKind
from pyspark_paimon import Table

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
CLIENT = """
import sys
sys.path.insert(0, sys.argv[3])
from faults import Faults
from pyspark.sql.connect.session import SparkSession
from pyspark_paimon import Table

spark = SparkSession.builder.remote(sys.argv[1]).create()
faults = Faults(sys.argv[4])
faults.name = sys.argv[5]
faults.register(spark)
faults.used()
table = Table.open(sys.argv[2], spark=spark)
rows = spark.range(1500, 4500, 1, 2).selectExpr("id", "'new' AS v")
table.write(rows, commit_id=sys.argv[6])
"""


@pytest.fixture(scope="module")
def other(spark):
    """A session of its own, for operations that are interrupted."""
    made = session_at(url_of(spark))
    yield made
    made.client.release_session()  # to stop it would stop the embedded server


@pytest.fixture
def path(tmp_path):
    return made_table(tmp_path)


@pytest.fixture
def faults(tmp_path, monkeypatch, set_thresholds):
    with armed(tmp_path, monkeypatch, set_thresholds) as made:
        yield made


def test_a_task_that_fails_leaves_nothing_and_its_write_can_be_repeated(other, path, faults):
    faults.register(other)
    faults.order("files", "raise")
    before = files(path)
    with pytest.raises(Exception, match="as the test wants it") as caught:
        Table.open(path, spark=other).write(changes(other), commit_id=faults.commit_id)
    assert any(f"commit_id='{faults.commit_id}'" in note for note in caught.value.__notes__)
    assert content(path) == BEFORE
    assert files(path) >= before
    Table.open(path, spark=other).write(changes(other), commit_id=faults.commit_id)
    settled(other, path, faults.commit_id)


@pytest.mark.long
def test_a_killed_client_does_not_stop_its_write_and_the_next_client_learns_of_it(spark, other, path, faults):
    faults.order("files", "hold", times=2)
    arguments = [url_of(spark), path, str(HERE), str(faults.folder), faults.name, faults.commit_id]
    client = subprocess.Popen([sys.executable, "-c", CLIENT, *arguments], stderr=subprocess.PIPE, cwd=HERE.parent.parent)
    try:
        wait_until(lambda: faults.visits("files") or client.poll() is not None, "a task of the client")
        assert faults.visits("files"), client.communicate()[1].decode()[-3000:]
        client.send_signal(signal.SIGKILL)
    finally:
        client.kill()
        client.communicate()
    assert content(path) == BEFORE
    faults.register(other)
    with writing(other, path, faults.commit_id) as repeated:
        time.sleep(0.3)
        assert repeated.result is None, "the repetition waits for the job that is under way"
        faults.release("files")
    assert repeated.error is None
    assert repeated.result.replayed
    assert len(faults.visits("commit")) == 1, "the repetition ran no job"
    settled(other, path, faults.commit_id, orphans=False)


@pytest.mark.parametrize("point", [pytest.param("rows", marks=pytest.mark.long), "files"])
def test_an_operation_cancelled_while_its_tasks_run_changes_nothing(other, path, faults, point):
    faults.register(other)
    faults.order(point, "hold", times=2)
    with writing(other, path, faults.commit_id) as cancelled:
        faults.wait_for(point)
        other.interruptAll()
    assert "OPERATION_CANCELED" in str(cancelled.error)
    assert content(path) == BEFORE
    assert kinds(path) == ["APPEND"]
    made = [file for file in files(path) if faults.commit_id in file.name]
    assert bool(made) == (point == "files"), "tasks that are killed can delete nothing"
    assert Table.open(path, spark=other).write(changes(other), commit_id=faults.commit_id).rows == ROWS
    settled(other, path, faults.commit_id, orphans=point == "files")


@pytest.mark.parametrize("point", ["commit", "publish", "published"])
def test_an_operation_cancelled_while_it_commits_is_found_to_be_committed(other, path, faults, point):
    faults.register(other)
    faults.order(point, "hold")
    with writing(other, path, faults.commit_id) as cancelled:
        faults.wait_for(point)
        other.interruptAll()
        time.sleep(0.3)
        faults.release(point)
    assert cancelled.error is None
    assert (cancelled.result.snapshot_id, cancelled.result.rows) == (2, ROWS)
    settled(other, path, faults.commit_id, orphans=False)


@pytest.mark.parametrize(
    "what",
    ["die", *(pytest.param(what, marks=pytest.mark.long) for what in ("raise", "die at after-manifest", "die at after-temp-snapshot"))],
)
def test_a_commit_that_fails_before_its_snapshot_leaves_nothing_visible(other, path, faults, what):
    faults.register(other)
    faults.order("publish", what)
    with pytest.raises(Exception, match=r"as the test wants it|crashed|exited|EOF|reset"):
        Table.open(path, spark=other).write(changes(other), commit_id=faults.commit_id)
    assert faults.visits("abort")
    assert content(path) == BEFORE
    assert not [file for file in files(path) if faults.commit_id in file.name], "the abort has deleted the rows' files"
    assert Table.open(path, spark=other).write(changes(other), commit_id=faults.commit_id).snapshot_id == 2
    settled_after_metadata_orphans(other, path, faults.commit_id)


def settled_after_metadata_orphans(session, path, commit_id) -> None:
    """As ``settled``; a commit that died may leave manifests, which no commit id names."""
    table = Table.open(path)
    assert all("/manifest/" in orphan.path or "/snapshot/" in orphan.path for orphan in table.list_orphan_files(older_than=LATER))
    table.remove_orphan_files(older_than=LATER)
    settled(session, path, commit_id, orphans=False)


@pytest.mark.parametrize("what", ["die at after-link", *(pytest.param(what, marks=pytest.mark.long) for what in ("raise", "die"))])
def test_a_commit_hook_that_fails_after_the_snapshot_is_a_commit_and_the_abort_deletes_nothing(other, path, faults, what):
    faults.register(other)
    faults.order("publish" if " at " in what else "published", what)
    result = Table.open(path, spark=other).write(changes(other), commit_id=faults.commit_id)
    assert faults.visits("abort")
    assert (result.snapshot_id, result.rows) == (2, ROWS)
    Table.open(path).remove_orphan_files(older_than=LATER)
    settled(other, path, faults.commit_id, orphans=False)


class Road:
    """A way to a server that can be cut: every connection goes through this process."""

    def __init__(self, host: str, port: int) -> None:
        self.goal = (host, port)
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        self.ends: list[socket.socket] = []
        self.open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                end, _ = self.door.accept()
                if not self.open:
                    end.close()
                    continue
                other_end = socket.create_connection(self.goal)
                self.ends += [end, other_end]
                for source, target in ((end, other_end), (other_end, end)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self, *, for_good: bool = False) -> None:
        self.open = not for_good
        ends, self.ends = self.ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self.cut(for_good=True)
        self.door.close()


@pytest.fixture
def road(spark):
    host, port = spark.client._builder.endpoint.rsplit(":", 1)
    made = Road(host, int(port))
    made.url = f"sc://localhost:{made.port}/;token={spark.client.token}"
    yield made
    made.close()


@pytest.mark.parametrize("for_good", [False, pytest.param(True, marks=pytest.mark.long)], ids=["comes back", "for good"])
def test_a_lost_connection_loses_no_row(other, path, faults, road, for_good):
    from pyspark.sql.connect.client.retries import DefaultPolicy

    remote = session_at(road.url)
    remote.client.set_retry_policies([DefaultPolicy(max_retries=4, initial_backoff=50, max_backoff=300)])
    faults.register(remote)
    faults.order("files", "hold", times=2)
    with writing(remote, path, faults.commit_id) as lost:
        faults.wait_for("files")
        road.cut(for_good=for_good)
        if not for_good:
            faults.release("files")
    if for_good:
        assert lost.error is not None
        assert content(path) == BEFORE
        faults.release("files")
        faults.register(other)
        assert Table.open(path, spark=other).write(changes(other), commit_id=faults.commit_id).replayed, "the server went on by itself"
    else:
        assert (lost.error, lost.result.snapshot_id) == (None, 2)
        faults.register(other)
    settled(other, path, faults.commit_id, orphans=False)


@pytest.mark.long
def test_two_clients_that_repeat_one_write_at_once_commit_it_once(spark, other, path, faults):
    faults.register(spark)
    faults.register(other)
    faults.order("publish", "hold")
    with writing(spark, path, faults.commit_id) as first:
        faults.wait_for("publish")
        started = Table.open(path, spark=other)
        with writing(other, path, faults.commit_id) as second:
            time.sleep(0.2)
            faults.release("publish")
    assert (first.error, second.error) == (None, None)
    assert first.result.snapshot_id == second.result.snapshot_id == 2
    assert started.path == path
    settled(other, path, faults.commit_id, orphans=False)


def test_a_cancelled_compaction_changes_nothing_and_its_files_are_found_by_its_id(other, path, faults):
    Table.open(path).write(pa.table({"id": [1, 2, 3, 4], "v": ["x"] * 4}), options={"write-only": "true"})
    expected, known, states = content(path), files(path), kinds(path)
    faults.register(other)
    faults.order("files", "hold", times=2)
    with writing(other, path, "", lambda table: table.compact(full=True)) as cancelled:
        faults.wait_for("files")
        other.interruptAll()
    assert "OPERATION_CANCELED" in str(cancelled.error)
    assert (content(path), kinds(path)) == (expected, states)
    made = files(path) - known
    assert len({file.name[: len("data-") + 36] for file in made}) == 1, "all bear the id of the compaction"
    note = next(note for note in cancelled.error.__notes__ if "commit_id=" in note)
    assert made
    assert all(file.name[len("data-") :][:36] in note for file in made)
    without_orphans(path, next(iter(made)).name[len("data-") :][:36], orphans=True)
    faults.release("files")
    assert Table.open(path, spark=other).compact(full=True).files_after == 2
    assert content(path) == expected
    assert kinds(path)[-1] == CommitKind.COMPACT
