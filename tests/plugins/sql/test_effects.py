"""What statements do to tables and what they answer; this process does it, and no session takes part."""

from __future__ import annotations

import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.sql import types

from pyspark_paimon import Catalog, CommitConflict, InvalidArgument, InvalidSchema, PaimonError, Table, TableExists, TableNotFound
from pyspark_paimon.filter.columns import StatementText
from pyspark_paimon.frames.fetched_rows import has_variant
from pyspark_paimon.plugins.sql import create, insert
from pyspark_paimon.plugins.sql.run import sql


class Session:
    """Gives rows back as they are."""

    def __init__(self, **settings: str) -> None:
        self.conf = SimpleNamespace(get=lambda name, default="UTC": settings.get(name, default))
        self.said: list[str] = []
        self.catalog = SimpleNamespace(databaseExists=lambda name: name == "default")

    def createDataFrame(self, rows: pa.Table) -> pa.Table:  # Spark's name
        return rows

    def sql(self, text: str) -> None:
        self.said.append(text)


class InProcess(Catalog):
    """A catalog whose tables are read and written by this process."""

    def table(self, name: str, spark: Any = None) -> Table:  # as its parent
        return super().table(name)


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("template") / "warehouse"
    catalog = InProcess(path)
    for name in ("db", "other"):
        catalog.create_database(name)
    catalog.create_table("db.t", "id BIGINT, day STRING", partition_keys=["day"])
    catalog.table("db.t").write(pa.table({"id": [1, 2, 3], "day": ["a", "b", "c"]}))
    return path


@pytest.fixture
def catalog(tmp_path, template) -> InProcess:
    return InProcess(shutil.copytree(template, tmp_path / "warehouse"))


@pytest.fixture
def paths(monkeypatch) -> None:
    """Tables of paths are opened by this process, too."""

    def made(path: str, schema: Any, *, spark: Any, **said: Any) -> Table:
        return Table.create(path, schema, **said)

    monkeypatch.setattr(create, "Table", SimpleNamespace(open=lambda path, spark: Table.open(path), create=made))


def ids(catalog: InProcess, name: str = "db.t") -> list[int]:
    return sorted(catalog.table(name).scan().to_arrow()["id"].to_pylist())


def done(catalog: InProcess, text: str, **settings: str) -> Any:
    return sql(Session(**settings), text, catalog=catalog)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ALTER TABLE db.t DROP PARTITION (day = 'a')", [2, 3]),
        ("ALTER TABLE db.t DROP IF EXISTS PARTITION (day = 'a'), PARTITION (day = 'c') PURGE", [2]),
        ("DELETE FROM db.t WHERE id = 1", [2, 3]),
        ("DELETE FROM db.t WHERE t.id = 1", [2, 3]),
        ("DELETE FROM db.t WHERE db.t.id > 1 OR T.day = 'a'", []),
        ("DELETE FROM db.t AS x WHERE x.id = 2", [1, 3]),
        ("TRUNCATE TABLE db.t", []),
        ("UPDATE db.t SET id = t.id + 10 WHERE db.t.day = 'b'", [1, 3, 12]),
        ("CALL sys.expire_snapshots('db.t', 1)", [1, 2, 3]),
    ],
)
def test_rows_that_are_left(catalog, text, left) -> None:
    answer = done(catalog, text)
    assert answer.num_rows == 1
    assert ids(catalog) == left


def test_a_table_is_renamed_into_another_database(catalog) -> None:
    assert done(catalog, "ALTER TABLE db.t RENAME TO other.u")["result"].to_pylist() == [True]
    assert (catalog.list_tables("db"), catalog.list_tables("other"), ids(catalog, "other.u")) == ([], ["u"], [1, 2, 3])


def test_the_statement_that_is_shown_makes_the_same_table_again(catalog) -> None:
    text = (
        "CREATE TABLE db.n (id BIGINT NOT NULL COMMENT 'it''s a \\\\', `a b` DECIMAL(10, 2) NULL DEFAULT 1.5, day DATE NOT NULL, "
        "m MAP<STRING, ARRAY<INT>>, CONSTRAINT pk PRIMARY KEY (id, day) NOT ENFORCED) USING paimon "
        "PARTITIONED BY (day) COMMENT 'all of them' TBLPROPERTIES ('bucket' = '2', 'merge-engine' = 'partial-update')"
    )
    done(catalog, text)
    (shown,) = done(catalog, "SHOW CREATE TABLE db.n")["createtab_stmt"].to_pylist()
    made = catalog.table("db.n").table_schema
    assert (made.primary_keys, made.partition_keys, made.comment) == (("id", "day"), ("day",), "all of them")
    assert [(field.name, field.description, field.default_value) for field in made.fields] == [
        ("id", "it's a \\", None),
        ("a b", None, "1.5"),
        ("day", None, None),
        ("m", None, None),
    ]
    assert made.options == {"bucket": "2", "merge-engine": "partial-update", "partition.legacy-name": "false"}
    done(catalog, "ALTER TABLE db.n RENAME TO other.old")
    done(catalog, shown)
    done(catalog, "CREATE TABLE db.like LIKE other.old")
    for name in ("db.n", "db.like"):
        again = catalog.table(name).table_schema
        assert {**vars(again), "time_millis": 0, "id": 0} == {**vars(made), "time_millis": 0, "id": 0}


