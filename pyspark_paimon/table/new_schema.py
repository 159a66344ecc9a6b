"""Schema of a new table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from manifest.schema.table_schema import TableSchema
from manifest.schema.validation import build_schema
from pyspark_paimon.typing import Schema


def new_schema(
    schema: Schema,
    primary_keys: Sequence[str],
    partition_keys: Sequence[str],
    options: Mapping[str, str] | None,
    comment: str | None,
) -> TableSchema:
    """Build and validate the schema of a new table.

    Raises ``InvalidSchema``, ``UnsupportedType``, ``UnsupportedOption`` or ``InvalidArgument``.
    """
    columns: Any = schema
    if not isinstance(schema, pa.Schema | str):
        if not type(schema).__module__.startswith("pyspark."):
            raise InvalidArgument(f"a schema must be an Arrow schema, a Spark StructType or DDL text, not {type(schema).__name__}")
        from pyspark_paimon.frames.spark_types import fields_from_spark  # noqa: PLC0415  # needs pyspark

        columns = fields_from_spark(schema)
    return build_schema(columns, primary_keys=primary_keys, partition_keys=partition_keys, options=options, comment=comment)


__all__ = ["new_schema"]
