from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from manifest.io.errors import SchemaMismatch
from manifest.types.data_type import DataField, DataType, arrow_schema
from paimon_base.errors import UnsupportedType
from pyspark_paimon import Table
from sparkexpr.values.column_type import Kind

st = pytest.importorskip("pyspark.sql.types")

from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark, fields_from_spark, spark_schema, spark_type  # noqa: E402

UNLIMITED = 2147483647
PAIRS = [
    (DataType(Kind.BOOLEAN), "boolean"),
    (DataType(Kind.TINYINT), "tinyint"),
    (DataType(Kind.SMALLINT), "smallint"),
    (DataType(Kind.INT), "int"),
    (DataType(Kind.BIGINT), "bigint"),
    (DataType(Kind.FLOAT), "float"),
    (DataType(Kind.DOUBLE), "double"),
    (DataType(Kind.DATE), "date"),
    (DataType(Kind.VARCHAR, length=UNLIMITED), "string"),
    (DataType(Kind.VARBINARY, length=UNLIMITED), "binary"),
    (DataType(Kind.DECIMAL, precision=30, scale=3), "decimal(30,3)"),
    (DataType(Kind.TIMESTAMP, precision=6), "timestamp_ntz"),
    (DataType(Kind.TIMESTAMP_LTZ, precision=6), "timestamp"),
    (DataType(Kind.TIME, precision=3), "time(3)"),
    (DataType(Kind.VARIANT), "variant"),
    (DataType(Kind.ARRAY, element=DataType(Kind.INT)), "array<int>"),
    (DataType(Kind.MAP, key=DataType(Kind.VARCHAR, False, length=UNLIMITED), value=DataType(Kind.BIGINT)), "map<string,bigint>"),
]


@pytest.mark.parametrize(("paimon", "spark"), PAIRS, ids=[spark for _, spark in PAIRS])
def test_a_type_and_its_spark_type_are_each_others_image(paimon, spark):
    assert spark_type(paimon).simpleString() == spark
    (field,) = fields_from_spark(st.StructType([st.StructField("c", spark_type(paimon))]))
    assert field == DataField(0, "c", paimon)


def test_types_that_spark_lacks_come_as_the_nearest_wider_one():
    assert spark_type(DataType(Kind.CHAR, length=3)).simpleString() == "string"
    assert spark_type(DataType(Kind.TIMESTAMP, precision=9)).simpleString() == "timestamp_ntz"
    assert spark_type(DataType(Kind.MULTISET, element=DataType(Kind.VARCHAR, length=9))).simpleString() == "map<string,int>"


def test_a_type_without_any_counterpart_is_refused_by_name():
    with pytest.raises(UnsupportedType, match="column 'v'"):
        fields_from_spark(st.StructType([st.StructField("v", st.CalendarIntervalType())]))


def test_field_ids_and_nullability_and_comments_follow_paimon():
    inner = st.StructType([st.StructField("x", st.IntegerType(), nullable=False), st.StructField("y", st.StringType())])
    schema = st.StructType([st.StructField("a", inner, False, {"comment": "why"}), st.StructField("b", st.LongType())])
    a, b = fields_from_spark(schema)
    assert (a.id, [f.id for f in a.type.fields], b.id) == (0, [1, 2], 3)
    assert (a.type.nullable, a.type.fields[0].type.nullable, b.type.nullable) == (False, False, True)
    assert spark_schema((a, b)) == schema


def test_batches_are_cast_to_exactly_what_spark_checks_for():
    fields = (
        DataField(0, "id", DataType(Kind.BIGINT, False)),
        DataField(1, "at", DataType(Kind.TIMESTAMP, precision=9)),
        DataField(2, "ltz", DataType(Kind.TIMESTAMP_LTZ, precision=3)),
        DataField(3, "time", DataType(Kind.TIME)),
        DataField(4, "tags", DataType(Kind.MULTISET, element=DataType(Kind.VARCHAR, length=9))),
    )
    moment = dt.datetime(2026, 1, 1, 0, 0, 0, 123000)  # noqa: DTZ001
    row = {"id": [1], "at": [moment], "ltz": [moment.replace(tzinfo=dt.UTC)], "time": [dt.time(1)], "tags": [[("a", 2)]]}
    batch = pa.RecordBatch.from_pydict(row, arrow_schema(fields))
    wanted = arrow_for_spark(spark_schema(fields))
    got = cast_for_spark(batch, wanted)
    assert got.schema.equals(wanted)
    assert got.to_pylist()[0]["at"] == moment


def test_a_narrower_type_asked_of_a_wider_column_is_refused():
    wanted = arrow_for_spark(st.StructType([st.StructField("id", st.IntegerType())]))
    with pytest.raises(SchemaMismatch, match="do not fit"):
        cast_for_spark(pa.RecordBatch.from_pydict({"id": [2**40]}), wanted)


EXTREMES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("big", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("millis", pa.timestamp("ms")),
        ("at", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", "UTC")),
        ("text", pa.string()),
        ("blob", pa.binary()),
        ("items", pa.list_(pa.int32())),
        ("attrs", pa.map_(pa.string(), pa.int64())),
        ("row", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("k", pa.string()), ("v", pa.timestamp("us"))])))])),
    ]
)
SPARK_DDL = (
    "id BIGINT NOT NULL, flag BOOLEAN, tiny TINYINT, small SMALLINT, big BIGINT, single FLOAT, double DOUBLE, price DECIMAL(9, 2), "
    "wide DECIMAL(38, 10), day DATE, millis TIMESTAMP(3), at TIMESTAMP(6), zoned TIMESTAMP(6) WITH LOCAL TIME ZONE, text STRING, "
    "blob BYTES, items ARRAY<INT>, attrs MAP<STRING, BIGINT>, `row` ROW<x INT, y ARRAY<ROW<k STRING, v TIMESTAMP(6)>>>"
)
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
EARLY = dt.datetime(1969, 12, 31, 23, 59, 59, 999000)  # noqa: DTZ001


