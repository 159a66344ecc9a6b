"""Upserts that leave out columns and keep their stored values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.row_kind import ROW_KIND
from lsm.keys.key_set import KeySet
from lsm.keys.sort import DELETE, UPDATE_BEFORE
from lsm.rows_in.arrow import COLUMN_SET, ArrowRows
from lsm.rows_in.conform import conform
from manifest.io.errors import SchemaMismatch
from manifest.schema.partial_rows import PartialRows
from manifest.types.data_type import DataField, default_scalar
from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.columns import SOURCE
from pyspark_paimon.filter.joined_sql import bind_condition
from pyspark_paimon.operations.change_rows import MergeRows
from pyspark_paimon.request.assignments import refuse_fixed
from pyspark_paimon.request.bound import Value
from pyspark_paimon.request.inputs import partial_rows, split_kinds
from pyspark_paimon.request.merge import Clause, Join, MergeRequest, sides_of
from pyspark_paimon.request.requests import DeleteRequest, Rows, WriteRequest
from sparkexpr.expression.tree import ColumnValue, Expression
from sparkexpr.values.arrays import Int8s, Int64s, Mask

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.request.engine import Engine
    from pyspark_paimon.results.results import MergeResult, WriteResult

_INSERTS = np.zeros(0, np.int8)
_RETRACTS = f"s.{ROW_KIND} IN ('-U', '-D')"


def write_kept(engine: Engine, schema: TableSchema, request: WriteRequest, rows: Rows) -> WriteResult:
    """Write rows with ``missing="keep"``: by a merge where a plain write would not keep stored values."""
    if any(partial.changed or partial.ignored for partial in partial_rows(rows, schema)):
        return keep_stored_values(engine, schema, request, rows)
    return engine.write(request, rows.without_numbers() if isinstance(rows, ArrowRows) else rows)


def keep_stored_values(engine: Engine, schema: TableSchema, request: WriteRequest, rows: Rows) -> MergeResult:
    """Write rows that keep stored values of the columns they lack.

    A merge by key completes the rows, and the merge engine folds them like those of any write. Where the newest row replaces the stored
    one, local rows with one key are applied in their order: after a delete, columns that the rows lack become null.

    Raises:
        InvalidArgument: Another argument of the write does not allow it.
        SchemaMismatch: The rows do not fit the table.
        UnsupportedTable: The merge engine cannot keep the value of a column.
    """
    if request.order_by is not None:
        raise InvalidArgument("order_by cannot be combined with missing='keep', which merges the rows; use merge-engine 'partial-update'")
    if schema.core.rowkind_field is not None:
        raise InvalidArgument("missing='keep' is not possible with option 'rowkind.field'; give all columns")
    columns = [name for name in rows.schema.names if name not in {COLUMN_SET, *((ROW_KIND,) if request.row_kinds else ())}]
    sets = [[name for name in columns if name in names] for names in rows.column_sets or (frozenset(columns),)]
    for names in sets:
        _check_columns(schema, rows.schema.empty_table(), names, kinds=request.row_kinds)
    versions = [_Version(tuple(names)) for names in sets]
    source: Any = rows
    if isinstance(rows, ArrowRows):
        source = _with_kinds(rows.reader.read_all(), rows.column_sets) if request.row_kinds else rows.reader.read_all()
        codes = np.concatenate([_INSERTS, *(split_kinds(batch)[1] for batch in source.to_batches())]) if request.row_kinds else None
        if schema.core.engine.newest_replaces and not schema.core.sequence_field:
            source, versions = _folded(source, schema, columns, sets, codes)
        else:
            _refuse_mixed_keys(source, schema)
    merge_request = MergeRequest(
        source=source,
        join=Join(pairs=tuple((name, name) for name in schema.primary_keys)),
        clauses=_clauses(schema, source.schema, versions, kinds=request.row_kinds),
        pending=request.pending,
    )
    merge = DeleteRequest(
        commit_id=request.commit_id,
        first_run=request.first_run,
        batch_id=request.batch_id,
        predicate=None,
        properties=request.properties,
        options=request.options,
    )
    return engine.run(MergeRows(request=merge, merge=merge_request))


@dataclass(frozen=True)
class _Version:
    """Columns that a kind of rows sets.

    ``is_new``: a delete came before, so other columns become null.
    """

    names: tuple[str, ...]
    is_new: bool = False


def _clauses(schema: TableSchema, source: pa.Schema, versions: Sequence[_Version], *, kinds: bool) -> tuple[Clause, ...]:
    """Return the clauses of a merge; rows have the number of their version in ``COLUMN_SET`` if there are several."""
    sides = sides_of(schema, source)

    def condition(*terms: str) -> Expression | None:
        text = " AND ".join(filter(None, terms))
        return bind_condition(text, sides) if text else None

    updates, inserts = list[Clause](), list[Clause]()
    if kinds:
        updates.append(Clause(when="matched", action="delete", condition=condition(_RETRACTS), values={}))
    for number, version in enumerate(versions):
        rows = f"s.{COLUMN_SET} = {number}" if len(versions) > 1 else ""
        values: dict[str, Value] = {name: ColumnValue(f"{SOURCE}.{name}", None, sides[SOURCE][name]) for name in version.names}
        updated = {name: value for name, value in values.items() if name not in schema.primary_keys}
        refuse_fixed(updated, schema)
        if version.is_new:
            updated = {
                field.name: updated.get(field.name, _no_value(field)) for field in schema.fields if field.name not in schema.primary_keys
            }
        if updated:
            updates.append(Clause(when="matched", action="update", condition=condition(rows), values=updated, is_version=True))
        new = condition(rows, f"NOT {_RETRACTS}" if kinds else "")
        inserts.append(Clause(when="not matched", action="insert", condition=new, values=values, is_version=True))
    return (*updates, *inserts)


def _no_value(field: DataField) -> pa.Scalar:
    default = default_scalar(field)
    return pa.scalar(None, field.type.arrow) if default is None else default


def _check_columns(schema: TableSchema, rows: pa.Table, names: Sequence[str], *, kinds: bool) -> None:
    """Raise ``SchemaMismatch`` for columns that do not fit.

    A missing NOT NULL column is an error of a row with a new key only.
    """
    fields = tuple(
        field if field.name in names else replace(field, type=field.type.with_nullable(nullable=True)) for field in schema.fields
    )
    conform(rows.select(names), schema.model_copy(update={"fields": fields}), pa.array([], pa.int8()) if kinds else None)
    if (refusal := PartialRows(schema, names).ignored) is not None:
        raise SchemaMismatch(refusal)


def _with_kinds(rows: pa.Table, column_sets: Sequence[Collection[str]]) -> pa.Table:
    """Return the rows with kind ``+I`` where rows have none."""
    lacks_kind = np.array([ROW_KIND not in names for names in column_sets], np.bool_)
    if not lacks_kind.any():
        return rows
    mask = pa.array(lacks_kind[_set_numbers(rows)])
    position = rows.schema.get_field_index(ROW_KIND)
    return rows.set_column(position, ROW_KIND, pc.if_else(mask, "+I", rows.column(ROW_KIND).cast(pa.string())))


def _set_numbers(rows: pa.Table) -> Int64s:
    if COLUMN_SET not in rows.schema.names:
        return np.zeros(rows.num_rows, np.int64)
    return np.asarray(rows.column(COLUMN_SET), np.int64)


def _keys(rows: pa.Table, schema: TableSchema) -> KeySet:
    fields = tuple(schema.field(name) for name in schema.primary_keys)
    return KeySet(conform(rows.select(list(schema.primary_keys)), schema.model_copy(update={"fields": fields})).combine_chunks())


def _refuse_mixed_keys(rows: pa.Table, schema: TableSchema) -> None:
    """Raise ``InvalidArgument`` for rows of one key that the merge engine cannot fold in their order."""
    mixed = {ROW_KIND, COLUMN_SET}.intersection(rows.schema.names)
    if mixed and len(_keys(rows, schema)) < rows.num_rows:
        reason = f"column '{ROW_KIND}'" if ROW_KIND in mixed else "rows of different columns"
        raise InvalidArgument(f"missing='keep' with {reason}: several rows have one key; write them one after the other")


def _folded(
    rows: pa.Table, schema: TableSchema, columns: Sequence[str], sets: Sequence[Sequence[str]], codes: Int8s | None
) -> tuple[pa.Table, list[_Version]]:
    """Return one row for each key, and the versions by the number in its ``COLUMN_SET``.

    The row has the newest value of each column that a row of its key sets, since the last delete. ``codes``: row kinds.
    """
    keys, positions = _keys(rows, schema), np.arange(rows.num_rows)
    numbers, count = keys.numbers, len(keys)

    def last(mask: Mask) -> Int64s:
        newest = np.full(count, -1)
        newest[numbers[mask]] = positions[mask]  # numpy assigns repeated indexes in order
        return newest

    last_row = last(np.ones(rows.num_rows, np.bool_))
    deleted = np.full(count, -1) if codes is None else last(codes == DELETE)
    alive = positions > deleted[numbers]
    if codes is not None:
        alive &= codes != UPDATE_BEFORE
    set_numbers = _set_numbers(rows)
    arrays: dict[str, Any] = {}
    has_value = np.zeros((count, len(columns) + 1), np.bool_)
    for index, name in enumerate(columns):
        newest = last_row
        if name not in schema.primary_keys:
            newest = last(alive & np.array([name in names for names in sets])[set_numbers])
        has_value[:, index] = newest >= 0
        arrays[name] = rows.column(name).take(pa.array(newest, mask=newest < 0))
    if codes is not None:
        arrays[ROW_KIND] = rows.column(ROW_KIND).take(pa.array(last_row))
    has_value[:, -1] = deleted >= 0
    patterns, version_numbers = np.unique(has_value, axis=0, return_inverse=True)
    arrays[COLUMN_SET] = pa.array(version_numbers.ravel().astype(np.int32))
    versions = [_Version(tuple(np.array(columns)[pattern[:-1]].tolist()), bool(pattern[-1])) for pattern in patterns]
    return pa.table(arrays), versions
