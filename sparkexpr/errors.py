"""Errors of expressions, casts and VARIANT values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches

text_edits: list[Callable[[str], str]] = []
"""Applied to the text of each error: an application may take secrets out."""


class ExpressionError(Exception):
    """Base of every error that this package raises."""

    def __str__(self) -> str:
        return _edited(super().__str__())

    def __repr__(self) -> str:
        return _edited(super().__repr__())

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the sentence without a traceback, for it says what to do."""
        return [f"{type(self).__name__}: {self}"]


def _edited(text: str) -> str:
    for edit in text_edits:
        text = edit(text)
    return text


class InvalidArgument(ExpressionError, ValueError):
    """An argument has an invalid value."""


class UnsupportedType(ExpressionError, TypeError):
    """A column type cannot be stored, indexed or converted."""


class InvalidFilter(ExpressionError, ValueError):
    """A filter is malformed or compares incompatible types."""


class FilterFailed(ExpressionError, ArithmeticError):
    """Computing a filter failed for a row.

    A number does not fit its type, a divisor is zero, or a text is not a number.
    """


class OutOfRange(ExpressionError, ArithmeticError):
    """A sum exceeds the result type of its column."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return a hint at the known name most like ``name``.

    Case is ignored. Empty without a similar name.

    >>> did_you_mean("citi", ["id", "City"]), did_you_mean("x", ["id"])
    (", did you mean 'City'", '')
    """
    names = tuple(candidates)
    near = get_close_matches(name.lower(), [candidate.lower() for candidate in names], n=1)
    return next((f", did you mean '{candidate}'" for candidate in names if candidate.lower() in near), "")


def not_a_column(name: str, columns: Iterable[str]) -> str:
    """Return the text that a name is not one of ``columns``.

    >>> not_a_column("citi", ["id", "City"])
    "'citi' is not a column, did you mean 'City'; columns are: id, City"
    """
    names = tuple(columns)
    return f"'{name}' is not a column{did_you_mean(name, names)}; columns are: {', '.join(names)}"


class UnknownColumn(ExpressionError, KeyError):
    """A filter, projection or option names an unknown column.

    ``column`` is the name.
    """

    def __init__(self, column: str, known: tuple[str, ...] = (), advice: str = "") -> None:
        super().__init__(column, known, *([advice] if advice else []))
        self.column = column
        self.known = known
        self.advice = advice

    def __str__(self) -> str:
        hint = f"; columns are: {', '.join(self.known)}" if self.known else ""
        advice = f"; {self.advice}" if self.advice else ""
        return f"unknown column '{self.column}'{did_you_mean(self.column, self.known)}{hint}{advice}"


class CorruptVariant(ExpressionError, ValueError):
    """The bytes of a VARIANT violate its encoding."""
