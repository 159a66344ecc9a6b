"""Rounds of accidents on a cluster: whatever is killed while rows are written or compacted, every row is there once, and what was made in vain can go.

Three tables go through all rounds: one appends, one sums, one keeps the last row of a key; so a row that is lost, or there twice, shows.
``PAIMON_TEST_ROUNDS`` sets how many rounds the long test has, ``PAIMON_TEST_SEED`` repeats one.
"""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections import Counter

import pytest

pytest.importorskip("pyspark.sql.connect.session")

from faults import Faults
from once_kit import LATER, session_at, writing

from pyspark_paimon import Table
from pyspark_paimon.spark.client import engine

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

ROUNDS = int(os.environ.get("PAIMON_TEST_ROUNDS", "100"))
SEED = int(os.environ.get("PAIMON_TEST_SEED", "19"))
NEW, OLD = 60, 40
TABLES = {
    "append": ({}, []),
    "sum": ({"bucket": "2", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}, ["id"]),
    "keyed": ({"bucket": "2"}, ["id"]),
}
ACCIDENTS = ("a worker", "an executor", "the server in tasks", "the server after its commit", "an executor that compacts")


class Site:
    """A cluster, the session that the rounds go through, and what each table must hold."""

    def __init__(self, cluster, folder, monkeypatch):
        self.cluster, self.folder, self.monkeypatch = cluster, folder, monkeypatch
        self.session, self.local = None, False
        self.expected = {kind: Counter() for kind in TABLES}
        self.paths = {}
        for kind, (options, keys) in TABLES.items():
            table = Table.create(folder / kind, "id BIGINT, v BIGINT", primary_keys=keys, options=options)
            self.paths[kind] = table.path

    def connect(self):
        """A session at the server that is there now."""
        from pyspark.sql.connect.client.retries import DefaultPolicy

        if self.session is not None:
            self.session.client.close()
        self.session = session_at(self.cluster.url)
        self.session.client.set_retry_policies([DefaultPolicy(max_retries=2, initial_backoff=50, max_backoff=100)])

    def faults(self):
        """Faults of their own for one operation."""
        made = Faults(self.folder / f"faults-{uuid.uuid4()}")
        made.used(self.monkeypatch)
        made.register(self.session)
        return made

    def restart(self, *, local: bool):
        """A server in the place of the one that died, on the cluster or (another one altogether) on threads of its own."""
        self.cluster.stop_server()
        self.local = local
        if local:
            self.cluster.start_server(master="local[2, 4]")  # as on the cluster, a task is tried again
        else:
            self.cluster.start_server()
        self.connect()

    def write(self, kind, number, commit_id):
        """A write of rows that are half known, half new."""
        first = number * NEW - OLD
        rows = self.session.range(first, first + NEW + OLD, 1, 2).selectExpr("id", "1 AS v" if kind != "keyed" else f"{number} AS v")
        return lambda table: table.write(rows, commit_id=commit_id)

    def add(self, kind, number):
        first = number * NEW - OLD
        for key in range(first, first + NEW + OLD):
            self.expected[kind][key] = number if kind == "keyed" else self.expected[kind][key] + 1

    def check(self, kind):
        rows = Table.open(self.paths[kind]).scan().to_arrow().to_pylist()
        if kind == "append":
            assert Counter(row["id"] for row in rows) == self.expected[kind]
        else:
            assert {row["id"]: row["v"] for row in rows} == dict(self.expected[kind])
            assert len(rows) == len(self.expected[kind])


def accident(site, kind, number, what):
    """One write or compaction to which ``what`` happens, repeated until it is done, and only once."""
    if site.local and what.startswith("an executor"):
        site.restart(local=False)
    path, commit_id = site.paths[kind], str(uuid.uuid4())
    faults, compacts = site.faults(), what == "an executor that compacts"
    do = (lambda table: table.compact(full=True)) if compacts else site.write(kind, number, commit_id)
    point = "published" if what == "the server after its commit" else "files"
    faults.order(point, "hold", times=2)
    with faults.released_in_the_end(), writing(site.session, path, commit_id, do) as done:
        wait_for_visit(faults, point, done)
        if what == "a worker":
            os.kill(faults.visits(point)[0]["pid"], signal.SIGKILL)
        elif what in {"an executor", "an executor that compacts"}:
            site.cluster.kill_executor()
        else:
            site.cluster.servers[-1].process.kill()
            site.cluster.servers[-1].process.wait()
        faults.release(point)
    if done.error is not None:
        assert what.startswith("the server"), done.error
        site.restart(local=number % 2 == 0)
        site.faults()
        result = (site.write(kind, number, commit_id))(Table.open(path, spark=site.session))
        assert result.replayed == (point == "published")
    if not compacts:
        site.add(kind, number)
    site.check(kind)


def wait_for_visit(faults, point, done):
    """Until somebody is held there, or the operation is over because there was nothing to do."""
    until = time.monotonic() + 90
    while not faults.visits(point) and done.result is None and done.error is None and time.monotonic() < until:
        time.sleep(0.05)


def went_through(cluster, tmp_path, monkeypatch, set_thresholds, rounds):
    """The rounds; what happened in them."""
    set_thresholds(idle_core_bytes=1)
    monkeypatch.setattr(engine, "FORMAT_NAME", engine.FORMAT_NAME)
    site, dice, seen = Site(cluster, tmp_path, monkeypatch), random.Random(SEED), Counter()
    site.connect()
    try:
        for number in range(1, rounds + 1):
            what, kind = dice.choice(ACCIDENTS), dice.choice([*TABLES])
            accident(site, kind, number, what)
            seen[what] += 1
            print(f"round {number}: {what}, table '{kind}'", flush=True)  # noqa: T201  # pytest shows it where a round failed
    finally:
        site.session.client.close()
    for kind, path in site.paths.items():
        table = Table.open(path)
        table.expire_snapshots(retain_min=1, retain_max=1)
        table.remove_orphan_files(older_than=LATER)
        assert table.list_orphan_files(older_than=LATER) == []
        site.check(kind)
        assert table.fsck().problems == ()
    return seen


@pytest.mark.long
def test_rows_are_there_once_whatever_is_killed(cluster, tmp_path, monkeypatch, set_thresholds):
    seen = went_through(cluster, tmp_path, monkeypatch, set_thresholds, ROUNDS)
    assert sum(seen.values()) == ROUNDS
    assert ROUNDS < 30 or set(seen) == set(ACCIDENTS)
