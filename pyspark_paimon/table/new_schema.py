"""The schema of a table that is to be made, from what people describe it by."""

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
    """Checked in every respect. Raises ``InvalidSchema``, ``UnsupportedType``, ``UnsupportedOption``, ``InvalidArgument``."""
    columns: Any = schema
    if not isinstance(schema, pa.Schema | str):
        if not type(schema).__module__.startswith("pyspark."):
            raise InvalidArgument(f"a schema is an Arrow schema, a Spark StructType or DDL text, not {type(schema).__name__}")
        from pyspark_paimon.frames.spark_types import fields_from_spark  # noqa: PLC0415  # a StructType is at hand, so pyspark is

        columns = fields_from_spark(schema)
    return build_schema(columns, primary_keys=primary_keys, partition_keys=partition_keys, options=options, comment=comment)


__all__ = ["new_schema"]
