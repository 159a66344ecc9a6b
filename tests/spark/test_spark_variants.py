"""VARIANT columns over Spark: Spark's own VARIANT in both directions, and ``variant_get`` that answers as Spark does."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from contextlib import suppress
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from paimon_base.errors import FilterFailed, InvalidArgument
from pyspark_paimon import Table, Variant, sql
from pyspark_paimon.frames.fetched_rows import fetch_rows
from sparkexpr.values.time_zone import time_zone
from tests.build import keyed

pytestmark = pytest.mark.spark
DDL = "id INT NOT NULL, v VARIANT, a ARRAY<VARIANT>, m MAP<STRING, VARIANT>, r ROW<x VARIANT, y INT>, l ARRAY<ROW<z VARIANT>>"
ROWS = [
    {
        "id": 1,
        "v": {"a": [1, 2.5, "x", None]},
        "a": [1, None, {"b": 2}],
        "m": {"k": "t", "n": None},
        "r": {"x": [], "y": 1},
        "l": [{"z": 1}],
    },
    {"id": 2, "v": None, "a": None, "m": None, "r": None, "l": None},
    {"id": 3, "v": Variant.of(None), "a": [], "m": {}, "r": {"x": None, "y": None}, "l": [None, {"z": None}]},
]
SELECT = (
    "id, to_json(v) v, transform(a, x -> to_json(x)) a, transform_values(m, (k, x) -> to_json(x)) m, to_json(r.x) x, r.y y, r IS NULL r, "
    "transform(l, x -> to_json(x.z)) l"
)
NEW = (
    "SELECT {} AS id, CAST(NULL AS VARIANT) AS v, array(parse_json('1'), NULL) AS a, map('q', parse_json('{{\"e\":2}}'), 'z', NULL) AS m, "
    "named_struct('x', CAST(NULL AS VARIANT), 'y', 3) AS r, array(named_struct('z', parse_json('[]')), NULL) AS l"
)
WRITTEN = {
    "v": None,
    "a": [Variant.of(1), None],
    "m": [("q", Variant.of({"e": 2})), ("z", None)],
    "r": {"x": None, "y": 3},
    "l": [{"z": Variant.of([])}, None],
}


def make(path, **options):
    table = keyed(path, DDL, options)
    table.write(ROWS)
    return table


def shown(rows):
    """The rows with VARIANTs as values of ``Variant``."""
    if isinstance(rows, dict):
        return Variant(**rows) if rows.keys() == {"value", "metadata"} else {key: shown(value) for key, value in rows.items()}
    if isinstance(rows, list | tuple):
        return type(rows)(map(shown, rows))
    return rows


def test_spark_reads_a_variant(spark, tmp_path):
    table = make(tmp_path / "t")
    frames = [
        Table.open(table.path, spark=spark).scan().to_spark(),
        spark.read.format("paimon").load(table.path),
        sql(spark, f"SELECT * FROM paimon.`{table.path}`"),
    ]
    for frame in frames:
        assert frame.schema["v"].dataType.simpleString() == "variant"
        found = [row.asDict() for row in frame.selectExpr(*split(SELECT)).orderBy("id").collect()]
        assert found == [
            {
                "id": 1,
                "v": '{"a":[1,2.5,"x",null]}',
                "a": ["1", None, '{"b":2}'],
                "m": {"k": '"t"', "n": None},
                "x": "[]",
                "y": 1,
                "r": False,
                "l": ["1"],
            },
            {"id": 2, "v": None, "a": None, "m": None, "x": None, "y": None, "r": True, "l": None},
            {"id": 3, "v": "null", "a": [], "m": {}, "x": None, "y": None, "r": False, "l": [None, None]},
        ]
    assert Table.open(table.path, spark=spark).scan(order_by="id").to_arrow().equals(table.scan(order_by="id").to_arrow())
    (row,) = sql(spark, f"SELECT v:a[1]::double AS d FROM paimon.`{table.path}` WHERE v:a[0]::int = 1").collect()
    assert row.d == 2.5


def split(text):
    """The expressions of a SELECT list."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def test_spark_writes_a_variant(spark, tmp_path):
    table = make(tmp_path / "t")
    over = Table.open(table.path, spark=spark)
    sql(spark, f"INSERT INTO paimon.`{table.path}` {NEW.format('10')}")
    over.write(spark.sql(NEW.format("11")))
    spark.sql(NEW.format("12")).write.format("paimon").mode("append").save(table.path)
    over.write(over.scan("id = 10").to_spark().withColumn("id", lit(spark, 13)))
    table.write(spark.sql(NEW.format("14")))
    over.write([{"id": 15, **WRITTEN}])
    found = shown(table.scan("id >= 10", order_by="id").to_arrow().to_pylist())
    assert found == [{"id": at, **WRITTEN} for at in range(10, 16)]
    assert table.fsck(depth="deep").problems == ()


