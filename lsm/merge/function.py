"""Merge functions: fold all versions of one key.

Paimon's ``MergeFunction`` with its reducer shortcut.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask
from lsm.arrow.row_kind import retracts
from lsm.keys.sort import DELETE, VALUE_KIND, Sorted
from manifest.io.errors import UnmergeableRows


class MergeFunction(Protocol):
    """Fold of groups of versions (``lsm.merge.engines.merge_function_for``).

    If ``is_associative`` is False, folding some versions of a key first may change the result. Then a flush, compaction or read
    must fold the versions it sees at once.
    """

    @property
    def is_associative(self) -> bool:
        """Whether folding parts first gives the same result."""

    def refusal(self, kind: int) -> str | None:
        """Return why rows of a retracting ``kind`` cannot be written.

        None: they can. ``kind`` is ``UPDATE_BEFORE`` or ``DELETE``.
        """

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns`` and the columns that their fold needs.

        The key and ``sequence.field`` are excluded.
        """

    def copies(self, column: str) -> bool:
        """Return whether a merged value is null or the value of one version."""

    def fold(self, rows: Any, done: Sorted) -> Any:
        """Return at most one row per key, in key order.

        ``rows`` has ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``. ``done`` lists its rows by key and, within a key, oldest first.
        A key with one version is returned unchanged.
        """

    def prefilter(self, kinds: Any, done: Sorted) -> Sorted:
        """Return ``done`` without versions that cannot affect the result.

        Saves gathering these rows. ``kinds`` None means that all are ``+I``.
        """


class _VersionChoice:
    """Base of functions that return one of a key's versions."""

    __slots__ = ()

    @property
    def is_associative(self) -> bool:
        """See ``MergeFunction``."""
        return True

    def copies(self, column: str) -> bool:  # noqa: ARG002  # all columns
        """See ``MergeFunction``."""
        return True

    @abstractmethod
    def winners(self, kinds: Any, done: Sorted) -> Int64s:
        """Return the positions of the surviving rows, in key order.

        ``kinds`` is the ``_VALUE_KIND`` column. None: all rows are ``+I``.

        Raises:
            UnmergeableRows: The engine does not accept a retract.
        """

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns``."""
        return tuple(columns)

    def fold(self, rows: Any, done: Sorted) -> Any:
        """Return the winners."""
        return rows.take(pa.array(self.winners(rows.column(VALUE_KIND), done)))

    def prefilter(self, kinds: Any, done: Sorted) -> Sorted:
        """Return only the winners."""
        winners = self.winners(kinds, done)
        return Sorted(winners, np.arange(len(winners)))


@dataclass(frozen=True, slots=True)
class Deduplicate(_VersionChoice):
    """Merge function ``deduplicate``: the last version wins, whatever its kind.

    With ``ignore_delete`` a retract only counts if it is the only version of its key.

    >>> rows = pa.table({"_VALUE_KIND": pa.array([0, 3], pa.int8()), "v": ["old", "gone"]})
    >>> done = Sorted(np.array([0, 1]), np.array([0]))
    >>> Deduplicate().fold(rows, done)["v"].to_pylist(), Deduplicate(ignore_delete=True).fold(rows, done)["v"].to_pylist()
    (['gone'], ['old'])
    """

    ignore_delete: bool = False

    @property
    def newest_wins(self) -> bool:
        """Whether the newest version always wins, retracts included."""
        return not self.ignore_delete

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of both kinds
        """Return None: all retracts are accepted."""
        return None

    def winners(self, kinds: Any, done: Sorted) -> Int64s:
        """Return the last version that counts."""
        if not self.ignore_delete or kinds is None or not len(done.order):
            return done.last
        retract = retracts(kinds)
        if not retract.any():
            return done.last
        alone = _alone(done)
        kept = np.where(alone | ~retract[done.order], np.arange(len(done.order)), -1)
        newest = np.maximum.reduceat(kept, done.starts)
        found: Int64s = done.order[newest[newest >= 0]]
        return found


@dataclass(frozen=True, slots=True)
class FirstRow(_VersionChoice):
    """Merge function ``first-row``: the first version wins.

    With ``ignore_delete`` a retract only counts if it is the only version of its key. Without it, retracts are refused.

    >>> rows = pa.table({"_VALUE_KIND": pa.array([0, 0], pa.int8()), "v": ["old", "new"]})
    >>> FirstRow().fold(rows, Sorted(np.array([0, 1]), np.array([0])))["v"].to_pylist()
    ['old']
    """

    ignore_delete: bool = False

    @property
    def newest_wins(self) -> bool:
        """Always False: the oldest version wins."""
        return False

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of neither kind
        """Return the reason: the first version cannot be retracted."""
        return (
            None
            if self.ignore_delete
            else "merge-engine 'first-row' keeps the first version of a key; set 'ignore-delete' to drop such rows"
        )

    def winners(self, kinds: Any, done: Sorted) -> Int64s:
        """Return the first version that counts."""
        first: Int64s = done.order[done.starts]
        if kinds is None or not len(first):
            return first
        retract = retracts(kinds)[done.order]
        alone = _alone(done)
        skipped = retract & ~alone
        if not skipped.any():
            return first
        if not self.ignore_delete:
            raise UnmergeableRows(f"a '-U' or '-D' row meets other versions of its key: {self.refusal(DELETE)}")
        place = np.where(skipped, len(done.order), np.arange(len(done.order)))
        oldest = np.minimum.reduceat(place, done.starts)
        found: Int64s = done.order[oldest[oldest < len(done.order)]]
        return found


def _alone(done: Sorted) -> Mask:
    """Return a mask of keys' only versions, in key order."""
    ends = np.append(done.starts[1:], len(done.order))
    found: Mask = np.repeat(ends - done.starts == 1, ends - done.starts)
    return found


__all__ = ["Deduplicate", "FirstRow", "MergeFunction"]
