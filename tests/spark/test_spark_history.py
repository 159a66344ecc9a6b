"""Altering, tagging, branching, rolling back and dropping partitions: the same in process and on Spark."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from pyspark_paimon import InvalidSchema, SnapshotNotFound, Table, sql
from tests.build import keyed

pytestmark = pytest.mark.spark

DDL = "id BIGINT, day STRING, n INT"


def rows(*values):
    ids, days, numbers = zip(*values, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "day": list(days), "n": pa.array(numbers, pa.int32())})


def content(table, **travel):
    return sorted(table.scan(columns=["id"], **travel).to_arrow()["id"].to_pylist())


def story(table, reopen):
    """What every step answers, but for times."""
    told = [table.write(rows((1, "mon", 1), (2, "tue", 2))).snapshot_id]
    told.append(table.create_tag("v1", time_retained=dt.timedelta(days=1)).model_dump())
    table.add_column("x", "DECIMAL(9, 2)", after="id", comment="new", default="1.5").rename_column("n", "m").change_type("m", "BIGINT")
    table.set_comment("told").alter_options({"target-file-size": "1 mb"})
    with pytest.raises(InvalidSchema, match="primary-key column"):
        table.drop_column("id")
    told.append([(field.id, field.name, str(field.type), field.description) for field in table.table_schema.fields])
    told.append(table.scan("m = 2").to_arrow().to_pylist())
    told.append((content(table), table.scan(tag="v1").to_arrow().column_names))
    table.create_branch("dev", "v1")
    branch = reopen("dev")
    told.append(branch.delete("id = 1").rows)
    told += [content(branch), content(table), branch.path.endswith("$branch_dev")]
    told.append(table.fast_forward("dev").model_dump())
    told += [content(table), table.delete_branch("dev").model_dump(), table.branches().num_rows]
    told.append(table.drop_partitions([{"day": "tue"}]).model_dump())
    told.append(table.expire_partitions(dt.datetime(2000, 1, 1)).model_dump())  # noqa: DTZ001
    told.append(table.rollback_to(tag="v1").model_dump())
    told.append(content(table))
    for view in (table.tags(), table.schemas(), table.partitions(), table.consumers()):
        kept = [name for name in view.column_names if "time" not in name and name != "file_size"]
        told.append(view.select(kept).to_pylist())
    with pytest.raises(SnapshotNotFound, match="no tag 'gone'"):
        table.delete_tag("gone")
    told += [table.delete_tag("v1").tags, table.expire_tags().tags]
    return told


@pytest.mark.long
def test_a_tables_history_is_told_alike_in_process_and_on_spark(spark, tmp_path):
    def told(name, session):
        path = tmp_path / name
        table = Table.create(path, DDL, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "1"}, spark=session)
        return story(table, lambda branch: Table.open(path, session, branch=branch))

    assert told("spark", spark) == told("local", None)


def test_a_branch_is_read_by_sparks_own_reader(spark, tmp_path):
    table = keyed(tmp_path / "t", DDL)
    table.write(rows((1, "mon", 1)))
    table.create_tag("v1")
    table.create_branch("dev", "v1")
    frame = spark.createDataFrame([(2, "tue", 2)], "id long, day string, n int")
    frame.write.format("paimon").mode("append").option("branch", "dev").save(table.path)
    assert sorted(row.id for row in spark.read.format("paimon").option("branch", "dev").load(table.path).collect()) == [1, 2]
    assert [row.id for row in spark.read.format("paimon").load(table.path).collect()] == [1]
    assert content(Table.open(table.path, branch="dev")) == [1, 2]


@pytest.mark.slow
def test_history_names_operations_on_spark(spark, tmp_path):
    made = keyed(tmp_path / "t", DDL)
    table = Table.open(made.path, spark=spark)
    table.write(rows((1, "mon", 1), (2, "tue", 2)), properties={"ticket": "DATA-7"})
    table.delete("id = 1", properties={"ticket": "DATA-8"})
    table.update("id = 2", {"n": 7})
    source = rows((2, "wed", 1), (3, "wed", 3))
    table.merge(source, on="id", properties={"ticket": "DATA-9"}).when_matched_update_all().when_not_matched_insert_all().execute()
    frame = spark.createDataFrame([(5, "thu", 5)], "id BIGINT, day STRING, n INT")
    frame.write.format("paimon").option("commit.property.Ticket", "DATA-10").mode("append").save(made.path)
    table.compact(full=True)
    shown = sql(spark, f"DESCRIBE HISTORY paimon.`{made.path}`").toArrow().to_pylist(maps_as_pydicts="strict")
    assert [(row["operation"], row["properties"]) for row in reversed(shown)] == [
        ("upsert", {"ticket": "DATA-7"}),
        ("delete", {"ticket": "DATA-8"}),
        ("update", {}),
        ("merge", {"ticket": "DATA-9"}),
        ("upsert", {"ticket": "DATA-10"}),
        ("compact", {}),
    ]
    counts = [row["metrics"]["rows"] for row in reversed(shown)]
    assert counts == [2, 1, 1, 2, 1, 3]
    assert shown[2]["metrics"].items() >= {"updated": 1, "inserted": 1}.items()
    log = Table.create(tmp_path / "log", DDL, spark=spark)
    log.write(rows((1, "mon", 1), (2, "tue", 2)))
    log.delete("id = 1", properties={"ticket": "DATA-8"})
    assert [row["operation"] for row in log.history().to_pylist()] == ["delete", "append"]
    assert dict(log.history(1)["properties"][0].as_py()) == {"ticket": "DATA-8"}
