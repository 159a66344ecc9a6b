"""Schema of a new table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lsm.arrow.row_kind import ROW_KIND
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.inputs import rows_of
from pyspark_paimon.typing import Data, Schema


def new_schema(
    schema: Schema | Data,
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str] | None,
    comment: str | None,
) -> TableSchema:
    """Build and validate the schema of a new table.

    Raises ``InvalidSchema``, ``UnsupportedType``, ``UnsupportedOption`` or ``InvalidArgument``.
    """
    columns = _columns(schema)
    return build_schema(columns, primary_keys=primary_keys, partition_keys=partition_keys, options=options, comment=comment)


def _columns(schema: Any) -> Any:
    """Return DDL text, an Arrow schema or fields for a schema or for data."""
    if isinstance(schema, pa.Schema | str):
        return schema
    if type(schema).__module__.startswith("pyspark.sql"):
        from pyspark_paimon.frames.spark_types import fields_from_spark  # noqa: PLC0415  # needs pyspark

        return fields_from_spark(getattr(schema, "schema", schema))
    if hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__"):
        return pa.schema(schema)
    try:
        rows = rows_of(schema, None).schema
    except InvalidArgument as error:
        raise InvalidArgument(
            f"a schema must be an Arrow, polars or Spark schema, DDL text or data with columns, not {type(schema).__name__}"
        ) from error
    return pa.schema([field for field in rows if field.name != ROW_KIND])
