"""Bounded k-way merge of sorted runs (Paimon's ``SortMergeReader``), shared by compaction, reading and spill files.

A round looks at the current batch of every run. The smallest of their last keys is the bound: what any run still has to
deliver is greater, so all versions of every key up to the bound are at hand. Memory is one batch per run. Where runs are many, each
would take a round in which all others are cut: then it is found out which small batches end their runs, and those bound nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from fileindex.base.arrays import UInt64s
from lsm.arrow.row_kind import drop_retracts
from lsm.arrow.text_form import joined
from lsm.keys.encoding import WordColumn, fixed_words, is_variable, one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND, Sorted, SortKey, sort_rows

_Key = tuple[Any, ...]
_MANY, _SMALL = 8, 1 << 14
"""Runs of which it pays to know the end, and rows of a batch after which it is looked for: the next one is held in memory meanwhile."""


def merge_runs(runs: Sequence[Iterator[Any]], key: SortKey, fold: Fold, *, drop_delete: bool = False) -> Iterator[Any]:
    """Merge ``runs`` into one sorted run with at most one row per key.

    Args:
        runs: Each an iterator of tables (or record batches) of one schema, keys strictly ascending over all of them; the
            columns of ``key``, ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` are among theirs. Oldest run first is fastest.
        key: Key and user sequence columns, by name.
        fold: What becomes of several versions of a key: by user sequence, then sequence number, then retract before add.
        drop_delete: Leave out ``-U`` and ``-D`` results: nothing older remains that they would have to mask.

    Yields:
        Non-empty tables in key order. A stretch that only one run has is passed through uncopied.

    >>> def run(ids, sequence):
    ...     n = len(ids)
    ...     yield pa.table({"id": ids, "_SEQUENCE_NUMBER": [sequence] * n, "_VALUE_KIND": pa.array([0] * n, pa.int8())})
    >>> from lsm.merge.function import Deduplicate
    >>> merged = pa.concat_tables(merge_runs([run([1, 3], 1), run([2, 3], 2)], SortKey(("id",)), Deduplicate()))
    >>> merged["id"].to_pylist(), merged["_SEQUENCE_NUMBER"].to_pylist()
    ([1, 2, 3], [1, 2, 2])
    """
    for merged in merge_rounds(runs, key, fold):
        rows = drop_retracts(merged.result) if drop_delete else merged.result
        if rows.num_rows:
            yield rows


class Fold(Protocol):
    """What a merge needs of a ``MergeFunction``."""

    def fold(self, rows: Any, done: Sorted) -> Any:
        """At most one row per key of ``rows``, in key order."""


@dataclass(frozen=True, slots=True)
class MergeRound:
    """All versions of some keys and what became of them; without ``done`` every row is its key's only version, and the result."""

    rows: Any
    done: Sorted | None
    result: Any


def merge_rounds(runs: Sequence[Iterator[Any]], key: SortKey, fold: Fold) -> Iterator[MergeRound]:
    """As ``merge_runs``, with the versions that each result was made of, as changelogs need them."""
    for pieces in aligned(runs, key):
        tables = [table for _, table in pieces]
        if len(tables) == 1:
            yield MergeRound(tables[0], None, tables[0])
            continue
        rows = joined(tables).combine_chunks()
        done = sort_versions(rows, key)
        yield MergeRound(rows, done, fold.fold(rows, done))


def aligned(runs: Sequence[Iterator[Any]], key: SortKey) -> Iterator[list[tuple[int, Any]]]:
    """Cut sorted runs, whose columns may differ but for those of ``key``, so that all rows of a key come in one round.

    Yields:
        (number of the run, its rows) of every run that has rows in the round; keys ascend from round to round.
    """
    small = _SMALL if len(runs) > _MANY else 0
    live = [(number, cursor) for number, cursor in enumerate(_Cursor(run, key, small) for run in runs) if cursor.refill()]
    while live:
        if len(live) == 1:
            number, cursor = live[0]
            yield [(number, cursor.rest())]
        else:
            bound = min((cursor.last for _, cursor in live if not cursor.ends), default=None)
            pieces = [(number, cursor.rest() if bound is None else cursor.up_to(bound)) for number, cursor in live]
            yield [(number, piece) for number, piece in pieces if piece.num_rows]
        live = [(number, cursor) for number, cursor in live if cursor.refill()]


def sort_versions(rows: Any, key: SortKey) -> Sorted:
    """Sort the rows of a few sorted runs by key and, within a key, oldest first; ``rows`` has the columns that this needs."""
    kinds = WordColumn.of(_add_rank(rows.column(VALUE_KIND)))
    ties = [*key.sequence_words(rows), WordColumn.of(rows.column(SEQUENCE_NUMBER)), kinds]
    return sort_rows(key.key_words(rows), ties, length=rows.num_rows, runs=True)


def _add_rank(kinds: Any) -> Any:
    """0 for retracts and 1 for adds: of equal sequence numbers the add is the newer."""
    return pa.array((one_array(kinds).to_numpy(zero_copy_only=False) & 1) ^ 1)


class _Cursor:
    """The current batch of a run, how far it is consumed, and whether it ``ends`` the run for certain."""

    def __init__(self, run: Iterator[Any], key: SortKey, small: int) -> None:
        self._run = run
        self._key = key
        self._small = small
        self._table: Any = None
        self._following: Any = None
        self._next = 0
        self._columns: list[tuple[Any, list[UInt64s]]] = []
        self.last: _Key = ()
        self.ends = False

    def refill(self) -> bool:
        """Make sure that a row is at hand; False if the run has ended."""
        while self._table is None or self._next >= self._table.num_rows:
            table = next(self._run, None) if self._following is None else self._following
            if table is None:
                return False
            self._following = next(self._run, None) if table.num_rows <= self._small else None
            self.ends = table.num_rows <= self._small and self._following is None
            self._table = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
            self._next = 0
            self._columns = [_comparable(one_array(self._table.column(name))) for name in self._key.columns]
            if self._table.num_rows:
                self.last = self._at(self._table.num_rows - 1)
        return True

    def rest(self) -> Any:
        """All remaining rows of the batch."""
        piece = self._table.slice(self._next)
        self._next = self._table.num_rows
        return piece

    def up_to(self, bound: _Key) -> Any:
        """The remaining rows whose key is at most ``bound``."""
        start = self._next
        if self.last <= bound:
            self._next = self._table.num_rows
        else:
            self._next = bisect_right(range(self._table.num_rows), bound, lo=start, key=self._at)
        return self._table.slice(start, self._next - start)

    def _at(self, row: int) -> _Key:
        """The key of a row as a tuple that compares like the key."""
        return tuple(_element(column, row) for column in self._columns)


def _comparable(array: Any) -> tuple[Any, list[UInt64s]]:
    """The array, and its words if it is of fixed width."""
    return array, [] if is_variable(array.type) else fixed_words(array)


def _element(column: tuple[Any, list[UInt64s]], row: int) -> tuple[Any, ...]:
    array, words = column
    if array.null_count and not array[row].is_valid:
        return (0,)
    if words:
        return (1, *(int(word[row]) for word in words))
    return (1, array[row].as_py())  # Python compares str by code points, which is the order of the UTF-8 bytes


__all__ = ["Fold", "MergeRound", "aligned", "merge_rounds", "merge_runs", "sort_versions"]
