"""Row limit of a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any


def limit_rows(batches: Iterable[Any], limit: int | None) -> Iterator[Any]:
    """Yield non-empty batches with at most ``limit`` rows.

    The last batch is cut. No batch is read beyond the limit. None: all rows.

    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"a": values}) for values in ([1, 2], [3, 4], [5])]
    >>> [batch.num_rows for batch in limit_rows(batches, 3)]
    [2, 1]
    """
    return filter(attrgetter("num_rows"), batches if limit is None else _first_rows(batches, limit))


def _first_rows(batches: Iterable[Any], left: int) -> Iterator[Any]:
    if left <= 0:
        return
    for batch in batches:
        rows = batch if batch.num_rows <= left else batch.slice(0, left)
        yield rows
        left -= rows.num_rows
        if left == 0:
            return
