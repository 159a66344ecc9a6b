"""Row-level merge into append tables.

A decision function deletes or replaces each matching row, or keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask, UInt32s
from lsm.write.copy_on_write import AppendChange, MatchingRows, put_in_place


@dataclass(frozen=True)
class Successors:
    """Decision about the rows of one table.

    Args:
        gone: Indices of the deleted rows.
        places: Indices of the replaced rows.
        rows: The new rows, one for each of ``places``.
    """

    gone: Int64s
    places: Int64s
    rows: Any


Decision = Callable[[Any], Successors]
"""Must be deterministic: it is called more than once for the same rows."""
_NONE = np.zeros(0, np.int64)


def _all_stay(rows: Any) -> Successors:
    return Successors(_NONE, _NONE, rows.slice(0, 0))


def _ignore_counts(deleted: int, replaced: int) -> None:
    """Accept counts without use."""


@dataclass(frozen=True)
class AppendMerge(AppendChange):
    """Change of matching rows by a decision function.

    The callback receives the number of deleted and of replaced rows, once per table.
    """

    decide: Decision = _all_stay
    tell: Callable[[int, int], None] = _ignore_counts

    @property
    def moves_rows(self) -> bool:
        """Always True: the decisions are not known in advance."""
        return True

    def concerns(self, found: MatchingRows) -> bool:
        """See ``AppendChange``."""
        return any(len(decided.gone) + len(decided.places) for decided in map(self.decide, found.rows()))

    def successors(self, found: MatchingRows, gone: list[UInt32s]) -> Iterator[Any]:
        """See ``AppendChange``."""
        for positions, rows in found.with_positions():
            decided = self.decide(rows)
            self.tell(len(decided.gone), len(decided.places))
            gone.append(positions[np.sort(np.concatenate([decided.gone, decided.places]))])
            if len(decided.places):
                yield decided.rows

    def replace_rows(self, rows: Any, wanted: Mask) -> tuple[Any, int]:
        """See ``AppendChange``."""
        at = np.flatnonzero(wanted)
        decided = self.decide(rows.filter(pa.array(wanted)))
        self.tell(len(decided.gone), len(decided.places))
        new = put_in_place(rows, at[decided.places], decided.rows) if len(decided.places) else rows
        stays = np.ones(rows.num_rows, np.bool_)
        stays[at[decided.gone]] = False
        return new.filter(pa.array(stays)), len(decided.gone) + len(decided.places)


__all__ = ["AppendMerge", "Decision", "Successors"]
