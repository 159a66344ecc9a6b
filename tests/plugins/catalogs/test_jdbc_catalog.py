"""The JDBC catalog: Java's rows, crashes between directory and row, races, and what it refuses."""

from __future__ import annotations

import builtins
import pickle
import shutil
import sqlite3
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import (
    Catalog,
    CatalogUnavailable,
    DatabaseExists,
    DatabaseNotFound,
    InvalidArgument,
    JdbcCatalog,
    TableExists,
    TableNotFound,
    UnsupportedOption,
)

pytest.importorskip("sqlalchemy")

COLUMNS = {
    "paimon_tables": [
        ("catalog_key", "VARCHAR(255)", 1, 1),
        ("database_name", "VARCHAR(255)", 1, 2),
        ("table_name", "VARCHAR(255)", 1, 3),
    ],
    "paimon_database_properties": [
        ("catalog_key", "VARCHAR(255)", 1, 1),
        ("database_name", "VARCHAR(255)", 1, 2),
        ("property_key", "VARCHAR(255)", 0, 3),
        ("property_value", "VARCHAR(1000)", 0, 0),
    ],
    "paimon_table_properties": [
        ("catalog_key", "VARCHAR(255)", 1, 1),
        ("database_name", "VARCHAR(255)", 1, 2),
        ("table_name", "VARCHAR(255)", 1, 3),
        ("property_key", "VARCHAR(255)", 1, 4),
        ("property_value", "VARCHAR(1000)", 0, 0),
    ],
}
"""Of Java 1.4.2: name, type, whether NULL is refused, place in the primary key."""


@pytest.fixture
def options(tmp_path) -> dict[str, str]:
    return {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}


@pytest.fixture
def catalog(tmp_path, options) -> Catalog:
    catalog = Catalog(tmp_path / "warehouse", options)
    catalog.create_database("sales")
    return catalog


def rows(catalog: Catalog, table: str) -> list[tuple[str, ...]]:
    with sqlite3.connect(Path(catalog.warehouse).parent / "catalog.db") as connection:
        found = sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
    connection.close()
    return found


def test_the_tables_are_those_that_java_creates(catalog, tmp_path) -> None:
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = {
            table: [(name, kind, refused, key) for _, name, kind, refused, _, key in connection.execute(f"PRAGMA table_info({table})")]
            for table in names
        }
    connection.close()
    assert found == COLUMNS


def test_the_rows_are_those_that_java_writes(catalog) -> None:
    table = catalog.create_table(
        "sales.orders", "id BIGINT, day DATE", primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "2"}
    )
    assert table.path == f"{catalog.warehouse}/sales.db/orders"
    assert rows(catalog, "paimon_tables") == [("jdbc", "sales", "orders")]
    assert rows(catalog, "paimon_database_properties") == [
        ("jdbc", "sales", "exists", "true"),
        ("jdbc", "sales", "location", f"{catalog.warehouse}/sales.db"),
    ]
    assert rows(catalog, "paimon_table_properties") == [
        ("jdbc", "sales", "orders", "bucket", "2"),
        ("jdbc", "sales", "orders", "bucket-key", "id"),
        ("jdbc", "sales", "orders", "partition", "day"),
        ("jdbc", "sales", "orders", "partition.legacy-name", "false"),
        ("jdbc", "sales", "orders", "primary-key", "id,day"),
    ]


def test_tables_are_created_renamed_and_dropped(catalog, options, tmp_path) -> None:
    catalog.create_table("sales.orders", "id BIGINT", primary_keys=["id"], options={"bucket": "1"}).write({"id": [1, 2]})
    catalog.create_table("plain", pa.schema([("id", pa.int64())]))
    catalog.rename_table("sales.orders", "default.done")
    assert (catalog.list_databases(), catalog.list_tables(), catalog.list_tables("sales")) == (["default", "sales"], ["done", "plain"], [])
    assert {row[:3] for row in rows(catalog, "paimon_table_properties")} == {("jdbc", "default", "done")}
    again = pickle.loads(pickle.dumps(Catalog.create({**options, "warehouse": catalog.warehouse})))
    assert (again.table("done").count(), again.table("done$snapshots").count()) == (2, 1)
    assert again.copy_table("done", "sales.copy").rows == 2
    assert again.table("sales.copy").count() == 2
    again.drop_table("done")
    assert (again.list_tables(), Path(catalog.warehouse, "default.db", "done").exists()) == (["plain"], False)
    assert {row[1] for row in rows(catalog, "paimon_table_properties")} == {"sales"}
    with pytest.raises(InvalidArgument, match="database 'sales' has tables: copy"):
        again.drop_database("sales")
    again.drop_table("sales.copy")
    again.drop_database("sales")
    assert again.list_databases() == ["default"]
    assert repr(again) == f"JdbcCatalog({tmp_path}/warehouse, 'jdbc')"
    assert type(again) is JdbcCatalog


