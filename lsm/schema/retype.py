"""Effects of a type change on stored values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.keys.encoding import one_array
from lsm.schema.cast import cast_values, may_parse
from lsm.schema.nested_parts import nested_parts
from manifest.io.errors import CastFailed
from manifest.types.cast_rules import Cast, cast_of, keeps_values
from manifest.types.data_type import DataType
from sparkexpr.values.arrays import Mask
from sparkexpr.values.column_type import BINARIES, STRINGS


@dataclass
class RetypeCount:
    """Number of non-null values by the effect of a type change.

    Args:
        values: All values that get another type, also inside lists, maps and rows.
        changed: Values that another value or null replaces.
        unreadable: Values that make reads fail.
    """

    values: int = 0
    changed: int = 0
    unreadable: int = 0

    def add(self, array: Any, old: DataType, new: DataType) -> None:
        """Count the values of a column of type ``old``.

        >>> from manifest.types.ddl import parse_ddl
        >>> count = RetypeCount()
        >>> count.add(pa.array(["7", "x", "7.5", None]), parse_ddl("a STRING")[0].type, parse_ddl("a INT")[0].type)
        >>> count
        RetypeCount(values=3, changed=1, unreadable=1)
        """
        for values, before, after in _leaves(array, old, new):
            self.values += len(values)
            if not keeps_values(before, after):
                self._add_leaf(values, before, after)

    def _add_leaf(self, values: Any, old: DataType, new: DataType) -> None:
        counted = values.value_counts()  # each different value is cast once
        distinct, counts = counted.field("values"), counted.field("counts").to_numpy()
        may_fit = np.asarray(may_parse(distinct, new)) if old.kind in STRINGS else np.ones(len(distinct), np.bool_)
        self.unreadable += int(counts[~may_fit].sum())
        ranges = [np.flatnonzero(may_fit)]
        while ranges:
            positions = ranges.pop()
            if not len(positions):
                continue
            before = distinct.take(pa.array(positions))
            try:
                after = cast_values(before, old, new)
                same = _same(before, after, old, new)
            except CastFailed:
                if len(positions) > 1:
                    ranges += np.array_split(positions, 2)
                else:
                    self._add_failed(before, int(counts[positions[0]]), old, new)
            else:
                self.changed += int(counts[positions][~same].sum())

    def _add_failed(self, value: Any, times: int, old: DataType, new: DataType) -> None:
        """Count one value that cannot be cast to the new type, or back."""
        try:
            cast_values(value, old, new)
        except CastFailed:
            self.unreadable += times
        else:
            self.changed += times


def _same(before: Any, after: Any, old: DataType, new: DataType) -> Mask:
    """Return which values a cast keeps.

    Raises ``CastFailed`` if a value cannot be cast back.
    """
    back = after
    if not (old.kind in BINARIES and new.kind in BINARIES):  # BINARY pads, which the cast back would hide
        if cast_of(new, old) is Cast.NONE:
            return np.zeros(len(before), np.bool_)
        back = cast_values(after, new, old)
    same = pc.equal(before, back).fill_null(False)
    if pa.types.is_floating(before.type):
        same = pc.or_(same, pc.and_(pc.is_nan(before), pc.is_nan(back).fill_null(False)))
    return np.asarray(same)


def _leaves(array: Any, old: DataType, new: DataType) -> Iterator[tuple[Any, DataType, DataType]]:
    """Yield the non-null values of a column with both types."""
    array = one_array(array)
    if old.with_nullable(nullable=True) == new.with_nullable(nullable=True):
        return
    if not old.is_nested:
        yield array.drop_null(), old, new
        return
    for (values, before), after in zip(nested_parts(array, old), new.children, strict=True):
        yield from _leaves(values, before, after)
