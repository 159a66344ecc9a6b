"""Streams from and into tables: every row once across repeated batches and restarts, starts and limits by option, typed errors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from manifest.store import FileStore
from pyspark_paimon import SchemaMismatch, SnapshotExpired, Table
from pyspark_paimon.spark.wire.errors import typed_error
from tests.build import keyed, tuples

pytestmark = pytest.mark.spark

DDL = "id BIGINT, city STRING"
CHANGES = {"read.changelog": "true"}


@pytest.fixture
def source(tmp_path) -> Table:
    """Four files of two buckets: three rows, then an update, a delete and an insert."""
    table = Table.create(tmp_path / "source", DDL, primary_keys=["id"], options={"bucket": "2", "write-only": "true"})
    table.write(rows(("+I", 1, "Oslo"), ("+I", 2, "Lima"), ("+I", 3, "Rome")))
    table.write(rows(("+U", 1, "Bergen"), ("-D", 2, "Lima"), ("+I", 4, "Bonn")))
    return table


@pytest.fixture
def collected(tmp_path) -> Table:
    return Table.create(tmp_path / "collected", f"{DDL}, kind STRING")


def rows(*given: tuple) -> pa.Table:
    kinds, ids, cities = (list(column) for column in zip(*given, strict=True))
    return pa.table({"id": pa.array(ids, pa.int64()), "city": cities, "_row_kind": kinds})


def stream(spark, table: Table, **options: str):
    return spark.readStream.format("paimon").options(**options).load(table.path)


def run(frame, target: Table, *, mode: str = "append", **options: str) -> None:
    """One run of a query, to the end of what is there now; its checkpoint lies beside the target."""
    settings = {"checkpointLocation": f"{target.path}-checkpoint", **options}
    ended(lambda: frame.writeStream.format("paimon").outputMode(mode).options(**settings).trigger(availableNow=True).start(target.path))


def ended(start) -> None:
    """Await the query's end; one for which no worker came up is started again, as its checkpoint allows: Spark gives a worker ten seconds."""
    for attempt in range(5):
        try:
            start().awaitTermination()
        except Exception as error:
            if "failed to connect back" not in str(error) or attempt == 4:
                raise
        else:
            return


def collect(spark, table: Table, target: Table, **options: str) -> list[tuple]:
    """The changes that one run adds to ``target``."""
    before = target.scan().count()
    run(stream(spark, table, **CHANGES, **options).withColumnRenamed("_row_kind", "kind"), target)
    return sorted(tuple(row.values()) for row in target.scan().to_arrow().slice(before).to_pylist())


def forget_last_batch(target: Table) -> int:
    """As if Spark had been killed between the sink's commit and its own note of it."""
    commits = Path(f"{target.path}-checkpoint") / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    return last


def commits(table: Table) -> list[tuple]:
    """Users and batches of the snapshots that brought rows."""
    snapshots = FileStore.open(table.path).snapshots.since(0)
    return [(snapshot.commit_user, snapshot.commit_identifier) for snapshot in snapshots if snapshot.commit_kind.value != "COMPACT"]


def data_files(table: Table) -> set[str]:
    return {path.name for path in Path(table.path).glob("bucket-*/*")}


@pytest.mark.long
def test_a_table_is_copied_with_its_deletes_and_a_repeated_batch_changes_nothing(spark, source, tmp_path):
    copy = Table.create(tmp_path / "copy", DDL, primary_keys=["id"], options={"bucket": "2", "num-sorted-run.compaction-trigger": "2"})
    limited = {**CHANGES, "scan.snapshot-id": "1", "read.stream.maxFilesPerTrigger": "2"}
    run(stream(spark, source, **limited), copy)
    assert tuples(copy) == [(1, "Bergen"), (3, "Rome"), (4, "Bonn")]
    done, files = commits(copy), data_files(copy)
    assert [batch for _, batch in done] == [0, 1]
    assert len({user for user, _ in done}) == 1
    assert "COMPACT" in copy.snapshots()["commit_kind"].to_pylist(), "the commit hook compacts what is due"
    assert forget_last_batch(copy) == 1
    run(stream(spark, source, **limited), copy)
    assert (commits(copy), data_files(copy)) == (done, files), "what the tasks made again is gone"
    source.write(rows(("+I", 2, "Cusco"), ("-D", 4, "Bonn")))
    run(stream(spark, source, **limited), copy)
    assert tuples(copy) == tuples(source) == [(1, "Bergen"), (2, "Cusco"), (3, "Rome")]
    assert commits(copy) == [*done, (done[0][0], 2)]


