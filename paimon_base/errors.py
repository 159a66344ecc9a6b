"""Base of all errors, and those of many packages.

Every error names the column, option, file or table, and says what to do. Packages above add subclasses.
"""

from __future__ import annotations

from paimon_base.public import public
from paimon_base.redaction import redact
from sparkexpr.errors import (
    CorruptVariant,
    ExpressionError,
    FilterFailed,
    InvalidArgument,
    InvalidFilter,
    OutOfRange,
    UnknownColumn,
    UnsupportedType,
    did_you_mean,
    not_a_column,
    text_edits,
)

_ERROR_CHARACTERS = 500
"""Longest text of an error inside another text."""

# One root serves both packages, so that ``except PaimonError`` meets the errors of expressions, too.
PaimonError = ExpressionError
"""Base of every error that this project raises. Its text never contains secrets."""
PaimonError.__name__ = PaimonError.__qualname__ = "PaimonError"
text_edits.append(redact)
for _error in (PaimonError, CorruptVariant, FilterFailed, InvalidArgument, InvalidFilter, OutOfRange, UnknownColumn, UnsupportedType):
    public(_error)


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
    "OutOfRange",
    "PaimonError",
    "UnknownColumn",
    "UnsupportedOption",
    "UnsupportedType",
    "describe_error",
    "did_you_mean",
    "not_a_column",
]
