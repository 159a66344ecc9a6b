"""Rows of one bucket, held as row numbers of input tables that all buckets share.

So a row is copied once, into its place in the output. What is held can be gathered, that is copied out, so that the shared
tables can go when memory is short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lsm.key_words import Rows
from lsm.sort_key import INSERT

Kinds = npt.NDArray[np.int8]


@dataclass(slots=True)
class Source:
    """An input table, each column in one piece, and the kinds of its rows (None: all ``+I``); ``holders`` buckets use it."""

    table: Any
    kinds: Kinds | None = None
    holders: int = 0

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return int(self.table.nbytes)


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one source (None: all of them), in order of arrival."""

    source: Source
    rows: Rows | None

    @property
    def count(self) -> int:
        return int(self.source.table.num_rows) if self.rows is None else len(self.rows)

    def gathered(self) -> tuple[Any, Kinds | None]:
        table, kinds = self.source.table, self.source.kinds
        if self.rows is None:
            return table, kinds
        return table.take(pa.array(self.rows)), None if kinds is None else kinds[self.rows]


@dataclass(frozen=True, slots=True)
class Selection:
    """Row ``i`` of a bucket is row ``rows[i]`` of ``table`` (None: row ``i``) and has the kind ``kinds[i]`` (None: ``+I``)."""

    table: Any
    rows: Rows | None
    kinds: Kinds | None

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.table.num_rows) if self.rows is None else len(self.rows)

    def take(self, positions: Rows) -> Any:
        """Copies of the bucket's rows at ``positions``."""
        return self.table.take(pa.array(positions if self.rows is None else self.rows[positions]))


@dataclass(slots=True)
class HeldRows:
    """What one bucket holds; ``size`` is its share of the sources' bytes."""

    count: int = 0
    size: int = 0
    _parts: list[_Part] = field(default_factory=list, repr=False)

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def sources(self) -> Iterator[Source]:
        """The tables kept alive."""
        return (part.source for part in self._parts)

    def add(self, source: Source, rows: Rows | None) -> int:
        """Take ``rows`` of ``source``; how many they are."""
        part = _Part(source, rows)
        if part.count:
            source.holders += 1
            self._parts.append(part)
            self.count += part.count
            self.size += source.size * part.count // source.table.num_rows
        return part.count

    def selection(self) -> Selection:
        """All held rows as a selection of one table; several sources are copied together for it."""
        if len(self._parts) != 1:
            return Selection(*self._combined())
        part = self._parts[0]
        kinds = part.source.kinds
        return Selection(part.source.table, part.rows, kinds if kinds is None or part.rows is None else kinds[part.rows])

    def tables(self) -> Iterator[Any]:
        """The rows in order of arrival, copied a source at a time."""
        return (part.gathered()[0] for part in self._parts)

    def gather(self) -> None:
        """Copy the rows out of sources that other buckets share."""
        if all(part.source.holders == 1 and part.rows is None for part in self._parts):
            return
        table, _, kinds = self._combined()
        self.clear()
        self.add(Source(table, kinds), None)

    def clear(self) -> None:
        """Let go of everything."""
        for part in self._parts:
            part.source.holders -= 1
        self._parts, self.count, self.size = [], 0, 0

    def _combined(self) -> tuple[Any, None, Kinds | None]:
        gathered = [part.gathered() for part in self._parts]
        table = pa.concat_tables([table for table, _ in gathered]).combine_chunks()
        if all(kinds is None for _, kinds in gathered):
            return table, None, None
        return table, None, np.concatenate([np.full(t.num_rows, INSERT, np.int8) if k is None else k for t, k in gathered])


__all__ = ["HeldRows", "Kinds", "Selection", "Source"]
