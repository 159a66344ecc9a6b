"""Typed errors: the base of all of them, and those that this package raises.

Every error names the thing (column, option, file, table) and says what to do; rooms above add their own subclasses.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from fileindex.base.public import public
from fileindex.base.redaction import redacted


@public
class PaimonError(Exception):
    """Base of every error that this project raises on purpose; what it shows holds no secrets."""

    def __str__(self) -> str:
        return redacted(super().__str__())

    def __repr__(self) -> str:
        return redacted(super().__repr__())


@public
class InvalidArgument(PaimonError, ValueError):
    """An argument has a value that no option of the call allows."""


@public
class UnsupportedOption(PaimonError, ValueError):
    """A table or call option is unknown, malformed, or names a feature that is not built; ``option`` is its key."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"option '{option}': {reason}")
        self.option = option
        self.reason = reason

    def __reduce__(self) -> tuple[type[UnsupportedOption], tuple[str, str]]:
        return type(self), (self.option, self.reason)


@public
class UnsupportedType(PaimonError, TypeError):
    """A column type cannot be stored, indexed or converted."""


@public
class InvalidFilter(PaimonError, ValueError):
    """A filter cannot be parsed, or compares a column with a literal of another type."""


@public
class FilterFailed(PaimonError, ArithmeticError):
    """A filter computes what has no value: a number that does not fit its type, a divisor of zero, a text that is no number."""


@public
class OutOfRange(PaimonError, ArithmeticError):
    """A sum does not fit the type that sums of its column have."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question after the name that is most like ``name``, whatever its case; nothing where none is.

    >>> did_you_mean("citi", ["id", "City"]), did_you_mean("x", ["id"])
    (", did you mean 'City'", '')
    """
    names = tuple(known)
    near = get_close_matches(name.lower(), [one.lower() for one in names], n=1)
    return next((f", did you mean '{one}'" for one in names if one.lower() in near), "")


@public
class UnknownColumn(PaimonError, KeyError):
    """A filter, projection or option names a column that the table does not have; ``column`` is the name."""

    def __init__(self, column: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(column, known)
        self.column = column
        self.known = known

    def __str__(self) -> str:
        hint = f"; columns are: {', '.join(self.known)}" if self.known else ""
        return f"unknown column '{self.column}'{did_you_mean(self.column, self.known)}{hint}"


@public
class CorruptFile(PaimonError):
    """A file's bytes are not what its format or its metadata promise; ``path`` is the file."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[CorruptFile], tuple[str, str]]:
        return type(self), (self.path, self.reason)


__all__ = [
    "CorruptFile",
    "FilterFailed",
    "InvalidArgument",
    "InvalidFilter",
    "PaimonError",
    "UnknownColumn",
    "UnsupportedOption",
    "UnsupportedType",
    "did_you_mean",
]
