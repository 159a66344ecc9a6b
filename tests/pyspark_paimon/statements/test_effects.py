"""What statements do to tables and what they answer; this process does it, and no session takes part."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.sql import types

from pyspark_paimon import Catalog, Table, TableExists
from pyspark_paimon.statements import create, insert
from pyspark_paimon.statements.run import sql


class Session:
    """Gives rows back as they are."""

    def __init__(self, **settings: str) -> None:
        self.conf = SimpleNamespace(get=lambda name, default="UTC": settings.get(name, default))
        self.said: list[str] = []

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
    monkeypatch.setattr(create, "run_query", lambda names, query: rows)
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
    assert not insert._has_variant(types.ArrayType(types.MapType(types.StringType(), number)))
    for inner in (types.ArrayType(types.VariantType()), types.MapType(types.StringType(), types.VariantType())):
        assert insert._has_variant(types.StructType([types.StructField("a", inner)]))
