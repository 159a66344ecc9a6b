"""Conversion of input rows to rows of the table.

Columns are taken by name. Every value stays unchanged, or an error is raised.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from lsm.arrow.leaf_types import is_text, with_leaves, without_views
from lsm.rows_in.constrain import constrain, refuse_nulls
from lsm.rows_in.deletes import complete_deletes, delete_mask
from lsm.rows_in.lossless_cast import LossyCast, first_row, lossless_cast, may_cast
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy
from manifest.io.errors import SchemaMismatch
from manifest.schema.partial_rows import PartialRows
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataField, default_scalar
from paimon_base.errors import did_you_mean
from paimon_base.hidden_nulls import cast_nested
from sparkexpr.values.column_type import TIMESTAMPS, Kind

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


def _refuse_missing(rows: pa.Table, schema: TableSchema, kinds: Any) -> None:
    """Raise ``SchemaMismatch`` where missing columns would clear or ignore values.

    Rows that are all deletes need no other columns.
    """
    refusal = PartialRows(schema, rows.schema.names).refusal
    if refusal is None:
        return
    deletes = delete_mask(rows, schema, kinds)
    if deletes is not None and deletes.all():
        return
    raise SchemaMismatch(refusal)


def _left_out(field: DataField, schema: TableSchema, rows: int) -> Any:
    """Return the values of a missing column.

    Raises:
        SchemaMismatch: The column must be present.
    """
    if field.name in {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}:
        problem = f"column '{field.name}' is missing, and it places rows; the table has: {', '.join(schema.names)}"
        raise SchemaMismatch(problem + _missing_hint(field))
    if (default := default_scalar(field)) is not None:
        return pa.repeat(default, rows)
    if not field.type.nullable:
        problem = f"column '{field.name}' is missing, and is {field.type}; the table has: {', '.join(schema.names)}"
        raise SchemaMismatch(problem + _missing_hint(field))
    return cast_nested(pa.nulls(rows, field.type.arrow), field.type.arrow)


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
        where = f"column '{field.name}', row {_first_lossy_row(column, target)} of its batch"
        if error.rounded:
            raise SchemaMismatch(
                f"{where}: a value of Arrow {source} would be rounded to become {field.type}{_cast_hint(field, source)}"
            ) from error
        finer = pa.types.is_decimal(source) and source.scale > field.type.scale
        hint = _cast_hint(field, source) if finer or pa.types.is_floating(source) or _is_finer_time(source, target) else _wider_hint(field)
        raise SchemaMismatch(f"{where}: a value of Arrow {source} does not fit {field.type} ({error}){hint}") from error


def _is_finer_time(source: Any, target: Any) -> bool:
    return bool(pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and source.unit != target.unit)


def _first_lossy_row(column: Any, target: Any) -> int:
    """Return the first row for which ``lossless_cast`` fails."""

    def is_lossy(start: int, stop: int) -> bool:
        try:
            lossless_cast(column.slice(start, stop - start), target)
        except LossyCast:
            return True
        return False

    return first_row(len(column), is_lossy)


def _cast_hint(field: DataField, source: Any) -> str:
    """Return a hint with the cast that fits a column.

    Example: ``"; cast like this: pc.cast(rows['d'], pa.date32())"``. Empty if Arrow has no such cast.

    >>> from manifest.types.data_type import DataType
    >>> _cast_hint(DataField(0, "d", DataType(Kind.DATE)), pa.string())
    "; cast like this: pc.cast(rows['d'], pa.date32())"
    """
    if field.type.kind is Kind.VARIANT and is_text(source):
        return f"; parse JSON texts like this: Variant.parse_array(rows[{field.name!r}])"
    expression = _expression(field, source, f"rows[{field.name!r}]")
    return _VALUES.get(field.type.kind, "") if expression is None else f"; cast like this: {expression}"


def _wider_hint(field: DataField) -> str:
    """Return the hint for values outside of the column's range.

    >>> from manifest.types.data_type import DataType
    >>> _wider_hint(DataField(0, "n", DataType(Kind.INT)))
    "; give values in its range, or the column a wider type: table.change_type('n', ...)"
    """
    return f"; give values in its range, or the column a wider type: table.change_type({field.name!r}, ...)"


def _missing_hint(field: DataField) -> str:
    """Return the hint for a missing column.

    >>> from manifest.types.data_type import DataType
    >>> _missing_hint(DataField(0, "n", DataType(Kind.INT)))
    "; add it like this: rows.append_column('n', pa.array([...], pa.int32()))"
    """
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
