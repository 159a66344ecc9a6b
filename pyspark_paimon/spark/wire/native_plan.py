"""A scan as a DataFrame that Spark's own Parquet reader computes, as far as the server says that it may."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

from pyspark_paimon.request.message import Message
from pyspark_paimon.spark.wire.native_sql import quoted_text

_READ = {
    "ignoreMissingFiles": "false",  # whatever the session says: a missing file must be an error, not missing rows
    "ignoreCorruptFiles": "false",
    "recursiveFileLookup": "true",  # a directory called dt=1 gives no column of its own
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "parquet.page.verify-checksum.enabled": "true",
}


class NativeColumn(Message):
    """A column of the result: an expression over the table's columns, its name, and its comment."""

    name: str
    text: str
    comment: str | None = None


class NativeGroup(Message):
    """Files of one schema (``file_schema``: Spark's JSON of the columns to read), the rows to keep, the table's columns of them."""

    files: tuple[str, ...]
    file_schema: str
    condition: str | None
    columns: tuple[str, ...]


class NativePlan(Message):
    """What Spark reads by itself. No groups: nothing, and ``why``. ``has_rest``: our source has to read other files too."""

    groups: tuple[NativeGroup, ...] = ()
    columns: tuple[NativeColumn, ...] = ()
    has_rest: bool = True
    why: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """All files that Spark reads."""
        return tuple(file for group in self.groups for file in group.files)


def native_frame(spark: Any, plan: NativePlan, rest: Any) -> Any:
    """The rows of ``plan``, and those of ``rest``, a frame of our source that leaves out the plan's files.

    ``rest`` is part of the frame even where nothing is left: it comes after Spark has listed the files, and when Spark asks it for its
    schema, the server looks whether they are all still there.
    """
    others = rest if plan.has_rest else rest.where("FALSE")
    return reduce(lambda frames, frame: frames.union(frame), [*(_read(spark, plan, group) for group in plan.groups), others])


def _read(spark: Any, plan: NativePlan, group: NativeGroup) -> Any:
    from pyspark.sql.types import StructType  # noqa: PLC0415  # a session is at hand, so pyspark is

    schema = StructType.fromJson(json.loads(group.file_schema))
    files = spark.read.schema(schema).options(**_READ).parquet(*map(_uri, group.files))
    kept = files if group.condition is None else files.where(group.condition)
    rows = kept.selectExpr(*group.columns).selectExpr(*(f"{column.text} AS {quoted_text(column.name)}" for column in plan.columns))
    for column in plan.columns:
        rows = rows if column.comment is None else rows.withMetadata(column.name, {"comment": column.comment})
    return rows


def _uri(path: str) -> str:
    """A file's path as Hadoop has it, whose file system for S3 is of another scheme.

    >>> _uri("/w/t/a.parquet"), _uri("s3://bucket/t/a.parquet")
    ('file:///w/t/a.parquet', 's3a://bucket/t/a.parquet')
    """
    return f"file://{path}" if path.startswith("/") else path.replace("s3://", "s3a://", 1)


__all__ = ["NativeColumn", "NativeGroup", "NativePlan", "native_frame"]
