"""pypaimon and we with merge engines, schema evolution, tags, branches, expiry, overwrites and NaN, each way."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.store import FileStore
from pyspark_paimon import Table
from tests.build import ids
from tests.golden_rows import canonical, golden_rows
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, PYPAIMON, READS_OURS, RUST, feature
from tests.interop.peers import Peer, PeerError
from tests.interop.turn_players import Ours, Python, lines
from tests.interop.turn_tables import BY_NAME, Configuration, World

FIXTURES = {PYPAIMON: "pypaimon", RUST: "pypaimon_rust"}
NOT_YET = "options that pypaimon does not yet implement"
REFUSALS = {  # what pypaimon says to a table of ours; its native half reads them all
    "deletion vectors, 64 bit": "Invalid magic number",
    "partial-update, sequence groups": NOT_YET,
    "partial-update, ignored deletes": NOT_YET,
    "partial-update, removing deletes": NOT_YET,
    "aggregation, retracts": NOT_YET,
}
SLOW = (pytest.mark.interop, pytest.mark.long)
ENGINES = [
    "deletes by row kind",
    "deletion vectors, 64 bit",
    "sequence.field",
    "first-row",
    "partial-update",
    "partial-update, sequence groups",
    "partial-update, ignored deletes",
    "partial-update, removing deletes",
    "aggregation",
    "aggregation, retracts",
    "changelog-producer full-compaction",
    "append, deletion vectors",
]


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Peer:
    """The peer whose name is the parameter."""
    return request.getfixturevalue(FIXTURES[request.param])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a table may be made that peers find."""
    return tmp_path / "peers.db" / "t"


def refusal(name: str, peer: str) -> str | None:
    return REFUSALS.get(name) if peer == PYPAIMON else None


def each_engine(direction: str) -> list[Any]:
    made = []
    for name in ENGINES:
        for peer in (PYPAIMON, RUST):
            refused = refusal(name, peer) is not None and (direction == READS_OURS or REFUSALS[name] == NOT_YET)
            mark = feature(name, peer, direction, "refuses" if refused else "yes")
            made.append(pytest.param(BY_NAME[name], peer, id=f"{name}-{peer}", marks=[mark, *SLOW]))
    return made


def both(name: str, direction: str, *, outcome: str = "yes") -> Any:
    """A test of both peers."""
    marked = [pytest.param(peer, marks=feature(name, peer, direction, outcome)) for peer in (PYPAIMON, RUST)]
    return pytest.mark.parametrize("peer", marked, indirect=True)


def slow(test: Any) -> Any:
    """For the long runs only."""
    for mark in SLOW:
        test = mark(test)
    return test


def wanted(world: World) -> list[str]:
    return sorted(canonical(row) for row in world.rows())


@pytest.mark.parametrize(("configuration", "peer"), each_engine(READS_OURS), indirect=["peer"])
def test_the_peer_merges_our_files_as_we_do(configuration: Configuration, peer: Peer, path: Path) -> None:
    rng, world, ours = random.Random(configuration.name), World(configuration), Ours()
    ours.create(path, configuration)
    for step in range(6):
        rows = world.batch(rng, only_adds=False)
        ours.write(path, rows)
        world.write(rows)
        if step == 3:
            ours.compact(path, full=True)
        if step == 4 and "bucket-key" not in configuration.options and not configuration.keys:
            number = next(row["qty"] for row in world.rows() if row["qty"] is not None)
            ours.delete(path, "qty", number)
            world.delete(lambda row, number=number: row["qty"] == number)
    assert ours.read(path) == wanted(world)
    refused = refusal(configuration.name, peer.name)
    if refused is None:
        assert Python(peer).read(path) == wanted(world)
    else:
        with pytest.raises(PeerError, match=refused):
            peer.read(path)


