"""The file-system catalog: layout, names, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_paimon import Catalog, InvalidArgument, PaimonError, TableExists, TableNotFound
from pyspark_paimon.table.catalog import DatabaseExists, DatabaseNotFound


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
