"""The pandas API on Spark: tables as pandas-on-Spark DataFrames and back, index and types kept."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pyspark_paimon.pandas as pp
from lsm.rows_in.arrow import index_levels
from pyspark_paimon import InvalidArgument, SchemaMismatch, Table, TableNotFound, UnknownColumn, UnsupportedType
from pyspark_paimon.spark.client.session import package_root
from pyspark_paimon.spark.wire.errors import SparkUnavailable

pytestmark = pytest.mark.filterwarnings("ignore:.to_pandas. loads all data")  # which is what the tests want
ROWS = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Lima", None], "people": pa.array([7, None, 9], pa.int32())})


@pytest.fixture
def ps(spark):
    return pp.pandas_on_spark()


@pytest.fixture
def table(tmp_path):
    made = Table.create(tmp_path / "t", "id BIGINT, city STRING, people INT", primary_keys=["id"], options={"bucket": "2"})
    made.write(ROWS)
    return made


def content(table: Table) -> list[tuple]:
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=repr)


@pytest.mark.spark
def test_the_index_column_is_kept_from_the_table_to_the_frame_and_back(spark, table):
    psdf = pp.read_paimon(table.path, spark=spark, index_col="id")
    assert (psdf.index.name, list(psdf.columns)) == ("id", ["city", "people"])
    assert psdf.loc[2].city == "Lima"
    done = pp.to_paimon(psdf.assign(people=psdf.people + 1), table.path)
    assert (done.rows, done.snapshot_id) == (3, 2)
    assert content(table) == [(1, "Oslo", 8), (2, "Lima", None), (3, None, 10)]


@pytest.mark.spark
def test_several_index_columns_are_kept_in_their_order(spark, tmp_path):
    table = Table.create(tmp_path / "t", "a INT, v STRING, b STRING", primary_keys=["a", "b"], options={"bucket": "1"}, spark=spark)
    table.write(pa.table({"a": [1, 1], "b": ["x", "y"], "v": ["one", "two"]}))
    psdf = pp.read_paimon(table.path, index_col=["b", "A"], columns=["v"])
    assert (psdf.index.names, list(psdf.columns)) == (["b", "a"], ["v"])
    assert table.write(psdf.assign(v=psdf.v.str.upper())).rows == 2
    assert content(table) == [(1, "ONE", "x"), (1, "TWO", "y")]


@pytest.mark.spark
def test_without_index_col_the_frame_has_a_default_index_that_is_not_written(spark, table):
    psdf = pp.read_paimon(table.path)
    assert (psdf.index.names, list(psdf.columns)) == ([None], ["id", "city", "people"])
    assert sorted(psdf.index.to_pandas().tolist()) == [0, 1, 2]
    pp.to_paimon(psdf[psdf.id == 1].assign(city="Bergen"), table.path)
    assert content(table)[0] == (1, "Bergen", 7)


@pytest.mark.spark
def test_an_index_that_the_table_has_no_column_for_is_refused_by_name(spark, ps, table):
    frame = pd.DataFrame({"city": ["Rome"], "people": [1]}, index=pd.Index([4], name="number"))
    with pytest.raises(SchemaMismatch, match=r"index 'number'.*id, city, people.*index_col"):
        pp.to_paimon(ps.from_pandas(frame), table.path)
    with pytest.raises(InvalidArgument, match="index_col has 2 names"):
        pp.to_paimon(ps.from_pandas(frame), table.path, index_col=["id", "x"])
    pp.to_paimon(ps.from_pandas(frame), table.path, index_col="id")
    assert content(table)[3] == (4, "Rome", 1)


@pytest.mark.spark
def test_reading_takes_the_arguments_of_a_scan(spark, table):
    table.write(pa.table({"id": [1], "city": ["Bergen"], "people": pa.array([0], pa.int32())}))
    table.create_tag("now")
    read = pp.read_paimon(table.path, columns=["city"], filter="people < 9", order_by="id", limit=1, snapshot=1, index_col="id")
    assert read.to_pandas().city.to_dict() == {1: "Oslo"}
    assert pp.read_paimon(table.path, tag="now", filter="id = 1").city.to_pandas().tolist() == ["Bergen"]
    for arguments, error in [
        ({"columns": ["town"]}, UnknownColumn),
        ({"index_col": "town"}, UnknownColumn),
        ({"columns": "city"}, InvalidArgument),
        ({"snapshot": 1, "tag": "now"}, InvalidArgument),
    ]:
        with pytest.raises(error):
            pp.read_paimon(table.path, **arguments)
    with pytest.raises(TableNotFound):
        pp.read_paimon(f"{table.path}/elsewhere")


@pytest.mark.spark
def test_every_kind_of_column_survives_a_round_trip(spark, ps, tmp_path):
    ddl = (
        "id INT, category STRING, code BIGINT, nullable BIGINT, text STRING, number DOUBLE, yes BOOLEAN, price DECIMAL(10, 2), "
        "day DATE, raw BYTES, local TIMESTAMP(6), instant TIMESTAMP(6) WITH LOCAL TIME ZONE"
    )
    table = Table.create(tmp_path / "t", ddl, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    stamps = pd.to_datetime(["2026-07-01 10:00:00.25", None, "1969-12-31 23:59:59.5"], format="ISO8601").as_unit("us")
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3],
            "category": pd.Categorical(["b", None, "a"], categories=["a", "b"]),
            "code": pd.Categorical([30, 10, 30], categories=[10, 20, 30]),
            "nullable": pd.array([2**53 + 1, None, 3], dtype="Int64"),
            "text": ["x", None, "ü"],
            "number": [1.5, np.nan, -0.0],
            "yes": [True, False, True],
            "price": [decimal.Decimal("1.25"), None, decimal.Decimal("-2.00")],
            "day": [dt.date(2026, 1, 1), None, dt.date(1969, 12, 31)],
            "raw": [b"x", None, b""],
            "local": stamps,
            "instant": stamps,
        }
    )
    assert pp.to_paimon(ps.from_pandas(frame), table.path).rows == 3
    expected = frame.astype({"category": object, "code": "int64"}).astype(object).where(frame.notna(), None).to_dict("list")
    for name in ("local", "instant"):
        zone = dt.UTC if name == "instant" else None
        expected[name] = [None if pd.isna(stamp) else stamp.to_pydatetime().replace(tzinfo=zone) for stamp in stamps]
    assert table.scan(order_by="id").to_arrow().to_pydict() == expected
    again = pp.read_paimon(table.path, index_col="id")
    assert pp.to_paimon(again, table.path, mode="overwrite").rows == 3
    assert table.scan(order_by="id").to_arrow().to_pydict() == expected


@pytest.mark.spark
def test_a_categorical_index_is_written_as_its_values(spark, ps, tmp_path):
    table = Table.create(tmp_path / "t", "kind STRING, v BIGINT", primary_keys=["kind"], options={"bucket": "1"}, spark=spark)
    frame = pd.DataFrame({"v": [1, 2]}, index=pd.CategoricalIndex(["late", "early"], name="kind"))
    table.write(ps.from_pandas(frame))
    assert content(table) == [("early", 2), ("late", 1)]


@pytest.mark.spark
def test_local_datetimes_keep_their_clocks_in_a_session_of_another_zone(spark, ps, tmp_path):
    table = Table.create(tmp_path / "t", "id INT, local TIMESTAMP(6)", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    clocks = [dt.datetime.fromisoformat(text) for text in ("2026-07-01T10:00:00", "2026-01-01T10:00:00")]
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        pp.to_paimon(ps.from_pandas(pd.DataFrame({"id": [1, 2], "local": pd.to_datetime(clocks)})), table.path)
        assert pp.read_paimon(table.path, index_col="id").local.to_pandas().sort_index().dt.to_pydatetime().tolist() == clocks
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert table.scan(order_by="id").to_arrow()["local"].to_pylist() == clocks


@pytest.mark.spark
def test_types_that_one_side_does_not_know_are_refused_by_name(spark, ps, tmp_path):
    table = Table.create(tmp_path / "t", "id INT, at TIME(3), s STRING", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    with pytest.raises(UnsupportedType, match="'at' has type TIME"):
        pp.read_paimon(table.path)
    assert len(pp.read_paimon(table.path, columns=["s"], index_col="id")) == 0
    spans = ps.from_pandas(pd.DataFrame({"id": [1], "at": pd.to_timedelta(["1 day"]), "s": ["x"]}))
    with pytest.raises(SchemaMismatch, match="'at'"):
        pp.to_paimon(spans, table.path)
    stamps = ps.from_pandas(pd.DataFrame({"id": [1], "s": pd.Categorical(pd.to_datetime(["2026-01-01"]))}))
    with pytest.raises(SchemaMismatch, match=r"'s' has categories of timestamp"):
        table.write(stamps)
    with pytest.raises(InvalidArgument, match="must be a pandas-on-Spark DataFrame, not DataFrame"):
        pp.to_paimon(pd.DataFrame({"id": [1]}), table.path)
    with pytest.raises(InvalidArgument, match="Series"):
        table.write(spans.s)


def test_named_levels_go_to_their_columns_and_others_stay_behind():
    assert index_levels(["id"], ["city"], ["id", "city"]) == ["id"]
    assert index_levels([None, ("a",)], [], ["a"]) == [None, "a"]
    assert index_levels(["id"], ["id", "city"], ["id", "city"]) == [None]
    with pytest.raises(SchemaMismatch, match="several levels"):
        index_levels(["a", "a"], [], ["a"])
    with pytest.raises(SchemaMismatch, match="is both a column and an index"):
        index_levels([None], ["id"], ["id"], "id")


def test_the_index_of_a_plain_pandas_frame_is_written_by_the_same_rule(table):
    table.write(pd.DataFrame({"city": ["Rome"], "people": [1]}, index=pd.Index([4], name="id")))
    assert content(table)[3] == (4, "Rome", 1)
    with pytest.raises(SchemaMismatch, match="index 'town'"):
        table.write(pd.DataFrame({"id": [4], "people": [1]}, index=pd.Index(["x"], name="town")))


def test_a_pandas_that_spark_cannot_import_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.pandas", None)
    monkeypatch.setattr(pd, "__version__", "3.1.1")
    for call in (lambda: pp.read_paimon("/nowhere"), lambda: pp.to_paimon(pd.DataFrame(), "/nowhere")):
        with pytest.raises(SparkUnavailable, match=r"does not work with pandas 3\.1\.1: pip install 'pandas<3\.1'"):
            call()
    monkeypatch.setattr(pd, "__version__", "2.3.3")
    with pytest.raises(SparkUnavailable, match=r"cannot be imported .* pyspark-paimon\[client\]"):
        pp.read_paimon("/nowhere")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SparkUnavailable, match="pandas, which is not installed"):
        pp.read_paimon("/nowhere")


def run_strictly(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": package_root()}
    ours = "error:PySpark:FutureWarning"  # warnings of every library's would stop numpy and pyarrow too
    command = [sys.executable, "-W", ours, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_importing_the_module_imports_no_spark():
    code = "import sys, pyspark_paimon, pyspark_paimon.pandas; print([name for name in sys.modules if name.split('.')[0] == 'pyspark'])"
    done = run_strictly(code)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.slow
def test_pyspark_remarks_on_import_stop_no_program_that_turns_warnings_into_errors():
    code = "import pyspark_paimon.pandas as pp; print(pp.pandas_on_spark().__name__)"
    done = run_strictly(code)
    assert done.stdout.strip() == "pyspark.pandas", done.stderr


@pytest.mark.spark
def test_without_a_session_it_is_said_how_to_make_one(spark, table, monkeypatch):
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(SparkUnavailable, match=r"no active Spark session: call pyspark_paimon\.spark_session\(\)"):
        pp.read_paimon(table.path)
    assert len(pp.read_paimon(table.path, spark=spark, index_col="id")) == 3