@pytest.mark.parametrize(("configuration", "peer"), each_engine(OURS_READS), indirect=["peer"])
def test_we_merge_the_peers_files_as_it_does(configuration: Configuration, peer: Peer, path: Path) -> None:
    rng, world, player = random.Random(configuration.name), World(configuration), Python(peer)
    player.create(path, configuration)
    refused = refusal(configuration.name, peer.name)
    if refused == NOT_YET:
        with pytest.raises(PeerError, match=NOT_YET):
            player.write(path, world.batch(rng, only_adds=True))
        return
    for _ in range(4):
        rows = world.batch(rng, only_adds=configuration.kind_column is None)
        player.write(path, rows)
        world.write(rows)
    assert Ours().read_merged(path) == wanted(world)
    if configuration.hidden:
        assert Ours().read(path) == []
        Ours().compact(path, full=False)
    assert Ours().read(path) == wanted(world)
    Ours().compact(path, full=True)
    assert Ours().read(path) == wanted(world)
    if refused is None:
        assert player.read(path) == wanted(world)


def test_pypaimon_counts_no_deletes_in_its_files(pypaimon: Peer, path: Path) -> None:
    configuration = BY_NAME["deletes by row kind"]
    Ours().create(path, configuration)
    row = dict.fromkeys(configuration.columns) | {"id": 1}
    Python(pypaimon).write(path, [{**row, "op": "-D", "_kind": "-D"}])
    store = FileStore.open(path)
    assert [entry.file.delete_row_count for entry in store.live_entries(store.snapshots.latest()).entries()] == [0]
    assert Ours().read(path) == []


@feature("nanoseconds of timestamps", JAVA, READS_OURS)
@feature("nanoseconds of timestamps", JAVA, OURS_READS)
def test_java_and_we_keep_each_others_nanoseconds_when_we_merge(engine: Engine, path: Path) -> None:
    engine.create(path, {"id": "INT NOT NULL", "at": "TIMESTAMP(9)"}, primary_keys=["id"], options={"bucket": "1", "write-only": "true"})
    moments = ["1969-12-31T23:59:59.999999999", "2026-01-02T03:04:05.678901234"]
    table = Table.open(path)
    for number in range(2):
        table.write(pa.table({"id": pa.array([1], pa.int32()), "at": pa.array([moments[number]]).cast(pa.timestamp("ns"))}))
        engine.write(path, [{"id": 2, "at": moments[number]}])
    expected = [{"id": 1, "at": moments[1]}, {"id": 2, "at": moments[1]}]
    assert sorted(engine.dump(path), key=lambda row: row["id"]) == expected
    assert golden_rows(table.scan().to_arrow(), table.table_schema) == [canonical(row) for row in expected]


LISTAGG = "listagg of blank texts"
TEXTS = [(None, ""), ("", None), ("a", ""), ("", "a"), (" ", "a"), ("a", " "), ("", ""), (" ", " "), ("", " "), ("a", "b")]
OUR_LISTS = ["", "", "a", "a", "a", "a", "", " ", "", "a,b"]
JAVA_LISTS = ["", "", "a", "a", " ,a", "a, ", "", " , ", " ", "a,b"]
PEER_LISTS = [None, None, "a", "a", "a", "a", None, None, None, "a,b"]


def listed(path: Path) -> Table:
    """Each key has a first and a second text; Paimon leaves out empty ones in one release and blank ones in the next."""
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.s.aggregate-function": "listagg", "write-only": "true"}
    table = Table.create(path, "id BIGINT, s STRING", ["id"], options=options)
    for texts in zip(*TEXTS, strict=True):
        table.write(pa.table({"id": pa.array(range(len(TEXTS)), pa.int64()), "s": pa.array(texts, pa.string())}))
    assert table.scan(order_by="id").to_arrow()["s"].to_pylist() == OUR_LISTS
    return table


@feature(LISTAGG, JAVA, READS_OURS, "keeps blank texts")
def test_java_lists_blank_texts_too(engine: Engine, path: Path) -> None:
    listed(path)
    assert [row["s"] for row in sorted(engine.dump(path), key=lambda row: row["id"])] == JAVA_LISTS


