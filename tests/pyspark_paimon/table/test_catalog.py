"""The file-system catalog: layout, names, and what it refuses."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Catalog, InvalidArgument, PaimonError, Table, TableExists, TableNotFound, UnsupportedOption
from pyspark_paimon.catalog.catalog_base import DatabaseExists, DatabaseNotFound


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    return Catalog(tmp_path / "warehouse")


def test_a_table_lies_where_paimon_looks_for_it(catalog) -> None:
    catalog.create_database("sales")
    table = catalog.create_table("sales.orders", "id BIGINT", primary_keys=["id"], options={"bucket": "1"})
    assert table.path == f"{catalog.warehouse}/sales.db/orders"
    assert Path(table.path, "schema", "schema-0").is_file()
    assert (catalog.list_databases(), catalog.list_tables("sales")) == (["sales"], ["orders"])


def test_a_name_without_database_is_in_default(catalog) -> None:
    catalog.create_table("plain", pa.schema([("id", pa.int64())]))
    assert catalog.list_tables() == ["plain"]
    assert catalog.open("default.plain").schema.names == ["id"]


def test_rename_moves_a_table_with_its_rows(catalog) -> None:
    catalog.create_database("other")
    catalog.create_table("a", "id BIGINT").write(pa.table({"id": [1, 2]}))
    catalog.rename_table("a", "other.b")
    assert (catalog.list_tables(), catalog.list_tables("other")) == ([], ["b"])
    assert catalog.table("other.b").scan().count() == 2
    with pytest.raises(TableNotFound):
        catalog.table("a")


def test_rename_never_overwrites(catalog) -> None:
    catalog.create_table("a", "id BIGINT")
    catalog.create_table("b", "id INT")
    with pytest.raises(TableExists):
        catalog.rename_table("a", "b")
    assert catalog.table("b").schema.field("id").type == pa.int32()
    with pytest.raises(TableNotFound):
        catalog.rename_table("nope", "c")
    with pytest.raises(DatabaseNotFound):
        catalog.rename_table("a", "nowhere.a")
    assert catalog.list_tables() == ["a", "b"]


def test_a_table_gets_no_name_of_a_branch_or_system_table(catalog) -> None:
    catalog.create_table("a", "id BIGINT")
    for name in ("b$branch_c", "b$files", "default.a$snapshots"):
        with pytest.raises(InvalidArgument, match="names a branch or a system table"):
            catalog.rename_table("a", name)
        with pytest.raises(InvalidArgument, match="names a branch or a system table"):
            catalog.create_table(name, "id BIGINT", if_not_exists=True)
        with pytest.raises(InvalidArgument, match="names a branch or a system table"):
            catalog.copy_table("a", name)
    assert catalog.list_tables() == ["a"]


def test_a_table_elsewhere_is_refused_with_the_way_to_make_it(catalog, tmp_path) -> None:
    with pytest.raises(InvalidArgument, match=r"'default\.a': tables of this catalog are below .*Table\.create\(path\)"):
        catalog.create_table("default.a", "id BIGINT", path=str(tmp_path / "elsewhere"))
    assert (catalog.list_tables(), (tmp_path / "elsewhere").exists()) == ([], False)


def test_drop_deletes_a_table_and_nothing_else(catalog) -> None:
    catalog.create_table("a", "id BIGINT")
    stray = Path(catalog.warehouse, "default.db", "notes")
    stray.mkdir()
    (stray / "readme.txt").write_text("not a table")
    catalog.drop_table("a")
    assert catalog.list_tables() == []
    with pytest.raises(TableNotFound):
        catalog.drop_table("notes")
    assert (stray / "readme.txt").is_file()


def test_databases_are_created_once_and_dropped_empty(catalog) -> None:
    catalog.create_database("d")
    catalog.create_database("d", ignore_if_exists=True)
    with pytest.raises(DatabaseExists, match="'d'"):
        catalog.create_database("d")
    catalog.create_table("d.t", "id BIGINT")
    with pytest.raises(InvalidArgument, match="has tables: t"):
        catalog.drop_database("d")
    catalog.drop_table("d.t")
    catalog.drop_database("d")
    assert catalog.list_databases() == []


def test_what_is_missing_is_named(catalog) -> None:
    for action in (lambda: catalog.list_tables("x"), lambda: catalog.create_table("x.t", "id INT"), lambda: catalog.table("x.t")):
        with pytest.raises(DatabaseNotFound, match="'x'"):
            action()
    assert not catalog.table_exists("x.t")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a.b.c", "x.", ".x", "tab\tname", "y.db"])
def test_names_that_would_leave_the_layout_are_refused(catalog, name) -> None:
    catalog.create_database("default")
    with pytest.raises(PaimonError):
        catalog.create_table(name, "id INT")
    with pytest.raises(PaimonError):
        catalog.drop_table(name)
    assert [path.name for path in Path(catalog.warehouse).rglob("*")] == ["default.db"]


def test_tables_have_the_options_of_their_catalog_unless_given(tmp_path):
    catalog = Catalog.create({"warehouse": str(tmp_path), "table-default.bucket": 2, "table-default.file.format": "orc"})
    assert catalog.create_table("a", "id BIGINT", primary_keys=["id"]).options["file.format"] == "orc"
    given = catalog.create_table("b", "id BIGINT", primary_keys=["id"], options={"bucket": "3"})
    assert (given.options["bucket"], Table.open(given.path).options["file.format"]) == ("3", "orc")
    with pytest.raises(UnsupportedOption, match="nonsense"):
        Catalog(tmp_path, {"table-default.nonsense": "1"}).create_table("c", "id BIGINT")
    assert catalog.list_tables() == ["a", "b"]


@pytest.mark.parametrize("option", ["default-database", "defaultDatabase"])
def test_names_without_a_database_belong_to_the_default(tmp_path, option):
    catalog = Catalog(tmp_path, {option: "sales"})
    catalog.create_table("orders", "id BIGINT").write({"id": [1]})
    assert (catalog.list_databases(), catalog.list_tables(), catalog.table("sales.orders").count()) == (["sales"], ["orders"], 1)
    catalog.rename_table("orders", "done")
    assert catalog.table_exists("done")
    catalog.copy_table("done", "copied")
    catalog.drop_table("done")
    assert catalog.list_tables("sales") == ["copied"]
    with pytest.raises(InvalidArgument, match="name two databases: a, b"):
        Catalog(tmp_path, {"default-database": "a", "defaultDatabase": "b"})


def test_names_are_lower_case_where_case_does_not_count(tmp_path):
    catalog = Catalog(tmp_path, {"case-sensitive": "false"})
    catalog.create_table("orders", "id BIGINT")
    for call, name in (
        (lambda: catalog.create_database("Sales"), "database 'Sales'"),
        (lambda: catalog.create_table("Orders", "id BIGINT"), "table 'Orders'"),
        (lambda: catalog.create_table("more", "Id BIGINT"), "column 'Id'"),
        (lambda: catalog.rename_table("orders", "Done"), "table 'Done'"),
    ):
        with pytest.raises(InvalidArgument, match=f"{name} must be lower case: option 'case-sensitive'"):
            call()
    assert catalog.list_tables() == ["orders"]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("lock.enabled", "true", "take no lock"),
        ("table.type", "external", "Table.create"),
        ("metastore", "dlf", "use 'filesystem', 'hive', 'jdbc' or 'rest'"),
    ],
)
def test_options_without_a_meaning_are_refused_by_name(tmp_path, option, value, words):
    with pytest.raises(UnsupportedOption, match=rf"option '{option}'.*{words}"):
        Catalog.create({"warehouse": str(tmp_path), option: value})


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("lock.type", "zookeeper", "take no lock"),
        ("lock-acquire-timeout", "8 min", "take no lock"),
        ("cache.expire-after-access", "1 min", "no such cache"),
        ("local-cache.dir", "/tmp/cache", "no such cache"),
        ("client-pool-size", "2", "no connections"),
        ("format-table.enabled", "true", "plain files"),
        ("sync-all-properties", "true", "no metastore"),
        ("file-io.allow-cache", "false", "held for the process"),
        ("disable-create-table-in-default-db", "false", "another engine"),
    ],
)
def test_options_of_java_that_change_nothing_are_accepted_and_logged(tmp_path, caplog, option, value, words):
    with caplog.at_level(logging.INFO, "pyspark_paimon"):
        catalog = Catalog.create({"warehouse": str(tmp_path), option: value})
    assert catalog.create_table("t", "id BIGINT").count() == 0
    assert f"option '{option}' of the catalog has no effect" in caplog.text
    assert words in caplog.text


def test_options_that_change_nothing_are_accepted(tmp_path):
    catalog = Catalog.create({"warehouse": str(tmp_path), "cache-enabled": "true", "lock.enabled": False, "case-sensitive": True})
    assert catalog.list_databases() == []
    with pytest.raises(InvalidArgument, match="option 'cache-enabled' must be 'true' or 'false', not 'x'"):
        Catalog(tmp_path, {"cache-enabled": "x"})
