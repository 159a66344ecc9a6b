"""Procedures by Paimon's names and arguments; this process runs them, and no session takes part."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from paimon_base.errors import InvalidArgument
from pyspark_paimon import Catalog, Table, TableExists
from pyspark_paimon.plugins.sql.procedures import OF_CATALOGS, PROCEDURES, UNSUPPORTED
from pyspark_paimon.plugins.sql.run import sql
from tests.catalogs.server import CatalogServer
from tests.plugins.sql.test_effects import InProcess, Session, done

PAIMONS = [
    "alter_function",
    "alter_view_dialect",
    "clear_consumers",
    "compact",
    "compact_chain_table",
    "compact_database",
    "compact_manifest",
    "copy",
    "create_branch",
    "create_function",
    "create_global_index",
    "create_tag",
    "create_tag_from_timestamp",
    "delete_branch",
    "delete_tag",
    "drop_function",
    "drop_global_index",
    "expire_partitions",
    "expire_snapshots",
    "expire_tags",
    "fast_forward",
    "mark_partition_done",
    "materialize_deletion_vectors",
    "merge_branch",
    "migrate_database",
    "migrate_table",
    "purge_files",
    "reassign_row_id",
    "remove_orphan_files",
    "remove_unexisting_files",
    "rename_branch",
    "rename_tag",
    "repair",
    "repair_earliest_snapshot",
    "replace_tag",
    "rescale",
    "reset_consumer",
    "rewrite_file_index",
    "rollback",
    "rollback_to_timestamp",
    "rollback_to_watermark",
    "trigger_tag_automatic_creation",
]
"""The names of Paimon's procedures on Spark."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse that no test changes."""
    path = tmp_path_factory.mktemp("procedures") / "warehouse"
    made = InProcess(path)
    made.create_database("db")
    made.create_database("other")
    for name in ("db.t", "db.u", "other.t"):
        table = made.create_table(
            name, "id BIGINT, day STRING", primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "1"}
        )
        table.write([{"id": 1, "day": "2024-01-31"}])
        table.write([{"id": 2, "day": "2026-01-31"}])
    return path


@pytest.fixture
def catalog(warehouse: Path, tmp_path: Path) -> InProcess:
    """A copy for the test alone."""
    return InProcess(shutil.copytree(warehouse, tmp_path / "warehouse"))


@pytest.mark.parametrize("name", PAIMONS)
def test_each_of_paimons_procedures_is_there_or_refused_with_the_way(name: str, warehouse: Path) -> None:
    assert (name in PROCEDURES) + (name in UNSUPPORTED) + (name in OF_CATALOGS) == 1
    if name in UNSUPPORTED:
        with pytest.raises(InvalidArgument, match=f"procedure '{name}' is not supported: "):
            done(InProcess(warehouse), f"CALL sys.{name}(table => 'db.t')")


@pytest.mark.parametrize("form", ["'one'", "tag => 'one'", "snapshot => 1", "version => '1'"])
def test_rollback_takes_a_version_a_snapshot_or_a_tag(form: str, catalog: InProcess) -> None:
    catalog.table("db.t").create_tag("one", 1)
    done(catalog, f"CALL sys.rollback('db.t', {form})")
    assert catalog.table("db.t").count() == 1


@pytest.mark.parametrize("form", ["", ", tag => 'one', snapshot => 1"])
def test_rollback_takes_one_of_them(form: str, catalog: InProcess) -> None:
    with pytest.raises(InvalidArgument, match="exactly one of version, snapshot and tag"):
        done(catalog, f"CALL sys.rollback(table => 'db.t'{form})")


