"""What an index can say about a file: nothing (REMAIN), no row matches (SKIP), or at most these rows match (RowSet).

A result is a superset of the matching rows. ``exact`` promises that it is the matching rows themselves, so that a count
may be taken from it; it holds only for predicates that the index of that type and version answers without loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pyroaring import BitMap


class Verdict(Enum):
    """The two results without rows."""

    REMAIN = "remain"
    SKIP = "skip"

    @property
    def remains(self) -> bool:
        """True unless no row can match."""
        return self is Verdict.REMAIN

    @property
    def exact(self) -> bool:
        """True if the result is the matching rows themselves: only 'none' is."""
        return self is Verdict.SKIP

    def and_(self, other: FileIndexResult) -> FileIndexResult:
        """Rows that both results allow.

        >>> REMAIN.and_(SKIP).remains, REMAIN.and_(RowSet(BitMap([1]), exact=True))
        (False, RowSet(rows=BitMap([1]), exact=False))
        """
        if self is Verdict.SKIP:
            return self
        return RowSet(other.rows) if isinstance(other, RowSet) and other.exact else other

    def or_(self, other: FileIndexResult) -> FileIndexResult:
        """Rows that either result allows.

        >>> SKIP.or_(RowSet(BitMap([1]), exact=True)), REMAIN.or_(SKIP)
        (RowSet(rows=BitMap([1]), exact=True), <Verdict.REMAIN: 'remain'>)
        """
        return self if self is Verdict.REMAIN else other


REMAIN = Verdict.REMAIN
SKIP = Verdict.SKIP


@dataclass(frozen=True, slots=True)
class RowSet:
    """At most the ``rows`` (0-based positions in the data file) match; an empty set is as good as SKIP."""

    rows: BitMap
    exact: bool = False

    @property
    def remains(self) -> bool:
        """True if a row is left."""
        return bool(self.rows)

    def and_(self, other: FileIndexResult) -> FileIndexResult:
        """Rows that both results allow.

        >>> RowSet(BitMap([1, 3])).and_(RowSet(BitMap([3, 5]))).rows
        BitMap([3])
        """
        if isinstance(other, RowSet):
            return RowSet(self.rows & other.rows, exact=self.exact and other.exact)
        return other.and_(self)

    def or_(self, other: FileIndexResult) -> FileIndexResult:
        """Rows that either result allows.

        >>> RowSet(BitMap([1, 3])).or_(RowSet(BitMap([3, 5]))).rows
        BitMap([1, 3, 5])
        """
        if isinstance(other, RowSet):
            return RowSet(self.rows | other.rows, exact=self.exact and other.exact)
        return other.or_(self)


FileIndexResult: TypeAlias = Verdict | RowSet


__all__ = ["REMAIN", "SKIP", "FileIndexResult", "RowSet"]
