"""Checks for double quotes around column names.

Double quotes make texts in Spark's SQL, but names in standard SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from fileindex.base.errors import InvalidFilter

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between, exp.Like)


def refuse_quoted_names(text: str, names: Iterable[str], tokenize: Callable[[str], list[Any]]) -> None:
    """Raise ``InvalidFilter`` for a column name in double quotes.

    The key of a map entry (``m["key"]``) is allowed.
    """
    if '"' not in text:
        return
    known = {name.lower(): name for name in names}
    before = None
    for token in tokenize(text):
        quoted = token.token_type is TokenType.STRING and text[token.start : token.start + 1] == '"'
        if quoted and before is not TokenType.L_BRACKET and token.text.lower() in known:
            name = known[token.text.lower()]
            raise InvalidFilter(
                f"\"{token.text}\" is a text, as double quotes make texts in Spark's SQL; write `{name}` for the column, '{token.text}' for the text"
            )
        before = token.token_type


def refuse_compared_texts(tree: exp.Expression) -> None:
    """Raise ``InvalidFilter`` for a text compared without a column."""
    for node in tree.find_all(*_COMPARISONS):
        if node.find(exp.Column, exp.Placeholder) is not None:
            continue
        texts = [literal for literal in node.find_all(exp.Literal) if literal.is_string and not isinstance(literal.parent, exp.Cast)]
        if texts:
            shown, text = node.sql(dialect="spark")[:120], texts[0].name
            raise InvalidFilter(f"{shown} compares a text and has no column; write `{text}` in backticks for a column")


__all__ = ["refuse_compared_texts", "refuse_quoted_names"]
