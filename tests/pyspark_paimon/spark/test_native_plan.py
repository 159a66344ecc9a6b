from __future__ import annotations

import datetime as dt
import json
import shutil
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manifest.io.errors import SnapshotExpired
from manifest.storage.allowed_roots import ROOTS
from paimon_base.errors import CorruptFile, InvalidArgument
from pyspark_paimon import Table
from pyspark_paimon.jobs.excluded_files import check_excluded
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.scheduling.task_packing import pack_tasks
from pyspark_paimon.spark.read import native_files
from pyspark_paimon.spark.read.native_files import native_plan
from tests.lsm.small_tables import resize_files

pytest.importorskip("pyspark.sql.types")

GOLDEN = Path(__file__).parents[2] / "golden"
DDL = "id BIGINT, city STRING, amount DOUBLE"


def rows(ids, text: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(list(ids), pa.int64()), "city": [text] * len(list(ids)), "amount": [i / 2 for i in ids]})


def keyed(path, **options) -> Table:
    return Table.create(path, DDL, primary_keys=["id"], options={"bucket": "1", "write-only": "true"} | options)


def planned(table: Table, *args, **scan):
    return native_plan(LocalEngine(table.path), table.scan(*args, **scan)._request)


def compacted(path, count: int = 20) -> Table:
    table = keyed(path, **{"write-only": "false"})
    table.write(rows(range(count)))
    table.compact(full=True)
    return table


