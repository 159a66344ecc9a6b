"""Following a table without Spark: batches end where limits say, mean the same rows for ever, and add up to the table."""

from __future__ import annotations

import shutil
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsm.incremental.stream_scan import UNLIMITED, Limits, Position, StartMode, StreamScan
from manifest.store import FileStore
from pyspark_paimon import InvalidArgument, SnapshotExpired, SnapshotNotFound, Table, UnsupportedTable
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.request.requests import EVERY_LEVEL, ScanRequest
from pyspark_paimon.stream.table_stream import stream_rows
from tests.build import events
from tests.examples import some

COLUMNS = ("id", "n", "_row_kind")
BEGINNING = Position(0, whole=True)


def inserts(*ids: int, n: int = 0) -> pa.Table:
    return events(*[("+I", key, n) for key in ids])


def stream_scan(table: Table, **options: Any) -> StreamScan:
    return StreamScan(FileStore.open(table.path), **options)


def read(table: Table, start: Position, end: Position, where: str | None = None, columns: tuple = COLUMNS, **options: Any) -> list[tuple]:
    """(id, n, kind) of the batch, split after split."""
    follow = stream_scan(table, **options)
    tree = bind_filter(where, table.table_schema.column_types)
    request = ScanRequest.of(tree, columns=columns, snapshot=None)
    store = follow.store.with_options(EVERY_LEVEL) if table.table_schema.is_primary_key_table else follow.store
    found: list[tuple] = []
    for split in follow.plan(start, end, tree).splits:
        for batch in stream_rows(store, request, split.to_json()):
            found += list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))
    return found


def batches(table: Table, start: Position, limits: Limits = UNLIMITED, **options: Any) -> list[list[tuple]]:
    """The batches from ``start`` to the table's end; none has no rows."""
    found = []
    while (end := stream_scan(table, **options).advance(start, limits)) != start:
        found.append(read(table, start, end, **options))
        start = end
    return [batch for batch in found if batch]


def test_a_new_stream_gives_the_state_and_then_what_appends_wrote(create) -> None:
    table = create(options={"write-only": "true"})
    table.write(inserts(1, 2))
    table.write(events(("+U", 1, 7), ("-D", 2, 0)))
    start = stream_scan(table).start(StartMode.LATEST_FULL)
    assert start == Position(2, whole=True)
    after = stream_scan(table).advance(start)
    assert (after, read(table, start, after)) == (Position(3), [(1, 7, "+I")])
    assert stream_scan(table).advance(after) == after
    table.write(events(("-D", 1, 7), ("+I", 3, 3)))
    end = stream_scan(table).advance(after)
    assert sorted(read(table, after, end)) == [(1, 7, "-D"), (3, 3, "+I")]
    assert read(table, after, end, columns=("id",)) == [(3,)], "without kinds only rows that came to be"
    assert read(table, after, end, where="n > 3") == [(1, 7, "-D")]


def test_a_stream_of_an_empty_table_begins_with_its_first_state(create) -> None:
    table = create()
    start = stream_scan(table).start(StartMode.LATEST_FULL)
    assert start == BEGINNING
    assert stream_scan(table).advance(start) == start
    table.write(inserts(1, 2).drop_columns("_row_kind"), mode="overwrite")
    assert batches(table, start) == [[(1, 0, "+I"), (2, 0, "+I")]]


def test_streams_start_where_they_are_told(create) -> None:
    table = create(options={"write-only": "true"})
    for at in range(4):
        table.write(inserts(at))
    times = [snapshot.time_millis for snapshot in FileStore.open(table.path).snapshots.since(0)]
    follow = stream_scan(table)
    assert follow.start(StartMode.LATEST) == Position(5)
    assert follow.start(StartMode.FROM_SNAPSHOT, snapshot_id=2) == Position(2)
    assert follow.start(StartMode.FROM_SNAPSHOT, snapshot_id=5) == Position(5)
    assert follow.start(StartMode.FROM_SNAPSHOT_FULL, snapshot_id=2) == Position(2, whole=True)
    assert follow.start(StartMode.FROM_TIMESTAMP, timestamp_millis=times[0]) == Position(1)
    assert follow.start(StartMode.FROM_TIMESTAMP, timestamp_millis=times[3] + 1) == Position(5)
    assert batches(table, Position(2)) == [[(1, 0, "+I"), (2, 0, "+I"), (3, 0, "+I")]]
    assert batches(table, Position(2, whole=True)) == [[(0, 0, "+I"), (1, 0, "+I")], [(2, 0, "+I"), (3, 0, "+I")]]
    table.compact(full=True)
    table.write(inserts(9))
    assert stream_scan(table).start(StartMode.COMPACTED_FULL) == Position(5, whole=True)
    with pytest.raises(SnapshotNotFound, match="start from"):
        stream_scan(table).start(StartMode.FROM_SNAPSHOT, snapshot_id=9)
    with pytest.raises(SnapshotNotFound):
        stream_scan(table).start(StartMode.FROM_SNAPSHOT_FULL, snapshot_id=9)


