"""Conversion of user data to rows.

Rows are an Arrow stream of this process, or a Spark DataFrame that stays on the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.row_kind import ROW_KIND, ROW_KINDS
from lsm.rows_in.arrow import ACCEPTED, arrow_rows
from lsm.rows_in.check import check_rows, refuse_repeated
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy
from manifest.io.errors import SchemaMismatch
from manifest.schema.partial_rows import PartialRows
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, UnsupportedType
from pyspark_paimon.frames.pandas_frames import spark_frame
from pyspark_paimon.request.requests import Rows, SparkRows, WriteRequest
from pyspark_paimon.typing import Data


def rows_of(data: Data, schema: TableSchema | None, policy: RowPolicy = DEFAULT_POLICY) -> Rows:
    """Return ``data`` as rows for a table with ``schema``.

    Of an iterable, reads only the first batch now. ``schema`` None: the table is new.

    Raises:
        InvalidArgument: The type of ``data`` is not supported, or a Spark DataFrame should be cast.
        SchemaMismatch: Two columns have one name, or a value does not fit. Reading raises it for a damaged Arrow array, too.
        UnsupportedType: A Spark column has no Arrow type (intervals of months, for example).

    >>> rows_of(pa.table({"id": [1]}), None).schema.names
    ['id']
    """
    types = pa.schema([]) if schema is None else schema.arrow
    if type(data).__module__.startswith("pyspark."):
        frame = _spark_rows(data, types)
        refuse_repeated(frame.schema)
        if policy.cast:
            raise InvalidArgument(
                "cast=True casts rows of this process; cast the columns of a DataFrame in Spark, such as df.withColumn('n', try_cast('n', 'int'))"
            )
        return frame
    if schema is None or not policy.cast:
        return check_rows(arrow_rows(data, types, policy))
    from lsm.rows_in.requested_cast import cast_rows, source_types  # noqa: PLC0415  # few writes cast

    rows = check_rows(arrow_rows(data, source_types(schema), policy))
    return cast_rows(rows, schema, policy, streams=isinstance(data, Iterator | pa.RecordBatchReader))


def rows_to_write(data: Data, schema: TableSchema, request: WriteRequest, policy: RowPolicy) -> tuple[Rows, TableSchema, WriteRequest]:
    """Return ``data`` as rows, the schema that they give the table, and the request to write them.

    Raises:
        InvalidArgument, SchemaMismatch, UnsupportedType: As for ``rows_of``, and where dicts lack columns. With row kinds they may: deletes
            need only their key. Or the rows have kinds that the table does not take.
        InvalidSchema: The table cannot get a new column of the rows.
    """
    rows = rows_of(data, schema, policy)
    if policy.merges:
        from lsm.rows_in.new_columns import merged_schema  # noqa: PLC0415  # few writes add columns

        if (pending := merged_schema(schema, rows.schema, policy)) is not None:
            schema, request = pending, request.model_copy(update={"pending": pending, "schema_id": None})
    request = request.model_copy(update={"row_kinds": has_row_kinds(rows.schema, schema)})
    kinds = request.row_kinds or schema.core.rowkind_field is not None
    if rows.column_sets and not (request.policy.fills_null or kinds):
        for refusal in filter(None, (partial.refusal for partial in partial_rows(rows, schema))):
            raise SchemaMismatch(f"some of the rows have other keys: {refusal}")
    return rows, schema, request


def partial_rows(rows: Rows, schema: TableSchema) -> tuple[PartialRows, ...]:
    """Return the kinds of rows by the columns that they have."""
    return tuple(PartialRows(schema, names) for names in rows.column_sets or (frozenset(rows.schema.names),))


def _spark_rows(data: Any, schema: pa.Schema) -> SparkRows:
    if type(data).__module__.startswith("pyspark.pandas"):
        if not hasattr(data, "to_spark"):
            raise InvalidArgument(f"rows cannot be written from pandas-on-Spark's {type(data).__name__}; use a DataFrame")
        data = spark_frame(data, schema)
    if not (hasattr(data, "toArrow") and hasattr(data, "schema")):
        raise InvalidArgument(f"rows cannot be written from Spark's {type(data).__name__}; use {ACCEPTED}")
    from pyspark_paimon.frames.spark_types import arrow_for_spark  # noqa: PLC0415  # data is a DataFrame: pyspark is loaded

    try:
        return SparkRows(data, arrow_for_spark(data.schema))
    except TypeError as error:
        raise UnsupportedType(f"the DataFrame has a column of a type that no table has: {error}") from error


def has_row_kinds(rows: pa.Schema, schema: TableSchema) -> bool:
    """Return whether the rows have a ``ROW_KIND`` column.

    Raises ``InvalidArgument`` where the table takes no kinds, or has a column for them.
    """
    if ROW_KIND not in rows.names or ROW_KIND in schema.names:
        return False
    if not schema.is_primary_key_table:
        raise InvalidArgument(f"column '{ROW_KIND}': the table has no primary key, which row kinds need: remove the column")
    if schema.core.rowkind_field is not None:
        raise InvalidArgument(
            f"column '{ROW_KIND}': the table reads row kinds from column '{schema.core.rowkind_field}' (rowkind.field): use that"
        )
    return True


def split_kinds(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """Split ``ROW_KIND`` from the rows.

    Returns the kinds as int8: 0 +I, 1 -U, 2 +U, 3 -D. Raises ``SchemaMismatch``.

    >>> rows, kinds = split_kinds(pa.record_batch({"id": [1, 2], "_row_kind": ["+I", "-D"]}))
    >>> rows.schema.names, kinds.to_pylist()
    (['id'], [0, 3])
    """
    kind_index = batch.schema.get_field_index(ROW_KIND)
    kind_column = batch.column(kind_index)
    if pa.types.is_dictionary(kind_column.type):
        kind_column = kind_column.dictionary_decode()
    try:
        codes = pc.index_in(kind_column.cast(pa.string()), value_set=pa.array(ROW_KINDS))
    except pa.ArrowException as error:
        raise SchemaMismatch(f"column '{ROW_KIND}' must be text, not {kind_column.type}") from error
    if codes.null_count:
        wrong = kind_column.filter(codes.is_null())[0].as_py()
        raise SchemaMismatch(f"column '{ROW_KIND}' has {wrong!r}; use one of {', '.join(ROW_KINDS)}")
    return batch.remove_column(kind_index), codes.cast(pa.int8())
