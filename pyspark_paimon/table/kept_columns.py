"""Upserts that leave out columns and keep their stored values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from fileindex.expression.tree import ColumnValue
from lsm.arrow.row_kind import ROW_KIND
from lsm.keys.key_set import KeySet
from lsm.schema.conform_input import conform
from pyspark_paimon.filter.columns import SOURCE
from pyspark_paimon.request.backend import ArrowRows, Rows, WriteRequest
from pyspark_paimon.request.merge import sides_of

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.table.keyed import TableRows
    from pyspark_paimon.table.merge import Merge

_RETRACTS = f"s.{ROW_KIND} IN ('-U', '-D')"


def merge_known_columns(table: TableRows, schema: TableSchema, request: WriteRequest, rows: Rows) -> Merge:
    """Return the merge that sets the columns of ``rows`` by key.

    Of several local rows with one key the last one counts.

    Raises:
        InvalidArgument: Another argument of the write does not allow it.
        SchemaMismatch: The rows do not fit the table.
    """
    _check(schema, request, rows)
    names = [name for name in rows.schema.names if not (request.row_kinds and name == ROW_KIND)]
    _check_columns(schema, rows.schema, names, kinds=request.row_kinds)
    merge = table.merge(
        _last_of_key(rows.reader.read_all(), schema) if isinstance(rows, ArrowRows) else rows.frame,
        on=list(schema.primary_keys),
        options=request.options,
        commit_id=None if request.first_run else request.commit_id,
        properties=request.properties,
    )
    types = sides_of(schema, rows.schema)[SOURCE]
    values = {name: ColumnValue(f"{SOURCE}.{name}", None, types[name]) for name in names}
    others = {name: value for name, value in values.items() if name not in schema.primary_keys}
    if request.row_kinds:
        merge = merge.when_matched_delete(_RETRACTS)
    if others:
        merge = merge.when_matched_update(others)
    return merge.when_not_matched_insert(values, f"NOT {_RETRACTS}" if request.row_kinds else None)


def _check(schema: TableSchema, request: WriteRequest, rows: Rows) -> None:
    """Raise ``InvalidArgument`` for arguments that need another write."""
    if request.mode != "upsert":
        raise InvalidArgument(f"missing='keep' keeps stored values of a row's key; mode '{request.mode}' has none: use missing='null'")
    if request.batch_id is not None or request.order_by is not None:
        name = "batch_id" if request.batch_id is not None else "order_by"
        raise InvalidArgument(f"{name} cannot be combined with missing='keep', which merges the rows; use merge-engine 'partial-update'")
    if schema.core.rowkind_field is not None:
        raise InvalidArgument("missing='keep' is not possible with option 'rowkind.field'; give all columns")
    if isinstance(rows, ArrowRows) and rows.ragged:
        raise InvalidArgument(
            f"missing='keep' needs the same columns in all rows; some rows have no '{rows.ragged[0]}': write rows with other columns apart"
        )


def _check_columns(schema: TableSchema, given: pa.Schema, names: list[str], *, kinds: bool) -> None:
    """Raise ``SchemaMismatch`` for columns that do not fit.

    A missing NOT NULL column is an error of a row with a new key only.
    """
    fields = tuple(
        field if field.name in names else replace(field, type=field.type.with_nullable(nullable=True)) for field in schema.fields
    )
    rows = pa.schema([given.field(name) for name in names]).empty_table()
    conform(rows, schema.model_copy(update={"fields": fields}), [] if kinds else None)


def _last_of_key(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Return the last row of each key, in the order of the rows."""
    fields = tuple(schema.field(name) for name in schema.primary_keys)
    keys = KeySet(conform(rows.select(list(schema.primary_keys)), schema.model_copy(update={"fields": fields})).combine_chunks())
    if len(keys) == rows.num_rows:
        return rows
    last = np.zeros(len(keys), np.int64)
    last[keys.numbers] = np.arange(rows.num_rows)  # numpy assigns repeated indexes in order
    return rows.take(pa.array(np.sort(last)))


__all__ = ["merge_known_columns"]
