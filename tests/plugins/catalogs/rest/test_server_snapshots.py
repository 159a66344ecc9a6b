"""Commits through a catalog's server: one winner, lost answers, tables that are another one's."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from manifest.io.catalog_errors import NotPermitted
from manifest.io.errors import CatalogRefused, StorageError
from manifest.schema.change import MoveColumn
from paimon_base.errors import UnsupportedOption
from pyspark_paimon import Catalog
from pyspark_paimon.plugins.catalogs.rest import client as client_module
from pyspark_paimon.plugins.catalogs.rest.api import server_changes
from pyspark_paimon.plugins.catalogs.rest.server_snapshots import ServerSnapshots
from pyspark_paimon.request.state import Snapshots
from tests.catalogs.server import CatalogServer
from tests.stores.fault_proxy import BUSY, DROP, LOSE, FaultProxy


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setattr(client_module, "_FIRST_WAIT", 0.001)


@pytest.fixture
def server(tmp_path):
    with CatalogServer(tmp_path) as server:
        yield server


@pytest.fixture
def proxy(server):
    with FaultProxy(server.port) as proxy:
        yield proxy


QUICK = {"bucket": "1", "commit.min-retry-wait": "1 ms", "commit.max-retry-wait": "2 ms"}


def table(server, port=None, options=QUICK, **more):
    catalog = Catalog.create(server.options(port, **more))
    if not catalog.table_exists("t"):
        catalog.create_table("t", "id BIGINT NOT NULL, x INT", primary_keys=["id"], options=options)
    return catalog.table("t")


def rows(*ids):
    return pa.table({"id": list(ids), "x": [0] * len(ids)})


def commits(request) -> bool:
    return request.method == "POST" and request.path.endswith("/commit")


@pytest.mark.parametrize("fault", [DROP, LOSE, BUSY])
def test_a_lost_answer_to_a_commit_commits_once(server, proxy, fault) -> None:
    found = table(server, proxy.port)
    proxy.rule = lambda request: fault if commits(request) and request.number % 2 else None
    for number in range(3):
        assert found.write(rows(number)).snapshot_id == number + 1
    assert proxy.done[fault] >= 2
    assert [s.id for s in found._engine.ask(Snapshots())] == [1, 2, 3]
    assert found.scan().count() == 3
    assert found.fsck("deep").problems == ()


def test_a_lost_answer_is_found_although_others_committed_since(server, proxy) -> None:
    ours, theirs = table(server, proxy.port), table(server)

    def drop_while_another_commits(request):
        if commits(request) and request.number == 1:
            return DROP
        if request.path.endswith("/snapshots/1"):
            theirs.write(rows(7))
        return None

    proxy.rule = drop_while_another_commits
    assert ours.write(rows(1)).snapshot_id == 1
    assert sorted(ours.scan().to_arrow()["id"].to_pylist()) == [1, 7]


def test_where_the_server_tells_of_no_single_snapshots_the_newest_answers(server, proxy) -> None:
    found = table(server, proxy.port)
    server.without = {"snapshots"}
    proxy.rule = lambda request: DROP if commits(request) else None
    assert found.write(rows(1)).snapshot_id == 1
    assert found.write(rows(2)).snapshot_id == 2
    assert found.scan().count() == 2


@pytest.mark.parametrize("fault", [DROP, LOSE])
def test_a_server_that_goes_with_a_commit_leaves_every_file_and_a_repeat_finds_out(server, proxy, fault) -> None:
    """A commit whose snapshot is on storage counts; else nothing is taken back, for a request may still be on its way."""
    found = table(server, proxy.port, **{"rest.client.max-retries": "0"})
    found.write(rows(1))
    commit_id = "5c0ffee0-0000-4000-8000-000000000001"
    gone = []

    def gone_with_commit(request):
        if commits(request):
            gone.append(request)
            return fault
        return LOSE if gone else None

    proxy.rule = gone_with_commit
    if fault == DROP:
        assert found.write(rows(2), commit_id=commit_id).snapshot_id == 2
    else:
        with pytest.raises(StorageError, match="did not answer"):
            found.write(rows(2), commit_id=commit_id)
    manifests = set(Path(found.path, "manifest").iterdir())
    assert manifests
    proxy.rule = lambda _: None
    again = found.write(rows(2), commit_id=commit_id)
    assert (again.replayed, again.snapshot_id) == (fault == DROP, 2)
    assert manifests <= set(Path(found.path, "manifest").iterdir())
    assert found.scan().count() == 2
    assert found.fsck("deep").problems == ()


def test_a_token_that_expires_with_the_answer_to_a_commit_is_not_told_as_refused(server, proxy) -> None:
    """The commit stands, and its answer is lost; all that is asked then is refused: the rows must not be written again, nor their files go."""
    found = table(server, proxy.port)
    found.write(rows(1))
    commit_id = "5c0ffee0-0000-4000-8000-000000000002"
    expired = []
    proxy.rule = lambda request: (expired.append(1) or DROP) if commits(request) else None
    server.answers = lambda method, path: (401, {"message": "expired"}) if expired and method == "GET" else None
    assert found.write(rows(2), commit_id=commit_id).snapshot_id == 2
    server.answers = lambda method, path: None
    again = found.write(rows(2), commit_id=commit_id)
    assert (again.replayed, again.snapshot_id) == (True, 2)
    assert found.fsck("deep").problems == ()
    assert found.scan().count() == 2


def test_a_request_that_a_gateway_sent_twice_is_no_lost_race(server) -> None:
    """The first one won, the answer is that of the second: not taken by another, but by us."""
    found = table(server)
    original = server._committed

    def twice(store, held, snapshot):
        assert original(store, held, snapshot)
        return original(store, held, snapshot)

    server._committed = twice
    done = found.write(rows(1))
    assert (done.snapshot_id, done.counters.retries) == (1, 0)
    assert len(found._engine.ask(Snapshots())) == 1


@pytest.mark.slow
def test_racing_writers_with_dropped_answers_lose_no_row_and_double_none(server, proxy) -> None:
    table(server, options=QUICK | {"write-only": "true", "commit.max-retries": "200"})
    proxy.rule = lambda request: DROP if commits(request) and request.number % 3 == 0 else None
    acknowledged, lock = [], threading.Lock()

    def write(worker) -> None:
        own = table(server, proxy.port)
        for turn in range(4):
            own.write(rows(worker * 100 + turn))
            with lock:
                acknowledged.append(worker * 100 + turn)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = table(server)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == sorted(acknowledged)
    assert (len(acknowledged), len(found._engine.ask(Snapshots()))) == (16, 16)
    assert proxy.done[DROP] > 2
    assert found.fsck("deep").problems == ()


def test_a_refused_commit_is_told_as_such_and_leaves_nothing(server) -> None:
    found = table(server)
    server.answers = lambda method, path: (403, {"message": "read only"}) if path.endswith("/commit") else None
    with pytest.raises(NotPermitted, match="read only"):
        found.write(rows(1))
    server.answers = lambda method, path: None
    assert found.list_orphan_files(older_than=2**62) == []
    assert found.scan().count() == 0


def test_a_table_that_was_dropped_and_made_anew_takes_no_commit_of_the_old_one(server) -> None:
    old = table(server)
    Catalog.create(server.options()).drop_table("t")
    new = table(server)
    with pytest.raises(CatalogRefused, match="nothing was committed"):
        old.write(rows(1))
    assert new.scan().count() == 0


def test_partitions_are_counted_for_the_server(server) -> None:
    catalog = Catalog.create(server.options())
    found = catalog.create_table("p", "day DATE, x INT", partition_keys=["day"])
    days = pa.array([20454, 20454, None], pa.int32()).cast(pa.date32())
    found.write(pa.table({"day": days, "x": pa.array([1, 2, 3], pa.int32())}))
    found.write(pa.table({"day": days[:1], "x": pa.array([1], pa.int32())}), "overwrite")
    sent = [body["statistics"] for _, path, _, body in server.requests if path.endswith("/commit")]
    assert [(part["spec"]["day"], part["recordCount"], part["fileCount"]) for part in sent[0]] == [
        ("2026-01-01", 2, 1),
        ("__DEFAULT_PARTITION__", 1, 1),
    ]
    assert sum(part["recordCount"] for part in sent[1]) < 0
    assert all(part["lastFileCreationTime"] > 0 for part in sent[0])


def test_a_nested_column_cannot_be_moved_through_the_api() -> None:
    with pytest.raises(UnsupportedOption, match=r"cannot move nested column 'a\.b'"):
        server_changes([MoveColumn(path=("a", "b"), first=True)])


def test_a_table_that_travels_commits_through_the_server_still(server) -> None:
    import pickle

    found = pickle.loads(pickle.dumps(table(server)))
    assert found.write(rows(1)).snapshot_id == 1
    assert isinstance(pickle.loads(pickle.dumps(found._engine.store())).commits, ServerSnapshots)
    assert any(path.endswith("/commit") for _, path, _, _ in server.requests)
