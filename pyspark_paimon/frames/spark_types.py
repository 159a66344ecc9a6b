"""Conversion between Paimon types and Spark types.

Reading truncates nanoseconds to Spark's microseconds. As in Paimon's Spark connector, a MULTISET is a map to its counts, and CHAR and
VARCHAR are strings without a length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from manifest.io.errors import SchemaMismatch
from manifest.types.data_type import DataField, DataType, number_fields
from paimon_base.errors import UnsupportedType
from paimon_base.hidden_nulls import cast_nested
from sparkexpr.values.column_type import Kind

if TYPE_CHECKING:
    from pyspark.sql import types as st

_UNLIMITED = 2147483647
_ATOMIC = {
    Kind.BOOLEAN: "BooleanType",
    Kind.TINYINT: "ByteType",
    Kind.SMALLINT: "ShortType",
    Kind.INT: "IntegerType",
    Kind.BIGINT: "LongType",
    Kind.FLOAT: "FloatType",
    Kind.DOUBLE: "DoubleType",
    Kind.DATE: "DateType",
    Kind.CHAR: "StringType",
    Kind.VARCHAR: "StringType",
    Kind.BINARY: "BinaryType",
    Kind.VARBINARY: "BinaryType",
    Kind.BLOB: "BinaryType",
    Kind.TIMESTAMP: "TimestampNTZType",
    Kind.TIMESTAMP_LTZ: "TimestampType",
}
_KINDS = {
    "boolean": Kind.BOOLEAN,
    "byte": Kind.TINYINT,
    "short": Kind.SMALLINT,
    "integer": Kind.INT,
    "long": Kind.BIGINT,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "date": Kind.DATE,
}


def spark_schema(fields: Sequence[DataField]) -> st.StructType:
    """Return the Spark schema of columns, with their comments."""
    from pyspark.sql import types as st  # noqa: PLC0415  # import Spark only where it is needed

    def comment(field: DataField) -> dict[str, str]:
        return {} if field.description is None else {"comment": field.description}

    return st.StructType([st.StructField(f.name, spark_type(f.type), f.type.nullable, comment(f)) for f in fields])


def spark_type(type_: DataType) -> st.DataType:
    """Return the Spark type of a column.

    Raises ``UnsupportedType`` for a type without a Spark equivalent.
    """
    from pyspark.sql import types as st  # noqa: PLC0415  # as above

    match type_.kind:
        case kind if kind in _ATOMIC:
            return getattr(st, _ATOMIC[kind])()
        case Kind.DECIMAL:
            return st.DecimalType(type_.precision, type_.scale)
        case Kind.TIME:
            return st.TimeType(min(type_.precision, 6))
        case Kind.ARRAY | Kind.VECTOR if type_.element is not None:
            return st.ArrayType(spark_type(type_.element), type_.element.nullable)
        case Kind.MAP if type_.key is not None and type_.value is not None:
            return st.MapType(spark_type(type_.key), spark_type(type_.value), type_.value.nullable)
        case Kind.MULTISET if type_.element is not None:
            return st.MapType(spark_type(type_.element), st.IntegerType(), valueContainsNull=False)
        case Kind.VARIANT:
            return st.VariantType()
        case Kind.ROW:
            return spark_schema(type_.fields)
        case _:
            raise UnsupportedType(f"{type_} has no Spark type")


def fields_from_spark(schema: st.StructType) -> tuple[DataField, ...]:
    """Return the columns of a new table.

    Field ids are numbered as in Paimon. A Spark TIMESTAMP is an instant and becomes TIMESTAMP(6) WITH LOCAL TIME ZONE; TIMESTAMP_NTZ
    becomes TIMESTAMP(6). Raises ``UnsupportedType``.
    """
    return number_fields(_fields(schema))


def _fields(schema: st.StructType) -> tuple[DataField, ...]:
    def column(field: st.StructField) -> DataField:
        type_ = _from_spark(field.dataType, nullable=field.nullable, name=field.name)
        return DataField(0, field.name, type_, (field.metadata or {}).get("comment"))

    return tuple(column(field) for field in schema.fields)


def _from_spark(type_: st.DataType, *, nullable: bool, name: str) -> DataType:
    kind: str = type_.typeName()
    if kind in _KINDS:
        return DataType(_KINDS[kind], nullable)
    match kind:
        case "string" | "varchar" | "char":
            length = getattr(type_, "length", _UNLIMITED)
            return DataType(Kind.CHAR if kind == "char" else Kind.VARCHAR, nullable, length=length)
        case "binary":
            return DataType(Kind.VARBINARY, nullable, length=_UNLIMITED)
        case "decimal":
            return DataType(Kind.DECIMAL, nullable, precision=type_.precision, scale=type_.scale)
        case "timestamp":
            return DataType(Kind.TIMESTAMP_LTZ, nullable, precision=6)
        case "timestamp_ntz":
            return DataType(Kind.TIMESTAMP, nullable, precision=6)
        case "time":
            return DataType(Kind.TIME, nullable, precision=type_.precision)
        case "array":
            return DataType(Kind.ARRAY, nullable, element=_from_spark(type_.elementType, nullable=type_.containsNull, name=name))
        case "map":
            key = _from_spark(type_.keyType, nullable=False, name=name)
            value = _from_spark(type_.valueType, nullable=type_.valueContainsNull, name=name)
            return DataType(Kind.MAP, nullable, key=key, value=value)
        case "variant":
            return DataType(Kind.VARIANT, nullable)
        case "struct":
            return DataType(Kind.ROW, nullable, fields=_fields(type_))
        case _:
            raise UnsupportedType(f"column '{name}': Spark type {type_.simpleString()} has no Paimon type")


def arrow_for_spark(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark requires of batches.

    It has microseconds, UTC and plain strings.
    """
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415  # as above

    try:
        return to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # PySpark before 4.3 has no argument timezone and uses UTC
        return to_arrow_schema(schema)


def cast_for_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast ``batch`` to ``schema``, columns by position.

    Nanoseconds are truncated. Raises ``SchemaMismatch``.
    """
    try:
        columns = [_cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise SchemaMismatch(f"the table's columns {batch.schema.names} do not fit the schema that Spark requests: {error}") from error


def _cast(column: pa.Array, target_type: pa.DataType) -> pa.Array:
    return cast_nested(column, target_type, safe="timestamp[ns" not in str(column.type))
