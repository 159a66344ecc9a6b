"""System tables in process: how they are named, filtered and travelled in, and what they refuse."""

import json
from datetime import timedelta

import pyarrow as pa
import pytest

from manifest.io.errors import SystemTableReadOnly, TableNotFound, UnknownSystemTable
from manifest.io.paths import SYSTEM_TABLES
from paimon_base.errors import InvalidArgument
from pyspark_paimon import Catalog, Table
from pyspark_paimon.operations.create import CreateTable
from pyspark_paimon.spark.driver.outcome import run_command


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two snapshots, one of them tagged, a branch, and statistics."""
    path = str(tmp_path_factory.mktemp("system") / "t")
    made = Table.create(path, "id INT, day DATE, x DOUBLE", primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "1"})
    for rows in ([1, 2], [2, 3]):
        days = pa.array([19000, 19001], pa.int32()).cast(pa.date32())
        made.write(pa.table({"id": pa.array(rows, pa.int32()), "day": days, "x": [1e7, 9.9e-4]}))
    made.create_tag("v1", time_retained=timedelta(days=1, milliseconds=1500))
    made.create_branch("trial", "v1")
    made.analyze(["id"])
    return made


def of(table, name, **more):
    return Table.open(f"{table.path}${name}", **more)


def test_filters_columns_order_and_limit(table):
    files = of(table, "files")
    scan = files.scan("partition = '{2022-01-09}' AND level = 0", columns=["min_key", "bucket"], order_by="max_key DESC", limit=1)
    assert scan.to_arrow().to_pylist() == [{"min_key": "[3]", "bucket": 0}]
    assert files.scan("record_count > 1").count() == 0
    assert files.scan("upper(file_source) = 'APPEND' AND min_value_stats LIKE '%x=1.0E7%'").to_pandas().shape == (2, 20)
    assert files.scan(columns=["bucket"], limit=3).to_polars()["bucket"].to_list() == [0, 0, 0]
    assert files.scan().aggregate({"n": "count", "record_count": ["sum", "max"]}).to_pylist() == [
        {"n": 4, "record_count_sum": 4, "record_count_max": 1}
    ]
    assert [row["partition"] for row in of(table, "partitions").scan().to_arrow().to_pylist()] == ["day=2022-01-08", "day=2022-01-09"]
    assert files.scan().to_dataset().count_rows() == sum(batch.num_rows for batch in files.scan()) == 4


def test_states_are_told_as_they_were(table):
    assert of(table, "files").scan(snapshot=1).count() == 2
    assert of(table, "buckets").scan(tag="v1", columns=["record_count"]).to_arrow().to_pylist() == [{"record_count": 2}] * 2
    with pytest.raises(InvalidArgument, match=r"\$snapshots"):
        of(table, "snapshots").scan(snapshot=1)
    with pytest.raises(InvalidArgument, match=r"changelog"):
        of(table, "files").scan(incremental=(1, 2)).count()


def test_what_no_golden_table_has(table):
    assert of(table, "tags").scan(columns=["tag_name", "snapshot_id", "record_count", "time_retained"]).to_arrow().to_pylist() == [
        {"tag_name": "v1", "snapshot_id": 2, "record_count": 4, "time_retained": "PT24H1.5S"}
    ]
    assert of(table, "branches").scan(columns=["branch_name"]).to_arrow().to_pylist() == [{"branch_name": "trial"}]
    [found] = of(table, "statistics").scan().to_arrow().to_pylist()
    assert (found["snapshot_id"], found["mergedRecordCount"]) == (2, 4)
    assert '"id" : {\n    "colId" : 0,\n    "distinctCount" : 3,\n    "min" : "1",' in found["colstat"]
    assert json.loads(found["colstat"])["id"]["nullCount"] == 0
    assert of(table, "consumers").count() == 0


def test_branches_have_their_own(table):
    for path in (f"{table.path}$branch_trial$snapshots", f"{table.path}$snapshots$branch_trial"):
        assert Table.open(path).scan(columns=["snapshot_id"]).to_arrow().to_pylist() == [{"snapshot_id": 2}]
    assert of(table, "snapshots", branch="trial").count() == 1
    assert of(table, "snapshots").count() == 3
    with pytest.raises(TableNotFound, match="no branch 'other'"):
        Table.open(f"{table.path}$branch_other$files")


def test_a_name_that_is_none_is_told_with_those_that_are(table):
    for path in (f"{table.path}$fils", f"{table.path}$branch_trial$fils"):
        with pytest.raises(UnknownSystemTable, match="did you mean 'files'; there are: aggregation_fields, ") as raised:
            Table.open(path)
        assert all(name in str(raised.value) for name in SYSTEM_TABLES)
    with pytest.raises(TableNotFound, match=r"none\$files: no Paimon table"):
        Table.open(f"{table.path}/none$files")


CHANGES = {
    "write": lambda table: table.write(table.scan().to_arrow()),
    "delete": lambda table: table.delete("level = 0"),
    "update": lambda table: table.update("level = 0", {"level": 1}),
    "compact": lambda table: table.compact(),
    "alter": lambda table: table.alter_options({"bucket": "2"}),
    "add": lambda table: table.add_column("more", "INT"),
    "tag": lambda table: table.create_tag("v2"),
    "branch": lambda table: table.create_branch("more"),
    "rollback": lambda table: table.rollback_to(1),
    "expire": lambda table: table.expire_snapshots(retain_max=1),
    "orphans": lambda table: table.remove_orphan_files(),
    "analyze": lambda table: table.analyze(["level"]),
    "fsck": lambda table: table.fsck(),
    "create": lambda table: Table.create(table.path, "id INT"),
    "files": lambda table: table.files(),
    "spark": lambda table: run_command(table.path, table.path, CreateTable(table_schema=table.table_schema.to_json())),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_changes_a_system_table(table, change):
    with pytest.raises(SystemTableReadOnly, match=r"/t\$files: .* nothing was done; the table itself is .*/t$"):
        CHANGES[change](of(table, "files"))


def test_a_table_whose_own_name_has_the_sign_stays_one(tmp_path):
    for name in ("a$files", "b$c"):
        own = Table.create(tmp_path / name, "id INT")
        own.write(pa.table({"id": pa.array([7], pa.int32())}))
        assert Table.open(tmp_path / name).scan().to_arrow().to_pylist() == [{"id": 7}]
        assert Table.open(f"{tmp_path / name}$files").scan("record_count = 1").count() == 1
        own.create_branch("trial")
        assert Table.open(tmp_path / name, branch="trial").count() == 0


def test_a_catalog_opens_them_by_name(tmp_path):
    catalog = Catalog(tmp_path)
    made = catalog.create_table("default.t", "id INT")
    made.write(pa.table({"id": pa.array([7], pa.int32())}))
    made.create_branch("trial")
    assert catalog.table("default.t$files").count() == catalog.table("t$snapshots").count() == 1
    assert catalog.table("t$branch_trial$schemas").count() == 1
    assert catalog.table("t$branch_trial").count() == 0
    with pytest.raises(UnknownSystemTable, match="did you mean 'tags'"):
        catalog.table("t$tag")
