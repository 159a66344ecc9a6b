"""Reading over Spark: by its own Parquet reader where that gives the same rows, by ours elsewhere, always one snapshot."""

from __future__ import annotations

import datetime as dt
import math
import shutil
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_paimon import SnapshotExpired, Table
from pyspark_paimon.spark.client.scan_engine import SparkScans
from tests.lsm import packed_columns

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parent.parent / "golden"
DDL = "id BIGINT, city STRING, amount DOUBLE"
CHEAP = ["all_null", "append_parts", "codecs", "edges", "evolved_append", "multiset", "pk_dv64", "pk_full", "pk_map", "pk_partial_group"]
ALL = sorted(path.parent.name for path in GOLDEN.glob("*/table"))


def rows(ids, text: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(list(ids), pa.int64()), "city": [text] * len(list(ids)), "amount": [i / 2 for i in ids]})


def keyed(path, spark, **options) -> Table:
    Table.create(path, DDL, primary_keys=["id"], options={"bucket": "1"} | options)
    return Table.open(path, spark=spark)


def compacted(path, spark, count: int = 20) -> Table:
    table = Table.open(keyed(path, spark).path)
    table.write(rows(range(count)))
    table.compact(full=True)
    return Table.open(path, spark=spark)


def ids(frame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def is_native(frame) -> bool:
    return "FileScan parquet" in frame._explain_string()


def content(frame) -> list[str]:
    """Rows as text that tells NaN, the zeros and the order in maps apart from nothing else."""
    return sorted(repr(_comparable(row)) for row in frame.toArrow().to_pylist())


def _comparable(value):
    match value:
        case dict():
            return tuple((name, _comparable(item)) for name, item in value.items())
        case list() | tuple():
            parts = tuple(_comparable(item) for item in value)
            return tuple(sorted(parts, key=repr)) if parts and all(isinstance(part, tuple) and len(part) == 2 for part in parts) else parts
        case dt.datetime():
            return value.replace(tzinfo=None)
        case _:
            return value


@contextmanager
def conf(spark, **values):
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def test_a_compacted_table_is_read_by_sparks_own_reader_with_the_same_schema_and_rows(spark, tmp_path):
    Table.create(tmp_path / "t", "id BIGINT, n INT NOT NULL, v STRING", primary_keys=["id"], options={"bucket": "2"})
    table = Table.open(tmp_path / "t")
    table.set_comment("what it is worth", "v")
    table.write(pa.table({"id": range(50), "n": pa.array(range(50), pa.int32()), "v": [None if i % 3 else str(i) for i in range(50)]}))
    table.compact(full=True)
    scan = Table.open(table.path, spark=spark).scan()
    native, ours = scan.to_spark(), scan.to_spark(native=False)
    assert (is_native(native), is_native(ours)) == (True, False)
    assert native.schema == ours.schema
    assert (native.schema["n"].nullable, native.schema["v"].metadata) == (False, {"comment": "what it is worth"})
    assert content(native) == content(ours)
    narrow = table.scan(columns=["v", "id"], limit=7).to_spark(spark)
    assert (narrow.columns, narrow.count(), is_native(narrow)) == (["v", "id"], 7, True)


def test_where_some_files_need_merging_both_readers_share_the_work(spark, tmp_path):
    table = keyed(tmp_path / "t", spark, **{"write-only": "true"})
    local = Table.open(table.path)
    local.write(rows(range(1000)))
    local.write(rows(range(2000, 2010)))
    local.write(rows(range(2005, 2015), "newer").append_column("_row_kind", pa.array(["+I"] * 9 + ["-D"])))
    frame = table.scan().to_spark()
    assert is_native(frame)
    assert "BatchScan" in frame._explain_string()
    assert ids(frame) == [*range(1000), *range(2000, 2014)]
    assert ids(frame.where("city = 'newer'")) == list(range(2005, 2014))


def test_retracting_rows_of_files_that_stand_alone_are_left_out(spark, tmp_path):
    table = keyed(tmp_path / "t", spark, **{"write-only": "true"})
    local = Table.open(table.path)
    local.write(rows(range(10)).append_column("_row_kind", pa.array(["+I"] * 4 + ["-D", "+U"] * 3)))
    local.write(rows(range(20, 30)))
    frame = table.scan().to_spark()
    assert is_native(frame)
    assert ids(frame) == [0, 1, 2, 3, 5, 7, 9, *range(20, 30)]


def test_filters_of_users_find_nan_and_both_zeros_in_files_that_spark_reads(spark, tmp_path):
    # Arrow's writer leaves NaN out of minima and maxima, and Spark would skip the row group by them.
    table = Table.create(tmp_path / "t", "id INT, x DOUBLE, f FLOAT")
    values = [1.0, math.nan, -0.0, None]
    table.write(pa.table({"id": pa.array(range(4), pa.int32()), "x": values, "f": pa.array(values, pa.float32())}))
    frame = table.scan().to_spark(spark)
    assert is_native(frame)
    for column in ("x", "f"):
        for condition, expected in [("> 5", [1]), ("= 0", [2]), (">= 0", [0, 1, 2]), ("= 'NaN'", [1]), ("< 'NaN'", [0, 2])]:
            assert ids(frame.where(f"{column} {condition}")) == expected, (column, condition)


def test_a_broken_page_is_an_error_and_not_another_value(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT", options={"file.compression": "none"})
    table.write(pa.table({"id": pa.array(range(5000), pa.int64())}))
    (path,) = (next(Path(table.path).rglob(name)) for name in table.files()["file_name"].to_pylist())
    data = bytearray(path.read_bytes())
    data[20_000] ^= 1
    path.write_bytes(bytes(data))
    frame = table.scan().to_spark(spark)
    assert is_native(frame)
    with pytest.raises(Exception, match=r"(?i)checksum|crc|FAILED_READ_FILE"):
        frame.agg({"id": "sum"}).collect()


def test_missing_and_corrupt_files_are_errors_whatever_the_session_ignores(spark, tmp_path):
    ignoring = {"spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true"}
    with conf(spark, **ignoring):
        table = compacted(tmp_path / "t", spark)
        frame, ours = table.scan().to_spark(), table.scan().to_spark(native=False)
        assert is_native(frame)
        (path,) = (next(Path(table.path).rglob(name)) for name in table.files()["file_name"].to_pylist())
        bytes_ = path.read_bytes()
        path.write_bytes(bytes_[: len(bytes_) // 2])
        with pytest.raises(Exception, match=r"FAILED_READ_FILE|is not a Parquet file"):
            frame.count()
        path.unlink()
        with pytest.raises(Exception, match=r"PATH_NOT_FOUND|FILE_NOT_EXIST|CorruptFile"):
            frame.agg({"id": "max"}).collect()
        with pytest.raises(Exception, match="CorruptFile"):
            ours.agg({"id": "max"}).collect()


def test_an_expired_snapshot_is_an_error_for_every_reader(spark, tmp_path):
    table = compacted(tmp_path / "t", spark)
    scan = table.scan()
    frame, ours = scan.to_spark(), scan.to_spark(native=False)
    local = Table.open(table.path)
    local.write(rows(range(30)))
    local.compact(full=True)
    local.expire_snapshots(retain_min=1, retain_max=1)
    for action in (scan.count, scan.to_arrow, scan.plan, scan.to_spark):
        with pytest.raises(SnapshotExpired):
            action()
    with pytest.raises(Exception, match="SnapshotExpired"):
        ours.collect()
    with pytest.raises(Exception, match=r"PATH_NOT_FOUND|FILE_NOT_EXIST|SnapshotExpired"):
        frame.collect()


def test_a_frame_stays_on_its_snapshot_through_joins_repetition_and_caches(spark, tmp_path):
    table = compacted(tmp_path / "t", spark, 10)
    local = Table.open(table.path)
    frames = [table.scan().to_spark(), table.scan().to_spark(native=False), spark.read.format("paimon").load(table.path)]
    for frame in frames:
        assert frame.count() == 10
    cached = frames[1].cache()
    assert cached.count() == 10
    local.write(rows(range(20), "b"))
    local.compact(full=True)
    for frame in frames:
        other = frame.selectExpr("id AS other", "city AS theirs")
        joined = frame.join(other, frame["id"] == other["other"])
        assert [(row.id, row.city, row.theirs) for row in joined.orderBy("id").collect()] == [(i, "a", "a") for i in range(10)]
        assert frame.count() == 10
    cached.unpersist()
    assert table.scan().to_spark().count() == 20


@pytest.mark.slow
def test_every_way_to_name_a_snapshot_reads_the_same_by_option_and_by_table(spark, tmp_path):
    table = keyed(tmp_path / "t", spark, **{"changelog-producer": "input"})
    local = Table.open(table.path)
    local.write(rows(range(5)))
    local.create_tag("v1")
    local.create_branch("trial", from_tag="v1")
    local.write(rows(range(5, 8)))
    local.write(rows(range(2), "new"))
    local.compact(full=True)
    times = local.snapshots()["commit_time"].to_pylist()
    millis = int(times[1].timestamp() * 1000)
    reader = lambda **options: spark.read.format("paimon").options(**options).load(table.path)  # noqa: E731
    for options, scan in [
        ({"scan.snapshot-id": "2"}, {"snapshot": 2}),
        ({"scan.tag-name": "v1"}, {"tag": "v1"}),
        ({"scan.timestamp-millis": str(millis)}, {"timestamp": millis}),
        ({"incremental-between": "1,3"}, {"incremental": (1, 3)}),
        ({"incremental-between": "1,3", "incremental-between-scan-mode": "diff"}, {"incremental": (1, 3), "incremental_mode": "diff"}),
        ({"columns": "city,id", "filter": "id < 3"}, {"columns": ["city", "id"], "filter": "id < 3"}),
    ]:
        expected = content(table.scan(**scan).to_spark())
        assert content(reader(**options)) == expected == content(table.scan(**scan).to_spark(native=False)), options
        assert len(expected) == local.scan(**scan).count() > 0, options
    assert ids(reader(branch="trial")) == ids(Table.open(table.path, spark=spark, branch="trial").scan().to_spark()) == list(range(5))


@pytest.mark.slow
def test_a_frame_answers_every_query_of_it(spark, tmp_path):
    """Spark would keep pushed filters with the frame, and answer the next query with the rows of this one."""
    local = Table.create(tmp_path / "t", "id BIGINT, at TIMESTAMP(6), zoned TIMESTAMP(6) WITH LOCAL TIME ZONE, city STRING")
    moment = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001
    local.write(
        pa.table(
            {
                "id": range(3),
                "at": [moment, None, moment + dt.timedelta(days=1)],
                "zoned": pa.array([moment] * 3, pa.timestamp("us", "UTC")),
                "city": ["Oslo", "Lima", None],
            }
        )
    )
    conditions = {
        "id = 2": [2],
        "id IN (0, 2) AND city IS NOT NULL": [0],
        "at = TIMESTAMP_NTZ '2026-01-01 12:00:00'": [0],
        "at > TIMESTAMP_NTZ '2026-01-01 12:00:00'": [2],
        "zoned < TIMESTAMP '2026-01-01 12:00:00.000001Z'": [0, 1, 2],
        "NOT city <=> 'Oslo'": [1, 2],
        "id > 0 AND upper(city) = 'LIMA'": [1],
    }
    for pushing in ("true", "false"):
        with conf(spark, **{"spark.sql.python.filterPushdown.enabled": pushing, "spark.sql.session.timeZone": "Asia/Kolkata"}):
            frame = spark.read.format("paimon").load(local.path)
            for condition, expected in conditions.items():
                assert ids(frame.where(condition)) == expected, (pushing, condition)
                assert ids(frame) == [0, 1, 2], (pushing, condition)
            both = frame.where("id = 2").union(frame).union(frame.where("city = 'Oslo'"))
            assert sorted(row.id for row in both.collect()) == [0, 0, 1, 2, 2]
            assert frame.alias("a").where("id > 0").join(frame.alias("b"), "id").count() == 2
            frame.createOrReplaceTempView("kept")
            assert [spark.sql(f"SELECT id FROM kept WHERE id {test}").count() for test in ("= 2", "<> 7", "= 2")] == [1, 3, 1]


def test_sparks_plan_shows_a_filter_that_the_source_did_not_get(spark, tmp_path):
    local = Table.create(tmp_path / "t", "id BIGINT, city STRING")
    local.write(pa.table({"id": range(3), "city": ["Oslo", "Lima", None]}))
    reader = spark.read.format("paimon")
    filtered_by_spark = reader.load(local.path).where("id = 2")
    filtered_by_source = reader.option("filter", "id = 2").load(local.path)
    assert ids(filtered_by_spark) == ids(filtered_by_source) == [2]
    above, scan, _ = filtered_by_spark._explain_string().partition("BatchScan paimon")
    assert "Filter" in above
    assert scan
    above, scan, _ = filtered_by_source._explain_string().partition("BatchScan paimon")
    assert "Filter" not in above
    assert scan


def test_partitions_of_all_spellings_are_read_by_spark_too(spark, tmp_path):
    table = Table.create(tmp_path / "a b%20c" / "t", "p STRING, day DATE, id INT", partition_keys=["p", "day"])
    names = ["plain", "a b", "a/b:c%=d", "é", "", None, "__DEFAULT_PARTITION__x"]
    days = [dt.date(2026, 1, 1 + number) for number in range(len(names) - 1)] + [None]
    table.write(pa.table({"p": names, "day": days, "id": pa.array(range(len(names)), pa.int32())}))
    frame = table.scan().to_spark(spark)
    assert is_native(frame)
    assert content(frame) == content(table.scan().to_spark(spark, native=False))
    chosen = table.scan("p = 'a b' OR p IS NULL").to_spark(spark)
    assert (is_native(chosen), ids(chosen)) == (True, [1, 5])


def test_metadata_calls_ask_the_server_once(spark, tmp_path, monkeypatch):
    table = compacted(tmp_path / "t", spark)
    asked = []
    original = SparkScans._ask
    monkeypatch.setattr(SparkScans, "_ask", lambda self, question, spark=None: asked.append(question) or original(self, question, spark))
    scan = table.scan()
    calls = {
        "open": lambda: Table.open(table.path, spark=spark),
        "scan": lambda: table.scan("id = 3"),
        "plan": scan.plan,
        "explain": lambda: scan.explain(analyze=False),
        "snapshots": table.snapshots,
        "count": scan.count,
        "to_spark": scan.to_spark,
    }
    counts = {}
    for name, call in calls.items():
        asked.clear()
        call()
        counts[name] = len(asked)
    assert counts == dict.fromkeys(calls, 1)


def golden(spark, name: str, folder: Path) -> None:
    path = folder / name
    shutil.copytree(GOLDEN / name / "table", path)
    scan = Table.open(path).scan()
    expected = sorted(repr(_comparable(row)) for row in scan.to_arrow().to_pylist())
    with conf(spark, **{"spark.sql.timeType.enabled": "true"}):
        native, ours = scan.to_spark(spark), scan.to_spark(spark, native=False)
        assert native.schema == ours.schema
        if any(field.type == pa.timestamp("ns") for field in scan.schema):
            expected = content(ours)  # Spark has microseconds
        assert content(native) == expected
        if is_native(native):
            assert content(ours) == expected


@pytest.mark.parametrize("name", CHEAP)
def test_golden_tables_read_over_spark_as_in_process(spark, name, tmp_path):
    golden(spark, name, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ALL if name not in CHEAP])
def test_every_other_golden_table_too(spark, name, tmp_path):
    golden(spark, name, tmp_path)


_WRITES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.sampled_from(["write", "write", "delete", "compact"])), min_size=1, max_size=5
)
_SCANS = st.fixed_dictionaries(
    {
        "filter": st.sampled_from([None, None, "id > 12", "city = 'c2' OR amount IS NULL", "part = 'p1'", "part = 'p0' AND id < 20"]),
        "columns": st.sampled_from([None, ["id"], ["amount", "part"], ["city", "id"]]),
        "limit": st.sampled_from([None, None, 3]),
    }
)
_KINDS = st.sampled_from(["keyed", "vectors", "append"])
_CASES = st.tuples(_WRITES, _SCANS, _KINDS, st.integers(0, 4))


def scans_agree(spark, folder: Path, case: tuple) -> None:
    """Spark's reader, our source and this process give the same rows for a scan of a table made by some writes."""
    writes, scan, kind, snapshot_from_end = case
    options = {"keyed": {"bucket": "2"}, "vectors": {"deletion-vectors.enabled": "true"}, "append": {}}[kind]
    table = Table.create(
        folder / "t",
        "part STRING NOT NULL, id BIGINT, city STRING, amount DOUBLE",
        primary_keys=["part", "id"] if kind == "keyed" else [],
        partition_keys=["part"],
        options=options,
    )
    for number, (start, count, what) in enumerate(writes):
        numbers = list(range(start, start + count))
        if what == "write" or number == 0:
            amounts = [math.nan if i % 7 == 0 else None if i % 5 == 0 else i / 4 for i in numbers]
            parts = [f"p{i % 2}" for i in numbers]
            table.write(pa.table({"part": parts, "id": numbers, "city": [f"c{number}"] * count, "amount": amounts}))
        elif what == "delete":
            table.delete(f"id = {start}")
        else:
            table.compact(full=True)
    snapshots = table.snapshots()["snapshot_id"].to_pylist()
    wanted = {**scan, "snapshot": snapshots[-1 - snapshot_from_end % len(snapshots)]}
    here = sorted(repr(_comparable(row)) for row in table.scan(**{**wanted, "limit": None}).to_arrow().to_pylist())
    made = table.scan(**wanted)
    for frame in (made.to_spark(spark), made.to_spark(spark, native=False)):
        got = content(frame)
        if scan["limit"] is None:
            assert got == here
        else:
            assert len(got) == min(scan["limit"], len(here))
            assert set(got) <= set(here)
    assert made.count() == (len(here) if scan["limit"] is None else min(scan["limit"], len(here)))


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(_CASES)
def test_random_scans_of_random_tables_agree(spark, tmp_path_factory, case):
    scans_agree(spark, tmp_path_factory.mktemp("random"), case)


@pytest.mark.long
@pytest.mark.timeout(900)
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(_CASES)
def test_many_random_scans_of_random_tables_agree(spark, tmp_path_factory, case):
    scans_agree(spark, tmp_path_factory.mktemp("random"), case)


def test_sparks_own_reader_reads_differences(spark, tmp_path):
    table = packed_columns.packed_table(tmp_path / "t")
    expected = packed_columns.rows()
    names = [name for name in expected.column_names if not name.startswith("time")]  # a type that Spark has not
    for native in (True, False):
        frame = Table.open(tmp_path / "t", spark).scan(columns=names).to_spark(native=native)
        assert is_native(frame) is native
        found = frame.toArrow().sort_by("id")
        assert found.cast(expected.select(names).schema).equals(expected.select(names))
    assert table.scan().count() == packed_columns.ROWS
