from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from fileindex.column_type import Kind
from manifest.errors import SchemaMismatch, UnsupportedType
from manifest.types import DataField, DataType, arrow_schema

st = pytest.importorskip("pyspark.sql.types")

from pyspark_paimon.spark_types import arrow_for_spark, cast_for_spark, fields_from_spark, spark_schema, spark_type  # noqa: E402

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
    with pytest.raises(UnsupportedType, match="VARIANT"):
        spark_type(DataType(Kind.VARIANT))
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
