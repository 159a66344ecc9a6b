"""The program of a thin client that calls every public method of ``Table``, ``Scan`` and ``Catalog`` at a server, warnings being errors.

``python -W error every_method.py URL FOLDER``; it prints JSON with the versions that it ran with and the calls, and fails where a method
was forgotten.
"""

import inspect
import json
import sys
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what libraries say of each other while they are loaded
    import duckdb
    import pandas as pd
    import pyspark
    from pyspark.sql.connect.session import SparkSession  # noqa: F401

import pyarrow as pa

import pyspark_paimon
from pyspark_paimon import Catalog, InvalidArgument, PaimonError, Table, spark_session
from pyspark_paimon.table.scan import Scan

url, folder = sys.argv[1:3] if __name__ == "__main__" else ("", "")  # tests that look for examples import every module
address, _, token = url.partition("/;token=")
called: set[str] = set()


def public(kind: type) -> set[str]:
    return {name for name, member in inspect.getmembers(kind) if not name.startswith("_")}


def noted(kind: type) -> None:
    """Have ``kind`` note which of its public methods and properties are used from here."""
    for name in public(kind):
        owner = next(each for each in kind.__mro__ if name in vars(each))
        member = vars(owner)[name]
        label = f"{kind.__name__}.{name}"
        if isinstance(member, property):
            setattr(kind, name, property(lambda self, member=member, label=label: (called.add(label), member.__get__(self))[1]))
        elif isinstance(member, classmethod):
            inner = member.__func__
            setattr(
                kind,
                name,
                classmethod(lambda cls, *args, inner=inner, label=label, **named: (called.add(label), inner(cls, *args, **named))[1]),
            )
        elif inspect.isfunction(member):
            setattr(
                kind, name, lambda self, *args, member=member, label=label, **named: (called.add(label), member(self, *args, **named))[1]
            )
        else:
            called.add(label)  # a field


def main() -> None:
    spark = spark_session(address, token=token)
    for kind in (Table, Scan, Catalog):
        noted(kind)
    catalog(spark)
    table = Table.create(f"{folder}/t", "id BIGINT, p STRING, n INT, s STRING", primary_keys=["p", "id"], partition_keys=["p"], spark=spark,
                         options={"bucket": "1", "file-index.bloom-filter.columns": "s", "changelog-producer": "input"})  # fmt: skip
    rows(spark, table)
    scans(spark, table)
    questions(table)
    history(spark, table)
    evolution(table)
    upkeep(spark, table)
    forgotten = {f"{kind.__name__}.{name}" for kind in (Table, Scan, Catalog) for name in public(kind)} - called
    assert not forgotten, f"never called: {sorted(forgotten)}"
    versions = {"python": sys.version.split()[0], "pandas": pd.__version__, "pyspark": pyspark.__version__, "pyarrow": pa.__version__}
    print(json.dumps({**versions, "calls": len(called)}))  # noqa: T201  # what the command shows


def catalog(spark) -> None:
    lake = Catalog(f"{folder}/lake")
    lake.create_database("db", ignore_if_exists=True)
    lake.create_table("db.a", "id BIGINT", primary_keys=["id"], options={"bucket": "1"})
    assert lake.table_exists("db.a")
    lake.table("db.a", spark).write(spark.range(3))
    lake.rename_table("db.a", "db.b")
    assert (lake.list_databases(), lake.list_tables("db")) == (["db"], ["b"])
    lake.create_views(spark, "db")
    assert lake.open("db.b", spark).count() == 3
    assert Catalog.create({"warehouse": f"{folder}/lake"}).warehouse == lake.warehouse
    assert lake.copy_table("db.b", "db.c", spark=spark).rows == 3
    lake.drop_table("db.c")
    lake.drop_table("db.b")
    lake.drop_database("db")


def rows(spark, table) -> None:
    table.write(pa.table({"id": range(100), "p": ["a"] * 100, "n": pa.array(range(100), pa.int32()), "s": ["x"] * 100}))
    table.write(pd.DataFrame({"id": [1, 2], "p": ["a", "b"], "n": [1, 2], "s": pd.Categorical(["y", "z"])}))
    table.write(spark.range(100, 110).selectExpr("id", "'b' AS p", "int(id) AS n", "'w' AS s"))
    table.write({"id": [109], "p": ["b"], "n": [109], "s": ["w"], "_row_kind": ["-D"]})
    assert table.count() == 110
    assert Table.from_data(f"{folder}/from", pa.table({"id": [1]}), ["id"], spark=spark).count() == 1
    assert table.lookup({"p": ["a"], "id": [1]}).num_rows == table.take({"p": ["a"], "id": [1]}).num_rows == 1
    assert table.delete("id = 5").rows == 1
    assert table.update("id = 6", values={"s": "q"}).rows == 1
    source = spark.createDataFrame(pd.DataFrame({"p": ["a", "a"], "id": [6, 500], "n": [0, 0]}))
    assert table.merge(source, ["p", "id"]).when_matched_update({"n": "s.n"}).when_not_matched_insert_all().execute().rows == 2
    assert table.head(2).num_rows == 2


