"""Alignment of sorted runs by key.

A round has all versions of its keys.

Memory is one batch per run. The bound of a round is the smallest last key of the current batches.
Later rows of every run are greater, so all versions of every key up to the bound are in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lsm.keys.encoding import fixed_words, is_variable, one_array
from lsm.keys.sort import SortKey
from sparkexpr.values.arrays import UInt64s

_Key = tuple[Any, ...]


def align_runs(runs: Sequence[Iterator[Any]], key: SortKey) -> Iterator[list[tuple[int, Any]]]:
    """Cut sorted runs into rounds of complete keys.

    Only the columns of ``key`` must be the same in all runs.

    Yields:
        (number of the run, its rows) of every run that has rows in the round; keys ascend from round to round.
    """
    live = list(enumerate([_Cursor(run, key) for run in runs]))
    while True:
        filled = []
        for number, cursor in live:
            if cursor.refill():
                filled.append((number, cursor))
        live = filled
        if not live:
            return
        if len(live) == 1:
            number, cursor = live[0]
            yield [(number, cursor.rest())]
        else:
            bound = min([cursor.last for _, cursor in live])
            yield _cut(live, bound)


def _cut(live: Sequence[tuple[int, _Cursor]], bound: _Key) -> list[tuple[int, Any]]:
    """Return the rows up to ``bound``, without empty runs."""
    # The caller may clear the list to free memory.
    pieces = [(number, cursor.up_to(bound)) for number, cursor in live]
    return [(number, piece) for number, piece in pieces if piece.num_rows]


def table_of_rows(rows: Any) -> Any:
    """Return ``rows`` as a table, converting a record batch."""
    return rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])


class _Cursor:
    """Current batch of a run, and the next unread row."""

    def __init__(self, run: Iterator[Any], key: SortKey) -> None:
        self._run = run
        self._key = key
        self._table: Any = None
        self._next = 0
        self._columns: list[tuple[Any, list[UInt64s]]] = []
        self.last: _Key = ()

    def refill(self) -> bool:
        """Load the next batch if needed. False: end of run."""
        while self._table is None or self._next >= self._table.num_rows:
            self._table, self._columns = None, []  # free memory before the next batch is decoded
            table = next(self._run, None)
            if table is None:
                return False
            self._table = table_of_rows(table)
            self._next = 0
            self._columns = [_comparable(one_array(self._table.column(name))) for name in self._key.columns]
            if self._table.num_rows:
                self.last = self._at(self._table.num_rows - 1)
        return True

    def rest(self) -> Any:
        """Return all remaining rows of the batch."""
        piece = self._table.slice(self._next)
        self._next = self._table.num_rows
        return piece

    def up_to(self, bound: _Key) -> Any:
        """Return the remaining rows whose key is at most ``bound``."""
        start = self._next
        if self.last <= bound:
            self._next = self._table.num_rows
        else:
            self._next = bisect_right(range(self._table.num_rows), bound, lo=start, key=self._at)
        return self._table.slice(start, self._next - start)

    def _at(self, row: int) -> _Key:
        """Return the key of a row as a comparable tuple."""
        return tuple([_element(column, row) for column in self._columns])


def _comparable(array: Any) -> tuple[Any, list[UInt64s]]:
    """Return the array, and its words if of fixed width."""
    return array, [] if is_variable(array.type) else fixed_words(array)


def _element(column: tuple[Any, list[UInt64s]], row: int) -> tuple[Any, ...]:
    array, words = column
    if array.null_count and not array[row].is_valid:
        return (0,)
    if words:
        return (1, *(int(word[row]) for word in words))
    return (1, array[row].as_py())  # Python orders str by code points, like UTF-8 bytes
