"""Conversion of input rows to rows of the table.

Every value stays unchanged, or an error is raised.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import BINARIES, STRINGS, Kind
from fileindex.base.errors import did_you_mean
from fileindex.base.hidden_nulls import cast_nested, entry_lists
from lsm.schema.cast_hint import cast_hint, missing_hint, shorter_hint, wider_hint
from lsm.schema.deletes_by_key import complete_deletes
from lsm.schema.lossless_cast import LossyCast, first_lossy_row, lossless_cast, may_cast
from manifest.io.errors import NullInKey, SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import MAX_LENGTH, DataField, DataType
from manifest.types.default_value import default_scalar


def conform(rows: Any, schema: TableSchema, kinds: Any = None) -> Any:
    """Return a Table with exactly the columns of ``schema``.

    Columns have the schema's order and ``schema.arrow`` types. Types may differ if no value changes: narrower or wider numbers,
    timestamps of another unit, large, dictionary-encoded or view strings. A column with the right type is not copied. Null becomes
    the column's default value, if one exists. A missing column is filled with its default value or null, like in INSERT. Merge
    engines that keep known values ignore that null. Columns that place a row (keys, partition, bucket) must be present. Delete rows,
    by ``kinds`` (0 to 3, one per row), need no others (``deletes_by_key``).

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
            alike = [known for known in schema.names if known.lower() == name.lower()]
            hint = f" (rows keep the case of names: write it '{alike[0]}')" if alike else did_you_mean(name, schema.names)
            raise SchemaMismatch(f"column '{name}' is unknown{hint}; the table has: {', '.join(schema.names)}")
    table = complete_deletes(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]), schema, kinds)
    given = dict(zip(table.schema.names, table.columns, strict=True))  # looking up each column in the table is slow with 1,000 columns
    columns = [
        _column(given[field.name] if field.name in given else _left_out(field, schema, table.num_rows), field) for field in schema.fields
    ]
    return pa.Table.from_arrays(columns, schema=schema.arrow)


def _left_out(field: DataField, schema: TableSchema, rows: int) -> Any:
    """Return the values of a missing column.

    Raises:
        SchemaMismatch: The column must be present.
    """
    if field.name in {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}:
        problem = f"column '{field.name}' is missing, and it places rows; the table has: {', '.join(schema.names)}"
        raise SchemaMismatch(problem + missing_hint(field))
    if (default := default_scalar(field)) is not None:
        return pa.repeat(default, rows)
    if not field.type.nullable:
        problem = f"column '{field.name}' is missing, and is {field.type}; the table has: {', '.join(schema.names)}"
        raise SchemaMismatch(problem + missing_hint(field))
    return cast_nested(pa.nulls(rows, field.type.arrow), field.type.arrow)


def _column(column: Any, field: DataField) -> Any:
    target = field.type.arrow
    if not may_cast(column.type, target):
        hint = cast_hint(field, column.type)
        raise SchemaMismatch(f"column '{field.name}': Arrow {column.type} cannot become {field.type} without changing values{hint}")
    if has_null(column, field.type):
        what = "has a null inside" if field.type.nullable else "has a null"
        raise NullInKey(f"column '{field.name}' {what}, but is {field.type}")
    if column.type != target or field.type.is_nested:
        column = _cast(column, field, target)
    if field.type.kind in STRINGS | BINARIES and field.type.length < MAX_LENGTH and len(column):
        length = pc.utf8_length(column) if field.type.kind in STRINGS else pc.binary_length(column)
        longest = pc.max(length).as_py()
        if longest is not None and longest > field.type.length:
            raise SchemaMismatch(f"column '{field.name}': a value of length {longest} does not fit {field.type}{shorter_hint(field)}")
    if column.null_count and (default := default_scalar(field)) is not None:
        column = pc.fill_null(column, default)
    return column


def _cast(column: Any, field: DataField, target: Any) -> Any:
    source = column.type
    try:
        return lossless_cast(column, target)
    except LossyCast as error:
        where = f"column '{field.name}', row {first_lossy_row(column, target)} of its batch"
        if error.rounded:
            raise SchemaMismatch(
                f"{where}: a value of Arrow {source} would be rounded to become {field.type}{cast_hint(field, source)}"
            ) from error
        finer = pa.types.is_decimal(source) and source.scale > field.type.scale
        hint = cast_hint(field, source) if finer or pa.types.is_floating(source) or _is_finer_time(source, target) else wider_hint(field)
        raise SchemaMismatch(f"{where}: a value of Arrow {source} does not fit {field.type} ({error}){hint}") from error


def _is_finer_time(source: Any, target: Any) -> bool:
    return bool(pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and source.unit != target.unit)


def has_null(column: Any, data_type: DataType) -> bool:
    """Return whether a NOT NULL type has a null.

    Parts of nested types are checked too.
    """
    if not data_type.nullable and column.null_count:
        return True
    if (
        pa.types.is_null(column.type)
        or not data_type.is_nested
        or (data_type.kind is not Kind.VARIANT and all(child.nullable and not child.is_nested for child in data_type.children))
    ):
        return False
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return any(_has_null_inside(chunk, data_type) for chunk in chunks)


def _has_null_inside(array: Any, data_type: DataType) -> bool:
    match data_type.kind:
        case Kind.ROW:
            valid = array.drop_null()
            return any(has_null(pc.struct_field(valid, [at]), field.type) for at, field in enumerate(data_type.fields))
        case Kind.VARIANT:
            valid = array.drop_null()
            return any(pc.struct_field(valid, [at]).null_count for at in range(2))
        case Kind.ARRAY | Kind.VECTOR:
            return has_null(array.flatten(), data_type.part("element"))
        case Kind.MAP:
            entries = entry_lists(array).flatten()
            return has_null(entries.field(1), data_type.part("value"))
        case _:
            return False


__all__ = ["conform", "has_null"]
