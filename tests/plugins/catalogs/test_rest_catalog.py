"""Tables of a REST catalog are tables: made, written, changed, branched and checked as any other, with typed refusals."""

from __future__ import annotations

import pyarrow as pa
import pytest

from manifest.io.catalog_errors import CatalogUnavailable, NotAuthorized, NotOffered, NotPermitted
from manifest.io.errors import CredentialsRefused, SystemTableReadOnly, UnknownSystemTable
from pyspark_paimon import (
    Catalog,
    DatabaseExists,
    DatabaseNotFound,
    InvalidArgument,
    InvalidSchema,
    SnapshotNotFound,
    Table,
    TableExists,
    TableNotFound,
    UnknownColumn,
    UnsupportedOption,
    UnsupportedTable,
)
from pyspark_paimon.plugins.catalogs.rest import client as client_module
from pyspark_paimon.plugins.catalogs.rest import vended_credentials
from pyspark_paimon.request.state import Snapshots
from tests.build import ids
from tests.catalogs.server import CatalogServer, lent


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setattr(client_module, "_FIRST_WAIT", 0.001)


@pytest.fixture
def server(tmp_path):
    with CatalogServer(tmp_path / "warehouse") as server:
        yield server


@pytest.fixture
def catalog(server):
    return Catalog.create(server.options())


def orders(catalog, name="orders", **options):
    return catalog.create_table(
        name, "id BIGINT, total INT", primary_keys=["id"], options={"bucket": "2", "file-index.bloom-filter.columns": "id", **options}
    )


def rows(**columns):
    return pa.table({"id": pa.array(columns["id"], pa.int64()), "total": pa.array(columns["total"], pa.int32())})


def found(table, where=None):
    return sorted((row["id"], row["total"]) for row in table.scan(where, columns=["id", "total"]).to_arrow().to_pylist())


def test_databases_come_and_go(catalog) -> None:
    for name in ("c", "a", "b"):
        catalog.create_database(name)
    catalog.create_database("a", ignore_if_exists=True)
    with pytest.raises(DatabaseExists):
        catalog.create_database("a")
    catalog.alter_database("a", {"owner": "us", "kept": 1})
    catalog.alter_database("a", {"owner": None})
    assert catalog.database_options("a") == {"kept": "1"}
    orders(catalog, "a.t")
    with pytest.raises(InvalidArgument, match="has tables: t"):
        catalog.drop_database("a")
    catalog.drop_table("a.t")
    catalog.drop_database("a")
    assert catalog.list_databases() == ["b", "c"]
    for refused in (catalog.list_tables, catalog.drop_database, catalog.database_options):
        with pytest.raises(DatabaseNotFound):
            refused("a")


def test_tables_come_and_go(catalog, server) -> None:
    catalog.create_database("sales")
    for name in ("c", "a", "b", "d", "e"):
        orders(catalog, f"sales.{name}")
    with pytest.raises(TableExists):
        orders(catalog, "sales.a")
    with pytest.raises(DatabaseNotFound):
        orders(catalog, "nowhere.a")
    assert catalog.list_tables("sales") == list("abcde")
    catalog.table("sales.a").write(rows(id=[1], total=[2]))
    catalog.rename_table("sales.a", "sales.z")
    assert found(catalog.open("sales.z")) == [(1, 2)]
    for refused in (lambda: catalog.rename_table("sales.z", "sales.b"), lambda: catalog.rename_table("sales.a", "sales.y")):
        with pytest.raises((TableExists, TableNotFound)):
            refused()
    catalog.drop_table("sales.z")
    assert not catalog.table_exists("sales.z")
    with pytest.raises(TableNotFound):
        catalog.table("sales.z")
    with pytest.raises(TableNotFound):
        catalog.drop_table("sales.z")
    with pytest.raises(InvalidArgument):
        catalog.create_table("sales.t$branch_b", "id INT")


def test_a_table_is_written_compacted_read_changed_and_checked(catalog, server) -> None:
    table = orders(catalog)
    table.write(rows(id=range(100), total=range(100)))
    table.write(rows(id=[1, 2], total=[10, 20]))
    table.delete("id = 3")
    table.update("id = 4", {"total": 40})
    table.compact(full=True)
    assert found(table, "id < 5") == [(0, 0), (1, 10), (2, 20), (4, 40)]
    assert table.fsck("deep").problems == ()
    assert found(Table.open(table.path), "id = 1") == [(1, 10)]
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert len(table._engine.ask(Snapshots())) == 1
    table.write(rows(id=[5], total=[50]))
    assert catalog.table("orders").scan().count() == 99
    committed = [path for _, path, _, _ in server.requests if path.endswith("/commit")]
    assert len(committed) >= 6


