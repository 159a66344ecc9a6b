"""Four streams into five tables, on a server that is killed again and again: every row is in each table once.

``PAIMON_TEST_KILLS`` sets the number of kills, ``PAIMON_TEST_SEED`` chooses their moments.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql.connect.session")
pytest.importorskip("psutil", reason="the server's processes are found by psutil")

from faults import wait_until
from killable_server import MODES, PATIENCE_SECONDS, KillableServer, server_in
from once_kit import LATER

from manifest.store import FileStore
from pyspark_paimon import Table

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("PAIMON_TEST_KILLS", "6"))
SEED = int(os.environ.get("PAIMON_TEST_SEED", "19"))
FILES, ROWS, KEYS = 6, 100, 40
"""Files that a source gets at once; rows of each; keys of the tables that sum."""
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "sum"}
COMPACTS = {"num-sorted-run.compaction-trigger": "3"}
TABLES: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "summed": ("k BIGINT, n BIGINT, v BIGINT", ["k"], {"bucket": "2", **SUMS, **COMPACTS}),
    "appended": ("id BIGINT, v BIGINT", [], {"bucket": "-1"}),
    "written": ("id BIGINT, v BIGINT", [], {"bucket": "2", "bucket-key": "id"}),
    "merged": ("k BIGINT, n BIGINT, v BIGINT", ["k"], {"bucket": "2", **COMPACTS}),
    "dynamic": ("id BIGINT, n BIGINT, v BIGINT", ["id"], {"bucket": "-1", "dynamic-bucket.target-row-num": "400", **SUMS, **COMPACTS}),
}
"""Columns, keys and options: a row that is written twice is a second row, or counts twice."""
QUERIES = ("summed", "appended", "written", "dynamic")
"""Queries by their tables; the third writes ``merged``, too."""


def write_twice(written: str, merged: str) -> Callable[[Any, int], None]:
    """The function of ``foreachBatch``: a write by job and number, then a merge that adds, by a name for each batch."""

    def write(batch: Any, number: int) -> None:
        from pyspark.sql import functions as F  # noqa: N812  # the server has the function alone

        from pyspark_paimon import Table

        spark = batch.sparkSession
        Table.open(written, spark=spark).write(batch.select("id", "v"), commit_id="written", batch_id=number)
        sums = batch.groupBy("k").agg(F.count("*").alias("n"), F.sum("v").alias("v"))
        merge = Table.open(merged, spark=spark).merge(sums, "k", commit_id=f"merged-{number}")
        merge.when_matched_update({"n": "t.n + s.n", "v": "t.v + s.v"}).when_not_matched_insert_all().execute()

    return write


@dataclass
class Pipeline:
    """Sources, tables, and queries that go on at their checkpoints."""

    folder: Path
    dice: random.Random
    tables: dict[str, Table] = field(default_factory=dict)
    rows: list[tuple[int, int, int]] = field(default_factory=list)
    """What each source has: id, key, value."""
    queries: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    """Queries that Spark ended because no worker came up in ten seconds."""

    def __post_init__(self) -> None:
        (self.folder / "files").mkdir()
        self.source = Table.create(self.folder / "source", "id BIGINT, k BIGINT, v BIGINT")
        for name, (columns, keys, options) in TABLES.items():
            self.tables[name] = Table.create(self.folder / name, columns, primary_keys=keys, options=options)

    def feed(self) -> None:
        """Give both sources the same new rows."""
        for _ in range(FILES):
            first = len(self.rows)
            rows = [(number, self.dice.randrange(KEYS), self.dice.randrange(10**6)) for number in range(first, first + ROWS)]
            data = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=["id", "k", "v"])
            self.source.write(data)
            pq.write_table(data, self.folder / f"{first}.parquet")
            (self.folder / f"{first}.parquet").rename(self.folder / "files" / f"{first}.parquet")
            self.rows += rows

    def start(self, session: Any) -> None:
        """Start all queries in a new session."""
        self.session = session
        for name in QUERIES:
            query = self.queries[name] = self._start(name)
            # Spark 4.3 fills a map of all streams without a lock: two first streams at once may break it for the server's life.
            wait_until(lambda query=query: query.status["message"] != "Initializing sources", f"a source of {name}", PATIENCE_SECONDS)

    def _start(self, name: str) -> Any:
        if name == "written":
            frame = self.session.readStream.schema("id BIGINT, k BIGINT, v BIGINT").option("maxFilesPerTrigger", "3")
            sink = write_twice(self.tables["written"].path, self.tables["merged"].path)
            query = frame.parquet(str(self.folder / "files")).writeStream.foreachBatch(sink)
            return query.option("checkpointLocation", self.checkpoint(name)).start()
        options = {"scan.snapshot-id": "1", "read.stream.maxFilesPerTrigger": "1"}
        frame = self.session.readStream.format("paimon").options(**options).load(self.source.path)
        columns = {"summed": ("k", "1L AS n", "v"), "appended": ("id", "v"), "dynamic": ("id", "1L AS n", "v")}
        query = frame.selectExpr(*columns[name]).writeStream.format("paimon").option("checkpointLocation", self.checkpoint(name))
        named = query.option("commit.user", "appended") if name == "appended" else query
        return named.start(self.tables[name].path)

    def checkpoint(self, name: str) -> str:
        return str(self.folder / f"checkpoint-{name}")

    def tend(self) -> None:
        """Start a query again that Spark ended because no worker came up in the ten seconds that it gives one."""
        for name, query in self.queries.items():
            error = query.exception()
            if error is not None:
                assert "connect back" in str(error) or "CANNOT_OPEN_SOCKET" in str(error), f"{name}: {error}"
                self.restarts += 1
                self.queries[name] = self._start(name)

    def finish(self) -> None:
        """Wait until each query has consumed its source, and stop it."""
        for name in self.queries:
            for _ in range(5):
                with suppress(Exception):  # ``tend`` looks at it
                    self.queries[name].processAllAvailable()
                    break
                self.tend()
            self.queries[name].stop()

    def commits(self) -> int:
        """Number of snapshots of all tables, compactions too."""
        names = (entry.name for table in self.tables.values() for entry in _entries(Path(table.path, "snapshot")))
        return sum(name.startswith("snapshot-") for name in names)

    def identities(self, name: str) -> list[tuple[str, int]]:
        """Users and batches of the snapshots that brought rows."""
        snapshots = FileStore.open(self.tables[name].path).snapshots.since(0)
        return [(each.commit_user, each.commit_identifier) for each in snapshots if each.commit_kind.value != "COMPACT"]

    def user(self, query: str) -> str:
        """The commit user of a query: its name, or its id."""
        if query in {"appended", "written"}:
            return query
        return str(json.loads(Path(self.checkpoint(query), "metadata").read_text())["id"])

    def batches(self, query: str, kind: str) -> int:
        """Number of batches that Spark has noted in its checkpoint: ``offsets`` of begun ones, ``commits`` of ended ones."""
        # Spark deletes the notes of old batches.
        return max((int(entry.name) + 1 for entry in _entries(Path(self.checkpoint(query), kind)) if entry.name.isdigit()), default=0)

    def stage(self, query: str) -> str:
        """What a query was doing when its server was killed."""
        begun, ended = (self.batches(query, kind) for kind in ("offsets", "commits"))
        if begun == ended:
            return "between batches"
        user, batch = self.user(query), begun - 1
        committed = (user, batch) in self.identities(query)
        if query == "written" and committed:
            merged = any(name == f"merged-{batch}" for name, _ in self.identities("merged"))
            return "after the commit" if merged else "between write and merge"
        if committed:
            return "after the commit"
        offsets = Path(self.checkpoint(query), "offsets", str(batch)).stat().st_mtime
        root = Path(self.tables[query].path)
        fresh = (file for file in root.glob("bucket-*/*") if user in file.name and file.stat().st_mtime > offsets)
        return "files, no commit" if any(fresh) else "no files"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        return list(entries)
    return []


def wait_for(pipeline: Pipeline, look: Callable[[], bool], what: str) -> None:
    """Wait until ``look`` is true, and start queries again that Spark ended."""
    looked = time.monotonic()

    def attend() -> bool:
        nonlocal looked
        if time.monotonic() - looked > 2:
            pipeline.tend()
            looked = time.monotonic()
        return look()

    wait_until(attend, what, PATIENCE_SECONDS, 0.002)


def start(pipeline: Pipeline, server: KillableServer, dice: random.Random) -> None:
    """Start the server and the queries. Let frozen workers go on when these have committed."""
    pipeline.feed()
    pipeline.start(server.start())
    goal = pipeline.commits() + dice.randint(4, 8)
    if server.frozen:
        wait_for(pipeline, lambda: pipeline.commits() >= goal, f"{goal} commits")
        print(f"{server.thaw()} workers go on", flush=True)  # noqa: T201  # where a run failed


def wait_for_moment(pipeline: Pipeline, dice: random.Random) -> None:
    """Wait for some commits; give the queries more to do; wait for a new file of rows, a new snapshot, or a while."""
    goal = pipeline.commits() + dice.randint(0, 16)
    wait_for(pipeline, lambda: pipeline.commits() >= goal, f"{goal} commits")
    sign, name, seconds = dice.choice(["file", "snapshot", "while"]), dice.choice([*TABLES]), dice.uniform(0, 3)
    table = Path(pipeline.tables[name].path)
    pipeline.feed()

    def names() -> set[str]:
        folders = table.glob("bucket-*") if sign == "file" else [table / "snapshot"]
        return {entry.name for folder in folders for entry in _entries(folder) if sign == "file" or entry.name.startswith("snapshot-")}

    before, until = names(), time.monotonic() + seconds
    wait_for(pipeline, lambda: time.monotonic() > until if sign == "while" else bool(names() - before), f"a new {sign} of {name}")


def contents(table: Table) -> list[tuple[int, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def assert_once(pipeline: Pipeline) -> None:
    """Each table has each row once."""
    rows = pipeline.rows
    counts, sums = Counter(key for _, key, _ in rows), Counter[int]()
    for _, key, value in rows:
        sums[key] += value
    by_id, by_key = [(number, value) for number, _, value in rows], [(key, counts[key], sums[key]) for key in sorted(counts)]
    expected: dict[str, list[Any]] = {
        "summed": by_key,
        "appended": by_id,
        "written": by_id,
        "merged": by_key,
        "dynamic": [(number, 1, value) for number, value in by_id],
    }
    for name, table in pipeline.tables.items():
        assert contents(table) == expected[name], name


def remove_orphans(pipeline: Pipeline) -> dict[str, int]:
    """Remove the files that killed tasks left. All that lie in buckets bear the name of a commit of ours. Their number by table."""
    removed = {}
    for name, table in pipeline.tables.items():
        orphans = [orphan.path for orphan in table.list_orphan_files(older_than=LATER)]
        user = "merged-" if name == "merged" else pipeline.user(name)
        assert [path for path in orphans if "/bucket-" in path and user not in path] == []
        table.remove_orphan_files(older_than=LATER)
        assert table.list_orphan_files(older_than=LATER) == []
        removed[name] = len(orphans)
    return removed


def test_four_streams_write_each_row_once_over_kills_of_the_server(tmp_path):
    dice, stages, killed = random.Random(SEED), Counter[str](), Counter[str]()
    pipeline = Pipeline(tmp_path, dice)
    with tempfile.TemporaryDirectory(prefix="once-") as short, server_in(Path(short)) as server:  # sockets have short paths
        for _ in range(KILLS):
            start(pipeline, server, dice)
            wait_for_moment(pipeline, dice)
            mode = dice.choice(MODES)
            number = server.kill(mode)
            seen = {query: pipeline.stage(query) for query in pipeline.queries}
            killed[mode] += 1
            stages.update(seen.values())
            print(f"{mode}: killed {number} processes after {pipeline.commits()} snapshots: {seen}", flush=True)  # noqa: T201  # as above
            pipeline.session.client.close()
        start(pipeline, server, dice)
        pipeline.finish()
        pipeline.session.client.close()
    print(f"seed {SEED}: {dict(killed)}; {dict(stages)}; {pipeline.restarts} restarts of queries")  # noqa: T201  # figures of a long run
    assert_once(pipeline)
    for name in QUERIES:
        numbers = range(pipeline.batches(name, "offsets"))
        assert pipeline.identities(name) == [(pipeline.user(name), number) for number in numbers], name
    assert [user for user, _ in pipeline.identities("merged")] == [
        f"merged-{number}" for number in range(pipeline.batches("written", "offsets"))
    ]
    print(f"orphan files: {remove_orphans(pipeline)}")  # noqa: T201  # as above
    for name, table in pipeline.tables.items():
        assert table.fsck("deep").problems == (), name
    assert_once(pipeline)
