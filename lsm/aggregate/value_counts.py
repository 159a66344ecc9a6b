"""Row counts of column values by indexes alone.

A ``bitmap`` index has the rows of each value. Files that need no merge are counted without opening them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import TRUE, ColumnRef, Predicate
from lsm.read.data_file import DataFileRead
from lsm.read.metrics import ReadReport
from lsm.read.split import SplitRead
from lsm.scan.splits import DataSplit
from manifest.store import FileStore
from sparkexpr.values.plain_value import literal_array


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Combinations of key values, with their row counts.

    A combination may be repeated, also with a count of 0.
    """

    keys: Sequence[Any]
    rows: Any


@dataclass(frozen=True)
class ValueCounting:
    """Row counts by combinations of column values.

    Args:
        store: Store of the table.
        predicate: Filter of the rows. None: all rows.
        keys: Columns and map entries. At most one of them may vary in a file.
        columns: Columns to read from files that indexes cannot count.
    """

    store: FileStore
    predicate: Predicate | None
    keys: Sequence[ColumnRef]
    columns: tuple[str, ...]

    def of_split(self, split: DataSplit, report: ReadReport) -> tuple[list[CountedValues], list[DataFileRead]]:
        """Return the counts of a split, and its unread files.

        The files of the split must be independent.
        """
        reader = SplitRead(self.store, split, self.columns, TRUE if self.predicate is None else self.predicate, report)
        counts: list[CountedValues] = []
        unread: list[DataFileRead] = []
        for file in split.files:
            read = reader.alone(file)
            counted = self._of_file(read)
            if counted is None:
                unread.append(read)
            else:
                counts.append(counted)
        return counts, unread

    def _of_file(self, read: DataFileRead) -> CountedValues | None:
        """Return a file's counts. None: its rows must be read."""
        selection = read.certain(footer=True)
        varying = [key for key in self.keys if key.name not in read.constants]
        if selection is None or len(varying) > 1:
            return None
        values, rows = None, pa.array([selection.count(read.file.row_count)], pa.int64())
        if varying and not selection.is_empty:
            value_counts = read.value_counts(varying[0], selection.rows)
            if value_counts is None:
                return None
            values, rows = value_counts
        return CountedValues([self._key(key, read, values, len(rows)) for key in self.keys], rows)

    def _key(self, key: ColumnRef, read: DataFileRead, values: Any, count: int) -> Any:
        if key.name not in read.constants and values is not None:
            return values
        return pa.concat_arrays([literal_array([read.constants.get(key.name)], type_of(key, read.filter.types))] * count)
