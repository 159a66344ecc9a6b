"""The part of a scan that Spark's own Parquet reader reads."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

from pyspark_paimon.request.message import Message
from pyspark_paimon.spark.wire.native_sql import quoted_text

_READ = {
    "ignoreMissingFiles": "false",  # overrides the session: a missing file must be an error, not missing rows
    "ignoreCorruptFiles": "false",
    "recursiveFileLookup": "true",  # otherwise Spark adds a column for a directory dt=1
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
}


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
    others = rest if plan.has_rest else rest.where("FALSE")
    return reduce(lambda frames, frame: frames.union(frame), [*(_read(spark, plan, group) for group in plan.groups), others])


def _read(spark: Any, plan: NativePlan, group: NativeGroup) -> Any:
    from pyspark.sql.types import StructType  # noqa: PLC0415  # the caller has a session, so pyspark is loaded

    schema = StructType.fromJson(json.loads(group.file_schema))
    files = spark.read.schema(schema).options(**_READ).parquet(*map(_uri, group.files))
    kept = files if group.condition is None else files.where(group.condition)
    rows = kept.selectExpr(*group.columns).selectExpr(*(f"{column.text} AS {quoted_text(column.name)}" for column in plan.columns))
    for column in plan.columns:
        rows = rows if column.comment is None else rows.withMetadata(column.name, {"comment": column.comment})
    return rows


def _uri(path: str) -> str:
    """Return a file's URI for Hadoop, which calls S3 ``s3a``.

    >>> _uri("/w/t/a.parquet"), _uri("s3://bucket/t/a.parquet")
    ('file:///w/t/a.parquet', 's3a://bucket/t/a.parquet')
    """
    return f"file://{path}" if path.startswith("/") else path.replace("s3://", "s3a://", 1)


__all__ = ["NativeColumn", "NativeGroup", "NativePlan", "native_frame"]