@pytest.mark.long
def test_a_repeated_batch_adds_no_row_to_a_table_without_keys(spark, source, tmp_path):
    log = Table.create(tmp_path / "log", DDL)
    cities = stream(spark, source).where("city <> 'Rome'")
    run(cities, log, **{"commit.user": "cities"})
    assert (tuples(log), commits(log)) == ([(1, "Bergen"), (4, "Bonn")], [("cities", 0)])
    forget_last_batch(log)
    run(cities, log, **{"commit.user": "cities"})
    source.write(rows(("+I", 5, "Kyiv"), ("-D", 3, "Rome")))
    run(cities, log, **{"commit.user": "cities"})
    assert tuples(log) == [(1, "Bergen"), (4, "Bonn"), (5, "Kyiv")], "of deletes nothing is told without kinds"


@pytest.mark.long
def test_complete_batches_replace_the_table(spark, source, tmp_path):
    counts = Table.create(tmp_path / "counts", "initial STRING, n BIGINT", primary_keys=["initial"], options={"bucket": "1"})
    counts.write(pa.table({"initial": ["X"], "n": pa.array([9], pa.int64())}))
    initials = stream(spark, source).selectExpr("left(city, 1) AS initial").groupBy("initial").count().withColumnRenamed("count", "n")
    run(initials, counts, mode="complete")
    assert tuples(counts) == [("B", 2), ("R", 1)]
    assert FileStore.open(counts.path).snapshots.get(2).commit_kind.value == "OVERWRITE"


@pytest.mark.long
def test_foreach_batch_writes_each_batch_once_by_its_number(spark, source, tmp_path):
    copy = keyed(tmp_path / "copy", DDL)
    path = copy.path

    def upsert(batch, batch_id):
        from pyspark_paimon import Table

        Table.open(path, spark=batch.sparkSession).write(batch, commit_id="copy-cities", batch_id=batch_id)

    def run_once():
        changes = stream(spark, source, **CHANGES)
        checkpoint = f"{path}-checkpoint"
        changes.writeStream.foreachBatch(upsert).option("checkpointLocation", checkpoint).trigger(
            availableNow=True
        ).start().awaitTermination()

    run_once()
    done = commits(copy)
    assert (tuples(copy), done) == (tuples(source), [("copy-cities", 0)])
    forget_last_batch(copy)
    source.write(rows(("-D", 3, "Rome")))
    run_once()
    assert (tuples(copy), commits(copy)) == (tuples(source), [*done, ("copy-cities", 1)]), "batch 0 ran again and changed nothing"


@pytest.mark.long
def test_streams_start_where_options_say_and_go_on_from_their_checkpoint(spark, source, collected, tmp_path):
    state = [(1, "Bergen", "+I"), (3, "Rome", "+I"), (4, "Bonn", "+I")]
    assert collect(spark, source, collected) == state
    source.write(rows(("-D", 1, "Bergen")))
    assert collect(spark, source, collected, **{"scan.mode": "latest"}) == [(1, "Bergen", "-D")], "the checkpoint says where to go on"
    second = FileStore.open(source.path).snapshots.get(2).time_millis
    other = Table.create(tmp_path / "other", f"{DDL}, kind STRING")
    since = {"scan.timestamp-millis": str(second), "filter": "id > 1"}
    assert collect(spark, source, other, **since) == [(2, "Lima", "-D"), (4, "Bonn", "+I")]


