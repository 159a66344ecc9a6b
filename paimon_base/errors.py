"""Base of all errors, and this package's errors.

Every error names the column, option, file or table, and says what to do. Packages above add subclasses.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from paimon_base.public import public
from paimon_base.redaction import redact

_ERROR_CHARACTERS = 500
"""Longest text of an error inside another text."""


@public
class PaimonError(Exception):
    """Base of every error that this project raises.

    Its text never contains secrets.
    """

    def __str__(self) -> str:
        return redact(super().__str__())

    def __repr__(self) -> str:
        return redact(super().__repr__())


@public
class InvalidArgument(PaimonError, ValueError):
    """An argument has an invalid value."""


@public
class UnsupportedOption(PaimonError, ValueError):
    """An option is unknown, malformed or not supported.

    It is a table option or an argument of a call. ``option`` is its key.
    """

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
    """A filter is malformed or compares incompatible types."""


@public
class FilterFailed(PaimonError, ArithmeticError):
    """Computing a filter failed for a row.

    A number does not fit its type, a divisor is zero, or a text is not a number.
    """


@public
class OutOfRange(PaimonError, ArithmeticError):
    """A sum exceeds the result type of its column."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name most like ``name``.

    Case is ignored. Empty without a similar name.

    >>> did_you_mean("citi", ["id", "City"]), did_you_mean("x", ["id"])
    (", did you mean 'City'", '')
    """
    names = tuple(known)
    near = get_close_matches(name.lower(), [one.lower() for one in names], n=1)
    return next((f", did you mean '{one}'" for one in names if one.lower() in near), "")


@public
class UnknownColumn(PaimonError, KeyError):
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


@public
class CorruptFile(PaimonError):
    """A file's bytes contradict its format or metadata.

    ``path`` is the file.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[CorruptFile], tuple[str, str]]:
        return type(self), (self.path, self.reason)


@public
class CorruptVariant(PaimonError, ValueError):
    """The bytes of a VARIANT violate its encoding."""


class CorruptIndex(PaimonError, ValueError):
    """An index container or payload violates its format."""


def describe_error(error: BaseException) -> str:
    """Return a short text of an error, without secrets.

    >>> describe_error(OSError(28, "No space left on device")), describe_error(KeyError("x"))
    ('OSError: [Errno 28] No space left on device', "KeyError: 'x'")
    """
    text = str(error) if isinstance(error, PaimonError) else f"{type(error).__name__}: {error}"
    return redact(text if len(text) <= _ERROR_CHARACTERS else f"{text[:_ERROR_CHARACTERS]}...")


__all__ = [
    "CorruptFile",
    "CorruptIndex",
    "CorruptVariant",
    "FilterFailed",
    "InvalidArgument",
    "InvalidFilter",
    "PaimonError",
    "UnknownColumn",
    "UnsupportedOption",
    "UnsupportedType",
    "describe_error",
    "did_you_mean",
]
