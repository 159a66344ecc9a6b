"""Every statement is read to its end: words that do not belong to it are refused, here or by Spark, and nothing is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from manifest.io.errors import TableNotFound
from manifest.schema.validation import build_schema
from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon import Catalog, Table, View
from pyspark_paimon.catalog.view import ViewChanges
from pyspark_paimon.plugins.sql.procedures import arguments_of
from pyspark_paimon.plugins.sql.run import STATEMENTS, sql
from pyspark_paimon.plugins.sql.text.words import TokenCursor, partition_spec

JUNK = ("ZZZ YYY", "'text' 7", "= 3", ") ZZZ", "LIKE LIKE", "7 8")
TEXTS = [
    "MERGE INTO db.t USING db.s ON t.id = s.id WHEN MATCHED AND t.id > 1 THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "MERGE WITH SCHEMA EVOLUTION INTO db.t USING db.s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO db.t AS a USING (SELECT * FROM db.s) b ON a.id = b.id WHEN MATCHED THEN UPDATE SET id = b.id",
    "UPDATE db.t SET id = 2 WHERE id = 1",
    "DELETE FROM db.t WHERE id = 1",
    "DELETE FROM db.t",
    "TRUNCATE TABLE db.t",
    "TRUNCATE TABLE db.t PARTITION (day = 'a')",
    "COMMENT ON TABLE db.t IS 'x'",
    "COMMENT ON COLUMN db.t.id IS 'x'",
    "SHOW TAGS db.t",
    "EXECUTE IMMEDIATE 'SHOW TAGS db.t'",
    "SHOW PROCEDURES IN sys LIKE 'c*'",
    "DESCRIBE DATABASE EXTENDED db",
    "CACHE LAZY TABLE c OPTIONS ('storageLevel' = 'DISK_ONLY') AS SELECT * FROM db.t",
    "ALTER TABLE db.t CREATE TAG IF NOT EXISTS a AS OF VERSION 1 RETAIN 3 DAYS",
    "ALTER TABLE db.t CREATE OR REPLACE TAG a",
    "ALTER TABLE db.t REPLACE TAG a AS OF VERSION 1",
    "ALTER TABLE db.t RENAME TAG a TO b",
    "ALTER TABLE db.t DELETE TAG IF EXISTS a",
    "ALTER TABLE db.t SET ('target-file-size' = '1 mb')",
    "ALTER TABLE db.t RESET ('target-file-size')",
    "CREATE TABLE db.n (id BIGINT PRIMARY KEY NOT ENFORCED, n INT) WITH ('connector' = 'paimon', 'bucket' = '1')",
    "CREATE TABLE db.n (id BIGINT) CLUSTERED BY (id) INTO 2 BUCKETS",
    "DROP DATABASE empty CASCADE",
    "CALL sys.compact_database(including_databases => 'db')",
    "INSERT INTO db.t SELECT 1, 'a'",
    "INSERT OVERWRITE TABLE db.t PARTITION (day = 'a') SELECT 1",
    "INSERT INTO db.t BY NAME SELECT 1 AS id",
    "INSERT INTO db.t (id, day) VALUES (1, 'a')",
    "CREATE TABLE IF NOT EXISTS db.n (id BIGINT NOT NULL COMMENT 'x', PRIMARY KEY (id) NOT ENFORCED) USING paimon TBLPROPERTIES ('bucket' = '1')",
    "CREATE TABLE db.n LIKE db.t",
    "CREATE TABLE db.n USING paimon PARTITIONED BY (day) COMMENT 'x' AS SELECT 1 AS id, 'a' AS day",
    "CREATE OR REPLACE TABLE db.t (id BIGINT, day STRING) PARTITIONED BY (day)",
    "REPLACE TABLE db.t (id BIGINT, day STRING) PARTITIONED BY (day)",
    "DROP TABLE IF EXISTS db.s PURGE",
    "CREATE VIEW v AS SELECT * FROM db.t",
    "CREATE TEMP VIEW v AS SELECT * FROM db.t",
    "CREATE TEMPORARY VIEW v AS SELECT * FROM db.t",
    "CREATE OR REPLACE VIEW v AS SELECT * FROM db.t",
    "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM db.t",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM db.t",
    "CREATE VIEW IF NOT EXISTS db.n (id COMMENT 'x', day) COMMENT 'y' TBLPROPERTIES ('a' = 'b') AS SELECT * FROM db.t",
    "CREATE OR REPLACE VIEW db.w (id) AS SELECT 1",
    "DROP VIEW IF EXISTS db.w",
    "ALTER VIEW db.w RENAME TO db.x",
    "ALTER VIEW db.w SET TBLPROPERTIES ('a' = 'b')",
    "ALTER VIEW db.w UNSET TBLPROPERTIES IF EXISTS ('a')",
    "ALTER VIEW db.w AS SELECT 1 AS id",
    "SHOW VIEWS IN db LIKE '*'",
    "SHOW CREATE TABLE db.w",
    "DESCRIBE EXTENDED db.w",
    "ALTER TABLE db.t RENAME TO db.other",
    "ALTER TABLE db.t ADD COLUMNS (x INT COMMENT 'c' AFTER id, y STRING)",
    "ALTER TABLE db.t ADD COLUMN x INT FIRST",
    "ALTER TABLE db.t DROP COLUMN IF EXISTS id",
    "ALTER TABLE db.t DROP COLUMNS (id)",
    "ALTER TABLE db.t RENAME COLUMN id TO x",
    "ALTER TABLE db.t ALTER COLUMN id TYPE DECIMAL(30, 0)",
    "ALTER TABLE db.t CHANGE COLUMN id COMMENT 'x'",
    "ALTER TABLE db.t ALTER COLUMN id SET DEFAULT 7",
    "ALTER TABLE db.t SET TBLPROPERTIES ('target-file-size' = '1 mb')",
    "ALTER TABLE db.t UNSET TBLPROPERTIES IF EXISTS ('target-file-size')",
    "ALTER TABLE db.t DROP IF EXISTS PARTITION (day = 'a'), PARTITION (day = 'b') PURGE",
    "COPY INTO db.t FROM '/' FILE_FORMAT = (TYPE = CSV) PATTERN = 'none' FORCE = TRUE ON_ERROR = CONTINUE",
    "CALL sys.create_tag(table => 'db.t', tag => 'v1')",
    "CALL sys.compact('db.t', 'day=a')",
    "SHOW PARTITIONS db.t PARTITION (day = 'a')",
    "SHOW TABLES IN db LIKE '*'",
    "SHOW TABLE EXTENDED IN db LIKE 't'",
    "SHOW TABLE EXTENDED IN db LIKE 't' PARTITION (day = 'a')",
    "REFRESH TABLE db.t",
    "SHOW CREATE TABLE db.t",
    "SHOW COLUMNS IN t IN db",
    "SHOW DATABASES LIKE 'd*'",
    "SHOW SCHEMAS LIKE 'd*'",
    "SHOW NAMESPACES LIKE 'd*'",
    "CREATE DATABASE IF NOT EXISTS e",
    "CREATE SCHEMA e",
    "CREATE NAMESPACE e",
    "DROP DATABASE IF EXISTS empty RESTRICT",
    "DROP SCHEMA empty",
    "DROP NAMESPACE empty",
    "USE db",
    "SET spark.paimon.target-file-size = 1",
    "RESET spark.paimon.target-file-size",
    "SHOW TBLPROPERTIES db.t ('bucket')",
    "OPTIMIZE db.t",
    "VACUUM db.t",
    "RESTORE TABLE db.t TO VERSION AS OF 1",
    "RESTORE db.t TO VERSION AS OF 1",
    "DESCRIBE DETAIL db.t",
    "DESCRIBE HISTORY db.t LIMIT 1",
    "DESC HISTORY db.t LIMIT 1",
    "DESCRIBE TABLE EXTENDED db.t",
    "DESC db.t id",
    "ANALYZE TABLE db.t COMPUTE STATISTICS FOR COLUMNS id, day",
]


class HandedToSpark(Exception):  # no error of ours
    """Spark was given a text, which its parser reads to the end."""


@pytest.fixture(autouse=True)
def _read_by_tasks(set_thresholds: Any) -> None:
    """No session reads rows here."""
    set_thresholds(driver_bytes=0, sent_bytes=0)


class AskedSpark:
    """A session that takes no text."""

    def sql(self, text: str, **_: Any) -> Any:
        raise HandedToSpark(text)

    @property
    def catalog(self) -> AskedSpark:
        return self

    def databaseExists(self, _: str) -> bool:  # Spark's name
        return True

    def createDataFrame(self, rows: pa.Table) -> Any:  # Spark's name
        return rows


class HeldViews:
    """One view, and no other."""

    def __init__(self) -> None:
        self.found = {"db.w": View("db.w", build_schema("id INT").fields, "SELECT 1 AS id", {}, None, {"a": "b"})}

    def names(self, database: str) -> list[str]:
        return sorted(name.rpartition(".")[2] for name in self.found if name.startswith(f"{database}."))

    def get(self, database: str, name: str) -> View:
        if f"{database}.{name}" not in self.found:
            raise TableNotFound(name)
        return self.found[f"{database}.{name}"]

    def create(self, view: View) -> None:
        self.found[view.name] = view

    def alter(self, view: View, changes: ViewChanges) -> None:
        self.found[view.name] = replace(view, options=changes.options, dialects=changes.dialects)

    def rename(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        self.found[".".join(target)] = self.found.pop(".".join(source))

    def drop(self, database: str, name: str) -> None:
        del self.found[f"{database}.{name}"]


HELD = HeldViews()


class InProcess(Catalog):
    """A catalog whose tables are read and written by this process, with views in its memory."""

    has_views = True

    def table(self, name: str, spark: Any = None) -> Table:  # as its parent
        return super().table(name)

    @property
    def _views(self) -> HeldViews:
        return HELD


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> InProcess:
    catalog = InProcess(tmp_path_factory.mktemp("warehouse"))
    for name in ("db", "empty"):
        catalog.create_database(name)
    for name in ("db.t", "db.s"):
        catalog.create_table(name, "id BIGINT, day STRING", partition_keys=["day"])
        catalog.table(name).write(pa.table({"id": [1, 2], "day": ["a", "b"]}))
    return catalog


@pytest.fixture(scope="module")
def untouched(warehouse) -> list[str]:
    return state(warehouse)


def state(catalog: InProcess) -> list[str]:
    names = [f"{database}.{name}" for database in catalog.list_databases() for name in catalog.list_tables(database)]
    tables = [catalog.table(name) for name in names]
    histories = [(t.table_schema, t.snapshots().num_rows, t.tags()) for t in tables]
    return [str(part) for part in (catalog.list_databases(), names, histories, HELD.found)]


def places(text: str) -> list[int]:
    """Where words of a statement end, behind its first words."""
    words = TokenCursor(text)
    first = max((first for first in STATEMENTS if TokenCursor(text).take(*first.split())), key=len)
    return [token.end + 1 for token in words.tokens[len(first.split()) - 1 :]]


@pytest.mark.parametrize("text", TEXTS)
def test_words_that_do_not_belong_are_refused_and_nothing_is_changed(warehouse, untouched, text) -> None:
    ends = places(text)
    for junk in JUNK:
        for at in ends:
            broken = f"{text[:at]} {junk} {text[at:]}"
            try:
                done = sql(AskedSpark(), broken, catalog=warehouse)
            except PaimonError:
                continue
            except HandedToSpark as handed:
                if junk.split()[-1] in str(handed):
                    continue
                done = handed
            pytest.fail(f"passed over: {broken}: {done}")
    assert state(warehouse) == untouched


def test_every_kind_of_statement_is_tried() -> None:
    for first in STATEMENTS:
        assert any(TokenCursor(text).take(*first.split()) for text in TEXTS), first


@pytest.mark.parametrize("text", ["-", "- 'x'", "+ TRUE", "- NULL", ""])
def test_a_sign_goes_with_a_number(text) -> None:
    with pytest.raises(InvalidArgument):
        TokenCursor(text).literal()


@pytest.mark.parametrize("text", ["(a = 1, a = 2)", "()", "(a)", "(a = 1 2)"])
def test_a_partition_names_each_column_once(text) -> None:
    with pytest.raises(InvalidArgument):
        partition_spec(TokenCursor(text))


@pytest.mark.parametrize("text", ["(table => 'a', table => 'b')", "('a', table => 'b')", "(tag => 'a', 'b')"])
def test_an_argument_comes_once(text) -> None:
    with pytest.raises(InvalidArgument, match="twice"):
        arguments_of(TokenCursor(text), "create_tag", ["table", "tag"])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("remove_orphan_files(table => 'db.t', dry_run => 'yes')", "dry_run"),
        ("compact(table => 'db.t', compact_strategy => 'most')", "compact_strategy"),
        ("compact(table => 'db.t', order_by => 'id')", "order_strategy"),
    ],
)
def test_a_value_that_means_nothing_is_refused(warehouse, call, told) -> None:
    with pytest.raises(InvalidArgument, match=told):
        sql(AskedSpark(), f"CALL sys.{call}", catalog=warehouse)


def test_what_statements_show(warehouse) -> None:
    def shown(text: str) -> pa.Table:
        return sql(AskedSpark(), text, catalog=warehouse)

    assert shown("SHOW PARTITIONS db.t PARTITION (day = 'a')")["partition"].to_pylist() == ["day=a"]
    assert shown("SHOW PARTITIONS db.t").num_rows == 2
    assert shown("DESCRIBE HISTORY db.t LIMIT 1").num_rows == 1
    shown("ALTER TABLE db.t DROP COLUMN IF EXISTS nobody")
    assert warehouse.table("db.t").table_schema.id == 0
