r"""Texts that a column must contain for a condition to be true.

An index of parts of texts can exclude rows by them. Only proven requirements are returned; a condition may have none.
Texts are compared with ASCII letters in either case, so requirements of ``(?i)`` and of ``lower(c)`` count, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from fileindex.predicate.tree import ColumnRef, ComputedPredicate
from sparkexpr.expression import java_regex
from sparkexpr.expression.text import like_parts
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue
from sparkexpr.values.column_type import STRINGS


@dataclass(frozen=True, slots=True)
class Contains:
    """A column contains all of ``texts``, in UTF-8, if ASCII letters match in either case."""

    column: ColumnRef
    texts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """All requirements hold."""

    children: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the requirements holds."""

    children: tuple[Requirement, ...]


Requirement: TypeAlias = Contains | AllOf | AnyOf

_PARTS_OF_TEXT = frozenset({"trim", "ltrim", "rtrim", "substring"})
"""Functions whose result is a part of their first argument."""

_MAPPED_CASE = {"lower": re.compile(r"[\0-@\[-hjl-\x7f]+"), "upper": re.compile(r"[\0-@BCDEGKMOPQRUVXZ\[-`{-\x7f]+")}
"""Of a text in lower or upper case, the parts that only ASCII letters become: 'k' is also the Kelvin sign in lower case."""


@lru_cache(maxsize=64)
def required_texts(predicate: ComputedPredicate) -> Requirement | None:
    """Return what each matching row contains.

    None: nothing is known.

    >>> from sparkexpr.expression.functions import call
    >>> from sparkexpr.expression.types import BOOLEAN_TYPE, TEXT_TYPE
    >>> column = ColumnValue("s", None, TEXT_TYPE)
    >>> required_texts(ComputedPredicate(call("rlike", [column, LiteralValue("(cat|dog)s? .*food", TEXT_TYPE)]))).children[0]
    Contains(column=ColumnRef(name='s', key=None), texts=(b' ', b'food'))
    """
    return None if predicate.negated else _of_condition(predicate.test)


def columns_required(requirement: Requirement) -> Iterator[ColumnRef]:
    """Yield the column of each part of a requirement."""
    match requirement:
        case Contains(column):
            yield column
        case AllOf(children) | AnyOf(children):
            for child in children:
                yield from columns_required(child)


def _of_condition(test: Expression) -> Requirement | None:
    if not isinstance(test, FunctionCall):
        return None
    match test.function, test.arguments:
        case "and", children:
            return _all_of(map(_of_condition, children))
        case "or", children:
            return _any_of(map(_of_condition, children))
        case "like", (value, LiteralValue(str(pattern)), LiteralValue(str(escape))):
            return _contains(value, [part for part in like_parts(pattern, escape) if isinstance(part, str)])
        case (("contains" | "startswith" | "endswith"), (value, LiteralValue(str(part)))):
            return _contains(value, [part])
        case "rlike", (value, LiteralValue(str(pattern))):
            return _Pattern(java_regex.translate(pattern).text).requirement(lambda texts: _contains(value, texts))
        case (("=" | "<=>"), ((value, LiteralValue(str(text))) | (LiteralValue(str(text)), value))):
            return _contains(value, [text])
        case "in", (value, *listed):
            return _any_of(_contains(value, _text_of(literal)) for literal in listed)
    return None


def _text_of(literal: Expression) -> list[str]:
    return [literal.value] if isinstance(literal, LiteralValue) and isinstance(literal.value, str) else []


def _contains(value: Expression, texts: Iterable[str]) -> Requirement | None:
    """Return the requirement that a value, computed from one column, contains all of ``texts``."""
    pieces = [text for text in texts if text]
    while isinstance(value, FunctionCall):
        first = value.arguments[0]
        if value.function in _MAPPED_CASE:
            pieces = [piece for text in pieces for piece in _MAPPED_CASE[value.function].findall(text)]
        elif not (value.function in _PARTS_OF_TEXT or (value.function == "cast" and first.type.kind in STRINGS)):
            return None
        value = first
    if not isinstance(value, ColumnValue) or value.type.kind not in STRINGS:
        return None
    try:
        required = tuple(dict.fromkeys(piece.encode() for piece in pieces))
    except UnicodeEncodeError:  # half a surrogate pair: no text has it
        return None
    return Contains(ColumnRef(value.name, value.key), required) if required else None


