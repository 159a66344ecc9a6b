"""Tables on a server that is killed and comes back, throttles, breaks, stalls and cuts answers short, at every step of every operation."""

from __future__ import annotations

import threading
import uuid

import numpy as np
import pyarrow as pa
import pytest

from manifest.io.errors import StorageError
from manifest.storage import faults
from pyspark_paimon import Table
from tests.build import cities
from tests.stores.fault_proxy import BROKEN, BUSY, DROP, LOSE, STALL, TRUNCATE

pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")

_PARTS = ".mpus-"
"""In the names under which S3Proxy keeps the parts of uploads that have not ended."""

STEPS = {
    "write": ("PUT", "/bucket-"),
    "commit, manifests": ("PUT", "/manifest/"),
    "commit, snapshot": ("PUT", "/snapshot/snapshot-"),
    "commit, hint": ("PUT", "/snapshot/LATEST"),
    "compaction": ("GET", "/bucket-"),
    "expiry": ("POST", ""),
}


def made(s3, proxy, warehouse, **options):
    """A table of two buckets behind the proxy, with fifty rows in ten snapshots."""
    settings = {"bucket": "2", "write-only": "true"}
    reached = s3.options(proxy.port) | options
    table = Table.create(f"{warehouse()}/t", "id BIGINT, city STRING", primary_keys=["id"], options=settings, storage_options=reached)
    for number in range(10):
        table.write(cities(range(5 * number, 5 * number + 5)))
    return table


def whole_life(table):
    """Every operation once more; ids of the rows that must be there."""
    assert table.write(cities(range(40, 60), "Lima")).rows == 20
    assert table.delete("id < 3").rows == 3
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=2**62)
    return list(range(3, 60))


def checked(s3, table, expected):
    direct = Table.open(table.path, storage_options=s3.options())
    assert sorted(direct.scan().to_arrow().column("id").to_pylist()) == expected
    assert direct.fsck("deep").problems == ()


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("step", STEPS)
def test_a_server_that_is_killed_amid_a_step_and_comes_back_loses_nothing(s3, proxy, warehouse, step):
    table = made(s3, proxy, warehouse)
    method, place = STEPS[step]
    killed = threading.Event()
    starting = []

    def rule(request):
        """At the first such request the server goes, and that is lost."""
        if request.method != method or place not in request.path or killed.is_set():
            return None
        killed.set()
        s3.kill()
        starting.append(threading.Timer(0.3, s3.start))
        starting[0].start()
        return LOSE

    proxy.rule = rule
    try:
        expected = whole_life(table)
    finally:
        assert killed.is_set(), "the step was never reached"
        starting[0].join()
    checked(s3, table, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", [*(pytest.param(step, marks=pytest.mark.long) for step in ("write", "commit, manifests")), "commit, snapshot"]
)
def test_a_store_that_is_gone_amid_a_write_is_an_error_that_says_so_and_the_repetition_commits_once(
    s3, proxy, warehouse, step, monkeypatch
):
    monkeypatch.setattr(faults, "_FIRST_WAIT", 0.001)
    table = made(s3, proxy, warehouse, **{"storage.max-retries": "2"})
    method, place = STEPS[step]
    gone = threading.Event()

    def rule(request):
        if request.method == method and place in request.path:
            gone.set()
            if step == "commit, snapshot":
                return DROP  # it is there, and then nobody answers
        return LOSE if gone.is_set() else None

    proxy.rule = rule
    identity = str(uuid.uuid4())
    with pytest.raises(StorageError, match=r"s3://"):
        table.write(cities(range(100, 110)), commit_id=identity)
    proxy.rule = lambda _: None
    again = table.write(cities(range(100, 110)), commit_id=identity)
    assert again.replayed == (step == "commit, snapshot")
    checked(s3, table, [*range(50), *range(100, 110)])


@pytest.mark.slow
@pytest.mark.parametrize("fault", [BUSY, *(pytest.param(fault, marks=pytest.mark.long) for fault in (TRUNCATE, BROKEN, LOSE, DROP))])
def test_what_passes_is_no_error_of_any_operation(s3, proxy, warehouse, fault, monkeypatch):
    """The first request for every object, and the first of every kind, goes wrong."""
    monkeypatch.setattr(faults, "_FIRST_WAIT", 0.001)
    table = made(s3, proxy, warehouse)
    faults.RETRIED.clear()
    proxy.rule = lambda request: fault if request.number == 1 else None
    expected = whole_life(table)
    assert proxy.done[fault] > 20
    assert sum(faults.RETRIED.values()) >= proxy.done[fault] // 2, "they are told"
    proxy.rule = lambda _: None
    checked(s3, table, expected)


@pytest.mark.slow
def test_a_request_that_is_not_answered_in_time_is_made_again(s3, proxy, warehouse):
    table = made(s3, proxy, warehouse, **{"storage.timeout": "1 s"})
    faults.RETRIED.clear()
    proxy.rule = lambda request: (
        STALL if request.number == 1 and "/snapshot/snapshot-11" in request.path and request.method == "PUT" else None
    )
    assert table.write(cities([1000])).snapshot_id == 11
    assert proxy.done[STALL] == 1
    assert any("PUT new" in what for what in faults.RETRIED)
    checked(s3, table, [*range(50), 1000])


@pytest.mark.long
def test_parts_of_a_large_file_that_are_lost_are_sent_again_and_one_that_is_given_up_leaves_nothing(s3, proxy, warehouse):
    path = f"{warehouse()}/t"
    options = {"file.compression": "none", "parquet.enable.dictionary": "false"}
    table = Table.create(
        path, "id BIGINT, data BYTES", options=options, storage_options=s3.options(proxy.port) | {"storage.max-retries": "3"}
    )
    random = np.random.default_rng(0)
    data = pa.table({"id": range(24), "data": [random.bytes(1 << 20) for _ in range(24)]})
    proxy.rule = lambda request: LOSE if "partNumber" in request.path and request.number == 1 else None
    assert table.write(data).rows == 24
    assert proxy.done[LOSE] >= 3
    before = s3.objects()
    proxy.rule = lambda request: LOSE if "partNumber=3" in request.path else None
    with pytest.raises(StorageError):
        table.write(data)
    proxy.rule = lambda _: None
    left = [path for path in s3.objects() if path not in before]
    assert all(_PARTS in str(path) for path in left), "nothing is listed"
    assert len(left) <= 1, "no part is kept but one that was under way beside the one that failed"
    assert table.scan().count() == 24
