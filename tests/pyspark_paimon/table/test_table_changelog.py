"""Reading changes: deltas, changelog files and differences of states, against Paimon's own and against a dict."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_paimon import InvalidArgument, SnapshotExpired, SnapshotNotFound, Table, UnknownColumn
from tests.build import events
from tests.golden_rows import GOLDEN, expected_rows, golden_rows

KINDS = ("+I", "-U", "+U", "-D")


def changes(scan: Any) -> list[tuple]:
    """(kind, id, n) of every change, as they came."""
    table = scan.to_arrow()
    return list(zip(*(table[name].to_pylist() for name in ("_row_kind", "id", "n")), strict=True))


def filled(create, **options: str) -> Table:
    """Three snapshots of level-0 files with every kind of row."""
    table = create(options={"write-only": "true", **options})
    table.write(events(("+I", 1, 10), ("+I", 2, 20), ("+I", 3, 30)))
    table.write(events(("+U", 1, 11), ("-D", 2, 20), ("-U", 3, 30), ("+U", 3, 31), ("+I", 4, 40)))
    table.write(events(("-D", 4, 40), ("+I", 5, 50), ("+U", 1, 12), ("+I", 2, 21)))
    return table


@pytest.mark.parametrize("name", ["pk_changelog", "pk_changelog_lookup"])
def test_changelog_files_of_the_engine_read_as_it_reads_them(name: str, tmp_path: Path) -> None:
    table = Table.open(GOLDEN / name / "table")
    schema = table.table_schema
    found = table.changelog(0).to_arrow()
    lines = [json.loads(line) for line in (GOLDEN / name / "expected-changelog.jsonl").read_text("utf-8").splitlines()]
    assert found.num_rows == len(lines) > 150
    for kind in KINDS:
        expected = tmp_path / kind
        own = [{name: line[name] for name in schema.names} for line in lines if line["_kind"] == kind]
        expected.write_text("\n".join(map(json.dumps, own)), "utf-8")
        part = found.filter(pc.field("_row_kind") == kind).select(schema.names)
        assert golden_rows(part, schema) == expected_rows(expected, schema)


def test_a_delta_is_what_appends_wrote_with_its_kinds(create) -> None:
    table = filled(create)
    assert sorted(changes(table.scan(incremental=(1, 2)))) == [("+I", 4, 40), ("+U", 1, 11), ("+U", 3, 31), ("-D", 2, 20)]
    assert len(changes(table.scan(incremental=(0, 3)))) == 11
    assert changes(table.scan(incremental=(3, 3))) == []


def test_compactions_and_overwrites_are_in_no_delta(create) -> None:
    table = filled(create)
    table.compact(full=True)
    table.write(events(("+I", 9, 90)).drop_columns("_row_kind"), mode="overwrite")
    assert changes(table.scan(incremental=(3, 5))) == []
    assert sorted(changes(table.changelog(3))) == [("+I", 9, 90), ("-D", 1, 12), ("-D", 2, 21), ("-D", 3, 31), ("-D", 5, 50)]


def test_a_difference_compares_the_states_and_not_the_way(create) -> None:
    table = filled(create)
    expected = [("-U", 1, 10), ("+U", 1, 12), ("-U", 2, 20), ("+U", 2, 21), ("-U", 3, 30), ("+U", 3, 31), ("+I", 5, 50)]
    assert changes(table.changelog(1, 3)) == expected
    table.compact(full=True)
    assert changes(table.scan(incremental=(1, 4), incremental_mode="diff")) == expected
    assert changes(table.changelog(3, 4)) == []
    assert changes(table.changelog(0, 1)) == [("+I", 1, 10), ("+I", 2, 20), ("+I", 3, 30)]


def test_sections_without_a_change_are_not_read(create) -> None:
    table = create(options={"bucket": "1", "target-file-size": "4 kb", "compaction.small-file-ratio": "0.1"})
    table.write(pa.table({"id": range(2000), "city": [f"city-{at}" for at in range(2000)], "n": pa.array(range(2000), pa.int32())}))
    start = table.compact(full=True).snapshot_id
    table.write(pa.table({"id": [5], "city": ["new"], "n": pa.array([-1], pa.int32())}), options={"write-only": "true"})
    plan = table.changelog(start).plan()
    assert table.files().num_rows == 3
    assert [(len(split.before), len(split.files)) for split in plan.splits] == [(1, 2)]
    assert changes(table.changelog(start)) == [("-U", 5, 5), ("+U", 5, -1)]


def test_each_change_is_judged_alone_by_a_filter(create) -> None:
    table = filled(create)
    assert changes(table.changelog(1, 3, "n > 20")) == [("+U", 2, 21), ("-U", 3, 30), ("+U", 3, 31), ("+I", 5, 50)]
    assert changes(table.changelog(1, 3, "id = 3")) == [("-U", 3, 30), ("+U", 3, 31)]
    assert changes(table.scan("n < 12", incremental=(0, 3), incremental_mode="delta")) == [("+I", 1, 10), ("+U", 1, 11)]
    assert table.changelog(1, 3, "n > 20").count() == 4


def test_columns_limit_count_and_explain(create) -> None:
    table = filled(create)
    scan = table.changelog(0, columns=["n"])
    assert scan.schema.names == ["n", "_row_kind"]
    assert table.scan(columns=["_row_kind", "id"], incremental=(0, 1)).schema.names == ["_row_kind", "id"]
    assert table.scan(limit=2, incremental=(0, 3)).to_arrow().num_rows == 2
    assert (scan.count(), table.scan(incremental=(0, 3)).count()) == (4, 11)
    first = table.scan(incremental=(0, 3), order_by="n DESC", limit=3, columns=["n"]).to_arrow()
    assert (first["n"].to_pylist(), first["_row_kind"].to_pylist()) == ([50, 40, 40], ["+I", *sorted(first["_row_kind"].to_pylist()[1:])])
    assert "(diff)" in repr(scan)
    assert scan.explain().stages
    with pytest.raises(UnknownColumn):
        table.changelog(0, columns=["nothing"])


def test_what_happened_before_there_was_a_changelog_is_told_by_the_states(create) -> None:
    table = create()
    table.write(events(("+I", 1, 10), ("+I", 2, 20)))
    table.alter_options({"changelog-producer": "input"})
    table.write(events(("+U", 1, 11)))
    assert changes(table.changelog(0)) == [("+I", 1, 11), ("+I", 2, 20)]
    assert changes(table.changelog(1)) == [("+U", 1, 11)]
    assert changes(table.scan(incremental=(0, 2))) == [("+U", 1, 11)]


def test_an_append_table_tells_what_was_appended(create) -> None:
    table = create("id BIGINT, n INT", primary_keys=())
    for n in range(3):
        table.write(pa.table({"id": pa.array([n], pa.int64()), "n": pa.array([n], pa.int32())}))
    table.compact(full=True)
    assert changes(table.changelog(1)) == [("+I", 1, 1), ("+I", 2, 2)]
    with pytest.raises(Exception, match="no primary key"):
        table.scan(incremental=(1, 2), incremental_mode="diff").to_arrow()


def test_tags_name_states_that_may_have_expired(create) -> None:
    from manifest.store import FileStore

    table = filled(create)
    manager = FileStore.open(table.path).snapshots
    manager.create_tag("first", manager.get(1))
    manager.create_tag("third", manager.get(3))
    expected = changes(table.changelog(1, 3))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert changes(table.scan(incremental=("first", "third"))) == expected
    assert changes(table.changelog("first")) == expected
    with pytest.raises(SnapshotExpired):
        table.scan(incremental=("first", "third"), incremental_mode="delta").to_arrow()
    with pytest.raises(SnapshotNotFound):
        table.changelog("fourth")


def test_ranges_that_are_none_are_refused(create) -> None:
    table = filled(create)
    table.expire_snapshots(retain_min=2, retain_max=2)
    assert len(changes(table.scan(incremental=(1, 3)))) == 8
    with pytest.raises(SnapshotExpired):
        table.scan(incremental=(0, 3)).to_arrow()
    with pytest.raises(SnapshotExpired):
        table.changelog(1, 3).to_arrow()
    with pytest.raises(InvalidArgument, match="forward"):
        table.changelog(3, 2)
    with pytest.raises(InvalidArgument, match="snapshot ids, names of tags"):
        table.changelog(2.5)
    with pytest.raises(SnapshotNotFound):
        table.changelog(2, 9)
    with pytest.raises(InvalidArgument, match="one of delta"):
        table.scan(incremental=(2, 3), incremental_mode="full")
    with pytest.raises(InvalidArgument, match="no other snapshot"):
        table.scan(incremental=(2, 3), snapshot=3)
    with pytest.raises(InvalidArgument, match="can only be used with"):
        table.scan(incremental_mode="diff")


def test_an_empty_table_has_no_changes(create) -> None:
    assert changes(create().changelog(0)) == []


WRITES = st.lists(
    st.one_of(
        st.lists(st.tuples(st.sampled_from(["+I", "+U", "-D"]), st.integers(0, 7), st.integers(0, 3)), min_size=1, max_size=6),
        st.just("compact"),
        st.just("full"),
    ),
    min_size=2,
    max_size=5,
)


def applied(state: dict[int, int], found: list[tuple]) -> dict[int, int]:
    """The state after a changelog, which must say of each row what was true before it."""
    after = dict(state)
    for kind, key, value in found:
        if kind in {"-U", "-D"}:
            assert after.pop(key) == value
        else:
            assert (kind == "+I") == (key not in after) or kind == "+U"
            after[key] = value
    return after


@given(writes=WRITES)
@settings(max_examples=8, deadline=None)
def test_changes_lead_from_any_state_to_any_later_one(tmp_path_factory, writes: list) -> None:
    table = Table.create(tmp_path_factory.mktemp("p") / "t", "id BIGINT, city STRING, n INT", primary_keys=["id"], options={"bucket": "2"})
    states: dict[int, dict[int, int]] = {0: {}}
    model: dict[int, int] = {}
    for write in writes:
        if isinstance(write, str):
            made = table.compact(full=write == "full").snapshot_id
        else:
            for kind, key, value in write:
                model = {k: v for k, v in model.items() if k != key} if kind == "-D" else {**model, key: value}
            made = table.write(events(*write), options={"write-only": "true"}).snapshot_id
        if made is not None:
            states[made] = dict(model)
    for start, before in states.items():
        for end in [later for later in states if later >= start]:
            assert applied(before, changes(table.changelog(start, end))) == states[end]
    shutil.rmtree(table.path)


ENGINES = {
    "deduplicate": {},
    "ordered": {"sequence.field": "n"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "partial-update": {"merge-engine": "partial-update"},
    "first-row": {"merge-engine": "first-row"},
}


@pytest.mark.parametrize(
    ("producer", "engine"),
    [
        *itertools.product(
            ["lookup", "full-compaction", "lookup with deletion vectors"], [name for name in ENGINES if name != "first-row"]
        ),
        ("lookup", "first-row"),
    ],
)
@given(data=st.data())
@settings(max_examples=2, deadline=None)
def test_a_changelog_leads_from_state_to_state(tmp_path_factory, producer: str, engine: str, data: st.DataObject) -> None:
    """Whatever the engine makes of the rows: what its changelog says is what a reader sees change."""
    options = {"bucket": "1", "changelog-producer": producer.partition(" ")[0], "num-sorted-run.compaction-trigger": "3", **ENGINES[engine]}
    if producer.endswith("vectors"):
        options["deletion-vectors.enabled"] = "true"
    path = tmp_path_factory.mktemp("p") / "t"
    table = Table.create(path, "id BIGINT, city STRING, n INT", primary_keys=["id"], options=options)
    kinds = ["+I", "+U", "-D"] if engine in {"deduplicate", "ordered"} else ["+I"]
    last, state = 0, {}
    for _ in range(data.draw(st.integers(2, 4))):
        some = st.tuples(st.sampled_from(kinds), st.integers(0, 5), st.none() | st.integers(0, 3))
        done = table.write(events(*data.draw(st.lists(some, min_size=1, max_size=5))))
        now = max(snapshot for snapshot in (done.snapshot_id, done.compact_snapshot_id) if snapshot is not None)
        seen = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
        state = applied(state, changes(table.changelog(last, now)))
        assert state == seen
        last = now
        if data.draw(st.booleans()):
            last = table.compact(full=True).snapshot_id or last
            assert {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()} == seen
    shutil.rmtree(path)


@pytest.mark.parametrize("producer", ["none", "input", "lookup", "full-compaction"])
@pytest.mark.parametrize("change", ["equal rows", "other rows", "deletes", "compaction", "overwrite", "nothing"])
def test_two_tags_are_a_difference_whatever_the_changelog_producer(create, producer, change) -> None:
    table = create("id BIGINT, n INT", options={"changelog-producer": producer})
    table.write([{"id": key, "n": 0} for key in range(10)])
    table.create_tag("before")
    before = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    match change:
        case "equal rows":
            table.write([{"id": key, "n": 0} for key in range(10)])
        case "other rows":
            table.write([{"id": key, "n": key % 3} for key in range(12)])
        case "deletes":
            table.delete("id > 7")
        case "compaction":
            table.compact(full=True)
        case "overwrite":
            table.write([{"id": key, "n": 0} for key in range(5)], mode="overwrite")
    table.create_tag("after")
    after = {row["id"]: row["n"] for row in table.scan().to_arrow().to_pylist()}
    expected = [
        (key, before[key], kind) for key in before for kind in ("-D" if key not in after else "-U",) if before[key] != after.get(key)
    ]
    expected += [(key, after[key], "+U" if key in before else "+I") for key in after if before.get(key) != after[key]]
    for table_ in (table, Table.open(table.path)):
        changes = table_.changelog("before", "after").to_arrow().to_pylist()
        assert sorted((row["id"], row["n"], row["_row_kind"]) for row in changes) == sorted(expected)