def _all_of(children: Iterable[Requirement | None]) -> Requirement | None:
    requirements = tuple(child for child in children if child is not None)
    return None if not requirements else requirements[0] if len(requirements) == 1 else AllOf(requirements)


def _any_of(children: Iterable[Requirement | None]) -> Requirement | None:
    alternatives = tuple(children)
    requirements = tuple(child for child in alternatives if child is not None)
    if len(requirements) < len(alternatives) or not requirements:
        return None
    return requirements[0] if len(requirements) == 1 else AnyOf(requirements)


_ToRequirement: TypeAlias = Callable[[list[str]], Requirement | None]
_ATOM = re.compile(
    r"""
      (?P<anchor>\\A|\\z)
    | (?P<letter>[0-9A-Za-z])
    | \\x\{(?P<code>[0-9a-f]+)\}
    | \[(?P<either>[A-Za-z]{2})\]
    | (?P<others>\(\?s:\.\)|\[(?:\\.|[^\\\]])+\])
    """,
    re.VERBOSE,
)
"""An element of a pattern as ``java_regex`` writes it."""

_QUANTIFIER = re.compile(r"(?:(?P<mark>[*+?])|\{(?P<low>\d+)(?P<high>,\d*)?\})\??")
_MOST_COPIES = 64


class _Unreadable(Exception):
    """The pattern has an unexpected element."""


class _Pattern:
    """Parser of a translated pattern, for the texts that every match contains.

    Anything unexpected means that nothing is known.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def requirement(self, contains: _ToRequirement) -> Requirement | None:
        """Return what each text with a match contains."""
        try:
            required = self._alternatives(contains)
        except _Unreadable:
            return None
        return required if self._at == len(self._text) else None

    def _alternatives(self, contains: _ToRequirement) -> Requirement | None:
        branches = [self._branch(contains)]
        while self._text.startswith("|", self._at):
            self._at += 1
            branches.append(self._branch(contains))
        return _any_of(branches)

    def _branch(self, contains: _ToRequirement) -> Requirement | None:
        runs: list[str] = [""]
        groups: list[Requirement | None] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._text.startswith("(?:", self._at):
                self._at += 3
                group = self._alternatives(contains)
                if not self._text.startswith(")", self._at):
                    raise _Unreadable
                self._at += 1
                least, _ = self._repeats()
                groups.append(group if least else None)
                runs.append("")
                continue
            letter = self._atom()
            if letter == "":  # an anchor has no width
                continue
            least, is_exact = self._repeats()
            if letter is None or not least:
                runs.append("")
                continue
            copies = letter * min(least, _MOST_COPIES)
            runs[-1] += copies
            if not is_exact or least > _MOST_COPIES:
                runs.append(copies)
        return _all_of([contains(runs), *groups])

    def _atom(self) -> str | None:
        """Return a letter, "" for an anchor, None for other characters."""
        atom = _ATOM.match(self._text, self._at)
        if atom is None:
            raise _Unreadable
        self._at = atom.end()
        if atom["anchor"]:
            return ""
        if atom["either"]:
            letter = atom["either"].lower()
            return letter[0] if letter[0] == letter[1] else None
        return chr(int(atom["code"], 16)) if atom["code"] else atom["letter"]

    def _repeats(self) -> tuple[int, bool]:
        """Return how often an element occurs at least, and whether exactly so often."""
        quantifier = _QUANTIFIER.match(self._text, self._at)
        if quantifier is None:
            return 1, True
        self._at = quantifier.end()
        if quantifier["mark"]:
            return (1, False) if quantifier["mark"] == "+" else (0, False)
        return int(quantifier["low"]), quantifier["high"] is None or quantifier["high"] == f",{quantifier['low']}"