def test_limits_cut_between_files_and_a_larger_one_goes_alone(create) -> None:
    table = create(options={"write-only": "true", "bucket": "2"})
    table.write(inserts(*range(10)))
    table.write(inserts(*range(3), n=1))
    sizes = [[len(batch) for batch in batches(table, Position(1), limits)] for limits in (Limits(files=1), Limits(rows=8), Limits(bytes=1))]
    assert sizes[0] == sizes[2]
    assert (len(sizes[0]), sum(sizes[0])) == (4, 13)
    assert all(count <= 8 for count in sizes[1])
    assert sum(sizes[1]) == 13
    assert [len(batch) for batch in batches(table, Position(1), Limits(files=3, rows=100))] == [13 - sizes[0][-1], sizes[0][-1]]
    whole = batches(table, Position(2, whole=True), Limits(files=1))
    assert (len(whole), sorted(row[0] for batch in whole for row in batch)) == (2, list(range(10)))
    assert stream_scan(table).advance(Position(1), last=1) == Position(2)


def test_the_state_of_a_table_without_keys_is_cut_between_files(create) -> None:
    table = create("id BIGINT, n INT", primary_keys=(), options={"deletion-vectors.enabled": "true"})
    for at in range(4):
        table.write(pa.table({"id": pa.array([at, at + 10], pa.int64()), "n": pa.array([0, 0], pa.int32())}))
    table.delete("id = 11")
    start = stream_scan(table).start(StartMode.LATEST_FULL)
    found = batches(table, start, Limits(rows=3))
    assert [len(batch) for batch in found] == [2, 1, 2, 2]
    assert sorted(row[0] for batch in found for row in batch) == [0, 1, 2, 3, 10, 12, 13]
    middle = stream_scan(table).advance(start, Limits(files=2))
    assert middle == Position(5, 2, whole=True)
    assert read(table, start, middle, where="id = 10") == [(10, 0, "+I")]


def test_a_stream_that_lost_its_place_says_what_would_have_kept_it(create) -> None:
    table = create(options={"write-only": "true"})
    for at in range(5):
        table.write(inserts(at))
    table.expire_snapshots(retain_min=2, retain_max=2)
    for broken in (lambda: stream_scan(table).advance(Position(2)), lambda: stream_scan(table).plan(Position(2), Position(4))):
        with pytest.raises(SnapshotExpired, match=r"restarted.*'consumer-id'.*'snapshot.time-retained'"):
            broken()
    with pytest.raises(SnapshotExpired, match="since timestamp"):
        stream_scan(table).start(StartMode.FROM_TIMESTAMP, timestamp_millis=1)
    with pytest.raises(SnapshotExpired):
        stream_scan(table).start(StartMode.FROM_SNAPSHOT, snapshot_id=1)
    with pytest.raises(SnapshotNotFound, match="a rollback"):
        stream_scan(table).advance(Position(9))


def test_overwrites_are_passed_by_unless_they_are_asked_for(create) -> None:
    table = create(options={"write-only": "true"})
    table.write(inserts(1, 2))
    table.write(inserts(2, 3, n=5).drop_columns("_row_kind"), mode="overwrite")
    table.write(inserts(4))
    assert batches(table, Position(1)) == [[(1, 0, "+I"), (2, 0, "+I"), (4, 0, "+I")]]
    told = batches(table, Position(1), overwrites=True)
    assert told == [[(1, 0, "+I"), (2, 0, "+I")], [(1, 0, "-D"), (2, 0, "-U"), (2, 5, "+U"), (3, 5, "+I")], [(4, 0, "+I")]]
    with pytest.raises(InvalidArgument, match="enabled within a batch"):
        stream_scan(table, overwrites=True).plan(Position(1), Position(4))


