"""Rows of ``VALUES`` that need no Spark: literals of the kinds of their columns.

Spark parses, analyses and runs each VALUES as a query. That costs more than the write of a few rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import date
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from lsm.rows_in.arrow import arrow_rows
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import PaimonError
from pyspark_paimon.plugins.sql.exact_conditions import DAY
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from sparkexpr.values.column_type import INTEGERS, STRINGS, Kind

Literal: TypeAlias = bool | int | Decimal | str | date | None
_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?")
"""Integers and decimals. Others are of type DOUBLE, or of one that a suffix names."""
_WORDS = {TokenType.NULL: None, TokenType.TRUE: True, TokenType.FALSE: False}
_KINDS: dict[type, Collection[Kind]] = {
    bool: {Kind.BOOLEAN},
    int: {*INTEGERS, Kind.DECIMAL},
    Decimal: {Kind.DECIMAL},
    str: STRINGS,
    date: {Kind.DATE},
}
_EXACT_INTEGERS = 1 << 53
"""Integers that each DOUBLE distinguishes."""


class _NeedsSpark(Exception):  # control flow: Spark computes the rows, or reports the error
    """A value is no literal of the kind of its column."""


def value_rows(query: str, columns: Sequence[str], schema: TableSchema) -> pa.Table | None:
    """Return the rows of ``VALUES (1, 'a'), ...`` for these columns of a table. None: Spark has to compute them.

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT, price DECIMAL(5, 2), name STRING")
    >>> value_rows("VALUES (1, -0.5, 'a'), (2, NULL, '')", ["id", "price", "name"], schema).to_pylist()
    [{'id': 1, 'price': Decimal('-0.50'), 'name': 'a'}, {'id': 2, 'price': None, 'name': ''}]
    >>> value_rows("VALUES (1 + 1, 0.5, 'a')", ["id", "price", "name"], schema)
    """
    words = TokenCursor(query)
    # Whether a backslash starts an escape is a setting of the session. Spark replaces variables.
    if not words.take("VALUES") or "\\" in query or "${" in query or len(set(columns)) < len(columns):
        return None
    kinds = [schema.field(name).type.kind for name in columns]
    try:
        rows = [_row(words, kinds)]
        while words.take(","):
            rows.append(_row(words, kinds))
        if not words.done:
            return None
        values_by_column = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
        return arrow_rows(values_by_column, schema.arrow).reader.read_all()
    except (_NeedsSpark, PaimonError):
        return None


def _row(words: TokenCursor, kinds: Sequence[Kind]) -> list[Literal | float]:
    if words.peek() != "(":
        raise _NeedsSpark
    literals = [_literal(words) for _ in words.items()]
    if len(literals) != len(kinds):
        raise _NeedsSpark
    return [_fitting(literal, kind) for literal, kind in zip(literals, kinds, strict=True)]


def _literal(words: TokenCursor) -> Literal:
    """Read a literal. Raises ``_NeedsSpark`` for other values."""
    negative, is_date = words.take("-"), words.take("DATE")
    if words.done:
        raise _NeedsSpark
    token = words.tokens[words.at]
    words.at += 1
    # Settings decide what two quotes within a text mean.
    is_text = token.kind is TokenType.STRING and words.text[token.start] == "'" and "'" not in token.text
    if is_date and is_text and DAY.fullmatch(token.text) and not negative:
        try:
            return date.fromisoformat(token.text)
        except ValueError:
            raise _NeedsSpark from None
    if token.kind is TokenType.NUMBER and _NUMBER.fullmatch(token.text) and not is_date:
        sign = "-" if negative else ""  # a minus of Python's would round to 28 digits
        return Decimal(f"{sign}{token.text}") if "." in token.text else int(f"{sign}{token.text}")
    if negative or is_date:
        raise _NeedsSpark
    if is_text:
        return str(token.text)
    if token.kind in _WORDS:
        return _WORDS[token.kind]
    raise _NeedsSpark


def _fitting(value: Literal, kind: Kind) -> Literal | float:
    """Return a value that an INSERT stores unchanged in a column of that kind."""
    if isinstance(value, int | Decimal) and type(value) is not bool and kind is Kind.DOUBLE and -_EXACT_INTEGERS < value < _EXACT_INTEGERS:
        return float(value) + 0.0  # SQL's decimals have no negative zero
    if value is not None and kind not in _KINDS[type(value)]:
        raise _NeedsSpark
    return value
