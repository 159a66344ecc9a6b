"""The part of a scan that Spark's own Parquet reader reads.

Its columns are Spark SQL expressions.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

from manifest.types.data_type import DataType
from pyspark_paimon.frames.spark_functions import quote_name, text_sql
from pyspark_paimon.results.message import Message
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, Kind

_NAMES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TINYINT: "TINYINT",
    Kind.SMALLINT: "SMALLINT",
    Kind.INT: "INT",
    Kind.BIGINT: "BIGINT",
    Kind.FLOAT: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
}
_ZEROS = {
    Kind.BOOLEAN: "FALSE",
    Kind.TINYINT: "0Y",
    Kind.SMALLINT: "0S",
    Kind.INT: "0",
    Kind.BIGINT: "0L",
    Kind.FLOAT: "0F",
    Kind.DOUBLE: "0D",
    Kind.DATE: "DATE'1970-01-01'",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ'1970-01-01 00:00:00'",
    Kind.TIMESTAMP_LTZ: "TIMESTAMP_LTZ'1970-01-01 00:00:00Z'",
    **dict.fromkeys(STRINGS, "''"),
    **dict.fromkeys(BINARIES, "X''"),
}
"""Literals that Spark infers as not null. It infers a cast of a string as nullable."""
_READ = {
    "ignoreMissingFiles": "false",  # overrides the session: a missing file must be an error, not missing rows
    "ignoreCorruptFiles": "false",
    "recursiveFileLookup": "true",  # otherwise Spark adds a column for a directory dt=1
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
}


def source_text(file_name: str, type_: DataType) -> str:
    """Return the expression that reads a file's column."""
    # An expression that changes no float keeps Spark from skipping row groups by minima and maxima. These omit NaN, Spark's
    # greatest value, and order -0.0 before 0.0: a user's filter would lose rows.
    if type_.kind in FLOATS:
        return f"nanvl({quote_name(file_name)}, CAST('NaN' AS {_NAMES[type_.kind]}))"
    return quote_name(file_name)


def result_text(name: str, type_: DataType) -> str:
    """Return the expression of a result column.

    Spark infers a NOT NULL column of the table as not null. The expression raises an error for a null.

    >>> result_text("n", DataType(Kind.INT, nullable=False))[:25]
    'coalesce(`n`, raise_error'
    """
    if type_.nullable:
        return quote_name(name)
    digits = f".{'0' * type_.scale}" if type_.scale else ""
    zero = f"CAST(0{digits}BD AS {type_.with_nullable(nullable=True)})" if type_.kind is Kind.DECIMAL else _ZEROS[type_.kind]
    message = text_sql(f"column {name} is NOT NULL, but a data file has a null")
    return f"coalesce({quote_name(name)}, raise_error({message}), {zero})"


def widening_text(expression: str, file: DataType, read: DataType) -> str | None:
    """Return ``expression``, of type ``file``, cast to the wider type ``read``.

    None: it is no widening.

    >>> widening_text("`a`", DataType(Kind.INT), DataType(Kind.BIGINT))
    'CAST(`a` AS BIGINT)'
    """
    order = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
    if file.kind in order and read.kind in order and order.index(file.kind) <= order.index(read.kind):
        return f"CAST({expression} AS {_NAMES[read.kind]})"
    if (file.kind, read.kind) == (Kind.FLOAT, Kind.DOUBLE):
        return f"CAST({expression} AS DOUBLE)"
    return None


class NativeColumn(Message):
    """A column of the result."""

    name: str
    text: str
    """Spark SQL expression over the table's columns."""
    comment: str | None = None


class NativeGroup(Message):
    """Files of one schema."""

    files: tuple[str, ...]
    file_schema: str
    """Columns to read, as Spark's JSON of a schema."""
    condition: str | None
    """Spark SQL filter of the rows. None: all rows."""
    columns: tuple[str, ...]
    """Spark SQL expressions that give the table's columns."""


class NativePlan(Message):
    """Files that Spark's own reader reads."""

    groups: tuple[NativeGroup, ...] = ()
    columns: tuple[NativeColumn, ...] = ()
    has_rest: bool = True
    """Whether our source has to read other files too."""
    why: str = ""
    """Reason if there are no groups."""
    file_bytes: int | None = None
    """Bytes of all files of the scan. None: unknown."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files that Spark reads."""
        return tuple(file for group in self.groups for file in group.files)


def native_frame(spark: Any, plan: NativePlan, rest: Any) -> Any:
    """Return a DataFrame of the rows of ``plan`` and of ``rest``.

    ``rest`` is a frame of our source that excludes the plan's files.
    """
    # Even an empty rest is part of the frame. Spark asks it for its schema after listing the files; then the server checks that
    # all files still exist.
    merged_rows = rest if plan.has_rest else rest.where("FALSE")
    return reduce(lambda frames, frame: frames.union(frame), [*(_read(spark, plan, group) for group in plan.groups), merged_rows])


def _read(spark: Any, plan: NativePlan, group: NativeGroup) -> Any:
    from pyspark.sql.types import StructType  # noqa: PLC0415  # the caller has a session, so pyspark is loaded

    schema = StructType.fromJson(json.loads(group.file_schema))
    files = spark.read.schema(schema).options(**_READ).parquet(*map(_uri, group.files))
    filtered = files if group.condition is None else files.where(group.condition)
    rows = filtered.selectExpr(*group.columns).selectExpr(*(f"{column.text} AS {quote_name(column.name)}" for column in plan.columns))
    for column in plan.columns:
        rows = rows if column.comment is None else rows.withMetadata(column.name, {"comment": column.comment})
    return rows


def _uri(path: str) -> str:
    """Return a file's URI for Hadoop, which calls S3 ``s3a``.

    >>> _uri("/w/t/a.parquet"), _uri("s3://bucket/t/a.parquet")
    ('file:///w/t/a.parquet', 's3a://bucket/t/a.parquet')
    """
    return f"file://{path}" if path.startswith("/") else path.replace("s3://", "s3a://", 1)
