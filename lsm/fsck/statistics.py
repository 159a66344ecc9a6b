"""Check of minima, maxima and null counts against rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import FLOATS, ColumnType, Kind, Plain
from fileindex.base.plain_value import plain_array
from manifest.fsck.manifests import covers
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType


@dataclass
class SeenBounds:
    """Actual bounds and nulls of a column."""

    type: ColumnType
    least: Plain = None
    most: Plain = None
    nulls: int = 0
    has_nan: bool = False

    def add(self, column: Any) -> None:
        """Add the next rows of the column."""
        self.nulls += column.null_count
        values = plain_array(column, self.type)
        if self.type.kind in FLOATS:
            floats = values.drop_null().to_numpy(zero_copy_only=False)
            missing = np.isnan(floats)
            self.has_nan |= bool(missing.any())
            values = pa.array(floats[~missing])
        if len(values) == values.null_count:
            return
        found = pc.min_max(values)
        low, high = self._plain(found["min"].as_py()), self._plain(found["max"].as_py())
        self.least = low if self.least is None or low < self.least else self.least
        self.most = high if self.most is None or high > self.most else self.most

    def _plain(self, value: Any) -> Any:
        return int(value) if self.type.kind is Kind.DECIMAL else value

    def bounds(self, rows: int) -> ColumnBounds:
        """Return the bounds of ``rows`` rows.

        NaN is the greatest value.
        """
        most = float("nan") if self.has_nan else self.most
        least = self.least if self.least is not None or not self.has_nan else float("nan")
        return ColumnBounds(least, most, self.nulls, rows)


@dataclass
class CheckedStatistics:
    """Comparison of stored bounds with the rows.

    Args:
        stored: Stored bounds by column of the file.
        types: Types of these columns.
        what: "" or "key ", for messages.
    """

    stored: Mapping[str, ColumnBounds]
    types: Mapping[str, DataType]
    what: str = ""
    _seen: dict[str, SeenBounds] = field(init=False)

    def __post_init__(self) -> None:
        atomic = {name: self.types[name] for name in self.stored if not self.types[name].is_nested}
        self._seen = {name: SeenBounds(kind.column_type) for name, kind in atomic.items()}

    def write(self, rows: Any) -> None:
        """Add the next rows, with at least these columns."""
        for name, seen in self._seen.items():
            if name in rows.schema.names:
                seen.add(rows.column(name))

    def wrong(self, rows: int, present: Iterable[str]) -> list[str]:
        """Return the differences as messages.

        ``rows`` is the row count, ``present`` are the columns of the file.
        """
        found = []
        for name in set(present).intersection(self._seen):
            actual, stored = self._seen[name].bounds(rows), self.stored[name]
            if not covers(stored, actual):
                shown = [_shorten(value) for value in (stored.min, stored.max, actual.min, actual.max)]
                found.append(
                    f"its {self.what}statistics of '{name}' are {shown[0]} to {shown[1]} with {stored.null_count} nulls, "
                    f"but its rows have {shown[2]} to {shown[3]} with {actual.null_count} nulls"
                )
        return sorted(found)


def _shorten(value: Plain) -> str:
    return repr(value) if not isinstance(value, str | bytes) or len(value) <= 40 else f"{value[:40]!r}..."


__all__ = ["CheckedStatistics", "SeenBounds"]
