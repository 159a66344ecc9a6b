"""Upserts that leave out columns and keep their stored values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lsm.arrow.row_kind import ROW_KIND
from lsm.keys.key_set import KeySet
from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.conform import conform
from manifest.io.errors import SchemaMismatch
from manifest.schema.partial_rows import PartialRows
from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.columns import SOURCE
from pyspark_paimon.operations.alter import store_pending
from pyspark_paimon.operations.change_rows import MergeRows
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.request.merge import Action, Clause, Join, MergeRequest, When, clause_of, sides_of
from pyspark_paimon.request.requests import DeleteRequest, Rows, WriteRequest
from sparkexpr.expression.tree import ColumnValue

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.request.engine import Engine
    from pyspark_paimon.results.results import MergeResult

_RETRACTS = f"s.{ROW_KIND} IN ('-U', '-D')"


def keep_stored_values(engine: Engine, schema: TableSchema, request: WriteRequest, rows: Rows) -> MergeResult:
    """Write rows that keep stored values of the columns they lack.

    A merge by key completes the rows, and the merge engine folds them like those of any write. Where the newest row replaces the stored
    one, the last of several local rows with one key counts.

    Raises:
        InvalidArgument: Another argument of the write does not allow it.
        SchemaMismatch: The rows do not fit the table.
        UnsupportedTable: The merge engine cannot keep the value of a column.
    """
    _check(schema, request, rows)
    names = [name for name in rows.schema.names if not (request.row_kinds and name == ROW_KIND)]
    _check_columns(schema, rows.schema.empty_table(), names, kinds=request.row_kinds)
    source = rows.frame if not isinstance(rows, ArrowRows) else rows.reader.read_all()
    if isinstance(source, pa.Table):
        source = _without_replaced(source, schema)
    if request.pending is not None:
        if isinstance(source, pa.Table):
            _check_columns(schema, source, names, kinds=request.row_kinds)  # all values, before the table gets columns for them
        store_pending(engine, request.pending)
    merge_request = MergeRequest(
        source=source if isinstance(rows, ArrowRows) else rows,
        join=Join(pairs=tuple((name, name) for name in schema.primary_keys)),
        clauses=_clauses(schema, rows.schema, names, kinds=request.row_kinds),
    )
    merge = DeleteRequest(
        commit_id=request.commit_id,
        first_run=request.first_run,
        predicate=None,
        properties=request.properties,
        options=request.options,
    )
    return engine.run(MergeRows(request=merge, merge=merge_request))


def _clauses(schema: TableSchema, source: pa.Schema, names: list[str], *, kinds: bool) -> tuple[Clause, ...]:
    sides = sides_of(schema, source)
    join = Join(pairs=tuple((name, name) for name in schema.primary_keys))

    def clause(when: When, action: Action, values: object, condition: str | None = None) -> Clause:
        return clause_of(when, action, values, condition, schema=schema, sides=sides, join=join)

    values = {name: ColumnValue(f"{SOURCE}.{name}", None, sides[SOURCE][name]) for name in names}
    non_keys = {name: value for name, value in values.items() if name not in schema.primary_keys}
    clauses = [clause("matched", "delete", None, _RETRACTS)] if kinds else []
    if non_keys:
        clauses.append(clause("matched", "update", non_keys))
    clauses.append(clause("not matched", "insert", values, f"NOT {_RETRACTS}" if kinds else None))
    return tuple(each if each.action == "delete" else each.model_copy(update={"is_version": True}) for each in clauses)


def _check(schema: TableSchema, request: WriteRequest, rows: Rows) -> None:
    """Raise ``InvalidArgument`` for arguments that need another write."""
    if request.batch_id is not None or request.order_by is not None:
        name = "batch_id" if request.batch_id is not None else "order_by"
        raise InvalidArgument(f"{name} cannot be combined with missing='keep', which merges the rows; use merge-engine 'partial-update'")
    if schema.core.rowkind_field is not None:
        raise InvalidArgument("missing='keep' is not possible with option 'rowkind.field'; give all columns")
    if rows.column_sets:
        lacking = next(name for name in rows.schema.names if not all(name in names for names in rows.column_sets))
        raise InvalidArgument(
            f"missing='keep' needs the same columns in all rows; some rows have no '{lacking}': write rows with other columns in a separate call"
        )


def _check_columns(schema: TableSchema, rows: pa.Table, names: list[str], *, kinds: bool) -> None:
    """Raise ``SchemaMismatch`` for columns and values that do not fit.

    A missing NOT NULL column is an error of a row with a new key only.
    """
    fields = tuple(
        field if field.name in names else replace(field, type=field.type.with_nullable(nullable=True)) for field in schema.fields
    )
    given_kinds = pa.chunked_array([split_kinds(batch)[1] for batch in rows.to_batches()], pa.int8()) if kinds else None
    conform(rows.select(names), schema.model_copy(update={"fields": fields}), given_kinds)
    if (refusal := PartialRows(schema, names).ignored) is not None:
        raise SchemaMismatch(refusal)


def _without_replaced(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Return the rows without those that a later row of their key replaces.

    Raises ``InvalidArgument`` if several rows have one key, and the last one does not replace the others.
    """
    fields = tuple(schema.field(name) for name in schema.primary_keys)
    keys = KeySet(conform(rows.select(list(schema.primary_keys)), schema.model_copy(update={"fields": fields})).combine_chunks())
    if len(keys) == rows.num_rows:
        return rows
    if not schema.core.engine.newest_replaces or schema.core.sequence_field:
        if ROW_KIND not in rows.schema.names:
            return rows  # the merge engine folds them in their order
        raise InvalidArgument(f"missing='keep' with column '{ROW_KIND}': several rows have one key; write them one after the other")
    last = np.zeros(len(keys), np.int64)
    last[keys.numbers] = np.arange(rows.num_rows)  # numpy assigns repeated indexes in order
    return rows.take(pa.array(np.sort(last)))