def extremes() -> pa.Table:
    """Least and greatest values, values before 1970, empty and null ones at every depth."""
    greatest = {"flag": True, "tiny": 127, "small": 32767, "big": 2**63 - 1, "single": float("inf"), "double": float("nan")}
    least = {"flag": False, "tiny": -128, "small": -32768, "big": -(2**63), "single": -0.0, "double": float("-inf")}
    greatest |= {"price": Decimal("9999999.99"), "wide": Decimal("9" * 28 + "." + "9" * 10), "day": LAST.date()}
    least |= {"price": Decimal("-9999999.99"), "wide": Decimal("-" + "9" * 28 + "." + "9" * 10), "day": FIRST.date()}
    greatest |= {
        "millis": LAST.replace(microsecond=999000),
        "at": LAST,
        "zoned": LAST.replace(tzinfo=dt.UTC),
        "text": "é🙂\0'\\",
        "blob": b"\0\xff",
    }
    least |= {"millis": EARLY, "at": FIRST, "zoned": FIRST.replace(tzinfo=dt.UTC), "text": "", "blob": b""}
    greatest |= {"items": [1, None], "attrs": [("a", None), ("", -1)], "row": {"x": None, "y": [None, {"k": "z", "v": LAST}]}}
    least |= {"items": [], "attrs": [], "row": {"x": 1, "y": []}}
    nulls = dict.fromkeys(EXTREMES.names)
    return pa.Table.from_pylist([{**greatest, "id": 1}, {**least, "id": 2}, {**nulls, "id": 3}], EXTREMES)


def in_schema(frame, schema: pa.Schema) -> pa.Table:
    """What Spark gives, in the table's Arrow types: time zones are names for the same instants."""
    return frame.toArrow().select(schema.names).cast(schema).sort_by("id")


@pytest.mark.spark
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_value_comes_back_from_spark_as_it_was_written(spark, tmp_path, zone):
    table = Table.create(tmp_path / "t", SPARK_DDL)
    table.write(extremes())
    expected = table.scan().to_arrow()
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        native, ours = table.scan().to_spark(spark), table.scan().to_spark(spark, native=False)
        assert "FileScan parquet" in native._explain_string()
        assert native.schema == ours.schema
        assert repr(in_schema(native, table.schema).to_pylist()) == repr(expected.to_pylist())
        assert repr(in_schema(ours, table.schema).to_pylist()) == repr(expected.to_pylist())
        again = Table.create(tmp_path / "again", native.schema, spark=spark)
        again.write(native)
        back = Table.open(again.path).scan().to_arrow().sort_by("id")
        written = expected.set_column(10, "millis", expected["millis"].cast(pa.timestamp("us")))  # Spark has microseconds
        assert repr(back.to_pylist()) == repr(written.to_pylist())
        assert back.schema.equals(written.schema)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.spark
def test_types_that_spark_has_not_are_read_as_its_nearest(spark, tmp_path):
    ddl = "id BIGINT, fine TIMESTAMP(9), code CHAR(3), name VARCHAR(5), bits BINARY(2), tags MULTISET<STRING>, clock TIME(3)"
    table = Table.create(tmp_path / "t", ddl)
    values = {"id": [1], "fine": [1_000_000_001], "code": ["ab"], "name": ["abcde"], "bits": [b"\1\2"]}
    arrays = {**values, "fine": pa.array(values["fine"], pa.timestamp("ns")), "tags": [[("x", 2)]], "clock": [dt.time(23, 59, 59, 999000)]}
    table.write(pa.table({name: pa.array(value, table.schema.field(name).type) for name, value in arrays.items()}))
    frame = table.scan(columns=["id", "fine", "code", "name", "bits", "tags"]).to_spark(spark)
    types = "struct<id:bigint,fine:timestamp_ntz,code:string,name:string,bits:binary,tags:map<string,int>>"
    assert frame.schema.simpleString() == types
    (row,) = frame.collect()
    assert row.fine == dt.datetime(1970, 1, 1, 0, 0, 1), "nanoseconds are cut off"  # noqa: DTZ001
    assert (row.code, row.name, bytes(row.bits), row.tags) == ("ab", "abcde", b"\1\2", {"x": 2})
    times = table.scan(columns=["clock"])
    assert times.to_spark(spark).schema.simpleString() == "struct<clock:time(3)>"
    assert Table.open(table.path, spark=spark).scan().to_arrow().equals(table.scan().to_arrow()), "rows that come here keep all"
    before = spark.conf.get("spark.sql.timeType.enabled")
    spark.conf.set("spark.sql.timeType.enabled", "false")
    try:
        with pytest.raises(Exception, match="UNSUPPORTED_TIME_TYPE"):
            times.to_spark(spark).collect()
        spark.conf.set("spark.sql.timeType.enabled", "true")
        assert [row.clock for row in times.to_spark(spark).collect()] == [dt.time(23, 59, 59, 999000)]
    finally:
        spark.conf.set("spark.sql.timeType.enabled", before)
