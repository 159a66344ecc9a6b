"""Sorted runs in an order in which the first version of a key is its row.

They need no merge: each run is read alone, with its indexes, and keys that a run before has are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lsm.keys.encoding import one_array
from lsm.keys.sorted_keys import SortedKeys, key_codes
from lsm.levels.sorted_runs import SortedRun
from lsm.read.data_file import DataFileRead
from lsm.read.keyed_read import KeyedRead
from lsm.read.metrics import ReadReport
from manifest.entry.data_file import DataFileMeta
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import arrow_array


@dataclass(frozen=True)
class OrderedRuns:
    """Runs of which the first version of a key decides.

    Args:
        runs: The runs, the deciding one first.
        names: Key columns in files.
        alone: Returns the read of one file, which drops retracts.
    """

    runs: Sequence[SortedRun]
    names: tuple[str, ...]
    alone: Callable[[DataFileMeta], DataFileRead]

    @property
    def few_searches(self) -> bool:
        """Whether searches of keys cost less than a merge."""
        rows = [sum(file.row_count for file in run.files) for run in self.runs]
        # The keys of the run with fewer rows are searched in the other one.
        searches = sum(min(later, earlier) for index, later in enumerate(rows) for earlier in rows[:index])
        return searches * thresholds.rows_per_search <= sum(rows)

    def first_of(self, keys: SortedKeys, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the first version of each key, unless a retract."""
        key_numbers = np.arange(len(keys))
        for run in self.runs:
            for file in run.files:
                if not len(key_numbers):
                    return
                read = KeyedRead(replace(self.alone(file), columns=columns), keys, self.names)
                rows, found_numbers = read.find(key_numbers)
                if len(found_numbers):
                    key_numbers = np.setdiff1d(key_numbers, found_numbers, assume_unique=True)
                    yield from read.read.at(rows)

    def matching(self, columns: Sequence[str], report: ReadReport) -> Iterator[Any]:
        """Yield the matching first versions, unless retracts.

        ``columns`` have the key columns. ``report`` counts matching versions.
        """
        before: list[DataFileRead] = []
        for run in self.runs:
            for file in run.files:
                read = self.alone(file)
                read = replace(read, columns=columns, top=None, dictionaries=set(read.dictionaries).difference(self.names))
                for rows in read.batches():
                    report.candidate_keys += rows.num_rows
                    yield self._not_in(before, rows) if before and rows.num_rows else rows
            before += map(self.alone, run.files)

    def _not_in(self, files: Sequence[DataFileRead], rows: Any) -> Any:
        """Return the rows whose keys are in none of the files."""
        columns = tuple(one_array(rows.column(name)) for name in self.names)
        codes, layout = key_codes(columns)
        distinct = None
        if len(codes) > 1 and not bool((codes[:-1] < codes[1:]).all()):
            codes, first, distinct = np.unique(codes, return_index=True, return_inverse=True)
            columns = tuple(column.take(arrow_array(first)) for column in columns)
        keys = SortedKeys(columns, {layout: codes})
        visible = np.ones(len(keys), np.bool_)
        for read in files:
            _, matching_keys = KeyedRead(read, keys, self.names).find(np.flatnonzero(visible))
            visible[matching_keys] = False
        if visible.all():
            return rows
        return rows.filter(arrow_array(visible if distinct is None else visible[distinct]))