def scans(spark, table) -> None:
    scan = table.scan("n < 50", columns=["id", "n", "s", "p"])
    count = scan.count()
    assert scan.to_arrow().num_rows == len(scan.to_pandas()) == scan.to_spark().count() == scan.to_polars().height == count
    assert sum(batch.num_rows for batch in scan.to_batches()) == scan.to_reader().read_all().num_rows == count
    assert scan.to_dataset().count_rows() == scan.scan_polars().collect().height == count
    connection = duckdb.connect()
    assert len(scan.to_duckdb(connection).fetchall()) == count
    assert scan.head(3).num_rows == scan.limited(3).to_arrow().num_rows == 3
    assert scan.projected(["id"]).schema.names == ["id"]
    assert scan.narrowed("id = 1").count() == 1
    assert scan.counters is not None
    assert scan.snapshot_id is not None
    assert scan.aggregate({"n": ["max"]}).num_rows == 1
    plan = scan.plan()
    assert plan.splits
    with suppress(InvalidArgument):  # tasks read splits, and the error says what else does
        list(scan.read(plan.splits[0]))
    assert "snapshot" in str(scan.explain())
    for many in (table.to_polars().height, len(table.to_duckdb(connection).fetchall()), table.to_reader().read_all().num_rows):
        assert many == table.count()
    assert table.to_dataset().count_rows() == table.scan_polars().collect().height == table.count()


def questions(table) -> None:
    for name in (
        "snapshots",
        "files",
        "file_indexes",
        "index_health",
        "tags",
        "branches",
        "schemas",
        "partitions",
        "consumers",
        "option_effects",
    ):
        assert isinstance(getattr(table, name)(), pa.Table), name
    assert (table.primary_keys, table.partition_keys) == (("p", "id"), ("p",))
    assert (table.schema.names, len(table.options) > 0, bool(table.path), bool(table.table_schema)) == (
        ["id", "p", "n", "s"],
        True,
        True,
        True,
    )
    assert table.index_advice("n = 5").column("index_type").to_pylist()
    assert table.fsck().problems == ()
    table.analyze()
    assert table.statistics().num_rows
    table.tree()
    table.report(Path(folder) / "page.html")
    assert table.changelog(1).to_arrow().num_rows
    with suppress(InvalidArgument):  # as above, for streams
        next(iter(table.follow(start="from-snapshot", snapshot=1)))
    Table.open(table.path)


def history(spark, table) -> None:
    assert table.history().num_rows > 3
    table.create_tag("one", 1)
    table.replace_tag("one", 2)
    table.rename_tag("one", "two")
    table.create_branch("b", "two")
    Table.open(table.path, spark, branch="b").write({"id": [1], "p": ["c"], "n": [1], "s": ["s"]})
    table.fast_forward("b", dry_run=True)
    table.delete_branch("b")
    table.restore(tag="two")
    table.delete_tag("two")
    table.expire_tags()
    table.rollback_to(3)
    list(zip(range(1), Table.open(table.path).follow(consumer="c"), strict=False))
    table.reset_consumer("c")
    table.clear_consumers("c.*")
    table.compact_manifests()
    table.rescale(dry_run=True)
    with suppress(PaimonError):
        table.create_due_tags()
    with suppress(PaimonError):
        table.mark_partitions_done([{"day": "x"}])
    table.create_branch("named")
    table.rename_branch("named", "renamed")
    table.delete_branch("renamed")


def evolution(table) -> None:
    table.add_column("extra", "INT", default=5)
    table.rename_column("extra", "more").change_type("more", "BIGINT").move_column("more", after="n").set_default("more", 6)
    table.set_comment("of the column", "more").set_nullable("s", nullable=True)
    table.alter(lambda t: t.drop_column("more"), lambda t: t.add_column("last", "INT").drop_column("last"))
    table.add_column("more", "INT").drop_column("more")
    table.replace_columns(table.table_schema)
    table.alter_options({"snapshot.time-retained": "2 h"})


def upkeep(spark, table) -> None:
    with suppress(PaimonError):  # those that work in process alone say so
        table.writer()
    with suppress(PaimonError):
        table.reader()
    with suppress(PaimonError):
        table.clustering_information()
    table.compact(full=True)
    table.rewrite_file_index()
    table.drop_index("s")
    table.maintenance(dry_run=True)
    table.list_orphan_files()
    table.remove_orphan_files(dry_run=True)
    table.drop_partitions([{"p": "b"}])
    assert table.purge("id = 7").rows == 1
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert pyspark_paimon.sql(spark, f"SELECT count(*) FROM paimon.`{table.path}`").first()[0] == table.count()
    assert table.copy_to(f"{folder}/copied", filter="p = 'a'").snapshot_id == 1
    assert table.copy_to(f"{folder}/backup", history=True).snapshot_id == table.snapshots()["snapshot_id"][-1].as_py()
    assert Table.open(f"{folder}/backup", spark).count() == table.count()
    assert table.remove_unexisting_files().paths == ()
    assert table.repair_earliest_snapshot(table.snapshots()["snapshot_id"][0].as_py()).snapshots == 0
    copied = Table.open(f"{folder}/copied", spark)
    assert copied.purge_files().gone
    options = {"bucket": "1", "partition.timestamp-formatter": "yyyy-MM-dd"}
    days = Table.create(
        f"{folder}/days", "id BIGINT, day STRING", primary_keys=["day", "id"], partition_keys=["day"], options=options, spark=spark
    )
    days.write({"id": [1, 2], "day": ["2020-01-01", "2999-01-01"]})
    days.expire_partitions(datetime(2021, 1, 1, tzinfo=UTC))
    assert days.scan(columns=["id"]).to_arrow()["id"].to_pylist() == [2]


if __name__ == "__main__":
    main()
