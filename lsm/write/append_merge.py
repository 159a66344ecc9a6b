"""Changing rows of append tables as a decision says that looks at each: some are deleted, some replaced, the others stay."""

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
    """What becomes of some rows: ``gone`` are the indices of those that go, ``rows`` come in the place of those at ``places``, one each."""

    gone: Int64s
    places: Int64s
    rows: Any


Decision = Callable[[Any], Successors]
"""Asked about the same rows more than once it says the same."""
_NONE = np.zeros(0, np.int64)


def _all_stay(rows: Any) -> Successors:
    """The decision that all rows stay."""
    return Successors(_NONE, _NONE, rows.slice(0, 0))


def _nobody(deleted: int, replaced: int) -> None:
    """Nobody counts."""


@dataclass(frozen=True)
class AppendMerge(AppendChange):
    """An ``AppendChange`` whose matching rows may change: ``decide`` says what becomes of them, ``tell`` hears how many were deleted and replaced."""

    decide: Decision = _all_stay
    tell: Callable[[int, int], None] = _nobody

    @property
    def moves_rows(self) -> bool:
        """See ``AppendChange``: what is decided is not known yet."""
        return True

    def concerns(self, found: MatchingRows) -> bool:
        """See ``AppendChange``."""
        return any(len(decided.gone) + len(decided.places) for decided in map(self.decide, found.rows()))

    def successors(self, found: MatchingRows, gone: list[UInt32s]) -> Iterator[Any]:
        """See ``AppendChange``."""
        for positions, rows in found.placed():
            decided = self.decide(rows)
            self.tell(len(decided.gone), len(decided.places))
            gone.append(positions[np.sort(np.concatenate([decided.gone, decided.places]))])
            if len(decided.places):
                yield decided.rows

    def replaced(self, rows: Any, wanted: Mask) -> tuple[Any, int]:
        """See ``AppendChange``."""
        at = np.flatnonzero(wanted)
        decided = self.decide(rows.filter(pa.array(wanted)))
        self.tell(len(decided.gone), len(decided.places))
        new = put_in_place(rows, at[decided.places], decided.rows) if len(decided.places) else rows
        stays = np.ones(rows.num_rows, np.bool_)
        stays[at[decided.gone]] = False
        return new.filter(pa.array(stays)), len(decided.gone) + len(decided.places)


__all__ = ["AppendMerge", "Decision", "Successors"]