@pytest.mark.parametrize("names", [("consumerId", "nextSnapshotId"), ("consumer_id", "next_snapshot_id")])
def test_arguments_have_both_spellings(names: tuple[str, str], catalog: InProcess) -> None:
    done(catalog, f"CALL sys.reset_consumer(table => 'db.t', {names[0]} => 'a', {names[1]} => 1)")
    done(catalog, "CALL sys.reset_consumer('db.t', 'b', 1)")
    assert sorted(catalog.table("db.t").consumers()["consumer_id"].to_pylist()) == ["a", "b"]
    done(catalog, "CALL sys.clear_consumers(table => 'db.t', includingConsumers => '.*', excludingConsumers => 'b')")
    assert catalog.table("db.t").consumers()["consumer_id"].to_pylist() == ["b"]


def test_several_branches_and_tags_are_deleted(catalog: InProcess) -> None:
    table = catalog.table("db.t")
    for name in ("a", "b", "c"):
        table.create_tag(name)
        table.create_branch(f"of-{name}", name)
    done(catalog, "CALL sys.delete_branch(table => 'db.t', branch => 'of-a, of-b')")
    done(catalog, "CALL sys.delete_tag(table => 'db.t', tag => 'a,b')")
    done(catalog, "CALL sys.rename_branch(table => 'db.t', from_branch => 'of-c', to_branch => 'rest')")
    assert (table.branches()["branch_name"].to_pylist(), table.tags()["tag_name"].to_pylist()) == (["rest"], ["c"])


def test_partitions_expire_by_arguments(catalog: InProcess) -> None:
    call = "CALL sys.expire_partitions(table => 'db.t', expiration_time => '1 d', timestamp_formatter => 'yyyy-MM-dd', max_expires => 1)"
    done(catalog, call)
    assert catalog.table("db.t").scan().to_arrow()["day"].to_pylist() == ["2026-01-31"]
    with pytest.raises(InvalidArgument, match="no argument 'older'"):
        done(catalog, "CALL sys.expire_partitions(table => 'db.t', older => '1 d')")


def test_tags_by_time_and_their_expiry(catalog: InProcess) -> None:
    millis = int(catalog.table("db.t").snapshots()["commit_time"][0].as_py().timestamp() * 1000)
    done(catalog, f"CALL sys.create_tag_from_timestamp(table => 'db.t', tag => 'first', timestamp => {millis}, time_retained => '2 d')")
    assert catalog.table("db.t").tags()["snapshot_id"].to_pylist() == [1]
    done(catalog, "CALL sys.expire_tags(table => 'db.t', older_than => '2024-01-01 00:00:00')")
    assert catalog.table("db.t").tags().num_rows == 1
    done(catalog, "CALL sys.expire_tags(table => 'db.t', older_than => '2100-01-01 00:00:00')")
    assert catalog.table("db.t").tags().num_rows == 0


def test_success_files_due_tags_and_manifests(catalog: InProcess) -> None:
    table = catalog.table("db.t")
    done(catalog, "CALL sys.mark_partition_done(table => 'db.t', partitions => 'day=2024-01-31;day=2026-01-31')")
    assert len(list(Path(table.path).rglob("_SUCCESS"))) == 2
    with pytest.raises(InvalidArgument, match="needs an argument 'partitions'"):
        done(catalog, "CALL sys.mark_partition_done(table => 'db.t')")
    table.alter_options({"tag.automatic-creation": "batch"})
    done(catalog, "CALL sys.trigger_tag_automatic_creation('db.t')")
    assert table.tags().num_rows == 1
    before = table.snapshots().num_rows
    done(catalog, "CALL sys.compact_manifest(table => 'db.t')")
    assert table.snapshots().num_rows == before + 1


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("", ["db.t", "db.u", "other.t"]),
        ("including_databases => 'db|other', including_tables => '.*[.]t'", ["db.t", "other.t"]),
        ("including_databases => 'o.*'", ["other.t"]),
        ("excluding_tables => 'db[.].*'", ["other.t"]),
    ],
)
def test_databases_are_compacted(arguments: str, names: list[str], catalog: InProcess) -> None:
    answer: pa.Table = done(catalog, f"CALL sys.compact_database({arguments})")
    assert answer["table"].to_pylist() == names
    assert answer["error"].null_count == len(names)
    newest = {name: catalog.table(name).history(1)["operation"][0].as_py() for name in ("db.t", "db.u", "other.t")}
    assert [name for name, operation in newest.items() if operation == "compact"] == names


