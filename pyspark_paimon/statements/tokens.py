"""The tokens of a statement, one a word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from pyspark_paimon.filter.from_sql import SparkFilter


class StatementTokens(SparkFilter):
    """Spark's dialect, in which no word makes one token of all that follows it."""

    class Tokenizer(SparkFilter.Tokenizer):
        """Spark's tokens."""

        COMMANDS = set()  # noqa: RUF012  # sqlglot reads it as a set of the class


@dataclass(frozen=True, slots=True)
class Word:
    """A token of one word: its kind, its text without quotes, and the places of its first and last letters."""

    kind: Any
    text: str
    start: int
    end: int


def _single(text: str, token: Any) -> Iterator[Word]:
    """A token's words: the tokenizer takes ``PRIMARY KEY`` for one."""
    parts = (
        [] if token.token_type in {TokenType.STRING, TokenType.IDENTIFIER} else list(re.finditer(r"\S+", text[token.start : token.end + 1]))
    )
    if len(parts) < 2 or " " not in token.text:
        yield Word(token.token_type, str(token.text), token.start, token.end)
        return
    for part in parts:
        yield Word(TokenType.VAR, part.group(), token.start + part.start(), token.start + part.end() - 1)


def tokens_of(text: str) -> list[Word]:
    """The tokens of a text. Raises sqlglot's errors."""
    return [part for token in sqlglot.tokenize(text, dialect=StatementTokens) for part in _single(text, token)]


__all__ = ["StatementTokens", "Word", "tokens_of"]
