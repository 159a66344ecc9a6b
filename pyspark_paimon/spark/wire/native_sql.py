"""Spark SQL expressions of columns, for files that Spark's own reader reads."""

from __future__ import annotations

from fileindex.base.column_type import BINARIES, FLOATS, STRINGS, Kind
from manifest.types.data_type import DataType

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
"""Literals that Spark infers as not null. It infers a cast of a string as nullable."""


def quoted_text(name: str) -> str:
    """Return a name as an identifier of Spark SQL.

    >>> quoted_text("a `b`")
    '`a ``b```'
    """
    return f"`{name.replace('`', '``')}`"


def source_text(file_name: str, type_: DataType) -> str:
    """Return the expression that reads a file's column."""
    # An expression that changes no float keeps Spark from skipping row groups by minima and maxima. These omit NaN, Spark's
    # greatest value, and order -0.0 before 0.0: a user's filter would lose rows.
    if type_.kind in FLOATS:
        return f"nanvl({quoted_text(file_name)}, CAST('NaN' AS {_NAMES[type_.kind]}))"
    return quoted_text(file_name)


def result_text(name: str, type_: DataType) -> str:
    """Return the expression of a result column.

    Spark infers a NOT NULL column of the table as not null. The expression raises an error for a null.

    >>> result_text("n", DataType(Kind.INT, nullable=False))[:25]
    'coalesce(`n`, raise_error'
    """
    if type_.nullable:
        return quoted_text(name)
    digits = f".{'0' * type_.scale}" if type_.scale else ""
    zero = f"CAST(0{digits}BD AS {type_.with_nullable(nullable=True)})" if type_.kind is Kind.DECIMAL else _ZEROS[type_.kind]
    message = f"column {name} is NOT NULL, but a data file has a null".encode().hex()
    return f"coalesce({quoted_text(name)}, raise_error(CAST(X'{message}' AS STRING)), {zero})"


def widening_text(expression: str, file: DataType, read: DataType) -> str | None:
    """Return ``expression``, of type ``file``, cast to the wider type ``read``.

    None: it is no widening.

    >>> widening_text("`a`", DataType(Kind.INT), DataType(Kind.BIGINT))
    'CAST(`a` AS BIGINT)'
    """
    order = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
    if file.kind in order and read.kind in order and order.index(file.kind) <= order.index(read.kind):
        return f"CAST({expression} AS {_NAMES[read.kind]})"
    if (file.kind, read.kind) == (Kind.FLOAT, Kind.DOUBLE):
        return f"CAST({expression} AS DOUBLE)"
    return None


__all__ = ["quoted_text", "result_text", "source_text", "widening_text"]