def test_a_compacted_table_is_all_sparks(tmp_path):
    table = compacted(tmp_path / "t")
    plan = planned(table)
    assert (len(plan.files), plan.has_rest, plan.why) == (1, False, "")
    (group,) = plan.groups
    assert json.loads(group.file_schema)["fields"][0] == {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    assert [column.name for column in plan.columns] == ["id", "city", "amount"]
    assert [column.name for column in planned(table, columns=["amount"]).columns] == ["amount"]


def test_files_to_merge_stay_ours_and_those_beside_them_are_left_out_of_our_plan(tmp_path):
    table = keyed(tmp_path / "t")
    table.write(rows(range(1000)))
    table.write(rows(range(2000, 2010)))
    table.write(rows(range(2005, 2015)))
    plan = planned(table)
    assert (len(plan.files), plan.has_rest) == (1, True)
    engine = LocalEngine(table.path)
    rest = table.scan()._request.model_copy(update={"excluded_files": plan.files})
    assert sorted(i for batch in engine.read(rest) for i in batch["id"].to_pylist()) == list(range(2000, 2015))
    overlapping = table.files().to_pylist()[1]["file_name"]
    with pytest.raises(CorruptFile, match="make it again"):
        engine.plan(rest.model_copy(update={"excluded_files": (f"{table.path}/bucket-0/{overlapping}",)}))


def test_rows_that_retract_are_left_out_where_a_footer_does_not_rule_them_out(tmp_path):
    table = keyed(tmp_path / "t")
    table.write(rows(range(10)).append_column("_row_kind", pa.array(["+I"] * 9 + ["-D"])))
    table.write(rows(range(20, 40)))
    kept = {group.condition: len(group.files) for group in planned(table).groups}
    assert kept == {"`_VALUE_KIND` IN (0, 2)": 1, None: 1}


def test_a_file_with_a_deletion_vector_stays_ours(tmp_path):
    table = Table.create(tmp_path / "t", DDL, options={"deletion-vectors.enabled": "true"})
    table.write(rows(range(10)))
    table.write(rows(range(10, 30)))
    table.delete("id = 3")
    plan = planned(table)
    assert (len(plan.files), plan.has_rest) == (1, True)


@pytest.mark.parametrize(
    ("scan", "why"),
    [
        ({"filter": "city = 'a'"}, "a filter on columns"),
        ({"order_by": "id", "limit": 3}, "first rows of an order"),
        ({"incremental": (0, 1)}, "changes"),
    ],
)
def test_scans_that_our_own_reader_answers_better_stay_ours(tmp_path, scan, why):
    table = Table.create(tmp_path / "t", DDL)
    table.write(rows(range(10)))
    assert why in planned(table, **scan).why
    assert planned(table, order_by="id").why == ""


def test_a_filter_on_partitions_only_chooses_files(tmp_path):
    table = Table.create(tmp_path / "t", "day DATE, id BIGINT", partition_keys=["day"])
    days = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
    table.write(pa.table({"day": days, "id": [1, 2]}))
    plan = planned(table, "day = DATE '2026-01-02'")
    assert [Path(file).parent.parent.name for file in plan.files] == ["day=2026-01-02"]
    assert "a filter on columns" in planned(table, "day = DATE '2026-01-02' AND id > 0").why


def test_a_server_with_allowed_roots_says_no(tmp_path, monkeypatch):
    table = compacted(tmp_path / "t")
    monkeypatch.setenv(ROOTS, str(tmp_path))
    plan = planned(table)
    assert plan.files == ()
    assert "restricts directories" in plan.why


def test_spark_reads_a_store_where_the_server_says_so_and_nobody_gave_credentials(monkeypatch):
    pytest.importorskip("obstore", reason="object stores need the extra 'objectstore'")
    table = compacted(f"memory://{uuid.uuid4().hex}/t")
    monkeypatch.setattr(native_files, "_SCHEMES", {"s3a": frozenset({"memory"})})
    assert planned(table).files == ()
    monkeypatch.setenv(native_files.SPARK_STORES, "s3a")
    assert [path.startswith(table.path) for path in planned(table).files] == [True]
    given = LocalEngine(table.path, storage_options={"storage.timeout": "10 s"})
    assert native_plan(given, table.scan()._request).files == (), "Spark's reader would need them in a plan"
    monkeypatch.setenv(native_files.SPARK_STORES, "yes")
    with pytest.raises(InvalidArgument, match=r"PYSPARK_PAIMON_SPARK_STORES .*set it to 's3a' or unset it"):
        planned(table)


@pytest.mark.parametrize("name", ["*", "a?b", "x[1]", "{a,b}"])
def test_a_path_that_spark_takes_for_a_pattern_stays_ours(tmp_path, name):
    assert "of 1 files" in planned(compacted(tmp_path / name / "t")).why or "no file" in planned(compacted(tmp_path / name / "u")).why


@pytest.mark.parametrize("prefix", ["_data-", ".data-"])
def test_a_file_that_spark_takes_for_hidden_stays_ours(tmp_path, prefix):
    table = keyed(tmp_path / "t", **{"data-file.prefix": prefix})
    table.write(rows(range(10)))
    assert planned(table).why == "no file can be read without a merge or deletion vector"


@pytest.mark.parametrize(
    ("ddl", "native"),
    [
        ("TINYINT", True),
        ("DECIMAL(38, 10)", True),
        ("TIMESTAMP(3)", True),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", True),
        ("TIMESTAMP(9)", False),
        ("TIME(3)", False),
        ("BINARY(4)", True),
        ("CHAR(3)", True),
        ("ARRAY<DOUBLE>", True),
        ("ARRAY<INT NOT NULL>", False),
        ("ARRAY<INT> NOT NULL", False),
        ("INT NOT NULL", True),
        ("MAP<STRING, ROW<x INT>>", True),
        ("MAP<STRING, INT NOT NULL>", False),
        ("MULTISET<STRING>", False),
        ("ROW<x INT, y ARRAY<STRING>>", True),
        ("ROW<x DOUBLE>", False),
    ],
)
def test_only_types_whose_values_and_nullability_come_out_the_same_are_sparks(tmp_path, ddl, native):
    table = Table.create(tmp_path / "t", f"id BIGINT, v {ddl}")
    schema = table.schema
    value = {"ARRAY<INT> NOT NULL": [1], "INT NOT NULL": 1}.get(ddl)
    table.write(pa.Table.from_pylist([{"id": 1, "v": value}], schema))
    plan = planned(table)
    assert bool(plan.files) == native, plan.why
    assert planned(table, columns=["id"]).files, "columns that are not read do not matter"


def rewritten(table: Table, change) -> None:
    """Put other bytes in the place of the table's only data file, as another writer might have made it."""
    (name,) = table.files()["file_name"].to_pylist()
    path = next(Path(table.path).rglob(name))
    data = change(pq.read_table(path))
    pq.write_table(data[0], path, **data[1])
    resize_files(table.path)


def test_files_of_other_writers_with_other_physical_types_stay_ours(tmp_path):
    schema = "id BIGINT, at TIMESTAMP(6), price DECIMAL(9, 2), n TINYINT"
    value = pa.table({"id": [1], "at": [dt.datetime(2026, 1, 1)], "price": [Decimal("1.50")], "n": [1]})  # noqa: DTZ001
    changes = {
        "same": lambda data: (data, {}),
        "int96": lambda data: (data, {"use_deprecated_int96_timestamps": True}),
        "zoned": lambda data: (data.set_column(1, "at", data["at"].cast(pa.timestamp("us", "UTC"))), {}),
        "nanoseconds": lambda data: (data.set_column(1, "at", data["at"].cast(pa.timestamp("ns"))), {}),
        "scale": lambda data: (data.set_column(2, "price", data["price"].cast(pa.decimal128(9, 3))), {}),
        "unsigned": lambda data: (data.set_column(3, "n", data["n"].cast(pa.uint8())), {}),
        "other case": lambda data: (data.append_column("ID", data["id"]), {}),
        "rows": lambda data: (pa.concat_tables([data, data]), {}),
        "a column less": lambda data: (data.drop(["n"]), {}),
    }
    for name, change in changes.items():
        table = Table.create(tmp_path / name, schema)
        table.write(value.cast(table.schema))
        rewritten(table, change)
        assert bool(planned(table).files) == (name == "same"), name


def test_evolved_columns_are_renamed_widened_and_null_and_other_changes_stay_ours(tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, a INT, b FLOAT, c STRING")
    table.write(pa.table({"id": [1], "a": pa.array([2], pa.int32()), "b": pa.array([3.0], pa.float32()), "c": ["4"]}))
    table.rename_column("a", "n")
    table.change_type("n", "BIGINT")
    table.change_type("b", "DOUBLE")
    table.drop_column("c")
    table.add_column("c", "INT")
    (group,) = planned(table).groups
    assert group.columns == (
        "`id` AS `id`",
        "CAST(`a` AS BIGINT) AS `n`",
        "CAST(nanvl(`b`, CAST('NaN' AS FLOAT)) AS DOUBLE) AS `b`",
        "CAST(NULL AS int) AS `c`",
    )
    assert planned(table, columns=["c"]).files == (), "a file without any of the columns is only counted"
    table.change_type("n", "STRING")
    assert planned(table).files == ()


def test_a_plan_of_too_many_files_stays_ours(tmp_path, set_thresholds):
    set_thresholds(native_files=1)
    table = Table.create(tmp_path / "t", DDL)
    table.write(rows(range(3)))
    assert planned(table).why == ""
    table.write(rows(range(3)))
    assert planned(table).why == "2 files need no merge"


def test_a_vanished_file_is_told_by_the_name_of_its_cause(tmp_path):
    table = compacted(tmp_path / "t")
    plan = planned(table)
    request = table.scan()._request.model_copy(update={"excluded_files": plan.files})
    store = LocalEngine(table.path).store()
    check_excluded(store, request)
    Path(plan.files[0]).unlink()
    with pytest.raises(CorruptFile, match="missing"):
        check_excluded(store, request)


def test_a_file_that_went_with_its_snapshot_is_told_so(tmp_path):
    table = compacted(tmp_path / "t")
    request = table.scan()._request.model_copy(update={"excluded_files": planned(table).files})
    table.write(rows(range(5)))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(SnapshotExpired):
        check_excluded(LocalEngine(table.path).store(), request)


def test_an_expired_snapshot_has_no_plan(tmp_path):
    table = compacted(tmp_path / "t")
    scan = table.scan()
    table.write(rows(range(5)))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(SnapshotExpired):
        native_plan(LocalEngine(table.path), scan._request)


def test_golden_tables_that_need_no_merging_are_sparks_and_the_others_say_why(tmp_path):
    whys = {}
    for name in ("pk_full", "append_parts", "evolved_append", "pk_thin", "codecs", "pk_l0", "multiset", "all_types"):
        shutil.copytree(GOLDEN / name / "table", tmp_path / name)
        plan = planned(Table.open(tmp_path / name))
        whys[name] = plan.why
        assert bool(plan.files) == (not plan.why)
    assert [name for name, why in whys.items() if not why] == ["pk_full", "append_parts", "evolved_append", "pk_thin", "codecs"]


def test_tasks_cut_big_splits_and_put_the_long_ones_first(tmp_path, set_thresholds):
    set_thresholds(task_bytes=4000)
    set_thresholds(open_cost_bytes=1)
    table = Table.create(tmp_path / "t", "id BIGINT")
    for count in (10, 3000, 10, 20000):
        table.write(pa.table({"id": pa.array(range(count), pa.int64())}))
    plan = LocalEngine(table.path).plan(ScanRequest(columns=("id",), snapshot_id=4))
    assert len(plan.splits) == 1
    sizes = [
        [split.file_size for split in map(type(plan.splits[0]).from_json, task)]
        for task in pack_tasks(plan, table.table_schema, ordered=False)
    ]
    assert len(sizes) >= 3
    assert [sum(task) for task in sizes] == sorted((sum(task) for task in sizes), reverse=True)
    ordered = [split for task in pack_tasks(plan, table.table_schema, ordered=True) for split in task]
    assert [type(plan.splits[0]).from_json(split).files[0].file_name for split in ordered] == [f.file_name for f in plan.splits[0].files]


def test_key_sections_of_one_bucket_are_tasks_of_their_own(tmp_path, set_thresholds):
    set_thresholds(task_bytes=3000)
    set_thresholds(open_cost_bytes=1)
    table = keyed(tmp_path / "t")
    for start in (0, 1000, 2000):
        table.write(rows(range(start, start + 1000), "older"))
        table.write(rows(range(start, start + 1000), "newer"))
    engine, request = LocalEngine(table.path), table.scan()._request
    plan = engine.plan(request)
    assert [len(split.files) for split in plan.splits] == [6]
    tasks = pack_tasks(plan, table.table_schema, ordered=False)
    found = [[row for split in task for batch in engine.read_split(request, split) for row in batch.to_pylist()] for task in tasks]
    assert [(len(task), {row["city"] for row in task}) for task in found] == [(1000, {"newer"})] * 3


def test_only_buckets_with_files_that_wait_for_compaction_are_merged_by_us(tmp_path):
    table = keyed(tmp_path / "t", **{"bucket": "4", "write-only": "false", "deletion-vectors.enabled": "true"})
    table.write(rows(range(100)))
    table.compact(full=True)
    settled = set(planned(table).files)
    assert len(settled) == 4
    table.write(rows([7], "new"), options={"write-only": "true"})
    plan = planned(table)
    assert (len(plan.files), set(plan.files) < settled, plan.has_rest) == (3, True, True)
    assert table.scan("city = 'new'").count() == 1
    hidden = native_plan(LocalEngine(table.path), table.scan(options={"deletion-vectors.merge-on-read": "false"})._request)
    assert (set(hidden.files), hidden.has_rest) == (settled, False)