def test_the_schema_is_the_servers(catalog, server) -> None:
    table = orders(catalog)
    table.write(rows(id=[1], total=[2]))
    table.add_column("note", "STRING", after="id", comment="free", default="none").rename_column("note", "remark")
    table.change_type("total", "BIGINT").set_comment("all of them").set_comment("sum", "total").move_column("total", first=True)
    table.set_default("total", 7).alter_options({"target-file-size": "64 mb", "file-index.bloom-filter.columns": None})
    table.add_column("gone", "INT").drop_column("gone")
    before = len(server.requests)
    table.alter_options({"target-file-size": "64 mb"})
    assert not [path for method, path, _, _ in server.requests[before:] if method == "POST"]
    schema = catalog.table("orders").table_schema
    assert [(f.name, str(f.type), f.description, f.default_value) for f in schema.fields] == [
        ("total", "BIGINT", "sum", "7"),
        ("id", "BIGINT NOT NULL", None, None),
        ("remark", "STRING", "free", "none"),
    ]
    assert (schema.comment, schema.options["target-file-size"]) == ("all of them", "64 mb")
    assert "file-index.bloom-filter.columns" not in schema.options
    assert found(table) == [(1, 2)]
    with pytest.raises(UnknownColumn):
        table.drop_column("nope")
    with pytest.raises(InvalidSchema):
        table.add_column("remark", "INT")
    with pytest.raises(UnsupportedOption):
        table.alter_options({"bucket": "8"})


def test_what_only_the_server_knows_of_columns_is_told_as_ours(catalog, server) -> None:
    """Another client was faster: our look at the schema was fine, the server's was not."""
    table = orders(catalog)
    refusals = {(404, "COLUMN"): UnknownColumn, (409, "COLUMN"): InvalidSchema, (404, "TABLE"): TableNotFound}
    for (status, kind), error in refusals.items():
        said = status, {"message": "no", "resourceType": kind, "resourceName": "x", "code": status}
        server.answers = lambda method, path, said=said: said if method == "POST" else None
        with pytest.raises(error):
            table.add_column("x", "INT")


def test_tags_and_rollback_are_the_servers(catalog, server) -> None:
    table = orders(catalog)
    for number in (1, 2, 3):
        table.write(rows(id=[number], total=[number]))
    table.create_tag("two", snapshot=2)
    assert found(catalog.table("orders"), None) == [(1, 1), (2, 2), (3, 3)]
    assert table.tags().num_rows == 1
    with pytest.raises(InvalidArgument):
        table.create_tag("two", snapshot=1)
    table.rollback_to(tag="two")
    assert found(table) == [(1, 1), (2, 2)]
    assert table.write(rows(id=[9], total=[9])).snapshot_id == 3
    result = table.rollback_to(snapshot=1)
    assert (result.snapshot_id, result.snapshots) == (1, 2)
    assert found(catalog.table("orders")) == [(1, 1)]
    with pytest.raises(SnapshotNotFound):
        table.rollback_to(snapshot=7)
    said = [path for method, path, _, _ in server.requests if method == "POST" and path.endswith(("/tags", "/rollback"))]
    assert len(said) == 4
    assert table.fsck().problems == ()


def test_branches_are_the_servers_and_tables_of_their_own(catalog, server) -> None:
    table = orders(catalog)
    table.write(rows(id=[1], total=[1]))
    table.create_tag("start")
    table.create_branch("trial", from_tag="start")
    with pytest.raises(InvalidArgument):
        table.create_branch("trial")
    branch = catalog.table("orders$branch_trial")
    branch.write(rows(id=[2], total=[2]))
    assert (found(branch), found(table)) == ([(1, 1), (2, 2)], [(1, 1)])
    assert catalog.list_tables() == ["orders"]
    assert any(path.endswith("/tables/orders%24branch_trial/commit") for _, path, _, _ in server.requests)
    table.fast_forward("trial")
    assert found(catalog.table("orders")) == [(1, 1), (2, 2)]
    table.create_branch("empty")
    assert catalog.table("orders$branch_empty").scan().count() == 0
    table.delete_branch("empty")
    with pytest.raises(TableNotFound):
        catalog.table("orders$branch_empty")
    with pytest.raises(InvalidArgument):
        table.delete_branch("empty")


