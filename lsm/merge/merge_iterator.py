"""Bounded k-way merge of sorted runs (Paimon's ``SortMergeReader``).

Used by compaction, reads and spill files.

A merge cuts every run in every round. With many small runs that costs rounds times runs. A run of one small batch is in memory
completely. Such runs are joined and sorted by key, up to a number of bytes each. All versions are kept: a fold may need older
versions that only the merge has.

Texts of a merge round may exceed 2 GiB, so they have 64-bit offsets during the merge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import pyarrow as pa

from lsm.arrow.leaf_types import with_leaves
from lsm.arrow.pieces import in_pieces
from lsm.arrow.row_kind import drop_retracts
from lsm.arrow.text_form import concat_tables
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND, Sorted, SortKey, sort_rows
from lsm.merge.alignment import align_runs, table_of_rows
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import arrow_array, numpy_array

_LONGEST = 2**31 - 1


def merge_runs(runs: Sequence[Iterator[Any]], key: SortKey, fold: Fold, *, drop_delete: bool = False) -> Iterator[Any]:
    """Merge ``runs`` into one run with unique keys.

    Args:
        runs: Iterators of tables or record batches of one schema, each with strictly ascending keys. They must have the
            columns of ``key``, ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND``. Oldest run first is fastest.
        key: Key and user sequence columns, by name.
        fold: Merge function. It receives versions by user sequence, then sequence number, then retract before add.
        drop_delete: Drop ``-U`` and ``-D`` results. Allowed if no older version remains outside of the merge.

    Yields:
        Non-empty tables in key order. Key ranges of a single run are passed through without a copy.

    >>> def run(ids, sequence):
    ...     n = len(ids)
    ...     yield pa.table({"id": ids, "_SEQUENCE_NUMBER": [sequence] * n, "_VALUE_KIND": pa.array([0] * n, pa.int8())})
    >>> from lsm.merge.function import Deduplicate
    >>> merged = pa.concat_tables(merge_runs([run([1, 3], 1), run([2, 3], 2)], SortKey(("id",)), Deduplicate()))
    >>> merged["id"].to_pylist(), merged["_SEQUENCE_NUMBER"].to_pylist()
    ([1, 2, 3], [1, 2, 2])
    """
    for tables, single in align_versions(runs, key):
        rows = _merge_round(
            tables, key, fold, alone=single == len(tables) == 1
        ).result  # drop the versions early: the consumer only needs the result
        if drop_delete:
            rows = drop_retracts(rows)
        if rows.num_rows:
            yield rows
        del rows  # free memory before the next round


class Fold(Protocol):
    """The part of ``MergeFunction`` that a merge uses."""

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        """Return at most one row per key, in key order."""


@dataclass(frozen=True, slots=True)
class MergeRound:
    """All versions of some keys, and their merge result.

    Without ``sorted_rows`` every row is the only version of its key, and ``result`` is ``rows``.
    """

    rows: Any
    sorted_rows: Sorted | None
    result: Any


def merge_rounds(runs: Sequence[Iterator[Any]], key: SortKey, fold: Fold) -> Iterator[MergeRound]:
    """Merge ``runs``, and yield versions together with results.

    Like ``merge_runs``. Changelogs need the versions.
    """
    for tables, single in align_versions(runs, key):
        yield _merge_round(tables, key, fold, alone=single == len(tables) == 1)


def _merge_round(tables: list[Any], key: SortKey, fold: Fold, *, alone: bool) -> MergeRound:
    """Merge the tables of one round.

    Clears ``tables`` to free memory.
    """
    if alone:
        (rows,) = tables
        tables.clear()
        return MergeRound(rows, None, rows)
    rows = concat_tables(tables)
    schema = rows.schema
    rows = widen(rows).combine_chunks()
    tables.clear()
    sorted_rows = sort_versions(rows, key)
    result = fold.fold(rows, sorted_rows)
    return MergeRound(rows, sorted_rows, result if rows.schema.types == schema.types else narrow(result, schema))


def sort_versions(rows: Any, key: SortKey) -> Sorted:
    """Sort rows by key and, within a key, oldest first.

    ``rows`` must have the columns that define the order.
    """
    kinds = WordColumn.of(_add_rank(rows.column(VALUE_KIND)))
    ties = [*key.sequence_words(rows), WordColumn.of(rows.column(SEQUENCE_NUMBER)), kinds]
    return sort_rows(key.key_words(rows), ties, length=rows.num_rows, runs=True)


def _add_rank(kinds: Any) -> Any:
    """Return 0 for retracts and 1 for adds.

    With equal sequence numbers the add is newer.
    """
    return arrow_array((numpy_array(one_array(kinds)) & 1) ^ 1)


def align_versions(runs: Sequence[Iterator[Any]], key: SortKey) -> Iterator[tuple[list[Any], int]]:
    """Align runs with the same columns, after joining small ones.

    Yields:
        Tables that hold all rows of their keys, and the number of leading tables from a single run, which have each
        key once. The other tables may hold several versions of a key. The caller may clear the list.

    >>> runs = [iter([pa.table({"id": [at]})]) for at in range(9)]
    >>> [([piece["id"].to_pylist() for piece in pieces], single) for pieces, single in align_versions(runs, SortKey(("id",)))]
    [([[0, 1, 2, 3, 4, 5, 6, 7, 8]], 0)]
    """
    large_runs, gathered = gather_runs(runs, key)
    for pieces in align_runs([*large_runs, *gathered], key):
        single = sum(number < len(large_runs) for number, _ in pieces)
        tables = [table for _, table in pieces]
        pieces.clear()
        yield tables, single


def gather_runs(runs: Sequence[Iterator[Any]], key: SortKey) -> tuple[list[Iterator[Any]], list[Iterator[Any]]]:
    """Split runs into large ones and joined small ones.

    Joined runs are sorted by key and, within a key, in the order of the runs.
    """
    if len(runs) <= thresholds.many_runs:
        return list(runs), []
    large_runs: list[Iterator[Any]] = []
    gathered: list[list[Any]] = []
    room = 0
    for run in runs:
        first = next(run, None)
        following = next(run, None) if first is not None and first.num_rows <= thresholds.small_run_rows else None
        if first is None:
            continue
        if first.num_rows > thresholds.small_run_rows or following is not None:
            large_runs.append(chain([first] if following is None else [first, following], run))
            continue
        if room <= 0:
            gathered.append([])
            room = thresholds.gathered_bytes
        gathered[-1].append(table_of_rows(first))
        room -= first.nbytes
    return large_runs, [_merge(tables, key) for tables in gathered]


def _merge(tables: Sequence[Any], key: SortKey) -> Iterator[Any]:
    rows = concat_tables(tables).combine_chunks()
    yield rows.take(pa.array(sort_rows(key.key_words(rows), length=rows.num_rows, runs=True).order))


def widen(rows: Any) -> Any:
    """Return ``rows`` with wide types if a column needs them.

    A column with more bytes than 32-bit offsets can count needs them.

    >>> widen(pa.table({"text": ["a"]})).schema.types
    [DataType(string)]
    """
    if all(column.nbytes <= _LONGEST for column in rows.columns):
        return rows
    return rows.cast(pa.schema([field.with_type(with_leaves(field.type, _wide)) for field in rows.schema]))


def narrow(rows: Any, schema: Any) -> Any:
    """Return ``widen`` rows with the types of ``schema``.

    Rows are cut into chunks that fit.
    """
    return pa.concat_tables([piece.cast(schema) for piece, _ in in_pieces(rows)])


def _wide(leaf: pa.DataType) -> pa.DataType:
    if pa.types.is_string(leaf):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(leaf) else leaf