def test_tables_whose_appends_do_not_tell_their_rows_are_refused(create) -> None:
    for engine in ("first-row", "partial-update"):
        table = create(name=engine, options={"merge-engine": engine})
        with pytest.raises(UnsupportedTable, match="changelog-producer"):
            stream_scan(table)
    for settings_, keys in (({"changelog-producer": "lookup"}, ("id",)), ({}, ())):
        table = create(name=f"t{len(keys)}", options=settings_, primary_keys=keys)
        with pytest.raises(InvalidArgument, match="streaming-read-overwrite"):
            stream_scan(table, overwrites=True)


def test_a_changelog_told_since_it_was_asked_for(create) -> None:
    table = create(options={"write-only": "true"})
    table.write(inserts(1))
    table.alter_options({"changelog-producer": "input"})
    table.write(events(("+U", 1, 1)))
    assert batches(table, Position(1)) == [[(1, 0, "+I"), (1, 1, "+U")]], "what was committed before is told as it was appended"


SOME_ROWS = st.lists(st.tuples(st.sampled_from(["+I", "+U", "-D"]), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=6)
STEP = st.one_of(
    SOME_ROWS,
    SOME_ROWS,
    st.sampled_from(["compact", "full", "overwrite", "expire"]),
    st.tuples(st.just("read"), st.sampled_from([UNLIMITED, Limits(files=1), Limits(rows=2)])),
)
TABLES = {
    "deltas": {"write-only": "true"},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "lookup with deletion vectors": {"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
}


def applied(state: dict[int, int], changes: list[tuple], *, exact: bool) -> dict[int, int]:
    """The state after changes that a sink with the same key would have applied; ``exact`` ones say what was true before."""
    after = dict(state)
    for key, value, kind in changes:
        if exact:
            assert after.get(key) == (None if kind in {"+I", "+U"} else value)
        if kind in {"-D", "-U"}:
            after.pop(key, None)
        else:
            after[key] = value
    return after


def act(table: Table, step: Any) -> None:
    if step == "expire":
        table.expire_snapshots(retain_min=1, retain_max=1)
    elif step == "overwrite":
        table.write(inserts(1, 2, n=9).drop_columns("_row_kind"), mode="overwrite")
    elif isinstance(step, str):
        table.compact(full=step == "full")
    else:
        table.write(events(*step))


@pytest.mark.parametrize("kind", list(TABLES))
@given(steps=st.lists(STEP, min_size=2, max_size=7))
@settings(max_examples=some(3), deadline=None)
@pytest.mark.sampled(2)
def test_batches_add_up_to_the_table_wherever_the_stream_stops(tmp_path_factory, kind: str, steps: list) -> None:
    """Every batch is planned from its two positions alone, by a new stream_scan; a consumer keeps the snapshots that it needs."""
    path = tmp_path_factory.mktemp("p") / "t"
    options = {"bucket": "2", "num-sorted-run.compaction-trigger": "3", **TABLES[kind]}
    table = Table.create(path, "id BIGINT, city STRING, n INT", primary_keys=["id"], options=options)
    tells = "lookup" not in kind and kind != "full-compaction"
    snapshots = FileStore.open(table.path).snapshots
    position, state = stream_scan(table, overwrites=tells).start(StartMode.LATEST_FULL), {}
    snapshots.record_consumer("stream", 1)

    def follow(limits: Limits) -> None:
        nonlocal position, state
        end = stream_scan(table, overwrites=tells).advance(position, limits)
        state = applied(state, read(table, position, end, overwrites=tells), exact=not tells)
        position = end
        snapshots.record_consumer("stream", max(position.oldest_needed - tells, 1))

    for step in steps:
        if isinstance(step, tuple):
            follow(step[1])
        elif tells or step != "overwrite":
            act(table, step)
    table.compact(full=True)
    while stream_scan(table, overwrites=tells).advance(position) != position:
        follow(Limits(files=1))
    assert state == {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    shutil.rmtree(path)
