"""The source and the sink of streams as Spark drives them, without Spark's engine: offsets, consumers, schema changes, batches."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lsm.incremental.stream_scan import Limits, Position, StartMode
from manifest.store import FileStore
from pyspark_paimon import CommitReplayed, InvalidArgument, SchemaMismatch, Table, UnsupportedOption, UnsupportedTable
from pyspark_paimon.stream.options import StreamOptions, offset_of, position_of, without_stream
from pyspark_paimon.stream.table_stream import TableStream

pyspark = pytest.importorskip("pyspark.sql.streaming.datasource")

from pyspark_paimon.frames.spark_types import spark_schema  # noqa: E402  # as above
from pyspark_paimon.spark.source import PaimonDataSource  # noqa: E402  # needs pyspark
from tests.build import keyed  # noqa: E402  # as above

CHANGES = {"read.changelog": "true"}


def rows(*given: tuple) -> pa.Table:
    """Rows of (kind, id, n)."""
    kinds, ids, numbers = (list(column) for column in zip(*given, strict=True))
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(numbers, pa.int32()), "_row_kind": kinds})


@pytest.fixture
def table(create) -> Table:
    made = create("id BIGINT, n INT", options={"write-only": "true"})
    for at in range(3):
        made.write(rows(("+I", at, 0)))
    return made


def reader(table: Table, **options: str) -> Any:
    """The reader that Spark would make, after its trip to another process."""
    source = PaimonDataSource({"path": table.path, **options})
    return pickle.loads(pickle.dumps(source.streamReader(source.schema())))


def read(stream: Any, start: dict, end: dict) -> list[tuple]:
    """The rows of a batch, which a copy of the reader reads in each task."""
    found: list[tuple] = []
    for partition in stream.partitions(start, end):
        for batch in pickle.loads(pickle.dumps(stream)).read(partition):
            found += list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return found


def batches(stream: Any, start: dict) -> list[list[tuple]]:
    """What ``availableNow`` reads: batches until the source has no further offset."""
    stream.prepareForTriggerAvailableNow()
    found = []
    while (end := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
        found.append(read(stream, start, end))
        stream.commit(end)
        start = end
    return found


def test_a_batch_is_read_again_from_its_two_offsets(table) -> None:
    stream = reader(table, **CHANGES, **{"scan.mode": "from-snapshot", "scan.snapshot-id": "1", "read.stream.maxrowspertrigger": "2"})
    start = stream.initialOffset()
    assert start == {"version": 1, "snapshot": 1, "unit": 0, "whole": False}
    end = json.loads(json.dumps(stream.latestOffset(start, stream.getDefaultReadLimit())))
    assert read(stream, start, end) == [(0, 0, "+I"), (1, 0, "+I")]
    table.write(rows(("-D", 0, 0)))
    assert read(reader(table, **CHANGES), start, end) == [(0, 0, "+I"), (1, 0, "+I")]
    assert stream.latestOffset(start, pyspark.ReadAllAvailable())["snapshot"] == 5, "Spark may ask for all"
    assert stream.reportLatestOffset()["snapshot"] == 5
    assert read(stream, end, end) == []


def test_what_comes_after_the_start_of_available_now_is_left_for_the_next_run(table) -> None:
    stream = reader(table, **CHANGES)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    table.write(rows(("+I", 9, 0)))
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert len(read(stream, start, end)) == 3
    assert stream.latestOffset(end, stream.getDefaultReadLimit()) == end
    assert batches(reader(table, **CHANGES), end) == [[(9, 0, "+I")]]


@pytest.mark.parametrize("overwrites", [False, True])
def test_a_consumer_holds_what_it_has_not_read_and_a_new_query_goes_on_there(table, overwrites) -> None:
    named = {**CHANGES, "consumer-id": "c", **({"streaming-read-overwrite": "true"} if overwrites else {})}
    stream = reader(table, **named, **{"scan.snapshot-id": "1", "scan.mode": "from-snapshot", "read.stream.maxfilespertrigger": "2"})
    end = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
    stream.commit(end)
    held = 2 if overwrites else 3
    assert table.consumers()["next_snapshot_id"].to_pylist() == [held]
    table.write(rows(("+I", 7, 7)).drop_columns("_row_kind"), mode="overwrite")
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert table.snapshots()["snapshot_id"][0].as_py() == held
    again = reader(table, **named)
    expected = [[(2, 0, "+I")], [(0, 0, "-D"), (1, 0, "-D"), (2, 0, "-D"), (7, 7, "+I")]] if overwrites else [[(2, 0, "+I")]]
    assert batches(again, again.initialOffset()) == expected
    assert reader(table, **named, **{"consumer.ignore-progress": "true"}).initialOffset() == offset_of(Position(4, whole=True))
    table.reset_consumer("c", 4)
    assert reader(table, **named).initialOffset() == offset_of(Position(4))


def test_a_new_query_of_a_consumer_does_not_lose_the_rest_of_a_state(table) -> None:
    table.alter_options({"bucket": "1"})
    keyless = Table.create(f"{table.path}-keyless", "id BIGINT, n INT")
    for at in range(3):
        keyless.write(pa.table({"id": pa.array([at], pa.int64()), "n": pa.array([0], pa.int32())}))
    named = {"consumer-id": "c", "read.stream.maxfilespertrigger": "2"}
    stream = reader(keyless, **named)
    stream.commit(stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit()))
    again = reader(keyless, **named)
    assert position_of(again.initialOffset()) == Position(3, 2, whole=True)
    assert batches(again, again.initialOffset()) == [[(2, 0)]]


def test_a_stream_ends_with_an_error_when_its_columns_change_and_goes_on_in_a_new_query(table) -> None:
    every, some = reader(table, **CHANGES), reader(table, **CHANGES, columns="id")
    start = every.latestOffset(every.initialOffset(), pyspark.ReadAllAvailable())
    table.add_column("city", "STRING")
    table.write(pa.table({"id": pa.array([8], pa.int64()), "n": pa.array([8], pa.int32()), "city": ["Oslo"]}))
    with pytest.raises(SchemaMismatch, match=r"^column 'city' was added to .*: start the query again"):
        every.latestOffset(start, pyspark.ReadAllAvailable())
    assert batches(some, start) == [[(8, "+I")]], "it does not read the new column"
    assert batches(reader(table, **CHANGES), start) == [[(8, 8, "Oslo", "+I")]]
    table.rename_column("id", "key")
    with pytest.raises(SchemaMismatch, match=r"^column 'id' was dropped, renamed or retyped in .*start the query again"):
        some.partitions(start, start)


def test_a_query_of_a_frame_that_is_older_than_a_column_is_refused(table) -> None:
    old = spark_schema(table.table_schema.fields)
    table.add_column("city", "STRING")
    with pytest.raises(SchemaMismatch, match=r"column 'city' was added after this DataFrame was made.*load"):
        PaimonDataSource({"path": table.path}).streamReader(old)
    assert PaimonDataSource({"path": table.path, "columns": "id,n"}).streamReader(old)


def test_a_schema_that_is_not_the_tables_is_refused(table) -> None:
    source = PaimonDataSource({"path": table.path})
    wrong = spark_schema(Table.create(f"{table.path}-other", "id BIGINT, n STRING").table_schema.fields)
    with pytest.raises(SchemaMismatch, match="'n' is int in the table, not string"):
        source.streamReader(wrong)


def test_merge_engines_without_a_changelog_are_refused_when_the_query_starts(create) -> None:
    folded = create("id BIGINT, n INT", name="folded", options={"merge-engine": "partial-update"})
    with pytest.raises(UnsupportedTable, match="changelog-producer"):
        reader(folded)


def test_a_process_without_spark_follows_a_table(table) -> None:
    batches_ = list(table.follow(start="from-snapshot", snapshot=1, max_rows=2, consumer="c", columns=["n", "id"]))
    assert [batch.rows["id"].to_pylist() for batch in batches_] == [[0, 1], [2]]
    assert batches_[0].rows.column_names == ["n", "id", "_row_kind"]
    assert table.consumers()["next_snapshot_id"].to_pylist() == [4]
    assert list(table.follow(batches_[-1].offset)) == []
    table.write(rows(("-D", 1, 0), ("+U", 2, 5)))
    [after] = table.follow(batches_[0].offset, "n = 0")
    assert sorted(zip(after.rows["id"].to_pylist(), after.rows["_row_kind"].to_pylist(), strict=True)) == [(1, "-D"), (2, "+I")]
    assert [batch.rows.num_rows for batch in table.follow()] == [2]
    with pytest.raises(InvalidArgument, match=r"scan\.snapshot-id"):
        next(table.follow(start="from-snapshot"))
    with pytest.raises(InvalidArgument, match="offset"):
        next(table.follow('{"version": 9}'))


def test_a_follower_of_all_columns_and_its_sink_get_columns_that_are_added_between_batches(table, create) -> None:
    sink = create("id BIGINT, n INT", name="sink")

    def copied(offset: str | None, *, filter: str | None = None) -> str:  # noqa: A002  # as in follow
        for number, batch in enumerate(table.follow(offset, filter, start="from-snapshot", snapshot=1, max_rows=1) if offset is None
                                       else table.follow(offset, filter)):  # fmt: skip
            if offset is None and number == 1:
                table.add_column("city", "STRING")
                table.write(pa.table({"id": pa.array([8], pa.int64()), "n": pa.array([8], pa.int32()), "city": ["Oslo"]}))
            sink.write(batch.rows, schema_mode="merge")
            last = batch.offset
        return last

    offset = copied(None)
    assert sink.table_schema.names == ("id", "n", "city"), "the third batch of the first call has the column"
    copied(offset)
    assert sorted(map(str, sink.scan().to_arrow().to_pylist())) == sorted(map(str, table.scan().to_arrow().to_pylist()))
    assert {"id": 8, "n": 8, "city": "Oslo"} in sink.scan().to_arrow().to_pylist()


def test_a_follower_is_told_which_column_of_its_filter_or_list_is_gone(table) -> None:
    filtered = table.follow(filter="n = 0", start="from-snapshot", snapshot=1, max_rows=1)
    named = table.follow(columns=["n"], start="from-snapshot", snapshot=1, max_rows=1)
    every = table.follow(start="from-snapshot", snapshot=1, max_rows=1)
    first = [next(stream) for stream in (filtered, named, every)]
    table.rename_column("n", "many")
    for stream in (filtered, named):
        with pytest.raises(SchemaMismatch, match=r"^column 'n' was dropped, renamed or retyped in .*call follow\(\) with the last offset"):
            next(stream)
    assert next(every).rows.column_names == ["id", "many", "_row_kind"]
    assert first[2].rows.column_names == ["id", "n", "_row_kind"]


def test_offsets_of_another_version_are_refused() -> None:
    assert position_of(offset_of(Position(3, 1, whole=True))) == Position(3, 1, whole=True)
    for broken in ({"version": 2, "snapshot": 1, "unit": 0, "whole": False}, {"offset": 5}, {"version": 1, "snapshot": "1", "unit": 0}):
        with pytest.raises(InvalidArgument, match="offset"):
            position_of(broken)


def test_a_run_that_is_behind_takes_no_progress_of_its_consumer_back(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", "id BIGINT")
    table.write(pa.table({"id": [1]}))
    stream = TableStream.of(table.path, StreamOptions.of({"consumer-id": "c", "scan.mode": "latest-full"}), None, None)
    snapshots = FileStore.open(table.path).snapshots
    stream.start()
    for done, stands in [
        (Position(7, 2), (7, 2)),
        (Position(5, 9), (7, 2)),
        (Position(7, 1), (7, 2)),
        (Position(7, 3), (7, 3)),
        (Position(8), (8, 0)),
    ]:
        stream.done(done)
        position = stream.start()
        assert (position.snapshot_id, position.unit) == stands
        assert snapshots.consumers() == {"c": stands[0]}
    snapshots.record_consumer("c", 2)
    assert stream.start() == Position(2), "who resets it means it"


def test_options_say_where_a_stream_starts_and_how_much_a_batch_holds() -> None:
    asked = StreamOptions.of({"scan.mode": "FULL", "read.stream.maxbytespertrigger": "9", "consumer-id": " c "})
    assert (asked.mode, asked.limits, asked.consumer) == (StartMode.LATEST_FULL, Limits(bytes=9), "c")
    assert StreamOptions.of({"scan.timestamp-millis": "5"}).mode is StartMode.FROM_TIMESTAMP
    assert StreamOptions.of({}, {"streaming-read-overwrite": "true", "scan.mode": "latest"}).overwrites
    assert without_stream({"path": "/t", "columns": "id", **CHANGES}) == {"path": "/t", "columns": "id"}
    for options, error in [
        ({"scan.mode": "incremental"}, UnsupportedOption),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, InvalidArgument),
        ({"scan.snapshot-id": "1", "scan.timestamp-millis": "1"}, InvalidArgument),
        ({"incremental-between": "1,2"}, UnsupportedOption),
        ({"read.stream.maxfilespertrigger": "many"}, InvalidArgument),
        ({"read.changelog": "perhaps"}, InvalidArgument),
    ]:
        with pytest.raises(error):
            StreamOptions.of(options)


def writer(target: Table, *, overwrite: bool = False, **options: str) -> Any:
    """The writer of one batch; Spark makes a new one to commit it."""
    schema = spark_schema(target.table_schema.fields)
    return PaimonDataSource({"path": target.path, "commit.user": "query", **options}).streamWriter(schema, overwrite=overwrite)


def batch_of(*ids: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "n": pa.array([0] * len(ids), pa.int32())})


def test_tasks_of_one_batch_and_of_the_next_have_sequence_numbers_of_their_own(table, create) -> None:
    target = create("id BIGINT, n INT", name="target", options={"bucket": "1", "num-sorted-run.compaction-trigger": "3"})
    for number in range(3):
        made = [writer(target).write(iter([batch_of(1, 2)])), writer(target).write(iter([]))]
        writer(target).commit(made, number)
        writer(target).commit(made, number)
    assert target.scan().to_arrow()["id"].to_pylist() == [1, 2]
    snapshots = list(FileStore.open(target.path).snapshots.since(0))
    assert [snapshot.commit_identifier for snapshot in snapshots if snapshot.commit_kind.value == "APPEND"] == [0, 1, 2]
    assert snapshots[-1].commit_kind.value == "COMPACT", "the commit hook compacts what is due"
    assert target.files().num_rows == 1


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {"bucket": "1", "deletion-vectors.enabled": "true"}], ids=["dynamic", "vectors"])
def test_tables_of_every_kind_take_repeated_batches_and_deletes(create, options) -> None:
    target = create("id BIGINT, n INT", name="target", options=options)
    schema = spark_schema(target.table_schema.fields).add("_row_kind", "string")

    def sink() -> Any:
        return PaimonDataSource({"path": target.path, "commit.user": "query"}).streamWriter(schema, overwrite=False)

    for number, batch in enumerate([rows(("+I", 1, 1), ("+I", 2, 2)), rows(("-D", 1, 1), ("+U", 2, 3))]):
        for _ in range(2):
            sink().commit([sink().write(iter(batch.to_batches()))], number)
    assert target.scan().to_arrow().to_pylist() == [{"id": 2, "n": 3}]
    batches_of_rows = [s for s in FileStore.open(target.path).snapshots.since(0) if s.commit_kind.value != "COMPACT"]
    assert [snapshot.commit_identifier for snapshot in batches_of_rows] == [0, 1]


def test_a_batch_whose_snapshot_may_have_expired_is_refused(create) -> None:
    target = create("id BIGINT, n INT", name="target", primary_keys=())
    writer(target).commit([writer(target).write(iter([batch_of(1)]))], 0)
    for _ in range(2):
        target.write(pa.Table.from_batches([batch_of(9)]))
    target.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(CommitReplayed, match="batch 0 of 'query'"):
        writer(target).commit([writer(target).write(iter([batch_of(1)]))], 0)
    assert sorted(target.scan().to_arrow()["id"].to_pylist()) == [1, 9, 9]


def test_a_batch_that_failed_leaves_no_file_and_one_that_is_committed_keeps_its_files(create) -> None:
    target = create("id BIGINT, n INT", name="target")
    made = [writer(target).write(iter([batch_of(1)]))]
    writer(target).abort([*made, None], 0)
    assert list(Path(target.path).glob("bucket-*/*")) == []
    made = [writer(target).write(iter([batch_of(2)]))]
    writer(target).commit(made, 0)
    writer(target).abort(made, 0)
    assert target.scan().to_arrow()["id"].to_pylist() == [2]


def test_an_empty_batch_commits_nothing_unless_it_replaces_the_table(create) -> None:
    target = create("id BIGINT, n INT", name="target")
    target.write(pa.table([pa.array([1], pa.int64()), pa.array([0], pa.int32())], names=["id", "n"]))
    writer(target).commit([writer(target).write(iter([]))], 0)
    assert target.snapshots().num_rows == 1
    writer(target, overwrite=True).commit([writer(target, overwrite=True).write(iter([]))], 1)
    assert (target.snapshots().num_rows, target.scan().count()) == (2, 0)


def test_a_query_without_a_name_is_refused_outside_of_spark(create) -> None:
    target = create("id BIGINT, n INT", name="target")
    schema = spark_schema(target.table_schema.fields)
    unnamed = PaimonDataSource({"path": target.path}).streamWriter(schema, overwrite=False)
    made = unnamed.write(iter([batch_of(1)]))
    with pytest.raises(InvalidArgument, match=r"commit\.user"):
        unnamed.commit([made], 0)
    with pytest.raises(InvalidArgument, match="letters"):
        writer(target, **{"commit.user": "a/b"})
