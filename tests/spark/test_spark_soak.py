"""Long runs over Spark: clients at one table for minutes, and a stream of an hour's batches that is started again and again."""

from __future__ import annotations

import os
import statistics
import threading
import time
import uuid
from collections import Counter
from contextlib import closing
from random import Random

import pyarrow.compute as pc
import pytest

pytest.importorskip("pyspark.sql.connect.session")

from once_kit import session_at, url_of

from pyspark_paimon import CommitConflict, Table

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("PAIMON_TEST_SECONDS", "300"))
BATCHES = int(os.environ.get("PAIMON_TEST_BATCHES", "360"))
RESTARTS = int(os.environ.get("PAIMON_TEST_RESTARTS", "20"))
WRITERS, KEYS = 4, 50


class Clients:
    """Threads with a session each, at one table; what they did, and what went wrong."""

    def __init__(self, spark, path):
        self.url, self.path = url_of(spark), path
        self.ready = threading.Barrier(WRITERS + 3, action=self._begin)
        self.done, self.wrong, self.acknowledged = Counter(), [], [0] * WRITERS

    def _begin(self):
        self.until = time.monotonic() + SECONDS

    def run(self, roles):
        threads = [threading.Thread(target=self._client, args=role) for role in roles]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _client(self, name, work, *arguments):
        try:
            session = session_at(self.url)
            with closing(session.client):
                table = Table.open(self.path, spark=session)
                self.ready.wait(300)
                while time.monotonic() < self.until and not self.wrong:
                    work(table, *arguments)
                    self.done[name] += 1
        except Exception as error:  # noqa: BLE001  # told by the test, whatever it is
            self.wrong.append(f"{name}: {type(error).__name__}: {error}")

    def write(self, table, writer):
        """All keys of the writer get the number of the batch, in one commit."""
        batch, commit_id = self.acknowledged[writer] + 1, str(uuid.uuid4())
        while True:
            try:
                table.write({"writer": [writer] * KEYS, "k": list(range(KEYS)), "v": [batch] * KEYS}, commit_id=commit_id)
            except CommitConflict:
                self.done["conflict"] += 1
            else:
                break
        self.acknowledged[writer] = batch

    def compact(self, table):
        try:
            table.compact(full=self.done["compact"] % 3 == 0)
        except CommitConflict:
            self.done["conflict"] += 1

    def scan(self, table):
        """A writer's keys all have one number, and none that is older than what was acknowledged before."""
        before = list(self.acknowledged)
        rows = table.scan().to_arrow()
        for writer, seen in enumerate(before):
            mine = rows.filter(pc.equal(rows["writer"], writer))["v"].to_pylist()
            if not (len(set(mine)) <= 1 and len(mine) in {0, KEYS}) or (mine and mine[0] < seen) or (seen and not mine):
                self.wrong.append(f"writer {writer}: acknowledged {seen}, seen {Counter(mine)}")


def test_what_clients_write_is_there_whole_while_another_compacts(spark, tmp_path):
    table = Table.create(tmp_path / "t", "writer INT, k INT, v BIGINT", primary_keys=["writer", "k"], options={"bucket": "2"})
    clients = Clients(spark, table.path)
    clients.run(
        [
            *((f"write {writer}", clients.write, writer) for writer in range(WRITERS)),
            ("compact", clients.compact),
            *((f"scan {number}", clients.scan) for number in range(2)),
        ]
    )
    print(f"in {SECONDS:.0f} s: {dict(clients.done)}; wrong: {clients.wrong}")  # noqa: T201  # the figures of the long run
    assert clients.wrong == []
    rows = table.scan().to_arrow().to_pylist()
    assert Counter((row["writer"], row["v"]) for row in rows) == dict.fromkeys(enumerate(clients.acknowledged), KEYS)
    assert table.fsck().problems == ()


def ended(start):
    """The query at its end; begun again where Spark found no worker in the ten seconds that it gives one."""
    for _ in range(5):
        query = start()
        try:
            query.awaitTermination()
        except Exception as error:
            if "connect back" not in str(error) and "CANNOT_OPEN_SOCKET" not in str(error):
                raise
        else:
            return query
    raise AssertionError("no worker came up")


def test_a_stream_goes_on_where_it_was_however_often_it_is_started_again(spark, tmp_path):
    options = {"bucket": "2", "changelog-producer": "input"}
    source, copy, end = (
        Table.create(tmp_path / name, "id BIGINT, v BIGINT", primary_keys=["id"], options=options) for name in ("s", "c", "e")
    )
    dice, model, millis, levels = Random(19), {}, [], []
    per_run = max(1, BATCHES // RESTARTS)

    def begun(origin, target, **trigger):
        rows = (
            spark.readStream.format("paimon").options(**{"read.changelog": "true", "read.stream.maxFilesPerTrigger": "2"}).load(origin.path)
        )
        query = rows.writeStream.format("paimon").option("checkpointLocation", f"{target.path}-checkpoint")
        return query.trigger(**(trigger or {"availableNow": True})).start(target.path)

    for restart in range(RESTARTS):
        for number in range(restart * per_run, (restart + 1) * per_run):
            ids = dice.sample(range(500), 40)
            kinds = ["-D" if dice.random() < 0.2 else "+I" for _ in ids]
            for key, kind in zip(ids, kinds, strict=True):
                model.pop(key, None) if kind == "-D" else model.update({key: number})
            source.write({"id": ids, "v": [number] * len(ids), "_row_kind": kinds})
        query = begun(source, copy, processingTime="0 seconds")  # may end by itself where no worker comes up in ten seconds: a restart, too
        time.sleep(dice.random() * per_run / 2)
        millis += [progress["batchDuration"] for progress in query.recentProgress]
        query.stop()  # in the middle of a batch, or after the last
        levels.append(
            max(
                Counter((str(file["partition"]), file["bucket"]) for file in copy.files().to_pylist() if file["level"] == 0).values(),
                default=0,
            )
        )
    for origin, target in ((source, copy), (copy, end)):
        query = ended(lambda origin=origin, target=target: begun(origin, target))
        millis += [progress["batchDuration"] for progress in query.recentProgress if origin is source]
    tenth = max(1, -(-len(millis) // 10))
    told = " ".join(f"{statistics.median(millis[at : at + tenth]):.0f}" for at in range(0, len(millis), tenth))
    print(  # noqa: T201  # as above
        f"{BATCHES} batches, {RESTARTS} restarts: {len(millis)} seen, median ms by tenth of the run: {told}; "
        f"level 0 at most {max(levels)} files a bucket, {levels}"
    )
    expected = [{"id": key, "v": model[key]} for key in sorted(model)]
    for table in (source, copy, end):
        assert table.scan(order_by="id").to_arrow().to_pylist() == expected
    assert max(levels) <= int(copy.options.get("num-sorted-run.stop-trigger", "8"))
