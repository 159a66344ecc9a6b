"""Rows staged until the end of a write.

They are returned grouped by key.

Rows stay in memory if they fit. Otherwise they are partitioned by key hash into parts on local disk that fit. Each part is looked up
separately, so the memory for keys is bounded however many rows are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.bucket.hash import bucket_hashes
from lsm.data_files.spill import SpillFile, SpillSpace
from lsm.keys.sort import VALUE_KIND
from lsm.write_buffer.source import concat_kinds
from manifest.schema.table_schema import TableSchema
from sparkexpr.values.arrays import Int8s, UInt32s

_BITS = 4
_LEVELS = 7
"""Maximum number of times a part is cut. A part that is still too large has rows of few keys, and is returned whole."""


class StagedRows:
    """Rows of one write, in memory up to ``budget`` bytes.

    Other rows go to ``space``. Not thread-safe.
    """

    def __init__(self, schema: TableSchema, budget: int, space: SpillSpace, *, level: int = 0) -> None:
        self._schema = schema
        self._budget = max(1, budget)
        self._space = space
        self._level = level
        self.clear()

    def clear(self) -> None:
        """Drop all rows.

        Files on disk are deleted with their directory.
        """
        self._held: list[tuple[Any, Int8s | None]] = []
        self._held_bytes = 0
        self._parts: list[list[SpillFile]] | None = None
        self._part_bytes = np.zeros(1 << _BITS, np.int64)

    def add(self, table: Any, kinds: Int8s | None) -> None:
        """Add conforming rows and their kinds. None: all ``+I``."""
        if not table.num_rows:
            return
        self._held.append((table, kinds))
        self._held_bytes += table.nbytes
        if self._held_bytes > self._budget and self._level <= _LEVELS:
            self._spill()

    def drain(self) -> Iterator[tuple[Any, Int8s | None]]:
        """Yield all rows; each key is in one table.

        Each column is in one chunk. Rows of a table are in order of arrival. Nothing is staged afterwards.
        """
        if self._parts is None:
            batches, self._held, self._held_bytes = self._held, [], 0
            if batches:
                yield (
                    pa.concat_tables([table for table, _ in batches]).combine_chunks(),
                    concat_kinds([(t.num_rows, k) for t, k in batches]),
                )
            return
        self._spill()
        parts, sizes = self._parts, self._part_bytes.tolist()
        self.clear()
        for group in _groups(sizes, self._budget):
            fits = sum(sizes[part] for part in group) <= self._budget
            inner = StagedRows(self._schema, 2 * self._budget if fits else self._budget, self._space, level=self._level + 1)
            for file in (file for part in group for file in parts[part]):
                for rows in file.tables():
                    kind_index = rows.schema.get_field_index(VALUE_KIND)
                    inner.add(rows.remove_column(kind_index), rows.column(kind_index).combine_chunks().to_numpy())
                file.delete()
            yield from inner.drain()

    def _spill(self) -> None:
        """Append the held rows to the parts of their keys."""
        if self._parts is None:
            self._parts = [[] for _ in range(1 << _BITS)]
        parts = self._parts
        batches, self._held, self._held_bytes = self._held, [], 0
        if not batches:
            return
        table = pa.concat_tables([table for table, _ in batches])
        kinds = concat_kinds([(t.num_rows, k) for t, k in batches])
        table = table.append_column(VALUE_KIND, pa.array(np.zeros(table.num_rows, np.int8) if kinds is None else kinds))
        part = (self._hashes(table) >> np.uint32(_BITS * self._level)) & np.uint32((1 << _BITS) - 1)
        order = np.argsort(part.astype(np.uint8), kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=1 << _BITS))
        start = 0
        for number, end in enumerate(ends.tolist()):
            if end > start:
                rows = table.take(pa.array(order[start:end]))
                parts[number].append(self._space.write([rows]))
                self._part_bytes[number] += rows.nbytes
            start = end

    def _hashes(self, table: Any) -> UInt32s:
        names = self._schema.primary_keys
        return bucket_hashes([table.column(name) for name in names], self._schema.types_of(names)).view(np.uint32)


def _groups(sizes: Sequence[int], budget: int) -> list[list[int]]:
    """Return groups of parts to look up together.

    As many as fit, because each lookup reads the table's keys.

    >>> _groups([3, 4, 0, 9, 2], 8)
    [[0, 1, 2], [3], [4]]
    """
    groups: list[list[int]] = [[]]
    for part, size in enumerate(sizes):
        if groups[-1] and sum(sizes[other] for other in groups[-1]) + size > budget:
            groups.append([])
        groups[-1].append(part)
    return groups