@pytest.mark.parametrize("quiet", ["", "IF NOT EXISTS "])
def test_a_table_is_made_at_a_path_or_in_the_catalog(catalog, paths, tmp_path, quiet) -> None:
    path = tmp_path / "elsewhere"
    for name in (f"paimon.`{path}`", "db.new"):
        text = f"CREATE TABLE {quiet}{name} (id BIGINT) USING paimon"
        done(catalog, text)
        table = Table.open(path) if "/" in name else catalog.table(name)
        table.write(pa.table({"id": [1]}))
        if quiet:
            done(catalog, text)
        else:
            with pytest.raises(TableExists):
                done(catalog, text)
        assert table.scan().count() == 1
    assert catalog.list_tables("db") == ["new", "t"]


def test_a_table_elsewhere_gets_a_name_of_sparks(catalog, paths, tmp_path) -> None:
    spark = Session()
    sql(spark, f"CREATE TABLE x (id BIGINT) USING paimon LOCATION '{tmp_path / 'x'}'", catalog=catalog)
    assert Table.open(tmp_path / "x").schema.names == ["id"]
    assert [text.split(" OPTIONS")[0] for text in spark.said] == ["CREATE TABLE `x` USING pyspark_paimon"]
    assert catalog.list_tables("db") == ["t"]


def test_a_table_whose_rows_cannot_be_written_is_not_made(catalog, monkeypatch) -> None:
    rows = pa.table({"id": pa.array([None], pa.int64())})
    frame = SimpleNamespace(schema=SimpleNamespace(toNullable=lambda: rows.schema))
    monkeypatch.setattr(create, "run_query", lambda names, query: frame)
    write = Table.write
    monkeypatch.setattr(Table, "write", lambda table, _: write(table, rows))
    with pytest.raises(Exception, match="id"):
        done(catalog, "CREATE TABLE db.n USING paimon TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1') AS SELECT NULL AS id")
    assert catalog.list_tables("db") == ["t"]


@pytest.mark.parametrize(
    ("text", "mode", "left"),
    [
        ("INSERT INTO db.t SELECT 9, 'a'", "static", [1, 2, 3, 9]),
        ("INSERT OVERWRITE db.t SELECT 9, 'a'", "static", [9]),
        ("INSERT OVERWRITE db.t SELECT 9, 'a'", "DYNAMIC", [2, 3, 9]),
        ("INSERT OVERWRITE TABLE db.t PARTITION (day = 'a') SELECT 9", "static", [2, 3, 9]),
        ("INSERT OVERWRITE TABLE db.t PARTITION (day = 'a') SELECT 9", "dynamic", [2, 3, 9]),
    ],
)
def test_an_insert_adds_or_replaces(catalog, monkeypatch, text, mode, left) -> None:
    monkeypatch.setattr(insert, "run_query", lambda names, query: None)
    monkeypatch.setattr(insert, "_align_columns", lambda *_, **__: pa.table({"id": [9], "day": ["a"]}))
    done(catalog, text, **{"spark.sql.sources.partitionOverwriteMode": mode})
    assert ids(catalog) == left


@pytest.mark.parametrize(("text", "goes"), [("true", False), ("FALSE", True), (None, True)])
def test_a_procedure_is_tried_where_it_is_asked_to(catalog, tmp_path, text, goes) -> None:
    stray = tmp_path / "warehouse/db.db/t/day=a/bucket-0/data-stray-0.parquet"
    stray.write_bytes(b"1")
    dry = "" if text is None else f", dry_run => {text}"
    done(catalog, f"CALL sys.remove_orphan_files(table => 'db.t', older_than => '2999-01-01 00:00:00'{dry})")
    assert stray.exists() is not goes