def test_names_that_are_missing_or_taken_raise(catalog) -> None:
    catalog.create_table("sales.a", "id INT")
    catalog.create_table("sales.b", "id INT")
    for call, kind in (
        (lambda: catalog.create_database("sales"), DatabaseExists),
        (lambda: catalog.list_tables("nope"), DatabaseNotFound),
        (lambda: catalog.drop_database("nope"), DatabaseNotFound),
        (lambda: catalog.database_options("nope"), DatabaseNotFound),
        (lambda: catalog.alter_database("nope", {"a": "b"}), DatabaseNotFound),
        (lambda: catalog.create_table("nope.a", "id INT"), DatabaseNotFound),
        (lambda: catalog.create_table("sales.a", "id INT"), TableExists),
        (lambda: catalog.copy_table("sales.a", "sales.b"), TableExists),
        (lambda: catalog.rename_table("sales.a", "sales.b"), TableExists),
        (lambda: catalog.rename_table("sales.c", "sales.d"), TableNotFound),
        (lambda: catalog.drop_table("sales.c"), TableNotFound),
        (lambda: catalog.table("sales.c"), TableNotFound),
        (lambda: catalog.create_table("sales.Upper", "id INT"), InvalidArgument),
    ):
        with pytest.raises(kind):
            call()
    catalog.create_database("sales", ignore_if_exists=True)
    assert catalog.create_table("sales.a", "other STRING", if_not_exists=True).schema.names == ["id"]
    assert catalog.list_tables("sales") == ["a", "b"]


def test_databases_have_properties(catalog) -> None:
    catalog.create_database("lake", options={"owner": "me", "comment": "x"})
    catalog.alter_database("lake", {"owner": "you", "comment": None, "since": 2024})
    assert catalog.database_options("lake") == {"location": f"{catalog.warehouse}/lake.db", "owner": "you", "since": "2024"}
    assert catalog.database_options("sales") == {"location": f"{catalog.warehouse}/sales.db"}
    for wrong in ({"exists": "no"}, {"x" * 256: "y"}, {"x": "y" * 1001}):
        with pytest.raises(InvalidArgument, match="property '"):
            catalog.alter_database("lake", wrong)


def test_keys_separate_catalogs_in_one_database(catalog, options, tmp_path) -> None:
    catalog.create_table("sales.a", "id INT")
    other = Catalog(tmp_path / "elsewhere", {**options, "catalog-key": "second"})
    assert other.list_databases() == []
    other.create_database("sales")
    other.create_table("sales.a", "id INT")
    other.drop_table("sales.a")
    other.drop_database("sales")
    assert (catalog.list_databases(), catalog.list_tables("sales")) == (["sales"], ["a"])


def test_table_properties_are_written_only_if_wanted(catalog, options) -> None:
    quiet = Catalog(catalog.warehouse, {**options, "sync-all-properties": "false"})
    quiet.create_table("sales.a", "id INT", options={"bucket": "1", "bucket-key": "id"})
    assert (rows(catalog, "paimon_tables"), rows(catalog, "paimon_table_properties")) == ([("jdbc", "sales", "a")], [])


@pytest.mark.parametrize("call", ["create", "rename", "drop"])
def test_no_crash_leaves_a_row_without_directory(catalog, monkeypatch, call) -> None:
    """The process dies at the first change that follows the first one."""
    catalog.create_table("sales.a", "id INT").write({"id": [1]})

    class Crash(BaseException):
        pass

    def die(*_, **__):
        raise Crash

    owner, method, change = {
        "create": (catalog._rows, "insert_table", lambda: catalog.create_table("sales.b", "id INT")),
        "rename": (type(catalog._file_io), "rename_directory", lambda: catalog.rename_table("sales.a", "sales.b")),
        "drop": (type(catalog._file_io), "retire_directory", lambda: catalog.drop_table("sales.a")),
    }[call]
    with monkeypatch.context() as patched:
        patched.setattr(owner, method, die)
        with pytest.raises(Crash):
            change()
    assert all(Path(catalog.warehouse, f"{database}.db", name, "schema").is_dir() for _, database, name in rows(catalog, "paimon_tables"))
    lost = "b" if call == "create" else "a"
    assert lost not in catalog.list_tables("sales")
    with pytest.raises(TableNotFound):
        catalog.table(f"sales.{lost}")
    with pytest.raises(TableExists, match=rf"sales.db/{lost}: .*'jdbc' does not list; .*if_not_exists=True"):
        catalog.create_table(f"sales.{lost}", "id INT")
    assert catalog.create_table(f"sales.{lost}", "id INT", if_not_exists=True).count() == int(call != "create")
    assert lost in catalog.list_tables("sales")


