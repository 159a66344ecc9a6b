"""Conversion of input rows to rows of the table.

Columns are taken by name. Every value stays unchanged, or an error is raised.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import is_text, takeable, with_leaves, without_views
from lsm.arrow.row_kind import ROW_KIND
from lsm.keys.encoding import one_array
from lsm.keys.sort import DELETE
from lsm.rows_in.constrain import constrain, refuse_nulls
from lsm.rows_in.lossless_cast import LossyCast, first_row, lossless_cast, may_cast
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy, wider_hint
from manifest.io.errors import SchemaMismatch
from manifest.schema.merge_options import MergeOptions
from manifest.schema.partial_rows import PartialRows
from manifest.schema.table_schema import TableSchema
from manifest.types.cast_rules import NUMBERS
from manifest.types.data_type import DataField, default_scalar
from paimon_base.errors import did_you_mean
from paimon_base.hidden_nulls import cast_nested
from sparkexpr.values.arrays import Mask, numpy_array
from sparkexpr.values.column_type import TIMESTAMPS, Kind

_DELETE_TEXT = "-D"
"""``DELETE`` in a column of kinds."""
_NAMES = {
    Kind.BOOLEAN: "pa.bool_()",
    Kind.TINYINT: "pa.int8()",
    Kind.SMALLINT: "pa.int16()",
    Kind.INT: "pa.int32()",
    Kind.BIGINT: "pa.int64()",
    Kind.FLOAT: "pa.float32()",
    Kind.DOUBLE: "pa.float64()",
    Kind.DATE: "pa.date32()",
    Kind.TIME: "pa.time32('ms')",
    Kind.CHAR: "pa.string()",
    Kind.VARCHAR: "pa.string()",
    Kind.BINARY: "pa.binary()",
    Kind.VARBINARY: "pa.binary()",
}
_VALUES = {
    Kind.ARRAY: "; give lists: pa.array([[...]])",
    Kind.MULTISET: "; give pairs (value, count)",
    Kind.MAP: "; give dicts, or pairs (key, value)",
    Kind.ROW: "; give dicts",
    Kind.BOOLEAN: "; compare it with something that is true",
}
"""Hints for types without a cast."""


def conform(rows: Any, schema: TableSchema, kinds: Any = None, policy: RowPolicy = DEFAULT_POLICY) -> Any:
    """Return a Table with exactly the columns of ``schema``.

    Columns have the schema's order and ``schema.arrow`` types. Types may differ if no value changes: narrower or wider numbers,
    timestamps of another unit, large, dictionary-encoded or view strings. A column with the right type is not copied. Null becomes
    the column's default value, if one exists. A missing column is filled with its default value or null, like in INSERT. Merge
    engines that keep known values ignore that null. The policy allows it where it replaces a stored value (``PartialRows``).
    Columns that place a row (keys, partition, bucket) must be present. Delete rows, by ``kinds`` (0 to 3, one per row), need no others.

    Raises:
        UnsupportedTable: A default value cannot be computed here.
        SchemaMismatch: A column is missing, unknown, duplicate or of an incompatible type, or has a value that does not fit.
        NullInKey: A NOT NULL column, or a NOT NULL part of a nested one, has a null.

    >>> from manifest.types.data_type import DataField, DataType
    >>> schema = TableSchema(id=0, fields=(DataField(0, "a", DataType(Kind.INT)),))
    >>> conform(pa.table({"a": [1, None]}), schema).schema
    a: int32
    >>> conform(pa.table({"a": [2**40]}), schema)
    Traceback (most recent call last):
    pyspark_paimon.SchemaMismatch: column 'a', row 0 of its batch: ...
    """
    known_names = frozenset(schema.names)
    for name, times in Counter(rows.schema.names).items():
        if times > 1:
            raise SchemaMismatch(f"column '{name}' is given {times} times")
        if name not in known_names:
            alike = [column_name for column_name in schema.names if column_name.lower() == name.lower()]
            hint = f" (rows keep the case of names: write it '{alike[0]}')" if alike else did_you_mean(name, schema.names)
            if pa.types.is_null(rows.schema.field(name).type):  # no type that a new column could get
                more = f"; all its values are null and have no type: leave it out, or call add_column({name!r}, ...) with its type"
            else:
                more = "; to add the column, write with schema_mode='merge' (option write.merge-schema) or call add_column()"
            more = "" if alike else more
            raise SchemaMismatch(f"column '{name}' is unknown{hint}; the table has: {', '.join(schema.names)}{more}")
    table = complete_deletes(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]), schema, kinds)
    columns_by_name = dict(
        zip(table.schema.names, table.columns, strict=True)
    )  # looking up each column in the table is slow with 1,000 columns
    columns = [
        conform_column(columns_by_name[field.name] if field.name in columns_by_name else _left_out(field, schema, table.num_rows), field)
        for field in schema.fields
    ]
    if not policy.fills_null and len(columns_by_name) < len(schema.fields):
        _refuse_missing(table, schema, kinds)
    return pa.Table.from_arrays(columns, schema=schema.arrow)


def refuse_columns(rows: pa.Schema, schema: TableSchema, policy: RowPolicy, *, kinds: bool) -> None:
    """Raise the errors of ``conform`` that need no row.

    ``kinds``: the rows have a column of row kinds. They may be deletes, which need only their key.
    """
    columns = pa.schema([field for field in rows if not (kinds and field.name == ROW_KIND)])
    conform(columns.empty_table(), schema, [] if kinds else None, policy)


def _refuse_missing(rows: pa.Table, schema: TableSchema, kinds: Any) -> None:
    """Raise ``SchemaMismatch`` where missing columns would clear or ignore values.

    Rows that are all deletes need no other columns.
    """
    refusal = PartialRows(schema, rows.schema.names).refusal
    if refusal is None:
        return
    deletes = _delete_mask(rows, schema, kinds)
    if deletes is not None and deletes.all():
        return
    raise SchemaMismatch(refusal)


def _left_out(field: DataField, schema: TableSchema, rows: int) -> Any:
    """Return the values of a missing column.

    Raises:
        SchemaMismatch: The column must be present.
    """
    places = field.name in {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}
    if not places and (default := default_scalar(field)) is not None:
        return pa.repeat(default, rows)
    if not places and field.type.nullable:
        return cast_nested(pa.nulls(rows, field.type.arrow), field.type.arrow)
    reason = "it places rows" if places else f"is {field.type}"
    raise SchemaMismatch(f"column '{field.name}' is missing, and {reason}; the table has: {', '.join(schema.names)}{_missing_hint(field)}")


def conform_column(column: Any, field: DataField) -> Any:
    """Return one column as ``conform`` does, or raise its errors."""
    target = field.type.arrow
    if column.type != target and not may_cast(column.type, target):
        hint = _cast_hint(field, column.type)
        raise SchemaMismatch(f"column '{field.name}': Arrow {column.type} cannot become {field.type} without changing values{hint}")
    if field.type.is_nested and (kind := with_leaves(column.type, without_views)) != column.type:
        column = column.cast(kind)  # Arrow cannot gather texts in views, as entries of maps are
    if column.type != target or field.type.is_nested:
        column = _cast(column, field, target)
    return constrain(column, field)


def _cast(column: Any, field: DataField, target: Any) -> Any:
    source = column.type
    try:
        return lossless_cast(column, target)
    except LossyCast as error:
        refuse_nulls(column, field)  # Arrow refuses them, too
        row = first_row(len(column), lambda start, stop: lossless_cast(column.slice(start, stop - start), target), LossyCast)
        where = f"column '{field.name}', row {row} of its batch"
        if error.rounded:
            wider = wider_hint(field.name) if field.type.kind in NUMBERS else ""
            raise SchemaMismatch(
                f"{where}: a value of Arrow {source} would be rounded to become {field.type}{wider}{_cast_hint(field, source)}"
            ) from error
        finer = pa.types.is_decimal(source) and source.scale > field.type.scale
        hint = wider_hint(field.name) if field.type.kind in NUMBERS else ""
        if finer or pa.types.is_floating(source) or _is_finer_time(source, target):
            hint += _cast_hint(field, source)
        raise SchemaMismatch(f"{where}: a value of Arrow {source} does not fit {field.type} ({error}){hint}") from error


def _is_finer_time(source: Any, target: Any) -> bool:
    return bool(pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and source.unit != target.unit)


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
    deletes = _delete_mask(rows, schema, kinds) if schema.is_primary_key_table else None
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


def _delete_mask(rows: pa.Table, schema: TableSchema, kinds: Any) -> Mask | None:
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


def _cast_hint(field: DataField, source: Any) -> str:
    """Return a hint with the cast that fits a column. Empty if Arrow has no such cast."""
    if field.type.kind is Kind.VARIANT and is_text(source):
        return f"; parse JSON texts like this: Variant.parse_array(rows[{field.name!r}])"
    expression = _expression(field, source, f"rows[{field.name!r}]")
    return _VALUES.get(field.type.kind, "") if expression is None else f"; cast like this: {expression}"


def _missing_hint(field: DataField) -> str:
    """Return the hint for a missing column."""
    type_code = _arrow_type_code(field)
    return f"; add it like this: rows.append_column({field.name!r}, pa.array([...]{'' if type_code is None else f', {type_code}'}))"


def _expression(field: DataField, source: Any, rows: str) -> str | None:
    types, kind = pa.types, field.type.kind
    type_code = _arrow_type_code(field)
    if type_code is None or types.is_nested(source):
        return None
    if kind in TIMESTAMPS and types.is_timestamp(source) and (source.tz is None) != (field.type.arrow.tz is None):
        return f"pc.local_timestamp({rows})" if field.type.arrow.tz is None else f"pc.assume_timezone({rows}, 'UTC')"
    if kind in TIMESTAMPS and types.is_timestamp(source) and source.unit != field.type.arrow.unit:
        return f"pc.cast({rows}, {type_code}, safe=False)"
    if types.is_floating(source) and kind is Kind.DECIMAL:
        return f"pc.cast(pc.round({rows}, {field.type.scale}), {type_code})"
    if (types.is_floating(source) or types.is_decimal(source)) and type_code.startswith("pa.int"):
        return f"pc.cast(pc.round({rows}), {type_code})"
    if types.is_floating(source) and kind is Kind.FLOAT:
        return f"pc.cast({rows}, {type_code}, safe=False)"
    if types.is_integer(source) and kind is Kind.DATE:
        return f"pc.cast(pc.cast({rows}, pa.int32()), {type_code})"
    if types.is_timestamp(source) and kind is Kind.DATE:
        return f"pc.cast(pc.floor_temporal({rows}, unit='day'), {type_code})"
    if types.is_decimal(source) and kind is Kind.DECIMAL:
        return f"pc.cast(pc.round({rows}, {field.type.scale}), {type_code})"
    try:
        pa.nulls(0, source).cast(field.type.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return f"pc.cast({rows}, {type_code})"


def _arrow_type_code(field: DataField) -> str | None:
    kind = field.type.kind
    if kind is Kind.DECIMAL:
        return f"pa.decimal128({field.type.precision}, {field.type.scale})"
    if kind in TIMESTAMPS:
        arrow = field.type.arrow
        return f"pa.timestamp('{arrow.unit}')" if arrow.tz is None else f"pa.timestamp('{arrow.unit}', 'UTC')"
    return _NAMES.get(kind)
