"""Results of statements as small DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from manifest.types.data_type import DataField
from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark, spark_type


def frame_of_rows(spark: Any, rows: pa.Table) -> Any:
    """Convert rows to a DataFrame."""
    if not rows.num_rows:  # Spark cannot create an empty DataFrame from Arrow: create one row and limit it to none
        nulls = pa.table({field.name: pa.nulls(1, _plain(field.type)) for field in rows.schema})
        return spark.createDataFrame(nulls).limit(0)
    typed = pa.schema([field.with_type(_plain(field.type)) for field in rows.schema])
    return spark.createDataFrame(rows.cast(typed))


def frame_of_batches(spark: Any, batches: Iterable[pa.RecordBatch], schema: Any) -> Any:
    """Convert rows to a DataFrame of exactly these columns and types. The rows are part of its plan."""
    types = arrow_for_spark(schema)
    return spark.createDataFrame(pa.Table.from_batches([cast_for_spark(batch, types) for batch in batches], types), schema)


def _plain(column: pa.DataType) -> pa.DataType:
    """Return the nearest type that Spark supports."""
    if pa.types.is_unsigned_integer(column):
        return pa.int64()
    if pa.types.is_dictionary(column):
        return column.value_type
    return pa.string() if pa.types.is_null(column) else column


def frame_of_result(spark: Any, result: BaseModel | None) -> Any:
    """Return the fields of a result as one row.

    result: None gives the row ``result = true``.
    """
    plain = {} if result is None else {k: v for k, v in result.model_dump().items() if isinstance(v, bool | int | float | str)}
    listed = (
        {} if result is None else {k: ", ".join(map(str, v)) for k, v in result.model_dump().items() if isinstance(v, tuple | list) and v}
    )
    return frame_of_rows(spark, pa.Table.from_pylist([{"result": True, **plain, **listed}]))


def description(fields: Iterable[DataField], kind: str, details: Mapping[str, str]) -> pa.Table:
    """Return the rows of DESCRIBE: columns, then the details that have a value, in Spark's layout."""
    rows: list[tuple[str, str, str | None]] = [(field.name, spark_type(field.type).simpleString(), field.description) for field in fields]
    if details:
        rows += [("", "", ""), (f"# Detailed {kind} Information", "", ""), *((key, value, "") for key, value in details.items() if value)]
    return pa.table([pa.array(column, pa.string()) for column in zip(*rows, strict=True)], ["col_name", "data_type", "comment"])
