"""Chosen rows of a row group."""

from __future__ import annotations

import numpy as np

from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Int64s, Mask


class ChosenRows:
    """Chosen rows, as ascending positions and as a mask.

    Either form is computed from the other when it is first needed. Few rows of a large group are positions only.
    """

    def __init__(self, num_rows: int, *, rows: Int64s | None = None, mask: Mask | None = None) -> None:
        self._num_rows = num_rows
        if rows is not None:
            self.rows = rows
        if mask is not None:
            self.mask = mask

    @cached_property
    def rows(self) -> Int64s:
        """Ascending positions in the row group."""
        return np.flatnonzero(self.mask)

    @cached_property
    def mask(self) -> Mask:
        """Which rows of the row group are chosen."""
        mask = np.zeros(self._num_rows, np.bool_)
        mask[self.rows] = True
        return mask

    @cached_property
    def count(self) -> int:
        """Number of chosen rows."""
        return len(self.rows) if "rows" in vars(self) else int(np.count_nonzero(self.mask))
