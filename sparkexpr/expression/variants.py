"""Functions of VARIANT values: ``variant_get``, ``parse_json``, ``is_variant_null``."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from sparkexpr.errors import FilterFailed, InvalidArgument, InvalidFilter
from sparkexpr.expression.arithmetic import Arrays
from sparkexpr.expression.tree import Expression, FunctionCall, LiteralValue
from sparkexpr.expression.types import BIGINT_TYPE, BOOLEAN_TYPE, BYTES_TYPE, DATE_TYPE, DOUBLE_TYPE, INT_TYPE, TEXT_TYPE
from sparkexpr.values.column_type import STRINGS, TIMESTAMPS, ColumnType, Kind
from sparkexpr.values.time_zone import UTC
from sparkexpr.variant.path import parse_path, path_text

VARIANT_TYPE = ColumnType(Kind.VARIANT)
GETTERS = frozenset({"variant_get", "try_variant_get"})
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\))?")
_TYPES = {
    "boolean": BOOLEAN_TYPE,
    **dict.fromkeys(("tinyint", "byte"), ColumnType(Kind.TINYINT)),
    **dict.fromkeys(("smallint", "short"), ColumnType(Kind.SMALLINT)),
    **dict.fromkeys(("int", "integer"), INT_TYPE),
    **dict.fromkeys(("bigint", "long"), BIGINT_TYPE),
    **dict.fromkeys(("float", "real"), ColumnType(Kind.FLOAT)),
    "double": DOUBLE_TYPE,
    "string": TEXT_TYPE,
    "binary": BYTES_TYPE,
    "date": DATE_TYPE,
    **dict.fromkeys(("timestamp", "timestamp_ltz"), ColumnType(Kind.TIMESTAMP_LTZ, precision=6)),
    "timestamp_ntz": ColumnType(Kind.TIMESTAMP, precision=6),
    "variant": VARIANT_TYPE,
}
_NAMES = {Kind.VARCHAR: "string", Kind.VARBINARY: "binary", Kind.TIMESTAMP_LTZ: "timestamp", Kind.TIMESTAMP: "timestamp_ntz"}
_ZONED = frozenset({*STRINGS, *TIMESTAMPS, Kind.DATE})
"""Types whose values depend on the time zone."""


def type_named(text: str) -> ColumnType:
    """Return the column type of Spark's name for it.

    Raises ``InvalidFilter``.

    >>> type_named("decimal(10, 2)").scale, type_named("INT").kind
    (2, <Kind.INT: 'INT'>)
    """
    name = text.strip().lower()
    named_type = _TYPES.get(name)
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        precision, scale = int(decimal[1] or 10), int(decimal[2] or 0)
        if 1 <= precision <= 38 and scale <= precision:
            return ColumnType(Kind.DECIMAL, precision=precision, scale=scale)
    if named_type is None:
        raise InvalidFilter(f"'{text}' is not a type that filters read from a VARIANT; use one of {', '.join(_TYPES)}, decimal(p, s)")
    return named_type


def type_name(column_type: ColumnType) -> str:
    """Return the text of a type that ``type_named`` takes."""
    if column_type.kind is Kind.DECIMAL:
        return f"decimal({column_type.precision}, {column_type.scale})"
    return _NAMES.get(column_type.kind, column_type.kind.lower())


def depends_on_zone(call: FunctionCall) -> bool:
    """Return whether the values of a getter depend on the time zone."""
    return call.type.kind in _ZONED


def sign_getter(name: str, arguments: tuple[Expression, ...]) -> FunctionCall:
    """Type ``variant_get(value, path, type, zone)``.

    Type and zone may be missing: a VARIANT, and UTC.
    """
    value, *texts = arguments
    if value.type.kind is not Kind.VARIANT:
        raise InvalidFilter(f"'{name}' takes a VARIANT, not {value} of type {value.type.kind}")
    if not all(isinstance(argument, LiteralValue) and isinstance(argument.value, str) for argument in texts):
        raise InvalidFilter(f"'{name}' takes texts in quotes as path and type, not {', '.join(map(str, texts))}")
    path, *rest = (str(argument.value) for argument in texts if isinstance(argument, LiteralValue))
    parse_path(path)
    return FunctionCall(name, arguments, type_named(rest[0]) if rest else VARIANT_TYPE)


def join_paths(inner: FunctionCall, arguments: list[Expression]) -> list[Expression]:
    """Return the arguments of a getter of ``inner``, as a getter of its VARIANT if possible."""
    paths = [inner.arguments[1:], arguments[1:]]
    if inner.function not in GETTERS or not all(
        getter_arguments and isinstance(getter_arguments[0], LiteralValue) for getter_arguments in paths
    ):
        return arguments
    texts = [str(getter_arguments[0].value) for getter_arguments in paths if isinstance(getter_arguments[0], LiteralValue)]
    joined = path_text((*parse_path(texts[0]), *parse_path(texts[1])))
    return [inner.arguments[0], LiteralValue(joined, TEXT_TYPE), *arguments[2:]]


def extract(call: FunctionCall, array: Any) -> Any:
    """Return the values of a getter.

    Raises ``FilterFailed`` for a value that ``variant_get`` cannot cast.
    """
    from sparkexpr.variant import extraction

    path, *rest = (str(argument.value) for argument in call.arguments[1:] if isinstance(argument, LiteralValue))
    zone = rest[1] if len(rest) > 1 else UTC
    return extraction.get_values(array, parse_path(path), call.type, zone, strict=call.function == "variant_get")


def is_variant_null(values: Arrays, _: ColumnType) -> Any:
    """``is_variant_null(v)``: whether a value is the null of JSON. False for NULL."""
    from sparkexpr.variant import rows

    return pa.array(rows.VariantRows.of(values[0]).kinds == rows.ValueKind.NULL)


def parse_json(values: Arrays, _: ColumnType) -> Any:
    """``parse_json(text)``.

    Raises ``FilterFailed`` for invalid JSON.
    """
    from sparkexpr.variant import values as variant_values

    try:
        return variant_values.parse_column(values[0])
    except InvalidArgument as error:
        raise FilterFailed(f"{error}; write try_parse_json() to get null") from error


def try_parse_json(values: Arrays, _: ColumnType) -> Any:
    """``try_parse_json(text)``: null for invalid JSON."""
    from sparkexpr.variant import values as variant_values

    return variant_values.parse_column(values[0], strict=False)
