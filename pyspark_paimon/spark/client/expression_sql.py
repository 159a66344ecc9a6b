"""Bound expressions and new versions of rows as Spark SQL.

In a merge, columns are members of two structs, ``t`` (table) and ``s`` (source). Literals do not depend on session settings. New versions
follow ``lsm.write.new_version``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lsm.write.new_version import NewVersion, decrease_message, lost_values_message, null_message, unordered_message
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import DataType
from paimon_base.errors import FilterFailed, InvalidArgument, InvalidFilter, PaimonError
from pyspark_paimon.filter.columns import TARGET
from pyspark_paimon.frames.spark_functions import functions_of, quote_name, text_sql
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.spark.wire.errors import MARK
from sparkexpr.expression import calendar
from sparkexpr.expression.functions import WITH_FIELD
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue, map_columns
from sparkexpr.expression.variants import GETTERS
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, ColumnType, Kind
from sparkexpr.values.plain_value import plain_array, plain_values

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICKS = {"ms": 1000, "us": 1}
_NEW = "__paimon_new_"
_SIGNS = {"not": "NOT", "negative": "-", "~": "~"}


def spark_sql(expression: Expression) -> str:
    """Return ``expression`` as Spark SQL.

    Raises ``InvalidFilter`` for literals that Spark cannot represent.

    >>> from sparkexpr.expression.functions import call
    >>> from sparkexpr.expression.literals import literal_value
    >>> n = ColumnValue("t.n", None, ColumnType(Kind.INT))
    >>> spark_sql(call("coalesce", [call("+", [n, literal_value(1)]), literal_value(0)]))
    "coalesce((t.`n` + CAST('1' AS int)), CAST('0' AS int))"
    """
    match expression:
        case ColumnValue(name, None, _):
            return column_sql(name)
        case ColumnValue(name, key, _):
            return f"try_element_at({column_sql(name)}, {text_sql(str(key))})"
        case LiteralValue():
            return _literal(expression)
        case FunctionCall():
            return _call(expression, [spark_sql(argument) for argument in expression.arguments])


def row_sql(expression: Expression) -> str:
    """Return ``expression`` on the columns of a frame that has the alias ``TARGET``.

    >>> row_sql(ColumnValue("n", None, ColumnType(Kind.INT)))
    't.`n`'
    """
    return spark_sql(map_columns(expression, lambda column: replace(column, name=f"{TARGET}.{column.name}")))


def column_sql(name: str) -> str:
    """Return a column qualified by its side.

    >>> column_sql("s.a`b")
    's.`a``b`'
    """
    side, column = name.split(".", 1)
    return f"{side}.{quote_name(column)}"


def type_sql(column_type: ColumnType) -> str:
    """Return the Spark SQL name of a type."""
    match column_type:
        case ColumnType(kind=Kind.ROW, fields=fields):
            return f"struct<{', '.join(f'{quote_name(name)}: {type_sql(part)}' for name, part in fields)}>"
        case ColumnType(kind=Kind.ARRAY, value=ColumnType() as element):
            return f"array<{type_sql(element)}>"
        case ColumnType(kind=Kind.MAP, key=ColumnType() as key, value=ColumnType() as value):
            return f"map<{type_sql(key)}, {type_sql(value)}>"
    text: str = spark_type(DataType(column_type.kind, precision=column_type.precision, scale=column_type.scale)).simpleString()
    return text


def _call(function_call: FunctionCall, arguments: list[str]) -> str:
    match function_call.function:
        case calendar.LOCAL:  # Spark uses the session's zone
            return f"CAST({arguments[0]} AS timestamp_ntz)"
        case calendar.INSTANT:
            return f"CAST({arguments[0]} AS timestamp)"
        case calendar.TRUNCATED:
            return f"date_trunc({arguments[0]}, {arguments[1]})"
        case calendar.SHIFTED:
            return f"({arguments[0]} + {_interval(function_call)})"
        case "cast":
            return f"CAST({arguments[0]} AS {type_sql(function_call.type)})"
        case "not" | "negative" | "~" as word:
            return f"({_SIGNS[word]} {arguments[0]})"
        case "case":
            pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
            return f"CASE {' '.join(f'WHEN {condition} THEN {value}' for condition, value in pairs)} ELSE {arguments[-1]} END"
        case "item":
            struct, part = function_call.arguments
            if struct.type.kind is Kind.ROW and isinstance(part, LiteralValue):
                return f"{arguments[0]}.{quote_name(str(part.value))}"
            return f"try_element_at({arguments[0]}, {arguments[1]})" if struct.type.kind is Kind.MAP else f"{arguments[0]}[{arguments[1]}]"
        case name if name in GETTERS:  # Spark uses the session's zone
            return f"{name}({', '.join(arguments[:3])})"
        case name if name == WITH_FIELD:
            return _with_field(function_call, arguments)
        case "like":
            pattern, escape = (str(argument.value) for argument in function_call.arguments[1:] if isinstance(argument, LiteralValue))
            return f"(regexp_like({arguments[0]}, {text_sql(_regex(pattern, escape))}))"
        case "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        case "and" | "or" as word:
            return f"({f' {word.upper()} '.join(arguments)})"
        case name if not name[0].isalpha() or name == "div":
            return f"({arguments[0]} {name} {arguments[1]})"
        case name:
            return f"{name}({', '.join(arguments)})"


def _interval(function_call: FunctionCall) -> str:
    unit, number = (str(argument.value) for argument in function_call.arguments[1:3] if isinstance(argument, LiteralValue))
    if unit != "microsecond":
        return f"INTERVAL '{number}' {unit.upper()}"
    seconds, micros = divmod(abs(int(number)), 10**6)
    return f"INTERVAL '{'-' if number.startswith('-') else ''}{seconds}.{micros:06}' SECOND"


def _with_field(function_call: FunctionCall, arguments: list[str]) -> str:
    _, field, value = function_call.arguments
    changed = str(field.value) if isinstance(field, LiteralValue) else ""
    members = []
    for name, kind in function_call.type.fields:
        text = f"{arguments[0]}.{quote_name(name)}"
        if name == changed:
            text = _new_field(name, kind, value, arguments[2])
        members += [text_sql(name), text]
    return f"named_struct({', '.join(members)})"


def _new_field(name: str, kind: ColumnType, value: Expression, text: str) -> str:
    """Return a field's new value in the field's type. A value that would change raises ``FilterFailed`` in Spark."""
    if value.type == kind:
        return text
    if isinstance(value, LiteralValue) and value.value is None:
        return f"CAST(NULL AS {type_sql(kind)})"
    fitted = f"try_cast({text} AS {type_sql(kind)})"
    same = f"try_cast({fitted} AS {type_sql(value.type)}) <=> {text}"
    reason = f"'{value}' does not fit field '{name}' of type {kind.kind}: "
    message = f"concat({text_sql(reason)}, CAST({text} AS STRING))"
    return f"CASE WHEN {text} IS NULL THEN NULL WHEN {same} THEN {fitted} ELSE {raise_sql(FilterFailed, message)} END"


def _regex(pattern: str, escape: str) -> str:
    """Convert a LIKE pattern into an anchored Java regex."""
    parts, position = ["(?s)^"], 0
    while position < len(pattern):
        letter, position = pattern[position], position + 1
        if letter == escape and position < len(pattern):
            parts.append(f"\\x{{{ord(pattern[position]):x}}}")
            position += 1
        else:
            parts.append({"%": ".*", "_": "."}.get(letter, f"\\x{{{ord(letter):x}}}"))
    return "".join([*parts, "\\z"])


def _literal(literal: LiteralValue) -> str:
    value, kind = literal.value, literal.type.kind
    if value is None:
        return f"CAST(NULL AS {type_sql(literal.type)})"
    if kind in STRINGS:
        return text_sql(str(value))
    if kind in BINARIES and isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if kind is Kind.DATE and isinstance(value, int):
        return f"date_add(CAST('1970-01-01' AS DATE), {value})"
    if kind in {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ} and isinstance(value, int):
        return _timestamp(literal, value)
    if kind is Kind.TIME:
        raise InvalidFilter(f"{literal}: Spark cannot compare TIME; open the table in process")
    text = str(Decimal(int(value)).scaleb(-literal.type.scale)) if kind is Kind.DECIMAL else str(value)
    if kind in FLOATS:
        text = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)
    return f"CAST('{text}' AS {type_sql(literal.type)})"


def _timestamp(literal: LiteralValue, value: int) -> str:
    ticks = _TICKS.get(literal.type.unit)
    if ticks is None and value % 1000:
        raise InvalidFilter(f"{literal}: Spark has no nanoseconds; open the table in process")
    micros = value // 1000 if ticks is None else value * ticks
    if literal.type.kind is Kind.TIMESTAMP_LTZ:
        return f"timestamp_micros({micros})"
    try:
        moment = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    except OverflowError:
        raise InvalidFilter(f"{literal} is outside of the years 1 to 9999, which Spark supports") from None
    return f"CAST('{moment.isoformat(sep=' ')}' AS timestamp_ntz)"


def scalar_sql(value: pa.Scalar, column_type: ColumnType) -> str:
    """Return an Arrow scalar as SQL in the column's type.

    Raises ``InvalidFilter``, as ``spark_sql`` does.

    >>> scalar_sql(pa.scalar(7, pa.int8()), ColumnType(Kind.TINYINT))
    "CAST('7' AS tinyint)"
    """
    (plain,) = plain_values(plain_array(pa.repeat(value, 1), column_type), column_type)
    return spark_sql(LiteralValue(plain, column_type))


def raise_sql(error: type[PaimonError], message: str) -> str:
    """Return SQL that raises ``error`` with a computed message.

    ``message`` is SQL that computes the text. Clients recognise the form and raise the typed error.
    """
    note = f"to_json(named_struct('class', '{error.__name__}', 'args', array({message}), 'text', ''))"
    return f"raise_error(concat({text_sql(chr(10) + MARK)}, {note}, {text_sql(chr(10))}))"


def new_version_sql(version: NewVersion, schema: TableSchema, name: str, old: Callable[[str], str], new: Callable[[str], str]) -> str:
    """Return SQL for column ``name`` of a new version.

    ``old`` and ``new`` return SQL for a column of the old and the new row.
    A value that cannot be set raises ``InvalidArgument`` in Spark.
    """
    kind = spark_type(schema.field(name).type).simpleString()
    match version.ways.get(name, "new"):
        case "old":
            value = old(name)
        case "nothing":
            value = f"CAST(NULL AS {kind})"
        case "difference":
            step = f"CAST({new(name)} - {old(name)} AS {kind})"
            value = (
                f"CASE WHEN {old(name)} IS NULL THEN {new(name)} WHEN {old(name)} <=> {new(name)} THEN CAST(0 AS {kind}) ELSE {step} END"
            )
        case _:
            value = new(name)
    group = version.overriding_group(name)
    if group is not None:
        value = f"CASE WHEN {_all_null(group.ordering, old)} THEN {new(name)} ELSE {value} END"
    checks = _checks(version, name, old, new)
    if not checks:
        return value
    return f"CASE {' '.join(f'WHEN {wrong} THEN {raise_sql(InvalidArgument, text_sql(message))}' for wrong, message in checks)} ELSE {value} END"


def _checks(version: NewVersion, name: str, old: Callable[[str], str], new: Callable[[str], str]) -> list[tuple[str, str]]:
    """Return error conditions of a column, with their messages.

    A condition on several columns is part of each of them. Conditions on a sequence group are part of its first ordering column.
    """
    checks = [(f"{new(name)} IS NULL", null_message(name))] if name in version.known else []
    needed = (names for names in version.needed if name in names)
    checks += [(_all_null(names, new), unordered_message(names)) for names in needed]
    for names in version.orders:
        if name in names:
            after, before = (f"struct({', '.join(side(column) for column in names)})" for side in (new, old))
            checks.append((f"{after} < {before}", decrease_message(names)))
    for group in version.groups:
        if name == group.ordering[0]:
            sides = [old] if version.ways[name] == "nothing" else [old, new]
            unordered = " AND ".join(_all_null(group.ordering, side) for side in sides)
            checks.append((f"{unordered} AND NOT ({_all_null(group.protected, old)})", lost_values_message(group)))
    return checks


def _all_null(names: Iterable[str], side: Callable[[str], str]) -> str:
    return " AND ".join(f"{side(name)} IS NULL" for name in names)


def with_new_versions(frame: Any, schema: TableSchema, version: NewVersion, new: Mapping[str, Any]) -> Any:
    """Return the table's rows as versions with ``new`` columns."""
    old_and_new = frame.withColumns({f"{_NEW}{name}": value for name, value in new.items()})

    def newer(name: str) -> str:
        return quote_name(f"{_NEW}{name}" if name in new else name)

    expr = functions_of(frame).expr
    return old_and_new.select(*(expr(new_version_sql(version, schema, name, quote_name, newer)).alias(name) for name in schema.names))
