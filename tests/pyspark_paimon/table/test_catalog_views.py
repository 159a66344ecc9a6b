"""Views of catalogs: made, listed, changed and dropped on a REST server, and refused where a catalog has none."""

from __future__ import annotations

import pytest

from manifest.io.catalog_errors import NotOffered
from pyspark_paimon import Catalog, DatabaseNotFound, InvalidArgument, InvalidSchema, TableExists, TableNotFound, UnsupportedOption, View
from tests.catalogs.server import CatalogServer


@pytest.fixture
def server(tmp_path):
    with CatalogServer(tmp_path / "warehouse") as running:
        yield running


@pytest.fixture
def catalog(server):
    found = Catalog.create(server.options())
    found.create_database("sales")
    return found


def test_views_come_and_go(catalog) -> None:
    made = catalog.create_view(
        "sales.large", "SELECT id FROM orders", "id BIGINT NOT NULL, n ROW<a INT>", comment="all", options={"owner": "us"}
    )
    assert made == catalog.view("sales.large")
    assert isinstance(made, View)
    assert [(field.id, field.name, str(field.type)) for field in made.fields] == [(0, "id", "BIGINT NOT NULL"), (1, "n", "ROW<a INT>")]
    assert (made.name, made.query, made.dialects, made.comment) == ("sales.large", "SELECT id FROM orders", {"spark": made.query}, "all")
    for name in ("b", "a", "c"):
        catalog.create_view(f"sales.{name}", "SELECT 1", "id INT")
    assert catalog.list_views("sales") == ["a", "b", "c", "large"]
    assert catalog.list_tables("sales") == []
    with pytest.raises(TableExists):
        catalog.create_view("sales.a", "SELECT 2", "id INT")
    assert catalog.create_view("sales.a", "SELECT 2", "id INT", if_not_exists=True).query == "SELECT 1"
    catalog.rename_view("sales.a", "sales.z")
    with pytest.raises(TableExists):
        catalog.rename_view("sales.b", "sales.c")
    catalog.drop_view("sales.z")
    catalog.drop_view("sales.z", if_exists=True)
    for gone in (catalog.drop_view, catalog.view, lambda name: catalog.rename_view(name, "sales.y"), catalog.alter_view):
        with pytest.raises(TableNotFound):
            gone("sales.z")
    with pytest.raises(DatabaseNotFound):
        catalog.list_views("none")


def test_dialects_comment_and_properties_change(catalog, server) -> None:
    catalog.create_view("sales.v", "SELECT 1", "id INT", dialects={"flink": "SELECT 2"}, options={"a": "1", "b": "2"})
    assert (catalog.view("sales.v").text(), catalog.view("sales.v").text("flink")) == ("SELECT 1", "SELECT 2")
    catalog.alter_view(
        "sales.v",
        dialects={"spark": "SELECT 3", "flink": "SELECT 4", "trino": None},
        comment="c",
        options={"a": None, "x": "y", "no": None},
    )
    found = catalog.view("sales.v")
    assert (found.dialects, found.comment, found.options) == ({"flink": "SELECT 4", "spark": "SELECT 3"}, "c", {"b": "2", "x": "y"})
    catalog.alter_view("sales.v", dialects={"flink": None}, comment="")
    assert (catalog.view("sales.v").dialects, catalog.view("sales.v").comment) == ({"spark": "SELECT 3"}, None)
    before = len([1 for method, *_ in server.requests if method == "POST"])
    catalog.alter_view("sales.v")
    assert len([1 for method, *_ in server.requests if method == "POST"]) == before, "nothing to change, nothing asked"


def test_a_view_and_a_table_share_no_name_and_a_database_keeps_its_views(catalog) -> None:
    catalog.create_table("sales.t", "id INT")
    with pytest.raises(TableExists, match="a table has this name"):
        catalog.create_view("sales.t", "SELECT 1", "id INT")
    catalog.drop_table("sales.t")
    catalog.create_view("sales.v", "SELECT 1", "id INT")
    with pytest.raises(TableExists, match="a view has this name"):
        catalog.create_table("sales.v", "id INT")
    catalog.create_table("sales.u", "id INT")
    with pytest.raises(TableExists, match="a table has this name"):
        catalog.rename_view("sales.v", "sales.u")
    with pytest.raises(TableExists, match="a view has this name"):
        catalog.rename_table("sales.u", "sales.v")
    catalog.drop_table("sales.u")
    with pytest.raises(InvalidArgument, match="has views: v"):
        catalog.drop_database("sales")
    catalog.drop_view("sales.v")
    catalog.drop_database("sales")


def test_wrong_names_and_columns_are_refused(catalog) -> None:
    for name in ("sales.v$files", "sales.", "a/b.v"):
        with pytest.raises(InvalidArgument):
            catalog.create_view(name, "SELECT 1", "id INT")
    with pytest.raises(InvalidSchema):
        catalog.create_view("sales.v", "SELECT 1, 2", "id INT, id INT")


def test_a_server_without_views_still_drops_databases(catalog, server) -> None:
    server.without.add("views")
    with pytest.raises(NotOffered):
        catalog.list_views("sales")
    catalog.drop_database("sales")


def test_other_catalogs_refuse_views(tmp_path) -> None:
    catalog = Catalog(tmp_path)
    calls = (
        catalog.list_views,
        lambda: catalog.view("v"),
        lambda: catalog.create_view("v", "SELECT 1", "id INT"),
        lambda: catalog.alter_view("v", comment="c"),
        lambda: catalog.rename_view("v", "w"),
        lambda: catalog.drop_view("v", if_exists=True),
    )
    for call in calls:
        with pytest.raises(UnsupportedOption, match="has no views"):
            call()