def test_a_rename_that_fails_keeps_the_row(catalog, monkeypatch) -> None:
    catalog.create_table("sales.a", "id INT", options={"bucket": "-1"})

    def full(*_):
        raise OSError(28, "no space")

    monkeypatch.setattr(type(catalog._file_io), "rename_directory", full)
    with pytest.raises(OSError, match="no space"):
        catalog.rename_table("sales.a", "sales.b")
    assert (catalog.list_tables("sales"), catalog.table("sales.a").count()) == (["a"], 0)
    assert [row[2:4] for row in rows(catalog, "paimon_table_properties")] == [("a", "bucket")]


def test_a_rename_whose_commit_fails_says_where_the_table_is(catalog, monkeypatch) -> None:
    catalog.create_table("sales.a", "id INT")
    original = type(catalog._file_io).rename_directory

    def then_fail(self, source, target):
        original(self, source, target)
        raise CatalogUnavailable("gone")

    monkeypatch.setattr(type(catalog._file_io), "rename_directory", then_fail)
    with pytest.raises(CatalogUnavailable, match=r"sales.db/b: the table was moved here.*if_not_exists"):
        catalog.rename_table("sales.a", "sales.b")
    assert catalog.list_tables("sales") == []
    assert catalog.create_table("sales.b", "id INT", if_not_exists=True).schema.names == ["id"]


def test_a_row_without_directory_is_reported_and_healed(catalog) -> None:
    """Java's crash during a rename leaves one."""
    shutil.rmtree(catalog.create_table("sales.a", "id INT").path)
    catalog.create_table("sales.b", "id INT")
    with pytest.raises(TableNotFound):
        catalog.table("sales.a")
    with pytest.raises(TableExists, match="nothing is renamed"):
        catalog.rename_table("sales.b", "sales.a")
    assert catalog.table("sales.b").count() == 0
    assert catalog.create_table("sales.a", "id INT", if_not_exists=True).count() == 0
    shutil.rmtree(catalog.table("sales.a").path)
    catalog.drop_table("sales.a")
    assert catalog.list_tables("sales") == ["b"]


def test_of_several_creators_one_wins(catalog, options) -> None:
    outcomes: list[str] = []
    barrier = threading.Barrier(4)

    def create() -> None:
        mine = Catalog(catalog.warehouse, options)
        barrier.wait()
        for kind, call in (
            ("database", lambda: mine.create_database("raced")),
            ("table", lambda: mine.create_table("sales.raced", "id INT")),
        ):
            try:
                call()
                outcomes.append(kind)
            except (DatabaseExists, TableExists) as error:
                outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["DatabaseExists"] * 3 + ["TableExists"] * 3 + ["database", "table"]
    assert rows(catalog, "paimon_tables") == [("jdbc", "sales", "raced")]


def test_several_processes_may_open_a_new_catalog_at_once(tmp_path, options) -> None:
    barrier, listed = threading.Barrier(4), []

    def open_new() -> None:
        barrier.wait()
        listed.append(Catalog(tmp_path, options).list_databases())

    threads = [threading.Thread(target=open_new) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert listed == [[]] * 4


def test_the_primary_key_decides_who_registers(catalog, options, monkeypatch) -> None:
    other = Catalog(catalog.warehouse, options)
    original = catalog._write_files

    def create_then_lose(*arguments):
        original(*arguments)
        other.create_table("sales.a", "id INT", if_not_exists=True)

    monkeypatch.setattr(catalog, "_write_files", create_then_lose)
    with pytest.raises(TableExists, match="another process registered this table in catalog 'jdbc'"):
        catalog.create_table("sales.a", "id INT")
    assert catalog.table("sales.a").count() == 0


def test_a_table_dropped_while_it_is_registered_has_no_row(catalog, monkeypatch) -> None:
    original = catalog._rows.insert_table

    def insert_then_drop(database, name, properties):
        done = original(database, name, properties)
        shutil.rmtree(f"{catalog.warehouse}/sales.db/a")
        return done

    monkeypatch.setattr(catalog._rows, "insert_table", insert_then_drop)
    with pytest.raises(TableNotFound, match="another process dropped the table"):
        catalog.create_table("sales.a", "id INT")
    assert rows(catalog, "paimon_tables") == []


def test_a_failing_database_is_reported_without_its_password(tmp_path) -> None:
    with pytest.raises(CatalogUnavailable, match=r"catalog 'jdbc': the database failed \(.*\); nothing was changed"):
        Catalog(tmp_path, {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/no/such/folder.db", "jdbc.password": "s3cr3t"})
    (tmp_path / "text.db").write_text("this is no database, whatever its name says")
    with pytest.raises(CatalogUnavailable, match="not a database"):
        Catalog(tmp_path, {"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/text.db"})


def test_a_missing_extra_is_named(tmp_path, options, monkeypatch) -> None:
    original = builtins.__import__

    def without(name, *arguments, **named):
        if name == "sqlalchemy":
            raise ImportError(name)
        return original(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedOption, match=r"option 'metastore': .*pip install 'pyspark-paimon\[jdbc\]'"):
        Catalog(tmp_path, options)
