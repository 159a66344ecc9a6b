"""Every version of a key, kept together: what a flush sees before it folds (Paimon's ``SortBufferWriteBuffer`` and its raw consumer)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lsm.keys.sort import Sorted, SortKey, sort_rows
from lsm.merge.merge_iterator import Fold


@dataclass(frozen=True, slots=True)
class KeepAll:
    """The merge function of a buffer that folds nothing: all versions come out, by key and then by age."""

    @property
    def is_associative(self) -> bool:
        """See ``MergeFunction``; so for every other method."""
        return True

    def refusal(self, kind: int) -> str | None:  # noqa: ARG002 - of every kind
        """Nothing is refused."""
        return None

    def needed(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Nothing else."""
        return tuple(columns)

    def fold(self, rows: Any, done: Sorted) -> Any:
        """All rows, in order."""
        return rows.take(pa.array(done.order))

    def thinned(self, kinds: Any, done: Sorted) -> Sorted:  # noqa: ARG002 - whatever the kinds
        """All rows."""
        return done


def key_aligned(tables: Iterator[Any], key: SortKey) -> Iterator[Any]:
    """The same rows, sorted by key, cut so that no key is in two tables.

    >>> parts = iter([pa.table({"id": [1, 2]}), pa.table({"id": [2, 2]}), pa.table({"id": [3]})])
    >>> [table["id"].to_pylist() for table in key_aligned(parts, SortKey(("id",)))]
    [[1], [2, 2, 2], [3]]
    """
    held: Any = None
    for table in tables:
        if not table.num_rows:
            continue
        rows = table if held is None else pa.concat_tables([held, table]).combine_chunks()
        last = int(_groups(rows, key).starts[-1])
        if last:
            yield rows.slice(0, last)
        held = rows.slice(last)
    if held is not None:
        yield held


def fold_key_aligned(rows: Any, key: SortKey, fold: Fold) -> Any:
    """The fold of a table of whole keys, whose rows lie by key and age."""
    done = _groups(rows, key)
    return rows if len(done.starts) == rows.num_rows else fold.fold(rows, done)


def _groups(rows: Any, key: SortKey) -> Sorted:
    return sort_rows(key.key_words(rows), length=rows.num_rows, runs=True)


__all__ = ["KeepAll", "fold_key_aligned", "key_aligned"]