def test_a_purge_is_called_with_its_filter(catalog) -> None:
    catalog.table("db.t").create_tag("v1")
    done(catalog, "CALL sys.purge(table => 'db.t', where => 'id = 1', dry_run => true)")
    assert 1 in ids(catalog)
    done(catalog, "CALL sys.purge(table => 'db.t', where => 'id = 1')")
    assert 1 not in ids(catalog)
    assert len(catalog.table("db.t").snapshots()) == 1


def test_a_variant_is_found_at_any_depth() -> None:
    number = types.StructType([types.StructField("a", types.IntegerType())])
    assert not has_variant(types.ArrayType(types.MapType(types.StringType(), number)))
    for inner in (types.ArrayType(types.VariantType()), types.MapType(types.StringType(), types.VariantType())):
        assert has_variant(types.StructType([types.StructField("a", inner)]))


def test_names_without_a_database_are_of_the_one_in_use(catalog) -> None:
    other = InProcess(catalog.warehouse)
    done(catalog, "USE DATABASE db")
    assert done(catalog, "DELETE FROM t WHERE id = 1").num_rows == 1
    assert done(catalog, "CALL sys.create_tag(table => 't', tag => 'a')").num_rows == 1
    done(catalog, "CREATE TABLE made (id BIGINT)")
    assert done(catalog, "SHOW TABLES").to_pylist() == [
        {"namespace": "db", "tableName": name, "isTemporary": False} for name in ("made", "t")
    ]
    assert ids(catalog) == [2, 3]
    assert done(catalog, "USE paimon.other").num_rows == 1
    with pytest.raises(TableNotFound, match="t is not a Paimon table"):
        done(catalog, "CALL sys.create_tag(table => 't', tag => 'b')")
    with pytest.raises(TableNotFound):  # another catalog object is in another database
        done(other, "CALL sys.create_tag(table => 't', tag => 'b')")
    session = Session()
    sql(session, "USE default", catalog=catalog)
    catalog.create_database("default")
    sql(session, "USE paimon.default", catalog=catalog)
    assert session.said[:2] == ["USE default", "USE `default`"]
    with pytest.raises(InvalidArgument, match="has 'x' at"):
        done(catalog, "USE db x")


def test_tables_are_shown_with_what_they_are(catalog) -> None:
    done(
        catalog,
        "CREATE TABLE db.two (id BIGINT NOT NULL COMMENT 'c', PRIMARY KEY (id) NOT ENFORCED) COMMENT 'all' TBLPROPERTIES ('bucket' = '1')",
    )
    shown = done(catalog, "SHOW TABLE EXTENDED IN db LIKE 't*|x'")
    assert shown["tableName"].to_pylist() == ["t", "two"]
    text = shown["information"].to_pylist()[1]
    for line in ("Database: db", "Table: two", "Provider: paimon", "Comment: all", "Primary Key: id", "Schema: root", " |-- id: bigint"):
        assert line in text.split("\n"), line
    (part,) = done(catalog, "SHOW TABLE EXTENDED FROM db LIKE 't' PARTITION (day = 'b')")["information"].to_pylist()
    assert part.startswith("Partition Values: [day=b]\nPartition Parameters: {row_count=1, file_count=1, ")
    with pytest.raises(InvalidArgument, match="needs the name of one table"):
        done(catalog, "SHOW TABLE EXTENDED IN db LIKE 't*' PARTITION (day = 'b')")
    with pytest.raises(InvalidArgument, match=r"0 partitions of db\.t match"):
        done(catalog, "SHOW TABLE EXTENDED IN db LIKE 't' PARTITION (day = 'z')")
    with pytest.raises(InvalidArgument, match="LIKE"):
        done(catalog, "SHOW TABLE EXTENDED IN db")


def test_there_is_nothing_to_refresh(catalog) -> None:
    before = catalog.table("db.t").snapshots().num_rows
    assert done(catalog, "REFRESH TABLE db.t")["result"].to_pylist() == [True]
    assert catalog.table("db.t").snapshots().num_rows == before


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("UPDATE db.d SET n = DEFAULT, c = upper(c) WHERE id = 1", {"id": 1, "c": "X", "n": 5}),
        ("UPDATE db.d SET n = 8 WHERE id = 1", {"id": 1, "c": "x", "n": 8}),
    ],
)
def test_default_is_the_value_of_the_column(catalog, text, row) -> None:
    done(catalog, "CREATE TABLE db.d (id BIGINT NOT NULL PRIMARY KEY, c STRING, n INT DEFAULT 5) TBLPROPERTIES ('bucket' = '1')")
    catalog.table("db.d").write([{"id": 1, "c": "x", "n": 7}])
    done(catalog, text)
    assert catalog.table("db.d").scan().to_arrow().to_pylist() == [row]


