"""A statement as words: a cursor over the tokens of SQL text, which gives names, literals, and spans of the text as they were written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from fileindex.base.errors import InvalidArgument
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


NameParts = tuple[str, ...]
"""A name's parts: of a table, or of a column."""
WrittenValue = str | int | Decimal | bool | None

_OPEN, _CLOSE = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}, {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_NUMBERS = {TokenType.DASH: -1, TokenType.PLUS: 1}
_WORDS = {"TRUE": True, "FALSE": False, "NULL": None}


class Words:
    """The words of a statement, from the first one on.

    >>> words = Words("DELETE FROM db.`a t` WHERE x > 1")
    >>> words.take("DELETE", "FROM"), words.name(), words.take("WHERE"), words.rest()
    (True, ('db', 'a t'), True, 'x > 1')
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        try:
            self.tokens = tokens_of(text)
        except SqlglotError as error:
            raise InvalidArgument(f"the statement cannot be read: {error}") from error
        while self.tokens and self.tokens[-1].kind is TokenType.SEMICOLON:
            self.tokens.pop()

    @property
    def done(self) -> bool:
        """Whether there is no word left."""
        return self.at >= len(self.tokens)

    @property
    def here(self) -> int:
        """Where the next word begins in the text; its end, if there is none."""
        return int(self.tokens[self.at].start) if not self.done else len(self.text)

    def word(self, ahead: int = 0) -> str:
        """A word to come in capital letters, '' for what is quoted or beyond the end."""
        if self.at + ahead >= len(self.tokens):
            return ""
        token = self.tokens[self.at + ahead]
        return "" if token.kind in {TokenType.STRING, TokenType.IDENTIFIER} else str(token.text).upper()

    def take(self, *words: str) -> bool:
        """Pass these words, if they come next."""
        if all(self.word(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def need(self, *words: str) -> None:
        """Pass these words. Raises ``InvalidArgument`` if others come."""
        if not self.take(*words):
            raise self.wrong(" ".join(words))

    def end(self) -> None:
        """Raises ``InvalidArgument`` if words are left."""
        if not self.done:
            raise self.wrong("the end")

    def wrong(self, wanted: str) -> InvalidArgument:
        """The error that something else was wanted here."""
        found = f"'{self.tokens[self.at].text}'" if not self.done else "its end"
        before = self.text[: self.here]
        line, column = before.count("\n") + 1, self.here - before.rfind("\n")
        shown = (self.text.splitlines() or [""])[line - 1]
        return InvalidArgument(
            f"the statement has {found} at line {line}, column {column}, where {wanted} is wanted\n  {shown}\n  {' ' * (column - 1)}^"
        )

    def name(self) -> NameParts:
        """A name with dots, also of a system table (``t$files``)."""
        parts = [self.part()]
        while self.take("."):
            parts.append(self.part())
        return tuple(parts)

    def part(self) -> str:
        """One part of a name."""
        if self.done or self.word() in {"(", ")", ",", ".", "="}:
            raise self.wrong("a name")
        token = self.tokens[self.at]
        text, self.at = str(token.text), self.at + 1
        while self.word() == "$" and self.tokens[self.at].start == self.tokens[self.at - 1].end + 1 and self.at + 1 < len(self.tokens):
            text, self.at = f"{text}${self.tokens[self.at + 1].text}", self.at + 2
        return text

    def literal(self) -> WrittenValue:
        """A text, a number, TRUE, FALSE or NULL; a word stands for its text."""
        if self.done:
            raise self.wrong("a value")
        sign, start = 1, self.at
        while self.at < len(self.tokens) and self.tokens[self.at].kind in _NUMBERS:
            sign, self.at = sign * _NUMBERS[self.tokens[self.at].kind], self.at + 1
        if self.at >= len(self.tokens) or (self.at > start and self.tokens[self.at].kind is not TokenType.NUMBER):
            raise self.wrong("a number")
        token = self.tokens[self.at]
        self.at += 1
        if token.kind is TokenType.NUMBER:
            value = sign * Decimal(token.text)
            return int(value) if value == value.to_integral_value() and "." not in token.text else value
        return _WORDS.get(token.text.upper(), token.text) if token.kind is not TokenType.STRING else str(token.text)

    def whole_number(self) -> int:
        """A number of things, from 0 up."""
        start = self.at
        value = self.literal()
        if type(value) is not int or value < 0:
            self.at = start
            raise self.wrong("a whole number")
        return value

    def until(self, stops: Collection[str] = ()) -> str:
        """The text up to a word of ``stops`` outside of brackets (CASE ... END is one), or to the bracket that closes around it, or to the end."""
        start, depth = self.here, 0
        while not self.done:
            token, word = self.tokens[self.at], self.word()
            if depth == 0 and (word in stops or token.kind in _CLOSE):
                break
            depth += (token.kind in _OPEN or word == "CASE") - (token.kind in _CLOSE or word == "END")
            self.at += 1
        return self.text[start : self.tokens[self.at - 1].end + 1] if self.at and self.here > start else ""

    def type(self, stops: Collection[str]) -> str:
        """The text of a type, up to a word of ``stops`` outside of brackets of every kind.

        >>> Words("MAP<STRING NOT NULL, ARRAY<INT>> NOT NULL, b INT").type((",", "NOT"))
        'MAP<STRING NOT NULL, ARRAY<INT>>'
        """
        start, depth = self.here, 0
        while not self.done and (depth or (self.word() not in stops and self.tokens[self.at].kind not in _CLOSE)):
            token = self.tokens[self.at]
            depth += (token.kind in _OPEN) - (token.kind in _CLOSE) + token.text.count("<") - token.text.count(">")
            self.at += 1
        return self.text[start : self.tokens[self.at - 1].end + 1] if self.at and self.here > start else ""

    def rest(self) -> str:
        """All that is left."""
        start, self.at = self.here, len(self.tokens)
        return self.text[start : self.tokens[-1].end + 1]

    def listed(self) -> Iterator[None]:
        """Turns of a list in parentheses: whoever loops reads an item in each."""
        self.need("(")
        if self.take(")"):
            return
        yield
        while self.take(","):
            yield
        self.need(")")

    def properties(self) -> dict[str, str]:
        """A list of ``'key' = 'value'``, or ``'key' 'value'``, in parentheses."""
        found = {}
        for _ in self.listed():
            key = ".".join(self.name())
            self.take("=")
            value: Any = self.literal()
            found[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return found


def partition_spec(words: Words) -> dict[str, object]:
    """``(day = '2026-01-31', ...)``: the value of each column. Raises ``InvalidArgument`` for a column that comes twice."""
    spec: dict[str, object] = {}
    for _ in words.listed():
        name = words.part()
        if name in spec:
            raise InvalidArgument(f"PARTITION names the column '{name}' twice")
        words.need("=")
        words.take("DATE")
        spec[name] = words.literal()
    if not spec:
        raise InvalidArgument("PARTITION () names no column")
    return spec


__all__ = ["NameParts", "StatementTokens", "Word", "Words", "WrittenValue", "partition_spec", "tokens_of"]
