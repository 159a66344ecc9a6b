"""All versions of every key, sorted but not merged.

A flush uses it before it merges (Paimon's ``SortBufferWriteBuffer`` with its raw consumer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lsm.keys.sort import Sorted, SortKey, sort_rows
from lsm.merge.merge_iterator import Fold


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Merge function that keeps all versions.

    Rows are sorted by key and age.
    """

    @property
    def is_associative(self) -> bool:
        """See ``MergeFunction``."""
        return True

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of every kind
        """Return None: all kinds are accepted."""
        return None

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return ``columns``."""
        return tuple(columns)

    def copies(self, column: str) -> bool:  # noqa: ARG002 - every column
        """Return True: rows are not changed."""
        return True

    def fold(self, rows: Any, sorted_rows: Sorted) -> Any:
        """Return all rows, in order."""
        return rows.take(pa.array(sorted_rows.order))

    def prefilter(self, kinds: Any, sorted_rows: Sorted) -> Sorted:  # noqa: ARG002 - whatever the kinds
        """Return all rows."""
        return sorted_rows


def align_by_key(tables: Iterator[Any], key: SortKey) -> Iterator[Any]:
    """Recut sorted tables so that no key spans two tables.

    >>> parts = iter([pa.table({"id": [1, 2]}), pa.table({"id": [2, 2]}), pa.table({"id": [3]})])
    >>> [table["id"].to_pylist() for table in align_by_key(parts, SortKey(("id",)))]
    [[1], [2, 2, 2], [3]]
    """
    open_key_rows: Any = None
    for table in tables:
        if not table.num_rows:
            continue
        rows = table if open_key_rows is None else pa.concat_tables([open_key_rows, table]).combine_chunks()
        last = int(_groups(rows, key).starts[-1])
        if last:
            yield rows.slice(0, last)
        open_key_rows = rows.slice(last)
    if open_key_rows is not None:
        yield open_key_rows


def fold_key_aligned(rows: Any, key: SortKey, fold: Fold) -> Any:
    """Fold a table of complete keys.

    Rows must be sorted by key and age.
    """
    sorted_rows = _groups(rows, key)
    return rows if len(sorted_rows.starts) == rows.num_rows else fold.fold(rows, sorted_rows)


def _groups(rows: Any, key: SortKey) -> Sorted:
    return sort_rows(key.key_words(rows), length=rows.num_rows, runs=True)