def test_a_table_that_cannot_be_compacted_stops_no_other(catalog: InProcess) -> None:
    path = Path(catalog.table("db.t").path)
    for file in (path / "manifest").glob("manifest-*"):
        file.write_bytes(b"")
    answer: dict[str, Any] = done(catalog, "CALL sys.compact_database(including_databases => 'db')").to_pydict()
    assert answer["table"] == ["db.t", "db.u"]
    assert answer["files_after"][1] == 2
    assert "manifest" in answer["error"][0]


def test_orphans_of_a_database_are_removed(catalog: InProcess) -> None:
    for name in ("db.t", "db.u", "other.t"):
        (Path(catalog.table(name).path) / "manifest" / "manifest-lost").write_bytes(b"x")
    call = "CALL sys.remove_orphan_files(table => 'db.*', older_than => '2100-01-01 00:00:00', dry_run => {}, parallelism => 4, mode => 'local')"
    assert done(catalog, call.format("true")).num_rows == 2
    assert done(catalog, call.format("false")).num_rows == 2
    assert not (Path(catalog.table("db.t").path) / "manifest" / "manifest-lost").exists()
    assert (Path(catalog.table("other.t").path) / "manifest" / "manifest-lost").exists()


def test_a_database_needs_a_catalog() -> None:
    with pytest.raises(InvalidArgument, match="needs a catalog"):
        sql(Session(), "CALL sys.compact_database()")


@pytest.mark.parametrize("arguments", ["table => 'db.t', bucket_num => 3", "'db.t', 3"])
def test_a_table_rescales(arguments: str, catalog: InProcess) -> None:
    done(catalog, f"CALL sys.rescale({arguments})")
    assert (catalog.table("db.t").options["bucket"], catalog.table("db.t").count()) == ("3", 2)


def test_indexes_of_some_partitions_are_rewritten(catalog: InProcess) -> None:
    table = catalog.table("db.t").alter_options({"file-index.bitmap.columns": "id"})
    done(catalog, "CALL sys.rewrite_file_index(table => 'db.t', where => \"day = '2026-01-31'\")")
    assert table.file_indexes()["partition"].to_pylist() == ["day=2026-01-31"]
    done(catalog, "CALL sys.rewrite_file_index('db.t')")
    assert table.file_indexes().num_rows == 2
    with pytest.raises(InvalidArgument, match="by partitions or by a filter"):
        done(catalog, "CALL sys.rewrite_file_index(table => 'db.t', where => 'TRUE', partitions => 'day=2026-01-31')")
    with pytest.raises(InvalidArgument, match="must use partition columns only"):
        done(catalog, "CALL sys.rewrite_file_index(table => 'db.t', where => 'id = 1')")


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        ("source_table => 'db.t', target_table => 'other.copy'", 2),
        ("'db.t', 'other.copy', \"day = '2026-01-31'\"", 1),
    ],
)
def test_a_table_is_copied(arguments: str, rows: int, catalog: InProcess) -> None:
    answer = done(catalog, f"CALL sys.copy({arguments})").to_pylist()[0]
    assert (answer["files"], answer["rows"], answer["snapshot_id"]) == (rows, rows, 1)
    assert catalog.table("other.copy").count() == rows
    assert catalog.table("other.copy").primary_keys == ("id", "day")
    with pytest.raises(TableExists, match="nothing was copied"):
        done(catalog, f"CALL sys.copy({arguments})")


def test_a_table_is_copied_to_a_path(catalog: InProcess, tmp_path: Path) -> None:
    done(catalog, f"CALL sys.copy('db.t', '{tmp_path}/copy')")
    assert Table.open(tmp_path / "copy").count() == 2
    with pytest.raises(InvalidArgument, match="needs an argument 'target_table'"):
        done(catalog, "CALL sys.copy('db.t')")


