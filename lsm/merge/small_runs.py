"""Combination of many small runs into few.

A merge cuts every run in every round. With many small runs that costs rounds times runs. A run of one small batch is in memory
completely. Such runs are joined and sorted by key, up to a number of bytes each. All versions are kept: a fold may need older
versions that only the merge has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from fileindex.base.thresholds import thresholds
from lsm.arrow.text_form import joined
from lsm.keys.sort import SortKey, sort_rows
from lsm.merge.alignment import align_runs, table_of_rows


def align_versions(runs: Sequence[Iterator[Any]], key: SortKey) -> Iterator[tuple[list[Any], int]]:
    """Align runs with the same columns, after joining small ones.

    Yields:
        Tables that hold all rows of their keys, and the number of leading tables from a single run, which have each
        key once. The other tables may hold several versions of a key. The caller may clear the list.

    >>> runs = [iter([pa.table({"id": [at]})]) for at in range(9)]
    >>> [([piece["id"].to_pylist() for piece in pieces], single) for pieces, single in align_versions(runs, SortKey(("id",)))]
    [([[0, 1, 2, 3, 4, 5, 6, 7, 8]], 0)]
    """
    kept, gathered = gather_runs(runs, key)
    for pieces in align_runs([*kept, *gathered], key):
        single = sum(number < len(kept) for number, _ in pieces)
        tables = [table for _, table in pieces]
        pieces.clear()
        yield tables, single


def gather_runs(runs: Sequence[Iterator[Any]], key: SortKey) -> tuple[list[Iterator[Any]], list[Iterator[Any]]]:
    """Split runs into large ones and joined small ones.

    Joined runs are sorted by key and, within a key, in the order of the runs.
    """
    limits = thresholds()
    if len(runs) <= limits.many_runs:
        return list(runs), []
    kept: list[Iterator[Any]] = []
    gathered: list[list[Any]] = []
    room = 0
    for run in runs:
        first = next(run, None)
        following = next(run, None) if first is not None and first.num_rows <= limits.small_run_rows else None
        if first is None:
            continue
        if first.num_rows > limits.small_run_rows or following is not None:
            kept.append(chain([first] if following is None else [first, following], run))
            continue
        if room <= 0:
            gathered.append([])
            room = limits.gathered_bytes
        gathered[-1].append(table_of_rows(first))
        room -= first.nbytes
    return kept, [_merge(tables, key) for tables in gathered]


def _merge(tables: Sequence[Any], key: SortKey) -> Iterator[Any]:
    rows = joined(tables).combine_chunks()
    yield rows.take(pa.array(sort_rows(key.key_words(rows), length=rows.num_rows, runs=True).order))


__all__ = ["align_versions", "gather_runs"]
