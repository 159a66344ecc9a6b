"""What happened to a table, as each engine tells it of the other's: snapshots, changes, tags, branches, rollback, expiry, new indexes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lsm.arrow.row_kind import ROW_KIND
from pyspark_paimon import Table
from tests.golden_rows import ENGINES_VIEW, canonical_rows, golden_rows
from tests.interop.agreement import agree, agree_on_filter
from tests.interop.engine import Engine
from tests.interop.features import JAVA, OURS_READS, READS_OURS, feature
from tests.interop.made_rows import BASE
from tests.interop.peers import Peer
from tests.interop.players import FAR_FUTURE_MS, arrow_rows, made_by_java, made_by_us
from tests.interop.spec_parts import BUCKETS, UNAWARE
from tests.interop.specs import FULL, Spec, Write, commits

PRODUCERS = ("input", "lookup", "full-compaction")


def both_ways(name: str) -> Any:
    """Runs a test on a table that the engine made and on one that we made; each proves one cell."""
    marked = [("java", OURS_READS), ("ours", READS_OURS)]
    return pytest.mark.parametrize("maker", [pytest.param(maker, marks=feature(name, JAVA, way)) for maker, way in marked])


def made(engine: Engine, maker: str, spec: Spec, path: Path) -> Table:
    made_by_java(engine, spec, path) if maker == "java" else made_by_us(spec, path)
    return Table.open(path)


def keyed(*parts: Any, **options: str) -> Spec:
    settings = {**BUCKETS, **{key.replace("_", "-"): value for key, value in options.items()}}
    return Spec("history", "", "tags", BASE, commits(*parts, deletes=0.2), ("id",), options=settings)


def our_rows(table: Table, **how: Any) -> list[str]:
    return golden_rows(table.scan(**how, options=ENGINES_VIEW).to_arrow(), table.table_schema)


def changes_by_java(engine: Engine, table: Table, first: int, last: int, mode: str) -> list[str]:
    options = {"incremental-between": f"{first},{last}", "incremental-between-scan-mode": mode}
    rows = engine.dump(table.path, options=options, kinds=True)
    kinds = [row.pop("_kind") for row in rows]
    lines = [canonical_rows([row], table.table_schema)[0] for row in rows]
    return sorted(json.dumps([kind, line]) for kind, line in zip(kinds, lines, strict=True))


def changes_by_us(table: Table, first: int, last: int, mode: str) -> list[str]:
    found = table.scan(incremental=(first, last), incremental_mode=mode, options=ENGINES_VIEW).to_arrow()
    rows = [golden_rows(found.slice(at, 1).drop([ROW_KIND]), table.table_schema)[0] for at in range(len(found))]
    return sorted(json.dumps([kind, line]) for kind, line in zip(found[ROW_KIND].to_pylist(), rows, strict=True))


@both_ways("changelog-producer input")
def test_every_snapshot_of_a_table_has_the_same_rows_and_changes(engine: Engine, maker: str, tmp_path: Path) -> None:
    table = made(engine, maker, keyed(20, 20, FULL, 20, changelog_producer="input"), tmp_path / "t")
    snapshots = [snapshot["id"] for snapshot in engine.snapshots(table.path)]
    assert table.snapshots()["snapshot_id"].to_pylist() == snapshots
    for snapshot in snapshots:
        theirs = engine.dump(table.path, options={"scan.snapshot-id": str(snapshot)})
        assert our_rows(table, snapshot=snapshot) == canonical_rows(theirs, table.table_schema)
    for mode in ("delta", "changelog"):
        for first, last in ((0, snapshots[-1]), (1, 2)):
            assert changes_by_us(table, first, last, mode) == changes_by_java(engine, table, first, last, mode), mode
    new = [line for kind, line in map(json.loads, changes_by_us(table, 1, snapshots[-1], "diff")) if kind.startswith("+")]
    told = [line for _, line in map(json.loads, changes_by_java(engine, table, 1, snapshots[-1], "diff"))]
    assert sorted(new) == sorted(told)  # a batch read of the engine leaves out what is gone, and calls all rows inserted


@pytest.mark.parametrize("producer", PRODUCERS[1:])
@pytest.mark.parametrize("maker", ["java", "ours"])
def test_a_changelog_of_one_is_read_by_the_other(engine: Engine, maker: str, producer: str, tmp_path: Path, request: Any) -> None:
    request.applymarker(feature(f"changelog-producer {producer}", JAVA, OURS_READS if maker == "java" else READS_OURS))
    table = made(engine, maker, keyed(20, FULL, 20, FULL, 12, FULL, changelog_producer=producer), tmp_path / "t")
    last = engine.snapshots(table.path)[-1]["id"]
    changes = changes_by_us(table, 0, last, "changelog")
    assert changes == changes_by_java(engine, table, 0, last, "changelog")
    assert len(changes) > table.scan().count()
    assert engine.fsck(table.path) == []


@both_ways("tags")
def test_tags_of_one_are_read_moved_and_deleted_by_the_other(engine: Engine, maker: str, tmp_path: Path) -> None:
    table = made(engine, maker, keyed(20, 20), tmp_path / "t")
    before = our_rows(table)
    table.create_tag("mine") if maker == "ours" else engine.tag(table.path, "mine")
    table.write(arrow_rows([row_of(1), row_of(2)], table.table_schema))
    for rows in (
        our_rows(table, tag="mine"),
        canonical_rows(engine.dump(table.path, options={"scan.tag-name": "mine"}), table.table_schema),
    ):
        assert rows == before
    engine.expire(table.path, 1) if maker == "ours" else table.expire_snapshots(retain_min=1, retain_max=1, older_than=FAR_FUTURE_MS)
    assert our_rows(table, tag="mine") == before
    assert engine.fsck(table.path) == []
    if maker == "ours":
        assert engine.tag(table.path, "mine", do="delete") == []
    else:
        table.delete_tag("mine")
    assert table.tags().num_rows == 0
    assert engine.fsck(table.path) == []


def row_of(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"new-{number}"}


@both_ways("branches")
def test_a_branch_of_one_is_written_by_both_and_becomes_the_table(engine: Engine, maker: str, tmp_path: Path) -> None:
    table = made(engine, maker, keyed(20, 20), tmp_path / "t")
    if maker == "ours":
        table.create_tag("base")
        table.create_branch("trial", "base")
    else:
        engine.tag(table.path, "base")
        engine.branch(table.path, "trial", tag="base")
    main = our_rows(table)
    trial = Table.open(tmp_path / "t", branch="trial")
    trial.write(arrow_rows([row_of(1), row_of(1001)], table.table_schema))
    engine.write(table.path, [{**row_of(2), "_kind": "-D"}, row_of(1002)], branch="trial")
    theirs = canonical_rows(engine.dump(table.path, branch="trial"), table.table_schema)
    assert our_rows(trial) == theirs
    assert our_rows(table) == main == canonical_rows(engine.dump(table.path), table.table_schema)
    table.fast_forward("trial") if maker == "ours" else engine.branch(table.path, "trial", do="fast_forward")
    assert our_rows(table) == theirs == canonical_rows(engine.dump(table.path), table.table_schema)
    assert engine.fsck(table.path) == []


@both_ways("expired snapshots")
def test_one_expires_and_rolls_back_what_the_other_wrote(engine: Engine, maker: str, tmp_path: Path) -> None:
    table = made(engine, maker, keyed(20, 20, FULL, 20, 20), tmp_path / "t")
    rows = our_rows(table)
    newest = engine.snapshots(table.path)[-1]["id"]
    if maker == "ours":
        assert engine.expire(table.path, 2) > 0
    else:
        assert table.expire_snapshots(retain_min=2, retain_max=2, older_than=FAR_FUTURE_MS).snapshots > 0
    assert [snapshot["id"] for snapshot in engine.snapshots(table.path)] == [newest - 1, newest]
    assert engine.fsck(table.path) == []
    assert our_rows(table) == rows
    before = our_rows(table, snapshot=newest - 1)
    engine.rollback(table.path, snapshot=newest - 1) if maker == "ours" else table.rollback_to(newest - 1)
    assert agree(engine, tmp_path / "t", filters=1) == before


@feature("file indexes in sidecars", JAVA, READS_OURS)
@feature("file indexes in manifests", JAVA, READS_OURS)
@pytest.mark.parametrize("threshold", ["1 b", "1 mb"])
def test_indexes_that_we_give_to_files_of_the_engine_answer_it(engine: Engine, threshold: str, tmp_path: Path) -> None:
    spec = Spec("indexed", "", "append", BASE, commits(40, 40), options={**UNAWARE, "file-index.bitmap.columns": "city"})
    table = made(engine, "java", spec, tmp_path / "t")
    indexes = {"file-index.bitmap.columns": "name,flag", "file-index.bsi.columns": "qty", "file-index.range-bitmap.columns": "price,ts"}
    table.alter_options({**indexes, "file-index.bloom-filter.columns": "city", "file-index.in-manifest-threshold": threshold})
    assert table.rewrite_file_index().rewritten == 2
    wanted = {
        "name": {"bitmap"},
        "flag": {"bitmap"},
        "qty": {"bsi"},
        "price": {"range-bitmap"},
        "ts": {"range-bitmap"},
        "city": {"bloom-filter"},
    }
    for found in engine.indexes(table.path):
        assert found["embedded"] == (threshold == "1 mb")
        assert {column: {*kinds} for column, kinds in found["columns"].items()} == wanted
    agree(engine, tmp_path / "t", filters=6)


@feature("file indexes in manifests", JAVA, READS_OURS)
def test_the_engine_finds_all_rows_of_a_column_of_nulls_that_we_indexed(engine: Engine, tmp_path: Path) -> None:
    """By its own range-bitmap of such a column it finds the first and the last row only."""
    fields = {"id": "BIGINT NOT NULL", "s": "STRING"}
    options = {**UNAWARE, "file-index.range-bitmap.columns": "s"}
    spec = Spec(
        "nulls", "", "append", fields, lambda _, __: iter([Write([[{"id": number, "s": None} for number in range(9)]])]), options=options
    )
    form = {"op": "is_null", "col": "s"}
    ours, java = made(engine, "ours", spec, tmp_path / "ours"), made(engine, "java", spec, tmp_path / "java")
    assert len(engine.dump(ours.path, form)) == 9
    assert len(engine.dump(java.path, form)) == 2
    assert java.scan("s IS NULL").count() == 9
    agree_on_filter(engine, tmp_path / "ours", {"op": "is_not_null", "col": "s"})


@feature("branches", JAVA, READS_OURS)
@pytest.mark.parametrize("option", ["scan.fallback-branch", "scan.primary-branch"])
def test_the_engine_and_we_write_a_table_that_is_read_with_a_branch(engine: Engine, tmp_path: Path, option: str) -> None:
    path = tmp_path / "t"
    engine.create(
        path, {"id": "INT NOT NULL", "p": "STRING NOT NULL"}, primary_keys=["p", "id"], partition_keys=["p"], options={"bucket": "1"}
    )
    engine.write(path, [{"id": 1, "p": "x"}])
    table = Table.open(path)
    table.create_branch("b")
    branch = Table.open(path, branch="b")
    for row in ({"id": 2, "p": "x"}, {"id": 3, "p": "y"}):
        branch.write(arrow_rows([row], branch.table_schema))
    engine.alter(path, {"change": "set", "key": option, "value": "b"})
    table = Table.open(path)
    table.write(arrow_rows([{"id": 4, "p": "x"}, {"id": 5, "p": "z"}], table.table_schema))
    engine.write(path, [{"id": 6, "p": "z"}, {"_kind": "-D", "id": 1, "p": "x"}])
    ours = sorted((row["p"], row["id"]) for row in table.scan().to_arrow().to_pylist())
    theirs = sorted((row["p"], row["id"]) for row in engine.dump(path))
    assert ours == theirs
    assert ours == [*([("x", 4)] if option == "scan.fallback-branch" else [("x", 2)]), ("y", 3), ("z", 5), ("z", 6)]
    assert {(row["p"], row["id"]) for row in table.scan(options={option: ""}).to_arrow().to_pylist()} == {("x", 4), ("z", 5), ("z", 6)}
    assert engine.fsck(path) == []


@feature("file indexes in sidecars", JAVA, READS_OURS)
def test_the_engine_passes_over_the_row_blocks_of_our_bloom_filters(engine: Engine, pypaimon: Peer, tmp_path: Path) -> None:
    options = {"bucket": "1", "file-index.bloom-filter.columns": "s", "file-index.bloom-filter.s.block-rows": "500"}
    table = Table.create(tmp_path / "peers.db" / "t", "id BIGINT, s STRING", primary_keys=["id"], options=options)
    table.write(pa.table({"id": range(3000), "s": [f"text {number * 7919 % 3000}" for number in range(3000)]}))
    assert [found["columns"].keys() for found in engine.indexes(table.path)] == [{"s", "s#row-blocks"}]
    there, missing = ({"op": "=", "col": "s", "value": f"text {text}"} for text in ("7", "of none"))
    assert [file["index"] for file in engine.index_eval(table.path, there)] == ["REMAIN"]
    assert [file["index"] for file in engine.index_eval(table.path, missing)] == ["SKIP"]
    assert engine.dump(table.path, there) == [{"id": 2753, "s": "text 7"}]
    assert len(engine.dump(table.path)) == pypaimon.read(table.path).num_rows == 3000
    assert table.scan("s = 'text 7'").to_arrow()["id"].to_pylist() == [2753]
    assert engine.fsck(table.path) == []


@feature("file indexes in sidecars", JAVA, READS_OURS)
@pytest.mark.parametrize("keys", [["id"], []])
def test_the_engine_reads_and_writes_tables_with_ngram_filters(engine: Engine, tmp_path: Path, keys: list[str]) -> None:
    options = {
        "bucket": "1",
        "bucket-key": "id",
        "ngram-filter.columns": "s",
        "ngram-filter.s.block-rows": "500",
        "ngram-filter.s.size": "4",
    }
    table = Table.create(tmp_path / "peers.db" / "t", "id BIGINT, s STRING", primary_keys=keys, options=options)
    table.write(pa.table({"id": range(3000), "s": [f"text {number * 7919 % 3000}" for number in range(3000)]}))
    assert [found["columns"].keys() for found in engine.indexes(table.path)] == [{"s#ngrams"}]
    there = {"op": "=", "col": "s", "value": "text 7"}
    assert [file["index"] for file in engine.index_eval(table.path, there)] == ["REMAIN"]
    assert engine.dump(table.path, there) == [{"id": 2753, "s": "text 7"}]
    assert len(engine.dump(table.path)) == 3000
    engine.write(table.path, [{"id": 4000, "s": "text of Java"}])
    engine.compact(table.path, full=True)
    engine.alter(table.path, {"change": "set", "key": "target-file-size", "value": "64 mb"})
    table = Table.open(table.path)
    assert table.options["ngram-filter.columns"] == "s"
    assert table.scan("s LIKE '%of Java'").to_arrow()["id"].to_pylist() == [4000]
    assert table.rewrite_file_index().rewritten >= 1
    assert table.scan("s LIKE '%xt 7'").to_arrow()["id"].to_pylist() == [2753]
    assert engine.fsck(table.path) == []
