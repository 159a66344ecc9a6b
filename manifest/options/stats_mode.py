"""Statistics modes (``metadata.stats-mode``) and truncation of bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from fileindex.base.column_type import Plain
from fileindex.base.errors import UnsupportedOption

_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)", re.IGNORECASE)
_BEFORE_SURROGATES, _AFTER_SURROGATES, _LAST_CODE_POINT = 0xD7FF, 0xE000, 0x10FFFF


class Keep(StrEnum):
    """Stored statistics of a column."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class StatsMode:
    """A parsed mode.

    ``length`` (characters or bytes) applies to ``truncate`` only.

    >>> StatsMode.parse("truncate(16)", "metadata.stats-mode").bound("aaaaaaaaaaaaaaaaX", "z")
    ('aaaaaaaaaaaaaaaa', 'z')
    """

    keep: Keep
    length: int = 0

    @classmethod
    def parse(cls, text: str, option: str) -> StatsMode:
        """Parse an option's value.

        Raises ``UnsupportedOption`` for ``option``.
        """
        if match := _TRUNCATE.fullmatch(text.strip()):
            if int(match[1]) == 0:
                raise UnsupportedOption(option, "truncate() must keep at least one character")
            return cls(Keep.TRUNCATE, int(match[1]))
        try:
            keep = Keep(text.strip().lower())
        except ValueError:
            keep = Keep.TRUNCATE
        if keep is Keep.TRUNCATE:
            raise UnsupportedOption(option, f"'{text}' is not a mode; use none, counts, truncate(length) or full")
        return cls(keep)

    def bound(self, low: Plain, high: Plain) -> tuple[Plain, Plain]:
        """Return the stored minimum and maximum.

        Returns (None, None) if no truncated value is greater than or equal to ``high``.
        """
        if self.keep in {Keep.NONE, Keep.COUNTS} or low is None or high is None:
            return None, None
        if self.keep is Keep.FULL:
            return low, high
        most = truncate_up(high, self.length)
        return (None, None) if most is None else (truncate_down(low, self.length), most)


SYSTEM_MODE = StatsMode(Keep.TRUNCATE, 128)
"""Mode of the key columns."""


def truncate_down(value: Plain, length: int) -> Plain:
    """Return the prefix of a string or binary value.

    It is a lower bound. Other values are returned as they are.
    """
    return value[:length] if isinstance(value, str | bytes) else value


def truncate_up(value: Plain, length: int) -> Plain:
    r"""Return an upper bound of at most ``length`` units.

    Units are characters or bytes. None if there is no such bound.

    >>> truncate_up("aaaaaaaaaaaaaaaaX", 16), truncate_up(bytes.fromhex("ffffff01ff"), 4).hex(), truncate_up("\U0010ffff\U0010ffff", 1)
    ('aaaaaaaaaaaaaaab', 'ffffff02', None)
    """
    if not isinstance(value, str | bytes) or len(value) <= length:
        return value
    if isinstance(value, bytes):
        # Increment the last byte or character that has a successor, and drop the rest. Surrogates are not characters.
        kept = value[:length].rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    text = value[:length].rstrip(chr(_LAST_CODE_POINT))
    if not text:
        return None
    last = ord(text[-1])
    return text[:-1] + chr(_AFTER_SURROGATES if last == _BEFORE_SURROGATES else last + 1)


__all__ = ["SYSTEM_MODE", "Keep", "StatsMode", "truncate_up"]