@pytest.mark.long
def test_a_consumer_holds_expiry_back_and_without_one_a_stream_can_lose_its_place(spark, source, collected):
    named = {"consumer-id": "copy"}
    collect(spark, source, collected, **named, **{"scan.snapshot-id": "1", "read.stream.maxFilesPerTrigger": "2"})
    assert source.consumers()["next_snapshot_id"].to_pylist() == [2], "Spark tells a source of a finished batch when the next one begins"
    for city in ("Paris", "Turin", "Milan"):
        source.write(rows(("+U", 1, city)))
    source.expire_snapshots(retain_min=1, retain_max=1)
    assert source.snapshots()["snapshot_id"].to_pylist() == [2, 3, 4, 5]
    assert collect(spark, source, collected, **named) == [(1, city, "+U") for city in ("Milan", "Paris", "Turin")]
    source.reset_consumer("copy")
    source.write(rows(("-D", 1, "Milan")))
    source.write(rows(("-D", 3, "Rome")))
    source.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(Exception, match=r"the stream is at snapshot 6.*consumer-id.*snapshot.time-retained") as lost:
        collect(spark, source, collected)
    assert isinstance(typed_error(str(lost.value)), SnapshotExpired)


@pytest.mark.long
def test_a_column_that_is_added_ends_a_query_by_its_name_and_the_next_one_brings_it_to_the_sink(spark, source, tmp_path):
    copy = keyed(tmp_path / "copy", DDL)
    running = stream(spark, source).writeStream.format("paimon").option("checkpointLocation", f"{copy.path}-checkpoint").start(copy.path)
    running.processAllAvailable()
    source.add_column("country", "STRING")
    source.write(pa.table({"id": pa.array([5], pa.int64()), "city": ["Lyon"], "country": ["FR"]}))
    with pytest.raises(
        Exception, match=r"perform \w+: pyspark_paimon.SchemaMismatch: column 'country' was added to .*mergeSchema"
    ) as ended:
        running.awaitTermination(60)
    assert "Traceback" not in str(ended.value).partition("SchemaMismatch")[0]
    assert isinstance(typed_error(str(ended.value)), SchemaMismatch)
    run(stream(spark, source), copy, mergeSchema="true")
    assert copy.scan("id = 5").to_arrow().to_pylist() == [{"id": 5, "city": "Lyon", "country": "FR"}]
    assert tuples(copy) == tuples(source)


@pytest.mark.long
def test_what_a_stream_cannot_do_is_refused_by_name(spark, source, collected, tmp_path):
    for options, reason in [
        ({"read.stream.minRowsPerTrigger": "5", **CHANGES}, "read.stream.minrowspertrigger"),
        ({"scan.mode": "from-creation-timestamp"}, "from-creation-timestamp"),
        ({"scan.mode": "from-snapshot"}, "scan.snapshot-id"),
        ({"scan.tag-name": "v1", **CHANGES}, "scan.tag-name"),
        ({"read.stream.maxRowsPerTrigger": "0"}, "max_rows"),
        ({"no.such.option": "1", **CHANGES}, "no.such.option"),
        ({"columns": "id, town", **CHANGES}, "town"),
    ]:
        with pytest.raises(Exception, match=rf"paimon-error.*{reason}"):
            stream(spark, source, **options).schema  # noqa: B018
    with pytest.raises(Exception, match=r"single streaming read.*spark.readStream"):
        spark.read.format("paimon").options(**CHANGES).load(source.path).collect()
    with pytest.raises(Exception, match="SchemaMismatch"):
        run(stream(spark, source).selectExpr("id", "city", "1 AS more"), collected)


def test_followers_have_the_last_batch_of_a_sink_whose_changelog_is_made_by_compaction(spark, source, tmp_path):
    copy = Table.create(tmp_path / "copy", DDL, primary_keys=["id"], options={"changelog-producer": "lookup"})
    run(stream(spark, source, **CHANGES), copy)
    told = {row["id"]: row["city"] for batch in copy.follow(start="from-snapshot", snapshot=1) for row in batch.rows.to_pylist()}
    assert sorted(told.items()) == tuples(copy) == [(1, "Bergen"), (3, "Rome"), (4, "Bonn")]