def test_system_tables_of_tables_and_branches_are_scanned_and_nothing_else(catalog, server) -> None:
    table = orders(catalog)
    table.write(rows(id=[1, 2], total=[1, 2]))
    table.create_branch("dev")
    assert catalog.table("orders$snapshots").scan(columns=["commit_kind"]).to_arrow().to_pylist() == [{"commit_kind": "APPEND"}]
    assert catalog.table("orders$files").scan("level = 0").count() == len(table.files())
    assert ids(catalog.table("orders$audit_log").scan(columns=["rowkind", "id"])) == [1, 2]
    assert catalog.table("orders$branch_dev$schemas").scan().count() == 1
    with pytest.raises(UnknownSystemTable, match="files"):
        catalog.table("orders$filez")
    with pytest.raises(SystemTableReadOnly):
        catalog.table("orders$files").write(rows(id=[1], total=[1]))
    with pytest.raises(TableNotFound):
        catalog.table("none$files")


def test_what_the_server_does_not_offer_is_done_on_the_files_if_that_is_safe(catalog, server) -> None:
    table = orders(catalog)
    server.without = {"tags", "branches", "rollback"}
    table.write(rows(id=[1], total=[1]))
    table.create_tag("a")
    table.create_branch("b", from_tag="a")
    assert found(table) == [(1, 1)]
    assert table.delete_tag("a").tags == ("a",)
    for refused in (lambda: table.rollback_to(snapshot=1), lambda: table.fast_forward("b")):
        with pytest.raises(NotOffered):
            refused()


def test_of_an_external_table_the_server_keeps_the_schema_only(catalog, server, tmp_path) -> None:
    table = catalog.create_table("out", "id BIGINT, total INT", primary_keys=["id"], options={"bucket": "1"}, path=str(tmp_path / "out"))
    table.write(rows(id=[1], total=[1]))
    table.add_column("more", "INT").create_tag("a")
    assert found(catalog.table("out")) == [(1, 1)]
    assert not [path for _, path, _, _ in server.requests if path.endswith(("/commit", "/tags", "/snapshot"))]
    catalog.drop_table("out")
    assert found(Table.open(tmp_path / "out")) == [(1, 1)]


def test_refusals_have_types(catalog, server) -> None:
    table = orders(catalog)
    wrong = server.options(token="another")
    with pytest.raises(NotAuthorized) as error:
        Catalog.create(wrong)
    assert "another" not in str(error.value)
    server.answers = lambda method, path: (403, {"message": "not you", "resourceType": "TABLE"})
    for refused in (catalog.list_databases, lambda: catalog.table("orders"), lambda: table.write(rows(id=[1], total=[1]))):
        with pytest.raises(NotPermitted, match="not you"):
            refused()
    server.answers = lambda method, path: (500, {"message": "broken"})
    with pytest.raises(CatalogUnavailable):
        catalog.table("orders")


def test_what_is_no_table_with_rows_or_no_name_is_refused(catalog, server) -> None:
    from pyspark_paimon import UnsupportedTable

    orders(catalog)
    answer = {"id": "x", "path": "/somewhere", "schema": {"fields": [], "options": {"type": "object-table"}}}
    server.answers = lambda method, path: (200, answer)
    with pytest.raises(UnsupportedTable):
        catalog.table("orders")
    server.answers = lambda method, path: None
    for name in ("a/b.t", "..t", ""):
        with pytest.raises((InvalidArgument, TableNotFound)):
            catalog.table(name)
    with pytest.raises(InvalidArgument, match="must be a Spark session"):
        catalog.table("orders", spark=object())


def test_one_door_to_every_catalog(server, tmp_path) -> None:
    assert type(Catalog.create({"warehouse": str(tmp_path)})) is Catalog
    assert repr(Catalog.create(server.options())) == f"RestCatalog(http://127.0.0.1:{server.port}, 'main house')"
    with pytest.raises(InvalidArgument, match="warehouse"):
        Catalog.create({"metastore": "filesystem"})
    with pytest.raises(UnsupportedOption, match="did you mean 'warehouse'"):
        Catalog.create(server.options() | {"warehose": "x"})
    with pytest.raises(UnsupportedOption, match="glue"):
        Catalog.create({"metastore": "glue", "uri": "x"})


def test_changes_are_followed_as_the_server_counts_them(catalog, server) -> None:
    table = orders(catalog)
    table.write(rows(id=[1], total=[1]))
    [state] = table.follow()
    hidden = server.tables["default", "orders"].newest
    table.write(rows(id=[2], total=[2]))
    server.tables["default", "orders"].newest, newest = hidden, server.tables["default", "orders"].newest
    assert list(table.follow(state.offset)) == [], "a file of a snapshot that the server does not name is none yet"
    server.tables["default", "orders"].newest = newest
    [batch] = table.follow(state.offset)
    assert [(row["id"], row["_row_kind"]) for row in batch.rows.to_pylist()] == [(2, "+I")]


