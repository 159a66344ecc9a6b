"""Merge functions: what becomes of all versions of one key (Paimon's ``MergeFunction`` behind its reducer shortcut)."""

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
    """Folds groups of versions; a table's engine decides which (``lsm.merge.engines.merge_function_for``).

    Engines differ in whether folding some versions of a key first changes the result (``is_associative``): what one flush,
    compaction or read sees of a key must then be folded once.
    """

    @property
    def is_associative(self) -> bool:
        """Whether folding parts first, and then the results, always gives what folding everything at once gives."""

    def refusal(self, kind: int) -> str | None:
        """Why rows of a retracting ``kind`` (``UPDATE_BEFORE``, ``DELETE``) must not be written; None if they may."""

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """``columns`` and those without which they cannot be folded, the key and ``sequence.field`` apart."""

    def fold(self, rows: Any, done: Sorted) -> Any:
        """At most one row per key of ``rows`` (a table with ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``), in key order.

        ``done`` lists the rows by key and, within a key, oldest first. A key with one version is returned as it is.
        """

    def thinned(self, kinds: Any, done: Sorted) -> Sorted:
        """``done`` without versions that cannot matter, so that they need not be gathered; ``kinds``: None if all are ``+I``."""


class _ChoosesVersion:
    """What functions have in common whose result is one of a key's versions."""

    __slots__ = ()

    @property
    def is_associative(self) -> bool:
        """See ``MergeFunction``; so for every other method."""
        return True

    @abstractmethod
    def winners(self, kinds: Any, done: Sorted) -> Int64s:
        """Positions of the surviving rows, in key order; ``kinds``: the ``_VALUE_KIND`` column, None if all rows are ``+I``.

        Raises ``UnmergeableRows`` if a retract stands in the way.
        """

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Nothing else."""
        return tuple(columns)

    def fold(self, rows: Any, done: Sorted) -> Any:
        """The winners."""
        return rows.take(pa.array(self.winners(rows.column(VALUE_KIND), done)))

    def thinned(self, kinds: Any, done: Sorted) -> Sorted:
        """The winners alone."""
        winners = self.winners(kinds, done)
        return Sorted(winners, np.arange(len(winners)))


@dataclass(frozen=True, slots=True)
class Deduplicate(_ChoosesVersion):
    """The last version wins, whatever its kind. ``ignore_delete``: a retract only counts if it is a key's only version.

    >>> rows = pa.table({"_VALUE_KIND": pa.array([0, 3], pa.int8()), "v": ["old", "gone"]})
    >>> done = Sorted(np.array([0, 1]), np.array([0]))
    >>> Deduplicate().fold(rows, done)["v"].to_pylist(), Deduplicate(ignore_delete=True).fold(rows, done)["v"].to_pylist()
    (['gone'], ['old'])
    """

    ignore_delete: bool = False

    @property
    def newest_wins(self) -> bool:
        """A retraction, too, is a version that newer ones overwrite."""
        return not self.ignore_delete

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of both kinds
        """Retracts are welcome."""
        return None

    def winners(self, kinds: Any, done: Sorted) -> Int64s:
        """The last version, or the last that counts."""
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
class FirstRow(_ChoosesVersion):
    """The first version wins. ``ignore_delete``: a retract only counts if it is a key's only version; else there can be none.

    >>> rows = pa.table({"_VALUE_KIND": pa.array([0, 0], pa.int8()), "v": ["old", "new"]})
    >>> FirstRow().fold(rows, Sorted(np.array([0, 1]), np.array([0])))["v"].to_pylist()
    ['old']
    """

    ignore_delete: bool = False

    @property
    def newest_wins(self) -> bool:
        """The oldest does."""
        return False

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of neither kind
        """A version that was first cannot be taken back."""
        return (
            None
            if self.ignore_delete
            else "merge-engine 'first-row' keeps the first version of a key; set 'ignore-delete' to drop such rows"
        )

    def winners(self, kinds: Any, done: Sorted) -> Int64s:
        """The first version, or the first that counts."""
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
    """Mask of the rows that are their key's only version, in key order."""
    ends = np.append(done.starts[1:], len(done.order))
    found: Mask = np.repeat(ends - done.starts == 1, ends - done.starts)
    return found


__all__ = ["Deduplicate", "FirstRow", "MergeFunction"]
