"""Purged rows: no byte of the table's directory has their values, or the result says what still holds them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from manifest.entry.index_manifest import IndexManifestEntry
from manifest.io.errors import HistoryBusy, UnsupportedTable
from paimon_base.thresholds import Thresholds, use_thresholds
from pyspark_paimon import Holder, InvalidArgument, Table
from pyspark_paimon.operations import purge
from tests.build import ids
from tests.damaged_tables import Surgeon
from tests.tiny import tiny_options

PLAIN = {"file.compression": "none", "manifest.compression": "null", "parquet.enable.dictionary": "false"}
"""Values stand in the files as they are, so that bytes can be searched."""
INDEXES = {"file-index.bitmap.columns": "v", "file-index.bloom-filter.columns": "id"}
KEPT = {"changelog.num-retained.min": "100", "changelog.num-retained.max": "200"}
LAYOUTS: dict[str, tuple[list[str], dict[str, str]]] = {
    "plain": (["id"], {}),
    "three buckets": (["id"], {"bucket": "3"}),
    "deletion vectors": (["id"], {"deletion-vectors.enabled": "true"}),
    "lookup": (["id"], {"changelog-producer": "lookup"}),
    "input": (["id"], {"changelog-producer": "input", **KEPT}),
    "full compactions": (["id"], {"changelog-producer": "full-compaction"}),
    "late deletes": (["id"], {"sequence.field": "n", "delete.time-retained": "9 d"}),
    "partial-update": (["id"], {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}),
    "dynamic": (["id"], {"bucket": "-1"}),
    "postponed": (["id"], {"bucket": "-2"}),
    "avro": (["id"], {"file.format": "avro"}),
    "append": ([], {"bucket": "-1"}),
    "append, deletion vectors": ([], {"bucket": "-1", "deletion-vectors.enabled": "true"}),
    "append, kept changelogs": ([], {"bucket": "-1", **KEPT}),
    "Iceberg metadata": (["id"], {"metadata.iceberg.storage": "table-location"}),
    "append, Iceberg metadata": ([], {"bucket": "-1", "metadata.iceberg.storage": "table-location"}),
    "indexes in manifests": (["id"], {"file-index.in-manifest-threshold": "1 mb"}),
}


@pytest.fixture
def secret() -> str:
    return secrets.token_hex(8)


def files_with(table: Table, text: str) -> list[str]:
    """Files and folders of the table whose name or content has ``text``."""
    found = [path for path in Path(table.path).rglob("*") if text in path.name or (path.is_file() and text.encode() in path.read_bytes())]
    return sorted(str(path.relative_to(table.path)) for path in found)


def made(path: Path, layout: str = "plain", **options: str) -> Table:
    keys, more = LAYOUTS[layout]
    return Table.create(
        path, "id STRING, v STRING, n BIGINT", primary_keys=keys, options={"bucket": "1", **PLAIN, **INDEXES, **more, **options}
    )


@pytest.mark.local_files
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", ["tiny", "usual"])
@pytest.mark.sampled(2)
def test_no_file_has_a_purged_value(tmp_path: Path, secret: str, layout: str, sizes: str) -> None:
    """Old versions, deleted rows, changelogs, indexes, statistics and manifests had it."""
    with use_thresholds(Thresholds.tiny() if sizes == "tiny" else Thresholds()):
        table = made(
            tmp_path / "t",
            layout,
            **(tiny_options({"file-index.in-manifest-threshold": "500 b", **LAYOUTS[layout][1]}) if sizes == "tiny" else {}),
        )
        others = [f"{at:03}" for at in range(30)]
        table.write([{"id": name, "v": f"v{name}", "n": 1} for name in [*others, secret]])
        table.write([{"id": name, "v": secret if name == "007" else "w", "n": 2} for name in others[:9]])
        if table.table_schema.primary_keys:
            table.write([{"id": secret, "v": "w", "n": 3}])
        table.analyze()
        table.compact(full=True)
        table.write([{"id": secret, "v": "again", "n": 4}])
        assert len(files_with(table, secret)) > 3, "the search must find what is there"
        before = table.purge(f"id = '{secret}' OR v = '{secret}'", dry_run=True)
        assert before.rows >= 1
        assert before.holders
        assert not before.gone
        done = table.purge(f"id = '{secret}' OR v = '{secret}'")
        assert files_with(table, secret) == []
        assert done.gone
        assert done.holders == ()
        assert set(ids(table)) == {*others} - ({"007"} if table.table_schema.primary_keys else set())
        assert table.fsck(depth="deep").problems == ()
        assert table.snapshots()["snapshot_id"].to_pylist() == [done.snapshot_id]
        assert (Path(table.path) / "snapshot" / "LATEST").read_text() == str(done.snapshot_id)


@pytest.mark.local_files
@pytest.mark.parametrize("layout", ["plain", "deletion vectors", "append, deletion vectors", "late deletes"])
def test_rows_that_were_deleted_long_ago_are_purged(tmp_path: Path, secret: str, layout: str) -> None:
    table = made(tmp_path / "t", layout)
    table.write([{"id": secret, "v": "a", "n": 1}, {"id": "b", "v": "b", "n": 1}])
    table.compact(full=True)
    table.delete(f"id = '{secret}'")
    done = table.purge(f"id = '{secret}'")
    assert (done.rows, done.gone, files_with(table, secret), ids(table)) == (0, True, [], ["b"])


@pytest.mark.local_files
def test_the_directory_of_a_purged_partition_goes(tmp_path: Path, secret: str) -> None:
    table = Table.create(tmp_path / "t", "id INT, who STRING", partition_keys=["who"], options=PLAIN)
    table.write([{"id": 1, "who": secret}, {"id": 2, "who": "b"}])
    assert table.purge(f"who = '{secret}'").gone
    assert files_with(table, secret) == []


@pytest.mark.local_files
def test_a_purge_by_keys(tmp_path: Path, secret: str) -> None:
    table = made(tmp_path / "t")
    table.write([{"id": secret, "v": "a", "n": 1}, {"id": "b", "v": "b", "n": 1}])
    assert table.purge(keys=[secret]).rows == 1
    assert files_with(table, secret) == []


def test_what_holds_rows_is_named_until_it_is_deleted(create: Callable[..., Table]) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": "x", "n": 1}, {"id": "b", "n": 1}])
    table.create_tag("v1")
    table.create_branch("side", "v1")
    table.reset_consumer("nightly", 1)
    done = table.purge("id = 'x'")
    assert not done.gone
    assert {(holder.kind, holder.name) for holder in done.holders} >= {
        ("tag", "v1"),
        ("branch", "side"),
        ("consumer", "nightly"),
        ("snapshot", "1"),
    }
    assert "tag 'v1' (1 file)" in str(done)
    assert table.scan().count() == 1
    table.reset_consumer("nightly", None)
    done = table.purge("id = 'x'")
    assert done.holders == (Holder(kind="tag", name="v1", files=1), Holder(kind="branch", name="side", files=1))
    table.delete_branch("side")
    table.delete_tag("v1")
    assert table.purge("id = 'x'").gone
    assert table.scan().to_arrow()["id"].to_pylist() == ["b"]


def test_a_tag_without_such_rows_stays_and_holds_nothing(create: Callable[..., Table]) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": "b", "n": 1}])
    table.create_tag("before")
    table.write([{"id": "x", "n": 1}])
    assert table.purge("id = 'x'").gone
    assert table.scan(tag="before").to_arrow()["id"].to_pylist() == ["b"]


def test_a_branch_without_the_column_counts_as_a_holder(create: Callable[..., Table]) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": "b", "n": 1}])
    table.create_tag("v1")
    table.create_branch("side", "v1")
    table.delete_tag("v1")
    table.add_column("who", "STRING")
    table.write([{"id": "x", "n": 1, "who": "me"}])
    done = table.purge("who = 'me'")
    assert [(holder.kind, holder.name) for holder in done.holders] == [("branch", "side")]


def test_a_branch_is_purged_by_itself(create: Callable[..., Table]) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": "x", "n": 1}])
    table.create_tag("v1")
    table.create_branch("side", "v1")
    side = Table.open(table.path, branch="side")
    side.write([{"id": "x", "n": 2}, {"id": "y", "n": 2}])
    assert {(holder.kind, holder.name) for holder in side.purge("id = 'x'").holders} == {("branch", "main"), ("tag", "v1")}
    assert (table.scan().to_arrow()["n"].to_pylist(), side.scan().to_arrow()["id"].to_pylist()) == ([1], ["y"])
    side.delete_tag("v1")
    table.delete_tag("v1")
    assert table.purge("id = 'x'").gone
    assert side.purge("id = 'x'").gone
    assert table.fsck(depth="deep").problems == ()


@pytest.mark.local_files
def test_files_of_killed_writes_are_named(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.write([{"id": "x", "v": "a", "n": 1}])
    (tmp_path / "t" / "bucket-0" / "data-left-0.parquet").write_bytes(b"1")
    (holder,) = table.purge("id = 'x'").holders
    assert (holder.kind, holder.files) == ("unreferenced", 1)


@pytest.mark.local_files
def test_copies_of_a_repair_are_named(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.write([{"id": "x", "v": "a", "n": 1}])
    (tmp_path / "t" / "snapshot" / "LATEST").write_text("77")
    assert table.fsck(repair=True).copies
    (holder,) = table.purge("id = 'x'").holders
    assert (holder.kind, holder.name, holder.files) == ("copies", "_repair", 1)


def test_rows_written_meanwhile_are_purged_too(create: Callable[..., Table], monkeypatch: pytest.MonkeyPatch) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": "x", "n": 1}])
    run, late = purge.ForgetHistory.run, iter([1])

    def beside(operation: purge.ForgetHistory, opened: Any) -> Any:
        done = run(operation, opened)
        if next(late, None):
            Table.open(table.path).write([{"id": "x", "n": 2}])
        return done

    monkeypatch.setattr(purge.ForgetHistory, "run", beside)
    done = table.purge("id = 'x'")
    assert (done.rows, done.gone, table.scan().count()) == (2, True, 0)


@pytest.mark.slow
@pytest.mark.local_files
def test_writers_beside_a_purge_lose_no_row(tmp_path: Path, secret: str) -> None:
    table = made(tmp_path / "t")
    table.write([{"id": secret, "v": "a", "n": 1}])
    rng = random.Random(7)

    def write(number: int) -> None:
        for at in range(5):
            Table.open(table.path).write([{"id": f"{number}-{at}", "v": str(rng.random()), "n": at}])

    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write, number) for number in range(3)]
        done = table.purge(f"id = '{secret}'")
        for each in writes:
            each.result()
    assert not [holder for holder in done.holders if holder.kind in {"tag", "branch", "changelog"}]
    assert ids(table) == sorted(f"{number}-{at}" for number in range(3) for at in range(5))
    assert table.purge(f"id = '{secret}'").gone
    assert files_with(table, secret) == []


def test_wrong_arguments_change_nothing(create: Callable[..., Table], tmp_path: Path) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": "x", "n": 1}])
    with pytest.raises(InvalidArgument, match="purge needs a filter"):
        table.purge()
    with pytest.raises(InvalidArgument, match="a filter or keys, not both"):
        table.purge("id = 'x'", keys=["x"])
    with pytest.raises(InvalidArgument, match="no column"):
        table.purge("1 = 1")
    assert table.snapshots().num_rows == 1
    tracked = Table.create(tmp_path / "tracked", "id STRING", options={"row-tracking.enabled": "true"})
    tracked.write([{"id": "x"}])
    with pytest.raises(UnsupportedTable, match=r"row-tracking\.enabled"):
        tracked.purge("id = 'x'")
    assert tracked.snapshots().num_rows == 1


def test_an_empty_table_has_nothing_to_purge(create: Callable[..., Table]) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    done = table.purge("id = 'x'")
    assert (done.rows, done.gone, done.snapshot_id) == (0, True, None)
    assert table.snapshots().num_rows == 0
    table.write(pa.table({"id": ["y"], "n": [1]}))
    assert table.purge("id = 'x'").rows == 0


REFUSING: dict[str, tuple[list[str], dict[str, str]]] = {
    "rows have ids": ([], {"bucket": "-1", "row-tracking.enabled": "true"}),
    "columns in files of their own": ([], {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
    "deletes are dropped": (["id"], {"ignore-delete": "true"}),
    "deletes are merged": (["id"], {"merge-engine": "aggregation"}),
    "postponed deletes are dropped": (["id"], {"bucket": "-2", "ignore-delete": "true"}),
    "an index of another engine": (["id"], {"pk-full-text.index.columns": "v"}),
    "an index of values of another engine": (["id"], {"pk-vector.index.columns": "v"}),
    "Iceberg metadata of Avro files": (["id"], {"metadata.iceberg.storage": "table-location", "file.format": "avro"}),
    "Iceberg metadata beside retained deletes": (
        ["id"], {"metadata.iceberg.storage": "table-location", "sequence.field": "n", "delete.time-retained": "9 d"},
    ),
}  # fmt: skip
"""Options that forbid a step of a purge; some of them only another engine sets."""


@pytest.mark.local_files
@pytest.mark.parametrize("name", REFUSING)
@pytest.mark.parametrize("call", ["purge", "purge_files"])
def test_what_can_be_refused_is_refused_before_the_first_change(tmp_path: Path, name: str, call: str) -> None:
    keys, options = REFUSING[name]
    table = Table.create(tmp_path / "t", "id STRING, v STRING, n BIGINT", primary_keys=keys, options={"bucket": options.get("bucket", "1")})
    table.write([{"id": "x", "v": "a", "n": 1}, {"id": "b", "v": "b", "n": 1}])
    table.create_tag("v1")
    table.create_branch("side", "v1")
    table.reset_consumer("nightly", 1)
    surgeon = Surgeon(table.path)
    surgeon.schema(0, options={**surgeon.store.schema.options, **options})
    table = Table.open(table.path)
    before = {path: path.read_bytes() for path in Path(table.path).rglob("*") if path.is_file()}
    with pytest.raises(UnsupportedTable):
        table.purge("id = 'x'") if call == "purge" else table.purge_files()
    assert {path: path.read_bytes() for path in Path(table.path).rglob("*") if path.is_file()} == before


@pytest.mark.local_files
@pytest.mark.parametrize("kind", ["BTREE", "bitmap", "lumina-vector-ann", "a kind of next year"])
@pytest.mark.parametrize("layout", ["plain", "append", "deletion vectors", "dynamic"])
@pytest.mark.sampled(4)
def test_no_index_of_another_engine_holds_a_purged_value(tmp_path: Path, secret: str, layout: str, kind: str) -> None:
    table = made(tmp_path / "t", layout)
    table.write([{"id": "b", "v": "b", "n": 1}, {"id": secret, "v": "a", "n": 1}])
    surgeon = Surgeon(table.path)
    (tmp_path / "t" / "index").mkdir(exist_ok=True)
    (tmp_path / "t" / "index" / "foreign-0").write_text(secret)
    (bucket,) = {(entry.partition, entry.bucket) for entry in surgeon.live()}
    foreign = IndexManifestEntry(partition=bucket[0], bucket=bucket[1], index_type=kind, file_name="foreign-0", file_size=16, row_count=1)
    replaced = surgeon.snapshot.index_manifest
    surgeon.reindex([*surgeon.index_entries(), foreign])
    if replaced is not None:
        surgeon.name(replaced).unlink()
    table = Table.open(table.path)
    table.create_tag("v1")
    table.delete(f"id = '{secret}'")
    done = table.purge(f"id = '{secret}'")
    assert not done.gone
    assert [holder.kind for holder in done.holders] == ["tag"]
    table.delete_tag("v1")
    done = table.purge(f"id = '{secret}'")
    assert done.gone
    assert files_with(table, secret) == []
    assert ids(table) == ["b"]
    assert table.fsck(depth="deep").problems == ()


@pytest.mark.local_files
def test_a_tag_that_has_only_an_index_of_another_engine_is_named(tmp_path: Path) -> None:
    """The index may have values that the tag's data files no longer have."""
    table = made(tmp_path / "t")
    table.write([{"id": "b", "v": "b", "n": 1}])
    surgeon = Surgeon(table.path)
    (tmp_path / "t" / "index").mkdir()
    (tmp_path / "t" / "index" / "foreign-0").write_text("x")
    surgeon.reindex(
        [
            IndexManifestEntry(
                partition=surgeon.live()[0].partition, bucket=0, index_type="BTREE", file_name="foreign-0", file_size=1, row_count=1
            )
        ]
    )
    table = Table.open(table.path)
    table.create_tag("v1")
    assert table.purge("id = 'x'").holders == (Holder(kind="tag", name="v1", files=1),)


def test_a_purge_that_meets_a_busy_history_says_what_it_has_done(create: Callable[..., Table], monkeypatch: pytest.MonkeyPatch) -> None:
    table = create("id STRING, n BIGINT", primary_keys=["id"], options={"bucket": "1"})
    table.write([{"id": "x", "n": 1}, {"id": "b", "n": 1}])

    def busy(operation: purge.ForgetHistory, opened: Any) -> Any:
        raise HistoryBusy("t: the expiry of snapshots did nothing, because another process expires snapshots; try again")

    run = purge.ForgetHistory.run
    monkeypatch.setattr(purge.ForgetHistory, "run", busy)
    with pytest.raises(
        HistoryBusy, match=r"the purge has deleted 1 row, but older snapshots .*expiry of snapshots did nothing.*Call purge again"
    ):
        table.purge("id = 'x'")
    assert table.scan().to_arrow()["id"].to_pylist() == ["b"]
    monkeypatch.setattr(purge.ForgetHistory, "run", run)
    assert table.purge("id = 'x'").gone