def test_keys_of_storage_are_lent_and_exchanged_before_they_end(server, monkeypatch) -> None:
    asked, clock = [], [1_000_000.0]

    def lend(table):
        asked.append(table)
        return {"token": {"fs.s3a.access.key": f"key-{len(asked)}", "of-another-client": "x"}, "expiresAtMillis": int(clock[0] + 10_000)}

    server.lends = lend
    server.defaults["data-token.enabled"] = "true"
    monkeypatch.setattr(vended_credentials, "_now", lambda: clock[0])
    given = []
    original = vended_credentials.file_io_for
    monkeypatch.setattr(vended_credentials, "file_io_for", lambda path, storage_options: given.append(storage_options) or original(path))
    catalog = Catalog.create(server.options(**{"s3.region": "eu"}))
    table = orders(catalog)
    table.write(rows(id=[1], total=[1]))
    assert given == [{"s3.region": "eu", "fs.s3a.access.key": "key-1"}]
    clock[0] += 7_900
    assert found(table) == [(1, 1)]
    assert len(asked) == 1
    clock[0] += 200  # a fifth of the life is left: exchanged before it ends
    assert found(table) == [(1, 1)]
    assert [one["fs.s3a.access.key"] for one in given] == ["key-1", "key-2"]
    assert asked == ["orders", "orders"]
    assert "key-" not in repr(table)
    server.lends = lambda table: {"token": {}, "expiresAtMillis": 5}
    clock[0] += 20_000
    with pytest.raises(CredentialsRefused, match="have expired"):
        found(table)


def test_a_table_on_a_store_is_reached_by_lent_keys_only(s3, warehouse) -> None:
    place = warehouse()
    keys = s3.options()
    secret = {name: keys.pop(name) for name in ("s3.access-key", "s3.secret-key")}
    with CatalogServer(place, storage={**keys, **secret}, lends=lambda table: lent(secret, 600)) as server:
        server.defaults["data-token.enabled"] = "true"
        catalog = Catalog.create(server.options(**keys))
        table = orders(catalog)
        table.write(rows(id=[1, 2], total=[1, 2]))
        table.create_tag("t")
        table.create_branch("b", from_tag="t")
        catalog.table("orders$branch_b").write(rows(id=[3], total=[3]))
        assert (found(table), found(catalog.table("orders$branch_b"))) == ([(1, 1), (2, 2)], [(1, 1), (2, 2), (3, 3)])
        assert table.fsck().problems == ()
        server.lends = lambda table: lent({**secret, "s3.secret-key": "another"}, 600)
        with pytest.raises(CredentialsRefused):
            catalog.table("orders")


def test_rows_are_purged_from_a_table_of_the_server(catalog) -> None:
    table = orders(catalog, "kept")
    table.write(rows(id=[1, 2], total=[10, 20]))
    table.create_tag("v1")
    assert [(holder.kind, holder.name) for holder in table.purge("id = 1").holders] == [("tag", "v1")]
    table.delete_tag("v1")
    assert table.purge("id = 1").gone
    assert found(table) == [(2, 20)]
    assert table.fsck("deep").problems == ()


def test_options_of_the_catalog_itself_are_honoured(server) -> None:
    catalog = Catalog.create(
        {**server.options(), "table-default.file.format": "avro", "default-database": "sales", "case-sensitive": "false"}
    )
    table = orders(catalog)
    assert (catalog.list_databases(), catalog.list_tables(), table.options["file.format"]) == (["sales"], ["orders"], "avro")
    assert catalog.table("sales.orders").options["file.format"] == "avro"
    for name in ("Orders", "Sales.orders"):
        with pytest.raises((InvalidArgument, DatabaseNotFound), match=r"must be lower case|Sales"):
            orders(catalog, name)
    with pytest.raises(InvalidArgument, match="table 'Orders' must be lower case"):
        catalog.rename_table("orders", "Orders")
    with pytest.raises(UnsupportedOption, match=r"option 'table\.type'"):
        Catalog.create({**server.options(), "table.type": "external"})


def test_what_a_server_cannot_do_is_refused(catalog, tmp_path) -> None:
    table = orders(catalog)
    table.write(rows(id=[1], total=[1]))
    with pytest.raises(UnsupportedTable, match="creates the directories of its tables"):
        catalog.copy_table("orders", "copy")
    with pytest.raises(UnsupportedOption, match="cannot replace all columns at once"):
        table.replace_columns("id BIGINT NOT NULL, word STRING")
    with pytest.raises(UnsupportedTable, match="the server of the catalog keeps the snapshots"):
        table.repair_earliest_snapshot(1)
    table.copy_to(tmp_path / "copy")
    assert found(Table.open(tmp_path / "copy")) == [(1, 1)]
    assert table.remove_unexisting_files().paths == ()
