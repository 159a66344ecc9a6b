"""The write buffer of one bucket: rows as they came, then a sorted run (Paimon's ``SortBufferWriteBuffer``).

A buffer first holds only row numbers of input tables that all buckets share, so that a row is copied once, into its place in
the sorted run. When memory is short a buffer spills (sorts and folds what it holds into a file) or gathers (copies its
rows out, so that the shared tables can go).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lsm.key_words import Rows, one_array
from lsm.merge_function import MergeFunction
from lsm.merge_runs import merge_runs
from lsm.sort_key import INSERT, SEQUENCE_NUMBER, VALUE_KIND, Sorted, SortKey, sort_rows
from lsm.spill import SpillFile, SpillSpace, batch_rows

EMIT_BYTES = 16 << 20
MAX_SPILL_FAN_IN = 128
Kinds = npt.NDArray[np.int8]


@dataclass(slots=True)
class Source:
    """An input table, each column in one piece, and the kinds of its rows (None: all ``+I``); ``holders`` buffers use it."""

    table: Any
    kinds: Kinds | None
    holders: int = 0

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return int(self.table.nbytes)


@dataclass(frozen=True, slots=True)
class _Held:
    """Rows of a source that belong to the bucket (None: all), in order of arrival."""

    source: Source
    rows: Rows | None

    @property
    def count(self) -> int:
        return self.source.table.num_rows if self.rows is None else len(self.rows)

    def gathered(self) -> tuple[Any, Kinds | None]:
        table, kinds = self.source.table, self.source.kinds
        if self.rows is None:
            return table, kinds
        return table.take(pa.array(self.rows)), None if kinds is None else kinds[self.rows]


@dataclass(slots=True)
class SortBuffer:
    """Buffers the rows of one bucket. Call order: ``add`` and, at will, ``spill`` or ``gather``; then ``drain`` once."""

    key: SortKey
    fold: MergeFunction
    next_sequence: int
    rows: int = 0
    size: int = 0
    spilled_bytes: int = 0
    _held: list[_Held] = field(default_factory=list, repr=False)
    _first_sequence: int = 0
    _spills: list[SpillFile] = field(default_factory=list, repr=False)

    def add(self, source: Source, rows: Rows | None) -> None:
        """Take ``rows`` of ``source``; each gets the next sequence number, in order."""
        held = _Held(source, rows)
        if not held.count:
            return
        source.holders += 1
        if not self._held:
            self._first_sequence = self.next_sequence
        self._held.append(held)
        self.next_sequence += held.count
        self.rows += held.count
        self.size += source.size * held.count // max(1, source.table.num_rows)

    def spill(self, space: SpillSpace) -> None:
        """Turn what is in memory into one sorted run on disk."""
        if self._held:
            spilled = space.write(self._in_memory())
            self._spills.append(spilled)
            self.spilled_bytes += spilled.size
            self._release()

    def gather(self) -> None:
        """Copy this bucket's rows out of the shared sources."""
        if all(held.source.holders == 1 and held.rows is None for held in self._held):
            return
        own = Source(*self._combined())
        self._release()
        own.holders = 1
        self._held, self.size = [_Held(own, None)], own.size

    def drain(self, space: SpillSpace) -> Iterator[Any]:
        """The whole buffer as one sorted run of tables with ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and the table's columns.

        The buffer is empty afterwards, also if the consumer gives up.
        """
        try:
            if not self._spills:
                yield from self._in_memory()
                return
            while len(self._spills) > MAX_SPILL_FAN_IN - 1:
                count = min(MAX_SPILL_FAN_IN, len(self._spills) - MAX_SPILL_FAN_IN + 2)
                self._merge_first(count, space)
            runs = [spill.tables() for spill in self._spills]
            if self._held:
                runs.append(_in_batches(self._in_memory()))
            yield from merge_runs(runs, self.key, self.fold)
        finally:
            self.clear()

    def clear(self) -> None:
        """Forget all rows and delete the spill files."""
        self._release()
        for spill in self._spills:
            spill.delete()
        self._spills = []
        self.rows = 0

    @property
    def sources(self) -> Iterator[Source]:
        """The tables that are kept alive by this buffer."""
        return (held.source for held in self._held)

    def _release(self) -> None:
        for held in self._held:
            held.source.holders -= 1
        self._held, self.size = [], 0

    def _merge_first(self, count: int, space: SpillSpace) -> None:
        """Merge the oldest spill files into one; the rest of a fan-in first, so that later rounds are full."""
        first, rest = self._spills[:count], self._spills[count:]
        merged = space.write(merge_runs([spill.tables() for spill in first], self.key, self.fold))
        self.spilled_bytes += merged.size
        for spill in first:
            spill.delete()
        self._spills = [merged, *rest]

    def _in_memory(self) -> Iterator[Any]:
        """What is held, sorted and folded, a bounded piece at a time."""
        if not self._held:
            return
        if len(self._held) == 1:
            held = self._held[0]
            table, kinds, rows = held.source.table, held.source.kinds, held.rows
            if kinds is not None and rows is not None:
                kinds = kinds[rows]
        else:
            table, kinds = self._combined()
            rows = None
        count = table.num_rows if rows is None else len(rows)
        done = self.fold.thinned(kinds, self._sorted(table, rows, count))
        step = batch_rows(table, EMIT_BYTES)
        at = 0
        while at < len(done.starts):
            first = int(done.starts[at])
            until = int(np.searchsorted(done.starts, first + step))
            last = int(done.starts[until]) if until < len(done.starts) else len(done.order)
            positions = done.order[first:last]
            piece = _key_values(
                table.take(pa.array(positions if rows is None else rows[positions])),
                positions + self._first_sequence,
                None if kinds is None else kinds[positions],
            )
            groups = done.starts[at:until] - first
            yield piece if len(groups) == len(positions) else self.fold.fold(piece, Sorted(np.arange(len(positions)), groups))
            at = until

    def _sorted(self, table: Any, rows: Rows | None, count: int) -> Sorted:
        """Order by key, user sequence, arrival; positions count the bucket's rows."""
        names = (*self.key.columns, *self.key.sequence_fields)
        chosen = pa.table({name: one_array(table.column(name)) for name in names})
        if rows is not None:
            chosen = chosen.take(pa.array(rows))
        return sort_rows(self.key.key_words(chosen), self.key.sequence_words(chosen), length=count)

    def _combined(self) -> tuple[Any, Kinds | None]:
        gathered = [held.gathered() for held in self._held]
        table = pa.concat_tables([table for table, _ in gathered]).combine_chunks()
        if all(kinds is None for _, kinds in gathered):
            return table, None
        return table, np.concatenate([np.full(t.num_rows, INSERT, np.int8) if k is None else k for t, k in gathered])


def _key_values(table: Any, sequence: Rows, kinds: Kinds | None) -> Any:
    kinds = np.full(table.num_rows, INSERT, np.int8) if kinds is None else kinds
    names = [SEQUENCE_NUMBER, VALUE_KIND, *table.schema.names]
    return pa.Table.from_arrays([pa.array(sequence), pa.array(kinds), *table.columns], names=names)


def _in_batches(tables: Iterator[Any]) -> Iterator[Any]:
    """Pieces no larger than those of spill files, so that one run does not make every round large."""
    for table in tables:
        yield from (pa.Table.from_batches([batch]) for batch in table.to_batches(max_chunksize=batch_rows(table, 2 << 20)))


__all__ = ["MAX_SPILL_FAN_IN", "SortBuffer", "Source"]
