"""Cursor over the tokens of a SQL statement."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from paimon_base.errors import InvalidArgument
from pyspark_paimon.filter.from_sql import SparkFilter


class StatementTokens(SparkFilter):
    """Spark's dialect without commands.

    sqlglot otherwise makes one token of a command and all text after it.
    """

    class Tokenizer(SparkFilter.Tokenizer):
        """Spark's tokenizer."""

        COMMANDS = set()  # noqa: RUF012  # sqlglot requires a set as class attribute


@dataclass(frozen=True, slots=True)
class Word:
    """A token of one word.

    text: Text without quotes.
    start, end: Positions of the first and last character.
    """

    kind: Any
    text: str
    start: int
    end: int


def _split_token(text: str, token: Any) -> Iterator[Word]:
    """Split a token into words: ``PRIMARY KEY`` is one token."""
    parts = (
        [] if token.token_type in {TokenType.STRING, TokenType.IDENTIFIER} else list(re.finditer(r"\S+", text[token.start : token.end + 1]))
    )
    if len(parts) < 2 or " " not in token.text:
        yield Word(token.token_type, str(token.text), token.start, token.end)
        return
    for part in parts:
        yield Word(TokenType.VAR, part.group(), token.start + part.start(), token.start + part.end() - 1)


def tokens_of(text: str) -> list[Word]:
    """Tokenize a text.

    Raises sqlglot's errors.
    """
    return [part for token in sqlglot.tokenize(text, dialect=StatementTokens) for part in _split_token(text, token)]


NameParts = tuple[str, ...]
"""Parts of a dotted name of a table or column."""
WrittenValue = str | int | Decimal | bool | None