@slow
@both(LISTAGG, READS_OURS, outcome="null where nothing is left")
def test_the_peer_lists_nothing_for_blank_texts_alone(peer: Peer, path: Path) -> None:
    listed(path)
    assert peer.read(path).sort_by("id")["s"].to_pylist() == PEER_LISTS


EVOLUTION = "schema evolution"


def evolved(alter: Any, write: Any) -> list[str]:
    """Add, rename, widen and drop, with rows written between; the rows to be read then."""
    write([{"id": 1, "a": 1, "b": "x"}])
    alter("add_column", "c", "BIGINT")
    write([{"id": 2, "a": 2, "b": "y", "c": 5}])
    alter("rename_column", "a", "z")
    alter("update_column_type", "z", "BIGINT")
    alter("drop_column", "b")
    write([{"id": 3, "z": 1 << 40, "c": None}])
    rows = [{"id": 1, "z": 1, "c": None}, {"id": 2, "z": 2, "c": 5}, {"id": 3, "z": 1 << 40, "c": None}]
    return sorted(canonical(row) for row in rows)


FIELDS = [{"name": "id", "type": "BIGINT NOT NULL"}, {"name": "a", "type": "INT"}, {"name": "b", "type": "STRING"}]


def arrow(rows: list[dict[str, Any]], path: Path) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=Table.open(path).schema)


@slow
@both(EVOLUTION, READS_OURS)
@pytest.mark.parametrize("keys", [("id",), ()], ids=["primary key", "append"])
def test_the_peer_reads_files_of_our_older_schemas(peer: Peer, keys: tuple[str, ...], path: Path) -> None:
    Table.create(path, "id BIGINT NOT NULL, a INT, b STRING", keys, options={"bucket": "1"} if keys else {"bucket": "-1"})

    def alter(verb: str, *arguments: str) -> None:
        table = Table.open(path)
        verbs = {"update_column_type": table.change_type}
        verbs.get(verb, getattr(table, verb, None))(*arguments)

    expected = evolved(alter, lambda rows: Table.open(path).write(arrow(rows, path)))
    assert lines(Table.open(path).scan().to_arrow()) == expected
    assert lines(peer.read(path)) == expected


@slow
@both(EVOLUTION, OURS_READS)
@pytest.mark.parametrize("keys", [["id"], []], ids=["primary key", "append"])
def test_we_read_files_of_the_peers_older_schemas(peer: Peer, keys: list[str], path: Path) -> None:
    peer.create(path, {"fields": FIELDS, "primaryKeys": keys, "options": {"bucket": "1"} if keys else {"bucket": "-1"}})
    expected = evolved(
        lambda *change: peer.ask("alter", path=str(path), changes=[list(change)]), lambda rows: peer.write(path, arrow(rows, path))
    )
    assert lines(Table.open(path).scan().to_arrow()) == expected
    Table.open(path).compact(full=True)
    assert lines(Table.open(path).scan().to_arrow()) == expected == lines(peer.read(path))


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "v": pa.array([value * 10 for value in values], pa.int32())})


def keyed(path: Path) -> Table:
    return Table.create(path, "id BIGINT, v INT", ["id"], options={"bucket": "2"})


@slow
@both("tags", READS_OURS)
def test_the_peer_reads_and_lists_our_tags(peer: Peer, path: Path) -> None:
    table = keyed(path)
    table.write(numbers(1, 2))
    table.create_tag("early")
    table.write(numbers(3))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert peer.ask("tags", path=str(path)) == ["early"]
    assert ids(peer.read(path, options={"scan.tag-name": "early"})) == [1, 2]
    assert ids(peer.read(path)) == [1, 2, 3]


@slow
@both("tags", OURS_READS)
def test_we_read_and_keep_the_peers_tags(peer: Peer, path: Path) -> None:
    table = keyed(path)
    peer.write(path, numbers(1, 2))
    peer.ask("create_tag", path=str(path), name="early")
    peer.write(path, numbers(3))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert ids(table.scan(tag="early").to_arrow()) == [1, 2]
    table.delete_tag("early")
    assert peer.ask("tags", path=str(path)) == []