def test_files_are_purged(catalog: InProcess) -> None:
    table = catalog.table("db.t")
    table.create_tag("v1")
    done(catalog, "CALL sys.purge_files(table => 'db.t', dry_run => true)")
    assert (table.count(), table.tags().num_rows) == (2, 1)
    assert done(catalog, "CALL sys.purge_files(table => 'db.t')")["result"].to_pylist() == [True]
    assert (table.count(), table.tags().num_rows, table.snapshots().num_rows) == (0, 0, 1)


def test_missing_files_are_removed(catalog: InProcess) -> None:
    table = catalog.table("db.t")
    lost = [str(file) for file in Path(table.path).glob("day=2024-01-31/bucket-0/*.parquet")]
    Path(lost[0]).unlink()
    assert done(catalog, "CALL sys.remove_unexisting_files(table => 'db.t', dry_run => true)")["fileName"].to_pylist() == lost
    assert table.snapshots().num_rows == 2
    assert done(catalog, "CALL sys.remove_unexisting_files('db.t')")["fileName"].to_pylist() == lost
    assert table.scan().to_arrow()["id"].to_pylist() == [2]


def test_the_earliest_snapshot_is_repaired(catalog: InProcess) -> None:
    table = catalog.table("db.t")
    table.write([{"id": 3, "day": "2026-01-31"}])
    Path(table.path, "snapshot", "snapshot-2").unlink()
    with pytest.raises(InvalidArgument, match="needs an argument 'snapshot_id'"):
        done(catalog, "CALL sys.repair_earliest_snapshot('db.t')")
    answer = done(catalog, "CALL sys.repair_earliest_snapshot(table => 'db.t', snapshot_id => 3)").to_pylist()[0]
    assert (answer["snapshot_id"], answer["snapshots"]) == (3, 1)
    assert table.snapshots()["snapshot_id"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("arguments", "left"), [("options => 'snapshot.expire.limit=1'", 4), ("max_deletes => 2", 3), ("retain_max => 2", 2)]
)
def test_snapshots_expire_by_arguments_and_options(catalog: InProcess, arguments: str, left: int) -> None:
    table = catalog.table("db.t")
    for at in range(3):
        table.write([{"id": at, "day": "2026-01-31"}])
    others = (
        "retain_max => 1, retain_min => 1, older_than => '2100-01-01 00:00:00', " if "retain_max" not in arguments else "retain_min => 1, "
    )
    done(catalog, f"CALL sys.expire_snapshots(table => 'db.t', {others}{arguments})")
    assert table.snapshots().num_rows == left


def test_queries_of_a_view_by_engine(tmp_path: Path) -> None:
    with CatalogServer(tmp_path / "served") as server:
        catalog = Catalog.create(server.options())
        catalog.create_database("db")
        catalog.create_view("db.v", "SELECT 1 AS id", "id INT", dialects={})
        call = "CALL sys.alter_view_dialect({})"
        done(catalog, call.format("`view` => 'db.v', `action` => 'add', `query` => 'SELECT 2 AS id'"))
        done(catalog, call.format("'db.v', 'add', 'flink', 'SELECT 3 AS id'"))
        assert catalog.view("db.v").dialects == {"spark": "SELECT 2 AS id", "flink": "SELECT 3 AS id"}
        done(catalog, call.format("'db.v', 'update', 'flink', 'SELECT 4 AS id'"))
        done(catalog, call.format("'db.v', 'drop'"))
        assert catalog.view("db.v").dialects == {"flink": "SELECT 4 AS id"}
        for wrong in (
            "'db.v', 'add', 'flink', 'SELECT 5'",
            "'db.v', 'drop'",
            "'db.v', 'update', 'spark', 'SELECT 5'",
            "'db.v', 'make'",
            "'db.v', 'add'",
        ):
            with pytest.raises(InvalidArgument):
                done(catalog, call.format(wrong))
