"""New values for fields of struct columns, in updates and merges."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType
from paimon_base.errors import InvalidArgument
from sparkexpr.expression.literals import NULL
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue
from sparkexpr.expression.types import TEXT_TYPE
from sparkexpr.values.column_type import WITH_PARTS, Kind


def field_path(name: object, schema: TableSchema) -> tuple[str, ...] | None:
    """Return the names from a column to one of its fields. None: the text is no path of a field.

    >>> from manifest.schema.validation import build_schema
    >>> field_path("S.`a b`", build_schema("s STRUCT<`a b` INT>, n INT"))
    ('s', 'a b')
    """
    if not isinstance(name, str) or "." not in name or name in schema.names:
        return None
    from pyspark_paimon.filter.parse import bind_value  # noqa: PLC0415  # rarely needed

    bound: Expression = bind_value(name, schema.column_types)
    path: list[str] = []
    while isinstance(bound, FunctionCall) and bound.function == "item" and isinstance(part := bound.arguments[1], LiteralValue):
        path.insert(0, str(part.value))
        bound = bound.arguments[0]
        if bound.type.kind is not Kind.ROW:
            raise InvalidArgument(f"'{name}': only fields of structs can be set; set '{bound}' to its whole new value")
    if not isinstance(bound, ColumnValue) or bound.key is not None or not path:
        raise InvalidArgument(f"'{name}': only columns and fields of structs can be set")
    return (bound.name, *path)


def refuse_overlaps(fields: Mapping[str, tuple[str, ...]], columns: Collection[str]) -> None:
    """Raise ``InvalidArgument`` for a field that is set twice, or with a struct that has it.

    Args:
        fields: Paths of the set fields, by name.
        columns: Columns that are set whole.

    >>> refuse_overlaps({"s.a": ("s", "a"), "s.b": ("s", "b")}, ["n"])
    >>> refuse_overlaps({"s.a": ("s", "a")}, ["s"])
    Traceback (most recent call last):
    pyspark_paimon.InvalidArgument: 's.a' is set twice, or together with a struct that has it; set one of them
    """
    for name, path in fields.items():
        other_paths = [other for other_name, other in fields.items() if other_name != name]
        if path[0] in columns or any(path[: len(other)] == other for other in other_paths):
            raise InvalidArgument(f"'{name}' is set twice, or together with a struct that has it; set one of them")


def constant(path: tuple[str, ...], value: object, schema: TableSchema) -> Expression:
    """Return a Python value as the new value of a field.

    Raises:
        InvalidArgument: The field is of a nested type.
        SchemaMismatch: The field cannot have the value.
    """
    from lsm.rows_in.arrow import python_scalar  # noqa: PLC0415  # as above
    from sparkexpr.values.plain_value import plain_array, plain_values  # noqa: PLC0415  # rarely needed

    name, field_type = ".".join(path), _type_of(path, schema)
    plain = value.as_py() if isinstance(value, pa.Scalar) else value
    if plain is not None and field_type.is_nested:
        raise InvalidArgument(f"'{name}' is {field_type}, which takes no constant; set column '{path[0]}' to its whole new value")
    scalar = python_scalar(name, plain, field_type.arrow)
    if plain is None:
        return NULL
    # A literal of the field's own type: a wall clock is not read in the session's time zone.
    (literal,) = plain_values(plain_array(pa.repeat(scalar, 1), field_type.column_type), field_type.column_type)
    return LiteralValue(literal, field_type.column_type)


def with_field(path: tuple[str, ...], new: Expression, column: Expression, schema: TableSchema) -> Expression:
    """Return a struct column with a new value of a field.

    Args:
        path: Names from the column to the field.
        new: Value of the field.
        column: The column, or the column with new values of other fields.
        schema: Schema of the table.

    Raises:
        SchemaMismatch: The field cannot have the value.
    """
    from pyspark_paimon.filter.bind_terms import assigned  # noqa: PLC0415  # as above
    from sparkexpr.expression.functions import WITH_FIELD, call  # noqa: PLC0415  # rarely needed

    new = assigned(new, _type_of(path, schema).column_type)
    _check_type(".".join(path), new, _type_of(path, schema))

    def changed(outer: Expression, rest: tuple[str, ...]) -> Expression:
        field = LiteralValue(rest[0], TEXT_TYPE)
        inner = new if len(rest) == 1 else changed(call("item", [outer, field]), rest[1:])
        return call(WITH_FIELD, [outer, field, inner])

    return changed(column, path[1:])


def _type_of(path: tuple[str, ...], schema: TableSchema) -> DataType:
    data_type = schema.field(path[0]).type
    for part in path[1:]:
        data_type = next(field.type for field in data_type.fields if field.name == part)
    return data_type


def _check_type(name: str, new: Expression, field_type: DataType) -> None:
    """Raise ``SchemaMismatch`` for a value that a field cannot have."""
    from lsm.rows_in.lossless_cast import may_cast  # noqa: PLC0415  # see test_imports

    if isinstance(new, LiteralValue) and new.value is None:
        fits = field_type.nullable
    else:
        fits = (
            new.type == field_type.column_type
            if field_type.is_nested
            else new.type.kind not in WITH_PARTS and may_cast(new.type.arrow, field_type.arrow)
        )
    if not fits:
        raise SchemaMismatch(f"field '{name}' is {field_type}, and '{new}' is of type {new.type.kind}; cast it")
