"""Bounded k-way merge of sorted runs (Paimon's ``SortMergeReader``).

Used by compaction, reads and spill files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lsm.arrow.row_kind import drop_retracts
from lsm.arrow.text_form import joined
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND, Sorted, SortKey, sort_rows
from lsm.merge.small_runs import align_versions
from lsm.schema.wide_rows import narrow, widen


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

    def fold(self, rows: Any, done: Sorted) -> Any:
        """Return at most one row per key, in key order."""


@dataclass(frozen=True, slots=True)
class MergeRound:
    """All versions of some keys, and their merge result.

    Without ``done`` every row is the only version of its key, and ``result`` is ``rows``.
    """

    rows: Any
    done: Sorted | None
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
    rows = joined(tables)
    schema = rows.schema
    rows = widen(rows).combine_chunks()
    tables.clear()
    done = sort_versions(rows, key)
    result = fold.fold(rows, done)
    return MergeRound(rows, done, result if rows.schema.types == schema.types else narrow(result, schema))


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
    return pa.array((one_array(kinds).to_numpy(zero_copy_only=False) & 1) ^ 1)


__all__ = ["Fold", "MergeRound", "merge_rounds", "merge_runs", "sort_versions"]