STORED = {
    "d": {"2.0": 2.0, "2": 2.0, "1 + 0.5": 1.5, "d + 0.1": 1.1, "'x'": None, "TRUE": None},
    "f": {"2.5": 2.5, "0.1": 0.10000000149011612, "CAST(0.1 AS DOUBLE)": 0.10000000149011612},
    "n": {"2.0": 2, "2.5": None, "5000000000": None, "n + 1": 2, "DATE '2024-01-01'": None},
    "m": {"2": Decimal("2.00"), "2.5": Decimal("2.50"), "CAST(0.25 AS DOUBLE)": Decimal("0.25"), "d * 2": Decimal("2.00"), "2.125": None},
    "s": {"5": "5", "2.50": None, "TRUE": "true", "DATE '2024-01-31'": "2024-01-31", "'x'": "x"},
    "b": {"TRUE": True, "n = 1": True, "1": None},
}
"""Expressions by column, and the values that UPDATE and MERGE store. None: they refuse them."""


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in STORED.items() for text in texts])
@pytest.mark.parametrize("keyed", [True, False], ids=["keys", "append"])
def test_update_and_merge_store_what_insert_stores(catalog, name, text, keyed) -> None:
    keys = {"primary_keys": ["id"], "options": {"bucket": "1"}} if keyed else {}
    catalog.create_table("db.v", "id BIGINT, d DOUBLE, f FLOAT, n INT, m DECIMAL(5, 2), s STRING, b BOOLEAN", **keys)
    first = {"id": 1, "d": 1.0, "f": 1.0, "n": 1, "m": Decimal("1.00"), "s": "a", "b": False}
    table = catalog.table("db.v")
    table.write([first])
    expected = STORED[name][text]
    for change in (
        lambda: done(catalog, f"UPDATE db.v SET {name} = {text} WHERE id = 1"),
        lambda: table.merge([{"id": 1}], "id").when_matched_update({name: StatementText(f"{text}")}).execute(),
    ):
        if expected is None:
            with pytest.raises(PaimonError) as refused:
                change()
            assert "values=" not in str(refused.value), "Python's arguments are no advice in SQL"
            assert table.scan().to_arrow().to_pylist() == [first]
        else:
            change()
            assert table.scan(columns=[name]).to_arrow()[name].to_pylist() == [expected]
            table.update("id = 1", values={name: first[name]})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("VALUES (1, DEFAULT), (default, 'DEFAULT')", "VALUES (1, NULL), (NULL, 'DEFAULT')"),
        ("VALUES DEFAULT, 2", "VALUES NULL, 2"),
        ("VALUES ('(', DEFAULT)", "VALUES ('(', NULL)"),
        ("VALUES (f(DEFAULT), `default`, x.default)", "VALUES (f(DEFAULT), `default`, x.default)"),
        ("SELECT DEFAULT FROM t", "SELECT DEFAULT FROM t"),
    ],
)
def test_default_in_values_is_null_for_the_writer(given: str, wanted: str) -> None:
    assert insert.without_default_words(given) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"), [("sys.max_pt('db.t')", "'c'"), ("paimon.sys.MAX_PT('db.t')", "'c'"), ("a.max_pt('db.t')", None)]
)
def test_the_greatest_partition_is_a_literal(catalog, text: str, wanted: str | None) -> None:
    session = Session()
    sql(session, f"SELECT 1 WHERE 'x' = {text} AND 1 = 1", catalog=catalog)
    assert session.said == [f"SELECT 1 WHERE 'x' = {wanted or text} AND 1 = 1"]


def test_rows_of_the_greatest_partition_are_deleted(catalog) -> None:
    done(catalog, "DELETE FROM db.t WHERE day = sys.max_pt('db.t')")
    assert ids(catalog) == [1, 2]
    done(catalog, "UPDATE db.t SET id = 7 WHERE day = max_pt('db.t')")
    assert ids(catalog) == [1, 7]