def lit(spark, value):
    from pyspark_paimon.frames.spark_functions import functions_of

    return functions_of(spark).lit(value).cast("int")


def test_merge_and_update_and_delete_have_variants(spark, tmp_path):
    table = make(tmp_path / "t")
    over = Table.open(table.path, spark=spark)
    over.merge(spark.sql(NEW.format("2")), on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert shown(table.scan("id = 2").to_arrow().to_pylist()) == [{"id": 2, **WRITTEN}]
    sql(spark, f"UPDATE paimon.`{table.path}` SET v = parse_json('[7]') WHERE id = 2")
    with pytest.raises(InvalidArgument, match="parse_json"):
        over.update("id = 2", values={"v": {"n": None}})
    assert over.update("variant_get(v, '$[0]', 'int') = 7", set={"v": "parse_json('{\"n\":null}')"}).rows == 1
    assert Variant.decode_array(table.scan("id = 2").to_arrow()["v"]) == [{"n": None}]
    sql(spark, f"DELETE FROM paimon.`{table.path}` WHERE v:a[0]::int = 1")
    assert over.delete("is_variant_null(v)").rows == 1
    assert table.scan().to_arrow()["id"].to_pylist() == [2]


@pytest.mark.slow
def test_a_stream_has_variants(spark, tmp_path):
    source, target = make(tmp_path / "s"), keyed(tmp_path / "t", DDL)
    stream = spark.readStream.format("paimon").load(source.path)
    assert stream.schema["v"].dataType.simpleString() == "variant"
    query = stream.select(*target.schema.names).writeStream.format("paimon").option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start(target.path).awaitTermination()
    assert target.scan(order_by="id").to_arrow().equals(source.scan(order_by="id").to_arrow())


def test_a_table_is_created_from_spark_with_variants(spark, tmp_path):
    frame = spark.sql(NEW.format("1L"))
    table = Table.create(tmp_path / "t", frame.schema, spark=spark)
    assert [str(field.type.with_nullable(True)) for field in table.table_schema.fields][1:3] == ["VARIANT", "ARRAY<VARIANT>"]
    sql(spark, f"CREATE TABLE paimon.`{tmp_path / 'u'}` AS {NEW.format('1L')}")
    assert shown(Table.open(tmp_path / "u").scan().to_arrow().to_pylist()) == [{"id": 1, **WRITTEN}]


def test_fetched_rows_may_have_nulls(spark, tmp_path):
    table = make(tmp_path / "t")
    found = fetch_rows(Table.open(table.path, spark=spark).scan().to_spark().orderBy("id"))
    assert shown(found.to_pylist()) == shown(table.scan(order_by="id").to_arrow().to_pylist())
    assert found.schema.field("v").type == table.schema.field("v").type


VALUES = [
    None, True, False, 0, 1, -1, 127, 128, -129, 40_000, 1 << 31, (1 << 63) - 1, -(1 << 63),
    0.0, -0.0, 1.5, -1.5, 2.9999, 1e10, 1e300, 1e-7, float("nan"), float("inf"), float("-inf"), 9.007199254740993e15, 123456.789,
    np.float32(1.1), np.float32(16777217), np.float32(3e38),
    Decimal("0.00"), Decimal("1.50"), Decimal("-2.55"), Decimal("2.5"), Decimal("99999.995"), Decimal("9" * 38), Decimal("1E-38"), Decimal(100),
    "", " ", "1", " 42 ", "+7", "-8", "1.0", "1.5", ".5", "5.", "1e3", "1E+2", "1d", "0x10", "NaN", "Infinity", "-inf", "true", " YES ", "n", "on", "abc",
    "2024", "2024-02", "2024-2-3", "2024-02-30", "2024-01-31 12:30:00.5", "2024-01-31T12:30:00.1234567Z", "2024-01-31 12:30:00+01:00",
    "2024-07-01 00:00:00 Europe/Berlin", "2024-01-31 1:2:3", "2024-01-31 25:00:00", "0001-01-01", "10000-01-01", "-0001-01-01", "2024-01-31x", "é🙂",
    "128", "32768", "2147483648", "9223372036854775808", "99999999999999999999999999999999999999", "1" * 39,
    b"", b"abc", b"12",
    dt.date(2024, 1, 31), dt.date(1, 1, 1), dt.date(1969, 12, 31),
    dt.datetime(2024, 7, 1, 12, 30, 15, 250), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
    dt.datetime(2024, 3, 31, 2, 30),  # noqa: DTZ001  # skipped in Berlin
    dt.datetime(2024, 7, 1, 12, 30, 15, 250, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 31, 23, 30, tzinfo=dt.UTC),
    2.0**63, -(2.0**63), np.float32(2**63), 5e-324, np.float32(1e-45), 1e303, "9999999-01-01", "2024-01-01T", "1970-01-01 00:00:00 PST", "2024-07-01 00:00:00 IST", "0x1.8p1", "0x1", "+NaN", "+nan", "１２", "1١.٣",
    dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC), dt.datetime(1, 2, 3, 4, 5, 6, 789_012, tzinfo=dt.UTC),
    UUID(int=7), [1, "a", None], {"b": 1, "a": {"c": [True]}}, [], {},
]  # fmt: skip
TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,0)", "decimal(38,38)", "decimal(3,1)", "string",
    "binary", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_casts_are_those_of_spark(spark, tmp_path, zone):
    table = Table.create(tmp_path / "t", "id INT NOT NULL, v VARIANT")
    table.write(pa.table({"id": pa.array(range(len(VALUES)), pa.int32()), "v": Variant.array(map(Variant.of, VALUES))}))
    getters = {f"c{at}": f"try_variant_get(v, '$', '{kind}')" for at, kind in enumerate(TYPES)}
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = Table.open(table.path, spark=spark).scan().to_spark()
        expected = frame.selectExpr("id", *(f"{text} AS {name}" for name, text in getters.items())).toArrow().sort_by("id")
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    with time_zone(zone):
        found = table.scan(columns={"id": "id", **getters}).to_arrow().sort_by("id")
    wrong = []
    for (at, value), (name, kind) in itertools.product(enumerate(VALUES), zip(getters, TYPES, strict=True)):
        one, other = (plain(rows[name][at]) for rows in (found, expected))
        if one != other:
            wrong.append((value, kind, "ours", one, "Spark's", other))
    assert not wrong


def plain(scalar):
    if not scalar.is_valid:
        return None
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    value = scalar.as_py()
    return repr(value) if isinstance(value, float) and (math.isnan(value) or value == 0) else value


def test_variant_get_fails_where_spark_does(spark, tmp_path):
    table = Table.create(tmp_path / "t", "id INT NOT NULL, v VARIANT")
    values = ["abc", 300, {"a": 1}, [1], 1.5, True, dt.date(2024, 1, 31)]
    table.write(pa.table({"id": pa.array(range(len(values)), pa.int32()), "v": Variant.array(values)}))
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException as SparkException

    frame = Table.open(table.path, spark=spark).scan().to_spark()
    for at, kind in itertools.product(range(len(values)), ("tinyint", "date", "boolean", "string", "binary")):
        text = f"variant_get(v, '$', '{kind}')"
        outcomes = set()
        for run in (
            lambda at=at, text=text: frame.where(f"id = {at}").selectExpr(text).collect(),
            lambda at=at, text=text: table.scan(f"id = {at}", columns={"x": text}).to_arrow(),
        ):
            with suppress(FilterFailed, SparkException):
                run()
                outcomes.add(True)
                continue
            outcomes.add(False)
        assert len(outcomes) == 1, (values[at], kind)
