"""The JDBC catalog on real servers: MySQL's protocol (MariaDB) and PostgreSQL."""

from __future__ import annotations

import threading

import pytest

from pyspark_paimon import Catalog, CatalogUnavailable, TableExists, TableNotFound
from tests.stores.local_server import held
from tests.stores.mariadb_server import PASSWORD, MariaDbServer
from tests.stores.postgres_server import PostgresServer

pytest.importorskip("sqlalchemy")
pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module", params=[MariaDbServer, PostgresServer], ids=lambda kind: kind.name)
def database(request):
    yield from held(request.param())


@pytest.fixture
def options(database, tmp_path):
    return database.options() | {"catalog-key": tmp_path.name}


def test_databases_and_tables_are_rows(database, options, tmp_path) -> None:
    catalog = Catalog(tmp_path, options)
    catalog.create_database("sales", options={"owner": "me"})
    table = catalog.create_table("sales.t", "id BIGINT, v STRING", primary_keys=["id"], options={"bucket": "1"})
    table.write({"id": [1], "v": ["a"]})
    catalog.rename_table("sales.t", "sales.u")
    assert (catalog.list_databases(), catalog.list_tables("sales"), catalog.table("sales.u").count()) == (["sales"], ["u"], 1)
    key = tmp_path.name
    assert [row for row in database.rows("paimon_tables") if row[0] == key] == [(key, "sales", "u")]
    assert (key, "sales", "u", "primary-key", "id") in database.rows("paimon_table_properties")
    catalog.alter_database("sales", {"owner": None, "note": "x" * 1000})
    assert catalog.database_options("sales") == {"location": f"{tmp_path}/sales.db", "note": "x" * 1000}
    catalog.drop_table("sales.u")
    with pytest.raises(TableNotFound):
        catalog.table("sales.u")
    catalog.drop_database("sales")
    assert catalog.list_databases() == []


def test_of_processes_that_create_a_table_one_wins(options, tmp_path) -> None:
    Catalog(tmp_path, options).create_database("sales")
    outcomes: list[str] = []

    def create() -> None:
        try:
            Catalog(tmp_path, options).create_table("sales.t", "id BIGINT")
            outcomes.append("created")
        except TableExists:
            outcomes.append("exists")

    threads = [threading.Thread(target=create) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["created", *["exists"] * 4]
    assert Catalog(tmp_path, options).list_tables("sales") == ["t"]


def test_a_wrong_password_is_refused_and_not_shown(options, tmp_path) -> None:
    with pytest.raises(CatalogUnavailable, match=r"Access denied|password authentication failed") as caught:
        Catalog(tmp_path, options | {"jdbc.password": f"not-{PASSWORD}"}).list_databases()
    assert PASSWORD not in str(caught.value)
