"""Bounded k-way merge of sorted runs (Paimon's ``SortMergeReader``), shared by compaction, reading and spill files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from lsm.arrow.row_kind import drop_retracts
from lsm.arrow.text_form import joined
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND, Sorted, SortKey, sort_rows
from lsm.merge.small_runs import aligned_versions
from lsm.schema.wide_rows import narrowed, widened


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
    for tables, single in aligned_versions(runs, key):
        rows = _merge_round(tables, key, fold, alone=single == len(tables) == 1).result  # who encodes it needs no other version
        if drop_delete:
            rows = drop_retracts(rows)
        if rows.num_rows:
            yield rows
        del rows  # the next round does not need this one


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
    for tables, single in aligned_versions(runs, key):
        yield _merge_round(tables, key, fold, alone=single == len(tables) == 1)


def _merge_round(tables: list[Any], key: SortKey, fold: Fold, *, alone: bool) -> MergeRound:
    """A round of ``tables``, which are given away: none outlives its copy."""
    if alone:
        (rows,) = tables
        tables.clear()
        return MergeRound(rows, None, rows)
    rows = joined(tables)
    schema = rows.schema
    rows = widened(rows).combine_chunks()
    tables.clear()
    done = sort_versions(rows, key)
    result = fold.fold(rows, done)
    return MergeRound(rows, done, result if rows.schema.types == schema.types else narrowed(result, schema))


def sort_versions(rows: Any, key: SortKey) -> Sorted:
    """Sort the rows of a few sorted runs by key and, within a key, oldest first; ``rows`` has the columns that this needs."""
    kinds = WordColumn.of(_add_rank(rows.column(VALUE_KIND)))
    ties = [*key.sequence_words(rows), WordColumn.of(rows.column(SEQUENCE_NUMBER)), kinds]
    return sort_rows(key.key_words(rows), ties, length=rows.num_rows, runs=True)


def _add_rank(kinds: Any) -> Any:
    """0 for retracts and 1 for adds: of equal sequence numbers the add is the newer."""
    return pa.array((one_array(kinds).to_numpy(zero_copy_only=False) & 1) ^ 1)


__all__ = ["Fold", "MergeRound", "merge_rounds", "merge_runs", "sort_versions"]