@slow
@both("branches", READS_OURS)
def test_the_peer_reads_and_writes_our_branches(peer: Peer, path: Path) -> None:
    table = keyed(path)
    table.write(numbers(1))
    table.create_tag("start")
    table.create_branch("trial", from_tag="start")
    Table.open(path, branch="trial").write(numbers(2))
    assert "trial" in peer.ask("branches", path=str(path))
    assert ids(peer.read(path, branch="trial")) == [1, 2]
    peer.write(path, numbers(3), branch="trial")
    assert ids(Table.open(path, branch="trial").scan().to_arrow()) == [1, 2, 3]
    assert ids(peer.read(path)) == [1]


@slow
@both("branches", OURS_READS)
def test_we_read_write_and_compact_the_peers_branches(peer: Peer, path: Path) -> None:
    keyed(path)
    peer.write(path, numbers(1))
    peer.ask("create_tag", path=str(path), name="start")
    peer.ask("create_branch", path=str(path), name="trial", tag="start")
    peer.write(path, numbers(2), branch="trial")
    branch = Table.open(path, branch="trial")
    assert ids(branch.scan().to_arrow()) == [1, 2]
    branch.write(numbers(3))
    branch.compact(full=True)
    assert ids(peer.read(path, branch="trial")) == [1, 2, 3]
    assert ids(Table.open(path).scan().to_arrow()) == [1]


@slow
@both("expired snapshots", READS_OURS)
def test_the_peer_reads_and_writes_after_our_expiry(peer: Peer, path: Path) -> None:
    table = keyed(path)
    for number in range(4):
        table.write(numbers(number))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert [found["id"] for found in peer.ask("snapshots", path=str(path))] == table.snapshots()["snapshot_id"].to_pylist()
    assert ids(peer.read(path)) == [0, 1, 2, 3]
    peer.write(path, numbers(4))
    assert ids(table.scan().to_arrow()) == [0, 1, 2, 3, 4]


@slow
@both("overwrite", READS_OURS)
def test_the_peer_reads_what_we_replaced(peer: Peer, path: Path) -> None:
    table = keyed(path)
    table.write(numbers(1, 2))
    table.write(numbers(3), mode="overwrite")
    assert ids(peer.read(path)) == [3]


@slow
@both("overwrite", OURS_READS)
def test_we_read_what_the_peer_replaced(peer: Peer, path: Path) -> None:
    table = keyed(path)
    table.write(numbers(1, 2))
    peer.write(path, numbers(3), overwrite={})
    assert ids(table.scan().to_arrow()) == [3]
    peer.ask("truncate", path=str(path))
    assert table.scan().count() == 0


NAN = "filters on NaN"
LOSES = "loses rows of files with a NaN"


def with_nan(path: Path) -> Table:
    table = Table.create(path, "id BIGINT, x DOUBLE", options={"bucket": "-1"})
    table.write(pa.table({"id": [1, 2, 3], "x": [1.0, math.nan, 5.0]}))
    return table


@pytest.mark.parametrize(
    ("peer", "found"),
    [
        pytest.param(PYPAIMON, [], marks=feature(NAN, PYPAIMON, READS_OURS, LOSES), id=PYPAIMON),
        pytest.param(RUST, [2, 3], marks=feature(NAN, RUST, READS_OURS), id=RUST),
    ],
    indirect=["peer"],
)
@slow
def test_what_the_peer_finds_beside_a_nan(peer: Peer, found: list[int], path: Path) -> None:
    """A file's maximum is NaN, as Java writes it too; pypaimon takes it for a bound that 2 is not below."""
    table = with_nan(path)
    assert ids(table.scan("x > 2").to_arrow()) == [2, 3]
    assert ids(peer.read(path, filter={"op": ">", "col": "x", "value": 2.0})) == found


@feature(NAN, JAVA, READS_OURS)
def test_java_finds_what_is_beside_a_nan(engine: Engine, path: Path) -> None:
    with_nan(path)
    assert sorted(row["id"] for row in engine.dump(path, {"op": ">", "col": "x", "value": 2.0})) == [2, 3]
