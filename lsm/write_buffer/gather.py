"""Rows of one bucket in their input tables.

They are copied in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.arrow.text_form import TextForm, concat_tables, gather
from sparkexpr.values.arrays import Int8s, Int64s, arrow_array


@dataclass(frozen=True, slots=True)
class GatheredInput:
    """Rows of an input table. None: all rows.

    ``columns`` are by name, in forms that ``gather`` accepts.
    """

    columns: dict[str, Any]
    rows: Int64s | None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()))) if self.rows is None else len(self.rows)

    def take(self, positions: Int64s | None, names: Sequence[str]) -> Any:
        """Return columns at ``positions`` of these rows.

        None: all rows. Adjacent rows are not copied.
        """
        rows = positions if self.rows is None else self.rows if positions is None else self.rows[positions]
        if rows is None:
            return pa.table({name: self.columns[name] for name in names})
        if _are_adjacent(rows) and all(TextForm.of(self.columns[name]) is TextForm.PLAIN for name in names):
            return pa.table({name: self.columns[name].slice(int(rows[0]), len(rows)) for name in names})  # input in key order
        row_array = arrow_array(rows)
        return pa.table({name: gather(self.columns[name], row_array) for name in names})


def _are_adjacent(rows: Int64s) -> bool:
    """Return whether rows ascend without a gap.

    >>> _are_adjacent(np.array([2, 3, 4])), _are_adjacent(np.array([2, 4, 3, 5]))
    (True, False)
    """
    return len(rows) > 0 and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((np.diff(rows) == 1).all())


@dataclass(frozen=True, slots=True)
class RowsInPlace:
    """Rows of few inputs, copied only by ``take``.

    Row ``i`` is the one that arrived as number ``i``.
    """

    inputs: Sequence[GatheredInput]
    kinds: Int8s | None
    size: int

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum([each.count for each in self.inputs])

    def arrival_numbers(self, positions: Int64s) -> Int64s:
        """Return the arrival numbers of rows."""
        return positions

    def columns(self, names: Sequence[str]) -> Any:
        """Return columns of all rows, each in one chunk."""
        return pa.concat_tables([each.take(None, names) for each in self.inputs]).combine_chunks()

    def take(self, positions: Int64s) -> Any:
        """Copy rows at ``positions``, in this order."""
        names = list(self.inputs[0].columns)
        if len(self.inputs) == 1:
            return self.inputs[0].take(positions, names)
        starts = np.cumsum([0, *(each.count for each in self.inputs)])
        owner = np.searchsorted(starts, positions, side="right") - 1
        places = [np.flatnonzero(owner == number) for number in range(len(self.inputs))]
        pieces = [
            each.take(positions[input_positions] - start, names)
            for each, input_positions, start in zip(self.inputs, places, starts.tolist(), strict=False)
            if len(input_positions)
        ]
        back = np.empty(len(positions), np.int64)
        back[np.concatenate(places)] = np.arange(len(positions))
        return concat_tables(pieces).combine_chunks().take(pa.array(back))
