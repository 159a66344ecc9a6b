"""``Table.merge`` over Spark: rows of the client merged by the driver, DataFrames joined by Spark, both as the model says."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from pyspark_paimon import InvalidArgument, PaimonError, SchemaMismatch, Table, UnsupportedTable, sql
from pyspark_paimon.spark.client.engine import SparkEngine
from tests.build import keyed, tuples
from tests.merged_rows import DDL, INSERTS, SOURCE, UPDATES, Row, comparable, model, said

pytestmark = pytest.mark.spark

FLOATS = [None, math.nan, 0.0, -0.0, 1.5, math.inf]
TEXTS = [None, "", "a", "a\0", "é'", "b\\"]
BEFORE = [
    {"id": at, "part": "pq"[at % 2], "n": None if at % 5 == 0 else at % 4, "f": FLOATS[at % 6], "s": TEXTS[at % 6]} for at in range(24)
]
AFTER = [
    {"id": at, "part": "r", "n": None if at % 7 == 0 else at % 5, "f": FLOATS[(at + 1) % 6], "s": TEXTS[(at + 2) % 6]}
    for at in range(12, 40)
]
UPDATE, SET = UPDATES["matched"]
EVERY = [
    ("matched", "delete", "s.n > 2", None, None),
    ("matched", "update", "t.n = s.n OR s.s IS NULL", SET[1], SET[0]),
    ("matched", "update", None, UPDATE[1], UPDATE[0]),
    ("not matched", "insert", "s.n IS NOT NULL", INSERTS[1][1], INSERTS[1][0]),
    ("not matched", "insert", None, INSERTS[0][1], INSERTS[0][0]),
    ("not matched by source", "update", "t.n < 3", UPDATES["not matched by source"][0][1], UPDATES["not matched by source"][0][0]),
    ("not matched by source", "delete", None, None, None),
]


@pytest.fixture(autouse=True)
def joined(set_thresholds):
    """DataFrames are joined by Spark, however small they are."""
    set_thresholds(fetched_merge_rows=-1)


def frame_of(spark: Any, rows: list[Row]) -> Any:
    return spark.createDataFrame(pa.Table.from_pylist(rows, SOURCE))


MARKED = {"deletion-vectors.enabled": "true"}


@pytest.mark.parametrize(
    ("keys", "options", "held"),
    [
        (["id"], {"bucket": "-1"}, False),
        pytest.param(["id"], {"bucket": "2"}, False, marks=pytest.mark.long),
        (["id"], {"bucket": "2"}, True),
        pytest.param((), MARKED, False, marks=pytest.mark.long),
    ],
)
def test_every_clause_is_the_models(spark, tmp_path, keys, options, held):
    table = Table.create(tmp_path / "t", DDL, primary_keys=keys, options=options)
    table.write(BEFORE)
    source = pa.Table.from_pylist(AFTER, SOURCE) if held else frame_of(spark, AFTER)
    merge = Table.open(table.path, spark=spark).merge(source, "id")
    for clause in EVERY:
        merge = said(merge, clause)
    done = merge.execute()
    expected = model(BEFORE, AFTER, "id", [clause[:4] for clause in EVERY], keyed=bool(keys))
    assert comparable(table.scan().to_arrow().to_pylist()) == comparable(expected)
    assert (done.rows, done.inserted) == (done.updated + done.deleted + done.inserted, 16)
    assert done.inserted - done.deleted == len(expected) - len(BEFORE)
    assert table.snapshots()["commit_kind"].to_pylist()[1] == ("APPEND" if keys else "OVERWRITE")


@pytest.fixture(scope="module")
def shared(spark, tmp_path_factory):
    made = Table.create(tmp_path_factory.mktemp("merge") / "t", DDL, primary_keys=["id"], options={"bucket": "2"})
    made.write(BEFORE)
    return Table.open(made.path, spark=spark)


TWICE = [{"id": 3, "part": "x", "n": 1, "f": 1.5, "s": "q\"'\\"}, {"id": 3, "part": "x", "n": 2, "f": 1.5, "s": "v"}]
NEW = [{**row, "id": 99} for row in TWICE]


@pytest.mark.parametrize(
    ("rows", "on", "say", "error", "words"),
    [
        (TWICE, "id", lambda m: m.when_matched_update_all(), InvalidArgument, "two rows of the source match the row id = 3"),
        pytest.param(
            NEW,
            "id",
            lambda m: m.when_not_matched_insert_all(),
            InvalidArgument,
            "two rows of the source are inserted with the key id = 99",
            marks=pytest.mark.long,
        ),
        (
            [{**TWICE[0], "f": 7.5}],
            "t.f = s.f AND t.n < 3",
            lambda m: m.when_not_matched_insert_all(),
            InvalidArgument,
            "the table has its key id = 3: match by the key",
        ),
        (TWICE[:1], "id", lambda m: m.when_matched_update({"n": "s.f"}), SchemaMismatch, "column 'n': 1.5 is not a valid BIGINT"),
        (TWICE[:1], "id", lambda m: m.when_matched_update({"n": "s.s"}), SchemaMismatch, "column 'n'"),
    ],
)
def test_what_is_no_answer_is_the_same_error_and_changes_nothing(spark, shared, rows, on, say, error, words):  # noqa: PLR0917
    with pytest.raises(error, match=words):
        say(shared.merge(frame_of(spark, rows), on)).execute()
    assert shared.snapshots().num_rows == 1


@pytest.mark.parametrize("held", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_merge_that_loses_its_rows_is_computed_again_and_a_repetition_is_not(spark, tmp_path, monkeypatch, set_thresholds, held):
    table = keyed(tmp_path / "t", "id BIGINT, n INT")
    table.write([{"id": 1, "n": 1}])
    rivals = [lambda: table.write([{"id": 1, "n": 100}])]
    if not held:
        set_thresholds(held_merge_rows=0)
        real = SparkEngine._run

        def raced(self, job, commit_id):
            if rivals:
                rivals.pop()()
            return real(self, job, commit_id)

        monkeypatch.setattr(SparkEngine, "_run", raced)

    def merged():
        merge = Table.open(table.path, spark=spark).merge([{"id": 1, "n": 5}, {"id": 2, "n": 6}], "id", commit_id="nightly")
        return merge.when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert_all().execute()

    first, second = merged(), merged()
    assert (first.updated, first.inserted, first.deleted) == (1, 1, 0)
    assert (second.replayed, second.snapshot_id, second.rows) == (True, first.snapshot_id, 0)
    assert table.scan(order_by="id").to_arrow().to_pylist() == [{"id": 1, "n": 6 if held else 105}, {"id": 2, "n": 6}]


def test_a_small_dataframe_is_fetched_and_merged_on_the_driver(spark, tmp_path, monkeypatch, set_thresholds):
    set_thresholds(fetched_merge_rows=2)
    monkeypatch.setattr(SparkEngine, "_run", None)  # no job of Spark writes
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    Table.open(table.path).write([{"id": 1, "n": 1}, {"id": 5, "n": 5}])
    on = (sf.col("t.id") == sf.col("s.key")) & (sf.col("t.n") < 5)
    merge = table.merge(spark.createDataFrame([(1, 7), (2, 8)], "key INT, n BIGINT"), on)
    done = merge.when_matched_update({"n": "s.n"}).when_not_matched_insert({"id": "s.key", "n": "s.n"}).execute()
    assert (done.updated, done.inserted) == (1, 1)
    assert table.scan(order_by="id").to_arrow()["n"].to_pylist() == [7, 8, 5]
    with pytest.raises(TypeError):  # three rows are joined, by a job
        table.merge(spark.range(3), "id").when_not_matched_insert_all().execute()


def test_an_append_table_takes_what_matches_nothing(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, n INT")
    table.write([{"id": 1, "n": 1}])
    frame = spark.createDataFrame([(1, 7), (2, 8), (2, 9)], "id INT, n BIGINT")
    done = Table.open(table.path, spark=spark).merge(frame, "id").when_not_matched_insert_all().execute()
    assert (done.inserted, done.rows) == (2, 2)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 8, 9]


def test_rows_of_an_append_table_are_changed_by_what_the_driver_holds(spark, tmp_path, set_thresholds):
    table = Table.create(tmp_path / "t", "id BIGINT, n INT", spark=spark)
    set_thresholds(held_merge_rows=1)
    for source in (spark.range(2), pa.table({"id": [1, 2]})):
        with pytest.raises(UnsupportedTable, match="at most 1 rows"):
            table.merge(source, "id").when_matched_delete().execute()


def test_columns_of_odd_names_are_merged_and_those_that_only_case_tells_apart_are_refused(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id BIGINT, `a``b` STRING, `c.d` INT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write([{"id": 1, "a`b": "old", "c.d": 1}])
    rows = [{"id": 1, "a`b": "new", "c.d": 2}, {"id": 2, "a`b": "x", "c.d": 3}]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, table.schema))
    table.merge(frame, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == rows
    twins = Table.create(tmp_path / "twins", "id BIGINT, x INT, X INT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    source = pa.table({"id": [1], "x": pa.array([5], pa.int32()), "X": pa.array([6], pa.int32())})
    twins.merge(source, on="id").when_not_matched_insert_all().execute()
    assert Table.open(twins.path).scan().to_arrow().to_pylist() == source.to_pylist()
    with pytest.raises(InvalidArgument, match="x and X of the table differ only in case"):
        twins.merge(spark.createDataFrame(source), on="id").when_matched_update_all().execute()
    with pytest.raises(InvalidArgument, match="x and X of the rows differ only in case"):
        twins.write(spark.createDataFrame(source))


def test_new_values_reach_spark_unchanged(spark, tmp_path):
    ddl = "id BIGINT, d DATE, t TIMESTAMP(6), z TIMESTAMP_LTZ(6), m DECIMAL(20, 5), f FLOAT, b BYTES, s STRING"
    table = Table.create(tmp_path / "t", ddl, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    table.write([{"id": 1}], missing="null")
    values = {
        "d": dt.date(1901, 2, 3),
        "t": dt.datetime(2024, 3, 31, 2, 30, 0, 1),  # noqa: DTZ001  # a wall clock, which Berlin skips
        "z": dt.datetime(2024, 10, 27, 2, 15, 0, 7, tzinfo=ZoneInfo("Asia/Tokyo")),
        "m": Decimal("123456789012345.67891"),
        "f": 0.5,
        "b": b"\xff\x00",
        "s": "it's \\ `q`",
    }
    table.update("id = 1", values=values)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, **values}]
    for wrong in ({"f": 0.1}, {"d": 5}, {"z": values["t"]}, {"t": values["z"]}, {"m": 1.5}):
        with pytest.raises(SchemaMismatch):
            table.update("id = 1", values=wrong)


@pytest.mark.slow
def test_fields_of_structs_are_set_and_no_value_changes_silently(spark, tmp_path):
    schema = "id BIGINT, d DOUBLE, n INT, c DECIMAL(10, 4), a ARRAY<INT>, s STRUCT<f FLOAT, d DECIMAL(6, 2), t STRING, l ARRAY<INT>>"
    table = Table.create(tmp_path / "t", schema, primary_keys=["id"], options={"bucket": "1"}, spark=spark)
    first = {"f": 1.0, "d": Decimal(1), "t": "x", "l": [1]}
    table.write([{"id": 1, "d": 0.1, "n": 7, "c": Decimal("1.2345"), "a": None, "s": first}])
    source = spark.sql("SELECT 1L AS id, 5 AS k")
    for name, value in (("s.f", "t.d"), ("s.d", "t.c"), ("s.d", "t.n * 100000")):
        for change in (
            lambda sets: table.merge(source, on="id").when_matched_update(sets).execute(),
            lambda sets: table.update(sf.col("id") > 0, set=sets | {"n": sf.col("n") + 1}),
        ):
            with pytest.raises(PaimonError, match=f"does not fit field '{name[2:]}'"):
                change({name: value})
    assert table.scan(columns=["n", "s"]).to_arrow().to_pylist() == [{"n": 7, "s": first}]
    sets = {"s.f": "CAST(t.d AS FLOAT)", "s.d": "t.n + s.k", "s.l": "NULL", "a": "array(s.k, t.n)"}
    assert table.merge(source, on="id").when_matched_update(sets).execute().updated == 1
    (row,) = table.scan(columns=["a", "s"]).to_arrow().to_pylist()
    assert row == {"a": [5, 7], "s": {"f": pytest.approx(0.1), "d": Decimal(12), "t": "x", "l": None}}


@pytest.mark.parametrize("held", [True, False])
def test_a_merge_adds_columns_and_widens_types(spark, tmp_path, held):
    table = keyed(tmp_path / "t", "id BIGINT, n INT, r STRUCT<a INT>", {"write.merge-schema.type-widening": "true"})
    table.write([{"id": 1, "n": 1, "r": {"a": 1}}, {"id": 2, "n": 2, "r": {"a": 2}}])
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    rows = [{"id": 2, "n": 2**40, "r": {"a": 3, "b": "x"}, "fresh": 7}, {"id": 3, "n": 3, "r": None, "fresh": 8}]
    source = pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("n", pa.int64()), ("r", kind), ("fresh", pa.int32())]))
    if held:
        merge = Table.open(table.path, spark=spark).merge(source, "id", schema_mode="merge")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    else:
        spark.createDataFrame(source).createOrReplaceTempView("growing")
        sql(
            spark,
            f"MERGE WITH SCHEMA EVOLUTION INTO paimon.`{table.path}` t USING (SELECT * FROM growing) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        )
    stored = {"id": 1, "n": 1, "r": {"a": 1, "b": None}, "fresh": None}
    assert sorted(Table.open(table.path).scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [stored, *rows]
    assert table.schemas().num_rows == 2


def test_rows_of_different_columns_are_kept_once(spark, tmp_path):
    table = keyed(tmp_path / "t", "id BIGINT, n INT, s STRING")
    table.write([{"id": key, "n": key, "s": "x"} for key in (1, 2, 3)])
    feed = [{"id": 1, "n": 10}, {"id": 2, "s": "y"}, {"id": 3, "_row_kind": "-D"}]
    frame = spark.createDataFrame([(2, 20)], "id BIGINT, n INT")
    for batch, rows in enumerate((feed, frame)):
        for repeated in (False, True):
            done = Table.open(table.path, spark=spark).write(rows, missing="keep", commit_id="feed", batch_id=batch)
            assert done.replayed is repeated
    assert tuples(table) == [(1, 10, "x"), (2, 20, "y")]
