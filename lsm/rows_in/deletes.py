"""Delete rows that have no values but those that place them.

They get values for other NOT NULL columns, which are never read.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import is_text, takeable, with_leaves
from lsm.keys.encoding import one_array
from lsm.keys.sort import DELETE
from manifest.io.errors import SchemaMismatch
from manifest.schema.merge_options import MergeOptions
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import default_scalar
from sparkexpr.values.arrays import Mask, numpy_array

_DELETE_TEXT = "-D"
"""``DELETE`` in a column of kinds."""


def complete_deletes(rows: pa.Table, schema: TableSchema, kinds: Any = None) -> pa.Table:
    """Fill NOT NULL columns of delete rows.

    The value is the column's default, or zero. Columns that place rows are not filled. Applies only if the merge engine removes the row
    whatever other values the delete has, and no changelog contains them. Otherwise ``rows`` are returned unchanged. A missing column is
    added only if all rows are deletes. ``kinds`` are 0 to 3, one per row. None: use the table's ``rowkind.field``, if set.

    Raises:
        SchemaMismatch: A delete has no ``sequence.field`` column.

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT, n INT NOT NULL", primary_keys=["id"], options={"bucket": "1"})
    >>> complete_deletes(pa.table({"id": [1, 2]}), schema, [3, 3]).to_pylist()
    [{'id': 1, 'n': 0}, {'id': 2, 'n': 0}]
    """
    deletes = delete_mask(rows, schema, kinds) if schema.is_primary_key_table else None
    if deletes is None or (len(deletes) and not deletes.any()) or not _names_suffice(schema):
        return rows
    for name in schema.core.sequence_field:
        if name not in rows.schema.names:
            raise SchemaMismatch(
                f"column '{name}' is missing: by option 'sequence.field' it decides whether a row of kind '-D' is newer than the existing row"
            )
    row_columns = frozenset(rows.schema.names)
    for field in schema.fields:
        if field.type.nullable or field.name in {*schema.primary_keys, *schema.partition_keys, *schema.core.sequence_field}:
            continue
        value = default_scalar(field)
        zero = pa.scalar(_zero(field.type.arrow), field.type.arrow) if value is None else value
        if field.name in row_columns:
            position, column = rows.schema.get_field_index(field.name), rows.column(field.name)
            if (gone := deletes & ~numpy_array(one_array(column.is_valid()))).any():
                column = column.cast(zero.type if pa.types.is_null(column.type) else with_leaves(column.type, takeable))
                rows = rows.set_column(position, field.name, _replace_nulls(column, gone, zero))
        elif deletes.all():
            rows = rows.append_column(field.name, pa.repeat(zero, rows.num_rows))
    return rows


def delete_mask(rows: pa.Table, schema: TableSchema, kinds: Any) -> Mask | None:
    """Return which rows are deletes. None: the rows have no kinds.

    ``kinds``: as for ``complete_deletes``.
    """
    if kinds is not None:
        numbers: Mask = (numpy_array(kinds) if isinstance(kinds, pa.Array) else np.asarray(kinds)) == DELETE
        return numbers
    if schema.core.rowkind_field not in rows.schema.names:
        return None
    column = one_array(rows.column(schema.core.rowkind_field))
    if not is_text(column.type):
        return np.zeros(rows.num_rows, np.bool_)
    texts: Mask = numpy_array(pc.equal(column.cast(pa.string()), _DELETE_TEXT).fill_null(False))
    return texts


def _names_suffice(schema: TableSchema) -> bool:
    options = MergeOptions.of(schema)
    removes = options.engine.newest_replaces or options.remove_on_delete or options.ignore_delete
    return removes and schema.core.changelog_producer != "input"


def _replace_nulls(column: Any, gone: Mask, zero: pa.Scalar) -> Any:
    """Return ``column`` with ``zero`` where rows are ``gone``."""
    pieces, start = [], 0
    for chunk in column.chunks:
        positions = np.flatnonzero(gone[start : start + len(chunk)])
        pieces.append(_with(chunk, positions, zero) if positions.size else chunk)
        start += len(chunk)
    return pa.chunked_array(pieces, column.type)


def _with(chunk: pa.Array, positions: Any, zero: pa.Scalar) -> pa.Array:
    places = np.arange(len(chunk))
    places[positions] = len(chunk)
    return pa.concat_arrays([chunk, pa.array([zero.as_py()], chunk.type)]).take(pa.array(places))


def _zero(kind: pa.DataType) -> Any:
    """Return a zero of the type as a Python object."""
    types = pa.types
    if types.is_struct(kind):
        return {kind.field(index).name: _zero(kind.field(index).type) for index in range(kind.num_fields)}
    if types.is_fixed_size_list(kind):
        return [_zero(kind.value_type)] * kind.list_size
    if types.is_list(kind) or types.is_map(kind):
        return []
    if types.is_string(kind):
        return ""
    if types.is_binary(kind) or types.is_fixed_size_binary(kind):
        return b"\0" * (kind.byte_width if types.is_fixed_size_binary(kind) else 0)
    if types.is_decimal(kind):
        return Decimal(0)
    return False if types.is_boolean(kind) else 0