def test_the_greatest_partition_has_its_type(catalog) -> None:
    done(catalog, "CREATE TABLE db.p (id BIGINT, day DATE, hour INT) PARTITIONED BY (day, hour)")
    with pytest.raises(InvalidArgument, match="no partition has rows"):
        done(catalog, "SELECT sys.max_pt('db.p')")
    catalog.table("db.p").write({"id": [1, 2], "day": [date(2024, 1, 31), date(2023, 1, 1)], "hour": [1, 9]})
    session = Session()
    sql(session, "SELECT sys.max_pt('db.p')", catalog=catalog)
    assert session.said == ["SELECT CAST('2024-01-31' AS date)"]
    done(catalog, "CREATE TABLE db.none (id BIGINT)")
    with pytest.raises(InvalidArgument, match="has no partitions"):
        done(catalog, "SELECT sys.max_pt('db.none')")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM paimon_incremental_query('db.t', 1)", "takes a table and start, end; the call has 2 arguments"),
        ("SELECT * FROM paimon_incremental_to_auto_tag('db.t', 'release')", "'release' is not the name of an automatic tag"),
        ("SELECT * FROM vector_search('db.t', 'v', array(1.0), 5)", "function 'vector_search' is not supported: "),
        ("SELECT * FROM a JOIN full_text_search('db.t', 'v', 'x', 5)", "function 'full_text_search' is not supported: "),
    ],
)
def test_functions_say_what_they_take(catalog, text: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        done(catalog, text)


def test_a_table_is_replaced_by_other_columns_and_keeps_its_history(catalog) -> None:
    done(catalog, "CREATE TABLE db.r (id BIGINT NOT NULL PRIMARY KEY, c STRING, n INT) COMMENT 'a' TBLPROPERTIES ('bucket' = '1')")
    table = catalog.table("db.r")
    table.write([{"id": 1, "c": "x", "n": 7}])
    text = "(n DOUBLE NOT NULL DEFAULT 1.5, c STRING COMMENT 'words', id BIGINT NOT NULL, PRIMARY KEY (id) NOT ENFORCED)"
    done(catalog, f"REPLACE TABLE db.r {text} TBLPROPERTIES ('bucket' = '1', 'target-file-size' = '1 mb')")
    schema = table.table_schema
    assert [(field.id, field.name, str(field.type), field.default_value) for field in schema.fields] == [
        (3, "n", "DOUBLE NOT NULL", "1.5"),
        (1, "c", "STRING", None),
        (0, "id", "BIGINT NOT NULL", None),
    ]
    assert (schema.comment, schema.options["target-file-size"], table.count()) == (None, "1 mb", 0)
    assert table.scan(snapshot=1).to_arrow().to_pylist() == [{"id": 1, "c": "x", "n": 7}]
    table.write([{"n": 2.5, "c": "y", "id": 1}])
    assert table.scan().to_arrow().to_pylist() == [{"n": 2.5, "c": "y", "id": 1}]
    assert table.fsck("deep").clean


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(id BIGINT NOT NULL, c STRING)", "differs in primary key; nothing was changed"),
        ("(id BIGINT NOT NULL PRIMARY KEY, c STRING) TBLPROPERTIES ('bucket' = '2')", "differs in 'bucket'; nothing was changed"),
        ("(id INT NOT NULL PRIMARY KEY, c STRING)", "column 'id' is a primary-key column and must stay, as BIGINT NOT NULL"),
        ("(id BIGINT NOT NULL PRIMARY KEY, d STRING)", "column 'c' is named by option 'sequence.field'"),
    ],
)
def test_a_table_that_cannot_be_replaced_stays(catalog, text: str, words: str) -> None:
    options = "'bucket' = '1', 'sequence.field' = 'c'"
    done(catalog, f"CREATE TABLE db.r (id BIGINT NOT NULL PRIMARY KEY, c STRING) TBLPROPERTIES ({options})")
    table = catalog.table("db.r")
    table.write([{"id": 1, "c": "x"}])
    before = table.table_schema
    with pytest.raises((InvalidArgument, InvalidSchema), match=words):
        done(catalog, f"CREATE OR REPLACE TABLE db.r {text}")
    assert (table.table_schema, table.count()) == (before, 1)


def test_columns_come_back_if_the_rows_cannot_be_replaced(catalog, monkeypatch) -> None:
    done(catalog, "CREATE TABLE db.r (id BIGINT NOT NULL PRIMARY KEY, c STRING, n INT) TBLPROPERTIES ('bucket' = '1')")
    table = catalog.table("db.r")
    table.write([{"id": 1, "c": "x", "n": 7}])
    before = table.table_schema
    monkeypatch.setattr(Table, "delete", lambda *_: (_ for _ in ()).throw(CommitConflict("lost")))
    with pytest.raises(CommitConflict, match="lost"):
        done(catalog, "CREATE OR REPLACE TABLE db.r (id BIGINT NOT NULL PRIMARY KEY, word STRING)")
    assert table.table_schema.fields == before.fields
    assert table.table_schema.options == before.options
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "c": "x", "n": 7}]
