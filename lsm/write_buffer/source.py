"""Buffered rows of one bucket, by row number.

The input tables are shared by all buckets.

A row is copied once, to its place in the output. When memory is short, rows can be gathered (copied out), so that shared
tables can be freed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.arrow.text_form import TextForm, encode_for_gather
from lsm.keys.sort import INSERT
from lsm.write_buffer.gather import GatheredInput, RowsInPlace
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int8s, Int64s


@dataclass(slots=True)
class Source:
    """An input table and its row kinds. None: all ``+I``.

    Each column is in one chunk. ``refcount`` is the number of buckets that use the table.
    """

    table: Any
    kinds: Int8s | None = None
    refcount: int = 0
    forms: dict[str, Any] = field(default_factory=dict, repr=False)
    """Columns encoded for faster row copies (``lsm.arrow.text_form``)."""

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return int(self.table.nbytes)

    def encode(self, name: str) -> None:
        """Encode a column for fast row copies."""
        self.forms[name] = encode_for_gather(self.table.column(name).chunk(0))


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one source, in order of arrival.

    None: all rows.
    """

    source: Source
    rows: Int64s | None

    @property
    def count(self) -> int:
        return int(self.source.table.num_rows) if self.rows is None else len(self.rows)

    @property
    def kinds(self) -> Int8s | None:
        kinds = self.source.kinds
        return kinds if kinds is None or self.rows is None else kinds[self.rows]

    def copy_rows(self) -> tuple[Any, Int8s | None]:
        table = self.source.table
        return table if self.rows is None else table.take(pa.array(self.rows)), self.kinds


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows of a bucket as a list of tables.

    Row ``i`` counts over all tables and arrived as number ``arrivals[i]``. Blocks fit the processor's cache and are approximately in key order.
    Gathering rows in key order directly from large inputs would miss the cache for every value.
    """

    tables: list[Any]
    arrivals: Int64s
    kinds: Int8s | None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.arrivals)

    def arrival_numbers(self, positions: Int64s) -> Int64s:
        """Return the arrival numbers of rows."""
        numbers: Int64s = self.arrivals[positions]
        return numbers

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return sum(int(table.nbytes) for table in self.tables)

    def columns(self, names: Sequence[str]) -> Any:
        """Return columns of all rows, each in one chunk."""
        return pa.concat_tables([table.select(names) for table in self.tables]).combine_chunks()

    def take(self, positions: Int64s) -> Any:
        """Copy rows at ``positions``.

        Fast if they are in a narrow range of each block, like rows adjacent in key order.
        """
        starts = np.cumsum([0, *(table.num_rows for table in self.tables)])
        ascending = np.sort(positions)
        cuts = np.searchsorted(ascending, starts)
        shift = np.zeros(len(self.tables), np.int64)
        pieces = []
        length = 0
        for block in np.flatnonzero(cuts[1:] > cuts[:-1]).tolist():
            low, high = int(ascending[cuts[block]]), int(ascending[cuts[block + 1] - 1]) + 1
            pieces.append(self.tables[block].slice(low - int(starts[block]), high - low))
            shift[block] = length - low
            length += high - low
        local = positions + shift[np.searchsorted(starts, positions, side="right") - 1]
        return pa.concat_tables(pieces).combine_chunks().take(pa.array(local))


@dataclass(slots=True)
class BufferedRows:
    """Rows held by one bucket.

    ``size`` is the bucket's part of the sources' bytes.
    """

    count: int = 0
    size: int = 0
    _parts: list[_Part] = field(default_factory=list, repr=False)

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def sources(self) -> Iterator[Source]:
        """Tables kept in memory."""
        return (part.source for part in self._parts)

    def add(self, source: Source, rows: Int64s | None) -> int:
        """Add ``rows`` of ``source``. Return their number."""
        part = _Part(source, rows)
        if part.count:
            source.refcount += 1
            self._parts.append(part)
            self.count += part.count
            self.size += source.size * part.count // source.table.num_rows
        return part.count

    @property
    def has_few_sources(self) -> bool:
        """Whether rows can be copied efficiently in any order."""
        return len(self._parts) <= thresholds.few_sources

    @property
    def never_null(self) -> frozenset[str]:
        """Columns without a null in any source."""
        tables = [part.source.table for part in self._parts]
        return frozenset([name for name in tables[0].schema.names if not sum([table.column(name).null_count for table in tables])])

    def in_place(self, dictionaries: Collection[str]) -> RowsInPlace:
        """Return all held rows without a copy.

        Texts of ``dictionaries`` may be dictionary arrays, if sources have that form.
        """
        inputs = []
        for part in self._parts:
            table = part.source.table
            plain = {name: column.chunk(0) for name, column in zip(table.schema.names, table.columns, strict=True)}
            arrays_by_name = {
                name: array
                for name, array in part.source.forms.items()
                if name in dictionaries or TextForm.of(array) is not TextForm.DICTIONARY
            }
            inputs.append(GatheredInput(plain | arrays_by_name, part.rows))
        kinds = concat_kinds([(part.count, part.kinds) for part in self._parts])
        return RowsInPlace(inputs, kinds, self.size)

    def blocks(self, order: Callable[[Any], Int64s]) -> Blocks:
        """Copy all held rows into blocks.

        ``order`` returns a rough order of the rows of a table.
        """
        built = _BlockBuilder(order)
        for part in self._parts:
            built.add(part)
        return built.finish()

    def tables(self) -> Iterator[Any]:
        """Yield the held rows in order of arrival.

        One table is copied at a time.
        """
        return (part.copy_rows()[0] for part in self._parts)

    def gather(self) -> None:
        """Copy the rows out of sources shared with other buckets."""
        if all(part.source.refcount == 1 and part.rows is None for part in self._parts):
            return
        gathered = [part.copy_rows() for part in self._parts]
        table = pa.concat_tables([table for table, _ in gathered]).combine_chunks()
        kinds = concat_kinds([(t.num_rows, k) for t, k in gathered])
        self.clear()
        self.add(Source(table, kinds), None)

    def clear(self) -> None:
        """Release all rows."""
        for part in self._parts:
            part.source.refcount -= 1
        self._parts, self.count, self.size = [], 0, 0


class _BlockBuilder:
    """Builder of cache-sized blocks. Joins small parts."""

    def __init__(self, order: Callable[[Any], Int64s]) -> None:
        self._order = order
        self._tables: list[Any] = []
        self._arrivals: list[Int64s] = []
        self._kinds: list[tuple[int, Int8s | None]] = []
        self._small: list[tuple[Any, Int8s | None]] = []
        self._small_rows = 0
        self._arrived = 0

    def add(self, part: _Part) -> None:
        if part.count < thresholds.block_rows // 8:
            self._small.append(part.copy_rows())
            self._small_rows += part.count
            if self._small_rows >= thresholds.block_rows:
                self._join_small()
            return
        self._join_small()
        table = part.source.table
        rows = np.arange(table.num_rows) if part.rows is None else part.rows
        step = max(thresholds.block_rows // 8, min(thresholds.block_rows, thresholds.block_bytes * table.num_rows // max(1, table.nbytes)))
        for start in range(0, len(rows), step):
            block_rows = rows[start : start + step]
            self._block(table.take(pa.array(block_rows)), None if part.source.kinds is None else part.source.kinds[block_rows])

    def finish(self) -> Blocks:
        self._join_small()
        arrivals = np.concatenate(self._arrivals) if self._arrivals else np.empty(0, np.int64)
        return Blocks(self._tables, arrivals, concat_kinds(self._kinds))

    def _join_small(self) -> None:
        if self._small:
            small, self._small, self._small_rows = self._small, [], 0
            table = pa.concat_tables([table for table, _ in small]).combine_chunks()
            self._block(table, concat_kinds([(t.num_rows, kinds) for t, kinds in small]))

    def _block(self, table: Any, kinds: Int8s | None) -> None:
        order = self._order(table)
        self._tables.append(table.take(pa.array(order)))
        self._arrivals.append(order + self._arrived)
        self._kinds.append((table.num_rows, None if kinds is None else kinds[order]))
        self._arrived += table.num_rows


def concat_kinds(parts: Sequence[tuple[int, Int8s | None]]) -> Int8s | None:
    """Concatenate (count, kinds) parts. None: all rows are ``+I``."""
    if all(kinds is None for _, kinds in parts):
        return None
    return np.concatenate([np.full(count, INSERT, np.int8) if kinds is None else kinds for count, kinds in parts])
