"""Predicates and columns as text of Spark SQL, for rows that Spark reads itself.

The text means the same under every configuration of a session: literals are casts of plain texts or bytes, times are UTC. What
Spark evaluates otherwise than our own filter, or could, has no text here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from fileindex.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, ColumnType, Kind, Plain
from fileindex.errors import InvalidFilter
from fileindex.predicate import And, Compare, In, IsNull, Leaf, Or, Predicate, StartsWith
from manifest.types import DataType

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # a time without zone
_MICROS = {"ms": 1000, "us": 1}
_NAMES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TINYINT: "TINYINT",
    Kind.SMALLINT: "SMALLINT",
    Kind.INT: "INT",
    Kind.BIGINT: "BIGINT",
    Kind.FLOAT: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
}
_ZEROS = {
    Kind.BOOLEAN: "FALSE",
    Kind.TINYINT: "0Y",
    Kind.SMALLINT: "0S",
    Kind.INT: "0",
    Kind.BIGINT: "0L",
    Kind.FLOAT: "0F",
    Kind.DOUBLE: "0D",
    Kind.DATE: "DATE'1970-01-01'",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ'1970-01-01 00:00:00'",
    Kind.TIMESTAMP_LTZ: "TIMESTAMP_LTZ'1970-01-01 00:00:00Z'",
    **dict.fromkeys(STRINGS, "''"),
    **dict.fromkeys(BINARIES, "X''"),
}
"""Values that Spark takes for not null when it looks at their text; it does not of a text that is cast."""


def quoted(name: str) -> str:
    """A name as an identifier of Spark SQL.

    >>> quoted("a `b`")
    '`a ``b```'
    """
    return f"`{name.replace('`', '``')}`"


def predicate_text(predicate: Predicate, types: Mapping[str, ColumnType]) -> str:
    """A condition that is true for the rows for which ``predicate`` is true. Raises ``InvalidFilter`` where Spark has none.

    >>> from fileindex.predicate import ColumnRef, Op
    >>> predicate_text(Compare(ColumnRef("id"), Op.GE, 3), {"id": ColumnType(Kind.BIGINT)})
    "(`id` >= CAST('3' AS BIGINT))"
    """
    match predicate:
        case And(children):
            return _joined("AND", children, types, empty="TRUE")
        case Or(children):
            return _joined("OR", children, types, empty="FALSE")
        case leaf:
            return f"({_leaf_text(leaf, types)})"


def _joined(word: str, children: tuple[Predicate, ...], types: Mapping[str, ColumnType], *, empty: str) -> str:
    texts = [predicate_text(child, types) for child in children]
    return f"({f' {word} '.join(texts)})" if texts else empty


def _leaf_text(leaf: Leaf, types: Mapping[str, ColumnType]) -> str:
    if leaf.column.key is not None:
        raise InvalidFilter(f"'{leaf.column}': entries of maps are left to our own reader")
    column, type_ = quoted(leaf.column.name), types[leaf.column.name]
    match leaf:
        case IsNull(_, negated):
            return f"{column} IS {'NOT ' if negated else ''}NULL"
        case Compare(_, op, value):
            return f"{column} {op.value} {literal(value, type_)}"
        case In(_, values, negated):
            if type_.kind in FLOATS and any(value == 0 or value != value for value in values):  # noqa: PLR0124  # NaN
                raise InvalidFilter(f"'{leaf.column}': Spark looks zeros and NaN up bit by bit in a list")
            if not values:
                return f"{column} IS NOT NULL" if negated else "FALSE"
            return f"{column} {'NOT ' if negated else ''}IN ({', '.join(literal(value, type_) for value in values)})"
        case StartsWith(_, prefix, negated):
            return f"{'NOT ' if negated else ''}startswith({column}, {literal(prefix, type_)})"


def literal(value: Plain, type_: ColumnType) -> str:
    """A plain value as a literal of the column's Spark type. Raises ``InvalidFilter`` for one that Spark may compare otherwise.

    >>> literal(-150, ColumnType(Kind.DECIMAL, precision=5, scale=2)), literal("Åse", ColumnType(Kind.VARCHAR))
    ("CAST('-150E-2' AS DECIMAL(5, 2))", "CAST(X'C3857365' AS STRING)")
    """
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return f"CAST({_bytes(value.encode())} AS STRING)"
        case bytes():
            return _bytes(value)
        case float():
            return f"CAST('{value!r}' AS {_NAMES[type_.kind]})"
        case int():
            return _number(value, type_)
        case _:
            raise InvalidFilter(f"{value!r} is no literal")


def _number(value: int, type_: ColumnType) -> str:
    match type_.kind:
        case Kind.DECIMAL:
            return f"CAST('{value}E-{type_.scale}' AS DECIMAL({type_.precision}, {type_.scale}))"
        case Kind.DATE:
            return f"date_from_unix_date({value})"
        case Kind.TIMESTAMP_LTZ if type_.unit in _MICROS:
            return f"timestamp_micros(CAST('{value * _MICROS[type_.unit]}' AS BIGINT))"
        case Kind.TIMESTAMP if type_.unit in _MICROS:
            try:
                return f"TIMESTAMP_NTZ'{_EPOCH + timedelta(microseconds=value * _MICROS[type_.unit])}'"
            except OverflowError as error:
                raise InvalidFilter(f"{value} lies outside the years 1 to 9999") from error
        case kind if kind in INTEGERS:
            return f"CAST('{value}' AS {_NAMES[kind]})"
        case _:
            raise InvalidFilter(f"type {type_.kind} has no literal in Spark")


def _bytes(value: bytes) -> str:
    return f"X'{value.hex().upper()}'"


def source_text(file_name: str, type_: DataType) -> str:
    """The values of a file's column. Those of floats pass through an expression that changes none.

    Spark would skip row groups by their minima and maxima, which leave out NaN although it is the greatest value, and which
    do not take the two zeros for equal: a filter of a user on the frame would lose rows.
    """
    if type_.kind in FLOATS:
        return f"nanvl({quoted(file_name)}, CAST('NaN' AS {_NAMES[type_.kind]}))"
    return quoted(file_name)


def result_text(name: str, type_: DataType) -> str:
    """A column of the result: for Spark one that is NOT NULL in the table is never null, and no null passes for a value.

    >>> result_text("n", DataType(Kind.INT, nullable=False))[:25]
    'coalesce(`n`, raise_error'
    """
    if type_.nullable:
        return quoted(name)
    digits = f".{'0' * type_.scale}" if type_.scale else ""
    zero = f"CAST(0{digits}BD AS {type_.with_nullable(nullable=True)})" if type_.kind is Kind.DECIMAL else _ZEROS[type_.kind]
    message = _bytes(f"column {name} is NOT NULL, but a data file holds a null".encode())
    return f"coalesce({quoted(name)}, raise_error(CAST({message} AS STRING)), {zero})"


def widened_text(expression: str, file: DataType, read: DataType) -> str | None:
    """``expression`` of a file's column as the wider type that the column has now; None if that is no mere widening.

    >>> widened_text("`a`", DataType(Kind.INT), DataType(Kind.BIGINT))
    'CAST(`a` AS BIGINT)'
    """
    order = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
    if file.kind in order and read.kind in order and order.index(file.kind) <= order.index(read.kind):
        return f"CAST({expression} AS {_NAMES[read.kind]})"
    if (file.kind, read.kind) == (Kind.FLOAT, Kind.DOUBLE):
        return f"CAST({expression} AS DOUBLE)"
    return None


__all__ = ["literal", "predicate_text", "quoted", "result_text", "source_text", "widened_text"]
