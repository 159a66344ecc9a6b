"""Conditions that a scan and Spark evaluate alike, whatever the settings of the session.

Elsewhere Spark evaluates the conditions again, so a scan may return more rows. The result of a query without Spark has none of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from pyspark_paimon.plugins.sql.text.words import StatementTokens, Word
from sparkexpr.values.column_type import INTEGERS, STRINGS, ColumnType, Kind

_ASCII = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTEGER, _DECIMAL = re.compile(r"\d{1,18}"), re.compile(r"\d{1,15}(\.\d{1,15})?")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
"""Form of a DATE that no setting changes."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
_LITERALS: dict[Kind, tuple[bool, re.Pattern[str]]] = {
    **dict.fromkeys(INTEGERS, (False, _INTEGER)),
    Kind.DECIMAL: (False, _DECIMAL),
    Kind.DOUBLE: (False, _DECIMAL),
    **{kind: (True, re.compile(r".*", re.DOTALL)) for kind in STRINGS},
    Kind.DATE: (True, DAY),
    Kind.TIMESTAMP: (True, _TIME),
    Kind.TIMESTAMP_LTZ: (True, _TIME),
}
"""Whether literals are texts, and their form, by the kind of the column. They need no cast of the column, and none that may fail."""
_TYPED = {
    exp.DataType.Type.DATE: Kind.DATE,
    exp.DataType.Type.TIMESTAMPNTZ: Kind.TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: Kind.TIMESTAMP_LTZ,
    exp.DataType.Type.TIMESTAMPLTZ: Kind.TIMESTAMP_LTZ,
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_PLAIN_TOKENS = {
    *(
        TokenType.SELECT,
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.ALIAS,
        TokenType.DISTINCT,
        TokenType.STAR,
        TokenType.COMMA,
        TokenType.DOT,
    ),
    *(TokenType.L_PAREN, TokenType.R_PAREN, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.NULL, TokenType.IN),
    *(TokenType.BETWEEN, TokenType.LIKE, TokenType.TRUE, TokenType.FALSE, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE),
    *(TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ, TokenType.DASH, TokenType.DATE, TokenType.TIMESTAMPNTZ, TokenType.TIMESTAMPTZ),
    *(TokenType.TIMESTAMPLTZ, TokenType.NUMBER, TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER),
}


def has_plain_words(text: str, words: Sequence[Word]) -> bool:
    """Return whether a query has only words that sqlglot and Spark read alike. sqlglot skips a hint at the end."""
    return (
        "/*+" not in text
        and all(word.kind in _PLAIN_TOKENS for word in words)
        and all(_ASCII.fullmatch(word.text) for word in words if word.kind is TokenType.VAR)
    )


def is_exact(text: str, types: Mapping[str, ColumnType]) -> bool:
    """Return whether Spark finds the same rows by a condition.

    types: Columns of the table. Settings decide whether Spark finds them by a name in another case.

    >>> from manifest.schema.validation import build_schema
    >>> types = build_schema("n INT, s STRING, at TIMESTAMP(6)").column_types
    >>> is_exact("n IN (1, -2) AND NOT s LIKE 'a%' OR at > '2024-01-01 00:00:00.5'", types)
    True
    >>> is_exact("n = '1'", types), is_exact("N = 1", types), is_exact("n < 1.5", types), is_exact("n = 1e0", types)
    (False, False, False, False)
    """
    return _agrees(sqlglot.parse_one(text, dialect=StatementTokens), types)


def _agrees(node: exp.Expr, types: Mapping[str, ColumnType]) -> bool:
    match node:
        case exp.And() | exp.Or():
            return _agrees(node.left, types) and _agrees(node.right, types)
        case exp.Not() | exp.Paren():
            return _agrees(node.this, types)
        case exp.Column():
            return _kind(node, types) is Kind.BOOLEAN
        case exp.Is():
            return _kind(node.this, types) is not None and isinstance(node.expression, exp.Null)
        case exp.In():
            values = node.expressions if {name for name, value in node.args.items() if value} == {"this", "expressions"} else [None]
            return _fit(node.this, values, types)
        case exp.Between():
            return _fit(node.this, [node.args["low"], node.args["high"]], types)
        case exp.Like():
            return _kind(node.this, types) in STRINGS and _fit(node.this, [node.expression], types)
    if not isinstance(node, _COMPARISONS):
        return False
    column, value = (node.left, node.right) if isinstance(node.left, exp.Column) else (node.right, node.left)
    return _fit(column, [value], types)


def _kind(column: exp.Expr, types: Mapping[str, ColumnType]) -> Kind | None:
    """Return the kind of a column. None: it is something else, or has another name."""
    is_name = isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier) and not column.table
    return types[column.name].kind if is_name and column.name in types else None


def _fit(column: exp.Expr, values: Sequence[exp.Expr | None], types: Mapping[str, ColumnType]) -> bool:
    """Return whether the values are literals of the kind of the column."""
    kind = _kind(column, types)
    return kind is not None and all(value is not None and _is_literal(value, kind) for value in values)


def _is_literal(value: exp.Expr, kind: Kind) -> bool:
    if isinstance(value, exp.Boolean):
        return kind is Kind.BOOLEAN
    if isinstance(value, exp.Cast):
        return _TYPED.get(value.to.this) is kind and _is_literal(value.this, kind)
    if isinstance(value, exp.Neg):
        return _LITERALS.get(kind, (True,))[0] is False and _is_literal(value.this, kind)
    if not isinstance(value, exp.Literal) or kind not in _LITERALS:
        return False
    is_text, form = _LITERALS[kind]
    return value.is_string == is_text and form.fullmatch(value.name) is not None