_OPEN, _CLOSE = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}, {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_VALUES = {TokenType.STRING, TokenType.NUMBER}
_NUMBERS = {TokenType.DASH: -1, TokenType.PLUS: 1}
_WORDS = {"TRUE": True, "FALSE": False, "NULL": None}


class TokenCursor:
    """Cursor over the words of a statement.

    >>> words = TokenCursor("DELETE FROM db.`a t` WHERE x > 1")
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
        """Whether no word is left."""
        return self.at >= len(self.tokens)

    @property
    def here(self) -> int:
        """Position of the next word, or the text's length."""
        return int(self.tokens[self.at].start) if not self.done else len(self.text)

    def peek(self, ahead: int = 0) -> str:
        """Return a following word in upper case without consuming it.

        The result is '' for a quoted word, and beyond the end.
        """
        if self.at + ahead >= len(self.tokens):
            return ""
        token = self.tokens[self.at + ahead]
        return "" if token.kind in {TokenType.STRING, TokenType.IDENTIFIER} else str(token.text).upper()

    def take(self, *words: str) -> bool:
        """Consume these words if they come next."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Consume these words.

        Raises ``InvalidArgument`` if other words come next.
        """
        if not self.take(*words):
            raise self.error(" ".join(words))

    def end(self) -> None:
        """Raise ``InvalidArgument`` if words are left."""
        if not self.done:
            raise self.error("the end")

    def error(self, expected: str) -> InvalidArgument:
        """Return the syntax error that ``expected`` was expected here."""
        token_text = f"'{self.tokens[self.at].text}'" if not self.done else "its end"
        before = self.text[: self.here]
        line, column = before.count("\n") + 1, self.here - before.rfind("\n")
        shown = (self.text.splitlines() or [""])[line - 1]
        return InvalidArgument(
            f"the statement has {token_text} at line {line}, column {column}, where {expected} is expected\n  {shown}\n  {' ' * (column - 1)}^"
        )

    def name(self) -> NameParts:
        """Read a dotted name, also of a system table (``t$files``), and the one in ``IDENTIFIER('db.t')``."""
        if self.peek() == "IDENTIFIER" and (self.peek(1), self.peek(3)) == ("(", ")") and self.tokens[self.at + 2].kind is TokenType.STRING:
            named = TokenCursor(str(self.tokens[self.at + 2].text))
            self.at += 4
            return named.name()
        parts = [self.part()]
        while self.take("."):
            parts.append(self.part())
        return tuple(parts)

    def part(self) -> str:
        """Read one part of a name."""
        if self.done or self.peek() in {"(", ")", ",", ".", "="}:
            raise self.error("a name")
        token = self.tokens[self.at]
        text, self.at = str(token.text), self.at + 1
        while self.peek() == "$" and self.tokens[self.at].start == self.tokens[self.at - 1].end + 1 and self.at + 1 < len(self.tokens):
            text, self.at = f"{text}${self.tokens[self.at + 1].text}", self.at + 2
        return text

    def literal(self) -> WrittenValue:
        """Read a text, a number, TRUE, FALSE or NULL.

        A word without quotes is read as a text.
        """
        if self.done:
            raise self.error("a value")
        sign, start = 1, self.at
        while self.at < len(self.tokens) and self.tokens[self.at].kind in _NUMBERS:
            sign, self.at = sign * _NUMBERS[self.tokens[self.at].kind], self.at + 1
        if self.at >= len(self.tokens) or (self.at > start and self.tokens[self.at].kind is not TokenType.NUMBER):
            raise self.error("a number")
        token = self.tokens[self.at]
        self.at += 1
        if token.kind is TokenType.NUMBER:
            value = sign * Decimal(token.text)
            return int(value) if value == value.to_integral_value() and "." not in token.text else value
        return _WORDS.get(token.text.upper(), token.text) if token.kind is not TokenType.STRING else str(token.text)

    def whole_number(self) -> int:
        """Read a whole number that is not negative."""
        start = self.at
        value = self.literal()
        if type(value) is not int or value < 0:
            self.at = start
            raise self.error("a whole number")
        return value

    def until(self, stops: Collection[str] = ()) -> str:
        """Read the text up to a word of ``stops``.

        Words inside brackets and CASE ... END do not count. The text also ends before an unmatched closing bracket, and
        at the end.
        """
        start, depth = self.here, 0
        while not self.done:
            token, word = self.tokens[self.at], self.peek()
            if depth == 0 and (word in stops or token.kind in _CLOSE):
                break
            depth += (token.kind in _OPEN or word == "CASE") - (token.kind in _CLOSE or word == "END")
            self.at += 1
        return self.text[start : self.tokens[self.at - 1].end + 1] if self.at and self.here > start else ""

    def type(self, stops: Collection[str]) -> str:
        """Read a type up to a word of ``stops``.

        Words inside brackets of any kind do not count.

        >>> TokenCursor("MAP<STRING NOT NULL, ARRAY<INT>> NOT NULL, b INT").type((",", "NOT"))
        'MAP<STRING NOT NULL, ARRAY<INT>>'
        """
        start, depth = self.here, 0
        while not self.done and (depth or (self.peek() not in stops and self.tokens[self.at].kind not in _CLOSE)):
            token = self.tokens[self.at]
            depth += (token.kind in _OPEN) - (token.kind in _CLOSE) + token.text.count("<") - token.text.count(">")
            self.at += 1
        return self.text[start : self.tokens[self.at - 1].end + 1] if self.at and self.here > start else ""

    def rest(self) -> str:
        """Read the remaining text."""
        start, self.at = self.here, len(self.tokens)
        return self.text[start : self.tokens[-1].end + 1] if self.tokens else ""

    def items(self) -> Iterator[None]:
        """Iterate over a list in parentheses.

        The caller reads one item in each iteration.
        """
        self.expect("(")
        if self.take(")"):
            return
        yield
        while self.take(","):
            yield
        self.expect(")")

    def properties(self) -> dict[str, str]:
        """Read ``('key' = 'value', ...)``; the equals sign is optional."""
        value_by_key = {}
        for _ in self.items():
            key = ".".join(self.name())
            self.take("=")
            value: Any = self.literal()
            value_by_key[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return value_by_key


def partition_spec(words: TokenCursor) -> dict[str, object]:
    """Read a partition: ``(day = '2026-01-31', ...)``.

    Raises ``InvalidArgument`` for a repeated column, and for an empty list.
    """
    spec: dict[str, object] = {}
    for _ in words.items():
        name = words.part()
        if name in spec:
            raise InvalidArgument(f"PARTITION names the column '{name}' twice")
        words.expect("=")
        words.take("DATE")
        spec[name] = words.literal()
    if not spec:
        raise InvalidArgument("PARTITION () is empty; name partition columns, or remove it")
    return spec


def replace_qualifiers(text: str, sides: Mapping[NameParts, str]) -> str:
    """Replace the qualifiers of columns in SQL text.

    sides: New name of each qualifier; '' removes it.

    >>> replace_qualifiers("x.n + db.Y.m - b.x.a", {("x",): "t", ("db", "y"): ""})
    't.n + m - b.x.a'
    """
    words, parts, end = TokenCursor(text), [""], 0
    tokens = words.tokens
    for index in range(len(tokens) - 1):
        if index and tokens[index - 1].text == ".":
            continue
        for called, new in sides.items():
            length = 2 * len(called)
            name_tokens = tokens[index : index + length]
            dotted = (
                len(name_tokens) == length and all(token.text == "." for token in name_tokens[1::2]) and name_tokens[0].kind not in _VALUES
            )
            if dotted and tuple(token.text.lower() for token in name_tokens[::2]) == called:
                parts += [text[end : name_tokens[0].start], new]
                end = name_tokens[-1].start if new else name_tokens[-1].end + 1
                break
    return "".join([*parts, text[end:]])
