"""Our JDBC catalog beside Paimon's own, in one SQLite database."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.environments import cache
from benchmarks.java_project import JavaProject, JavaUnavailable
from pyspark_paimon import Catalog, TableExists, TableNotFound

pytest.importorskip("sqlalchemy")
pytestmark = pytest.mark.interop

PROJECT = JavaProject("Paimon's JDBC catalog", Path(__file__).parent / "jdbc_catalog", cache() / "interop-jdbc-catalog")
COLUMNS = "id BIGINT, day STRING"
KEYS = {"primary_keys": ["id", "day"], "partition_keys": ["day"], "options": {"bucket": "2"}}
Java = Callable[..., list[str]]


@pytest.fixture(scope="module")
def command() -> list[str]:
    try:
        return [PROJECT.java(), "-Xmx256m", "-XX:+UseSerialGC", "-cp", PROJECT.class_path(), "interop.Jdbc"]
    except JavaUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture
def options(tmp_path) -> dict[str, str]:
    return {"metastore": "jdbc", "warehouse": f"{tmp_path}/w", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "catalog-key": "lake"}


@pytest.fixture
def java(command, options) -> Java:
    """What Java's catalog lists after its changes."""

    def run(*changes: str) -> list[str]:
        place = (options["warehouse"], options["uri"], options["catalog-key"])
        done = subprocess.run([*command, *place, *changes], capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def dump(path: Path) -> dict[str, object]:
    """The tables of a database as they are defined, and their rows."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        return {
            name: (
                connection.execute(f"PRAGMA table_info({name})").fetchall(),
                {row for row in connection.execute(f"SELECT * FROM {name}") if "partition.legacy-name" not in row},
            )
            for name in names
        }


def test_both_define_the_same_tables_and_write_the_same_rows(java, options, tmp_path) -> None:
    java("database shop", "create shop.t", "create shop.u", "rename shop.t shop.v", "drop shop.u")
    theirs = dump(tmp_path / "catalog.db")
    (tmp_path / "catalog.db").unlink()
    (tmp_path / "w").rename(tmp_path / "theirs")
    catalog = Catalog.create(options)
    catalog.create_database("shop", options={"owner": "me"})
    catalog.create_table("shop.t", COLUMNS, **KEYS)
    catalog.create_table("shop.u", COLUMNS, **KEYS)
    catalog.rename_table("shop.t", "shop.v")
    catalog.drop_table("shop.u")
    assert dump(tmp_path / "catalog.db") == theirs


def test_java_opens_renames_and_drops_what_we_create(java, options, tmp_path) -> None:
    catalog = Catalog.create(options)
    catalog.create_database("ours", options={"owner": "you"})
    catalog.create_table("ours.a", COLUMNS, **KEYS).write([{"id": 1, "day": "x"}, {"id": 2, "day": "y"}])
    catalog.create_table("ours.b", "id BIGINT")
    row = "ROW<`id` BIGINT NOT NULL, `day` STRING NOT NULL>"
    place = f"ours {{location={tmp_path}/w/ours.db, owner=you}}"
    assert java() == [place, f"ours.a {row} 2", "ours.b ROW<`id` BIGINT> 0"]
    assert java("rename ours.a ours.c", "drop ours.b") == [place, f"ours.c {row} 2"]
    assert (catalog.list_tables("ours"), catalog.table("ours.c").count()) == (["c"], 2)
    with pytest.raises(TableNotFound):
        catalog.table("ours.a")
    assert java("drop ours.c", "drop-database ours") == []
    assert catalog.list_databases() == []


def test_we_open_rename_and_drop_what_java_creates(java, options, tmp_path) -> None:
    java("database theirs", "create theirs.a", "create theirs.b")
    catalog = Catalog.create(options)
    assert catalog.database_options("theirs") == {"location": f"{tmp_path}/w/theirs.db", "owner": "me"}
    with pytest.raises(TableExists):
        catalog.create_table("theirs.a", COLUMNS)
    catalog.table("theirs.a").write([{"id": 1, "day": "x"}])
    catalog.rename_table("theirs.a", "theirs.c")
    catalog.drop_table("theirs.b")
    assert java()[1:] == ["theirs.c ROW<`id` BIGINT NOT NULL, `day` STRING NOT NULL> 1"]
    catalog.drop_table("theirs.c")
    catalog.drop_database("theirs")
    assert java() == []
    assert not any(rows for _, rows in dump(tmp_path / "catalog.db").values())
