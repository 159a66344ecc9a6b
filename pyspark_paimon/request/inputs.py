"""Conversion of user data to rows.

Rows are an Arrow stream of this process, or a Spark DataFrame that stays on the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import with_leaves
from lsm.arrow.row_kind import ROW_KIND, ROW_KINDS
from lsm.rows_in.arrow import ACCEPTED, ArrowRows, arrow_rows
from lsm.rows_in.check import validate_batches
from lsm.rows_in.policy import CastErrors, CastMode
from manifest.io.errors import SchemaMismatch
from manifest.schema.partial_rows import PartialRows
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, UnsupportedType
from pyspark_paimon.frames.pandas_frames import spark_frame
from pyspark_paimon.request.requests import Rows, SparkRows, WriteRequest
from pyspark_paimon.typing import Data


def rows_of(data: Data, schema: pa.Schema, *, widens: bool = False) -> Rows:
    """Return ``data`` as rows for a table with ``schema``.

    Of an iterable, reads only the first batch now. ``widens``: Python numbers that do not fit their column get a wider type.

    Raises:
        InvalidArgument: the type of ``data`` is not supported.
        SchemaMismatch: two columns have one name, or a value does not fit. Reading raises it for a damaged Arrow array.
        UnsupportedType: a Spark column has no Arrow type (intervals of months, for example).

    >>> rows_of(pa.table({"id": [1]}), pa.schema([("id", pa.int64())])).schema.names
    ['id']
    """
    rows: Rows = _spark_rows(data, schema) if type(data).__module__.startswith("pyspark.") else arrow_rows(data, schema, widens=widens)
    if isinstance(rows, ArrowRows):
        rows = replace(rows, reader=validate_batches(rows.reader))
    repeated = [name for name, times in Counter(rows.schema.names).items() if times > 1]
    if repeated:
        raise SchemaMismatch(f"the rows to write have several columns named {', '.join(repeated)}")
    return rows


def castable_rows(
    data: Data, schema: TableSchema, cast: CastMode, errors: CastErrors, *, widens: bool = False
) -> tuple[Rows, list[pa.Table]]:
    """Return ``data`` as rows with the types of the table.

    Also returns a list that gets the rejected rows while the rows are read, for ``errors`` ``collect``. ``widens``: a column of numbers
    gets a wider type where only that has all values. The first batch decides it for a stream.

    Raises:
        InvalidArgument: ``errors`` is unknown, or ``data`` is a Spark DataFrame.
        SchemaMismatch: As for ``rows_of``. Reading raises it for a value that does not fit, if ``errors`` is ``raise``.
    """
    if errors not in get_args(CastErrors):
        raise InvalidArgument(f"errors must be one of {', '.join(get_args(CastErrors))}, not {errors!r}")
    # Types of nested columns help to convert dicts; other Python values keep their own type until the cast.
    nested = [field.with_type(with_leaves(field.type, _castable)) for field in schema.arrow if pa.types.is_nested(field.type)]
    rows = rows_of(data, pa.schema(nested))
    if not isinstance(rows, ArrowRows):
        raise InvalidArgument(
            "cast=True casts rows of this process; cast the columns of a DataFrame in Spark, such as df.withColumn('n', try_cast('n', 'int'))"
        )
    from lsm.rows_in.requested_cast import CastRows, widened  # noqa: PLC0415  # few writes cast

    reader = rows.reader
    if widens:
        first_batches = list(islice(reader, 1)) if isinstance(data, Iterator | pa.RecordBatchReader) else list(reader)
        schema = widened(schema, pa.Table.from_batches(first_batches, reader.schema), rounds=cast == "round")
        reader = pa.RecordBatchReader.from_batches(reader.schema, chain(first_batches, reader))
    casts = CastRows(schema, cast == "round", errors)
    return replace(rows, reader=casts.reader(reader)), casts.rejected


def _castable(leaf: pa.DataType) -> pa.DataType:
    """Return the type of Python values that a cast makes values of type ``leaf``."""
    return pa.float64() if pa.types.is_float32(leaf) else leaf


def partial_rows(rows: Rows, schema: TableSchema) -> tuple[PartialRows, ...]:
    """Return the kinds of rows by the columns that they have."""
    sets = rows.column_sets if isinstance(rows, ArrowRows) else ()
    return tuple(PartialRows(schema, names) for names in sets or (frozenset(rows.schema.names),))


def refuse_ragged(rows: Rows, schema: TableSchema, request: WriteRequest) -> None:
    """Raise ``SchemaMismatch`` for dicts without some of the columns.

    Dicts with row kinds may leave out columns: deletes need only their key.
    """
    kinds = request.row_kinds or schema.core.rowkind_field is not None
    if isinstance(rows, ArrowRows) and rows.column_sets and not (request.fills_null or kinds):
        for refusal in filter(None, (partial.refusal for partial in partial_rows(rows, schema))):
            raise SchemaMismatch(f"some of the rows have other keys: {refusal}")


def _spark_rows(data: Any, schema: pa.Schema) -> Rows:
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


def collect(rows: Rows) -> ArrowRows:
    """Return ``rows`` as an Arrow stream; fetch a Spark DataFrame."""
    if isinstance(rows, ArrowRows):
        return rows
    from pyspark_paimon.frames.fetched_rows import fetch_rows  # noqa: PLC0415  # few processes fetch DataFrames

    return ArrowRows(fetch_rows(rows.frame).to_reader())


def has_row_kinds(rows: Rows, schema: TableSchema) -> bool:
    """Return whether the rows have a ``ROW_KIND`` column.

    Raises ``InvalidArgument`` where the table takes no kinds, or has a column for them.
    """
    if ROW_KIND not in rows.schema.names or ROW_KIND in schema.names:
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
