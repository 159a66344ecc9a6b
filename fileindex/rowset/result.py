"""Results of an index query.

REMAIN (unknown), SKIP (no row matches), or RowSet (at most these rows match). A result is a superset of the matching rows.
``exact`` promises that it equals the matching rows, so that it can be counted. It is set only for predicates that
this type and version of index answers without loss.
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
        """True if the result equals the matching rows.

        Only SKIP does.
        """
        return self is Verdict.SKIP

    def and_(self, other: FileIndexResult) -> FileIndexResult:
        """Return the rows that both results allow.

        >>> REMAIN.and_(SKIP).remains, REMAIN.and_(RowSet(BitMap([1]), exact=True))
        (False, RowSet(rows=BitMap([1]), exact=False))
        """
        if self is Verdict.SKIP:
            return self
        return RowSet(other.rows) if isinstance(other, RowSet) and other.exact else other

    def or_(self, other: FileIndexResult) -> FileIndexResult:
        """Return the rows that either result allows.

        >>> SKIP.or_(RowSet(BitMap([1]), exact=True)), REMAIN.or_(SKIP)
        (RowSet(rows=BitMap([1]), exact=True), <Verdict.REMAIN: 'remain'>)
        """
        return self if self is Verdict.REMAIN else other


REMAIN = Verdict.REMAIN
SKIP = Verdict.SKIP


@dataclass(frozen=True, slots=True)
class RowSet:
    """At most these rows match.

    ``rows`` are 0-based positions in the data file. An empty set is equivalent to SKIP.
    """

    rows: BitMap
    exact: bool = False

    @property
    def remains(self) -> bool:
        """True if the set is not empty."""
        return bool(self.rows)

    def and_(self, other: FileIndexResult) -> FileIndexResult:
        """Return the rows that both results allow.

        >>> RowSet(BitMap([1, 3])).and_(RowSet(BitMap([3, 5]))).rows
        BitMap([3])
        """
        if isinstance(other, RowSet):
            return RowSet(self.rows & other.rows, exact=self.exact and other.exact)
        return other.and_(self)

    def or_(self, other: FileIndexResult) -> FileIndexResult:
        """Return the rows that either result allows.

        >>> RowSet(BitMap([1, 3])).or_(RowSet(BitMap([3, 5]))).rows
        BitMap([1, 3, 5])
        """
        if isinstance(other, RowSet):
            return RowSet(self.rows | other.rows, exact=self.exact and other.exact)
        return other.or_(self)


FileIndexResult: TypeAlias = Verdict | RowSet
