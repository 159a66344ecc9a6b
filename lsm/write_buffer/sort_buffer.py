"""Write buffer of a primary-key bucket (Paimon's ``SortBufferWriteBuffer``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.data_files.spill import SpillFile, SpillSpace, batch_rows
from lsm.keys.sort import INSERT, SEQUENCE_NUMBER, VALUE_KIND, Sorted, SortKey, rough_order, sort_rows
from lsm.merge.function import MergeFunction, combines_versions
from lsm.merge.keep_all import KeepAll, align_by_key
from lsm.merge.merge_iterator import merge_runs
from lsm.write_buffer.gather import RowsInPlace
from lsm.write_buffer.source import Blocks, BufferedRows, Source
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int8s, Int64s, arrow_array


@dataclass(slots=True)
class SortBuffer:
    """Buffer of the rows of one bucket.

    Call ``add`` and ``spill`` any number of times, then ``drain``. A spill sorts and merges the rows in memory into a file. The files are
    merged once, by ``drain``. With ``KeepAll`` as ``fold`` all versions are returned, and no key is in two tables.
    """

    key: SortKey
    fold: MergeFunction
    next_sequence: int
    held: BufferedRows = field(default_factory=BufferedRows)
    rows: int = 0
    _first_sequence: int = 0
    _spills: list[SpillFile] = field(default_factory=list, repr=False)

    @property
    def only_picks(self) -> bool:
        """Whether output rows are unchanged input rows.

        Then text columns may be dictionary arrays: no merge computes with them.
        """
        return not combines_versions(self.fold)

    def add(self, source: Source, rows: Int64s | None) -> None:
        """Add ``rows`` of ``source``.

        Each row gets the next sequence number.
        """
        if not self.held:
            self._first_sequence = self.next_sequence
        count = self.held.add(source, rows)
        self.next_sequence += count
        self.rows += count

    def spill(self, space: SpillSpace) -> None:
        """Write the rows in memory as a run on disk."""
        if self.held:
            self._spills.append(space.write(self._in_memory()))
            self.held.clear()

    def drain(self, space: SpillSpace) -> Iterator[Any]:
        """Yield the buffer as one sorted run of tables.

        Tables have ``_SEQUENCE_NUMBER``, ``_VALUE_KIND`` and the table's columns. The buffer is empty afterwards, even if the consumer stops early.
        """
        try:
            if not self._spills:
                yield from self._in_memory(self.held.never_null if self.held and self.only_picks else ())
                return
            # One file below the fan-in remains, because the rows in memory are one more run.
            while len(self._spills) >= thresholds.spill_fan_in:
                self._merge_first(min(thresholds.spill_fan_in, len(self._spills) - thresholds.spill_fan_in + 2), space)
            runs = [self._run(spill) for spill in self._spills]
            if self.held:
                runs.append(self._whole(_in_batches(self._in_memory(), space.batch_bytes)))
            yield from merge_runs(runs, self.key, self.fold)
        finally:
            self.clear()

    def clear(self) -> None:
        """Drop all rows and delete the spill files."""
        self.held.clear()
        for spill in self._spills:
            spill.delete()
        self._spills = []
        self.rows = 0

    def _merge_first(self, count: int, space: SpillSpace) -> None:
        """Merge the ``count`` oldest spill files into one."""
        first, rest = self._spills[:count], self._spills[count:]
        merged = space.write(merge_runs([self._run(spill) for spill in first], self.key, self.fold))
        for spill in first:
            spill.delete()
        self._spills = [merged, *rest]

    def _run(self, spill: SpillFile) -> Iterator[Any]:
        return self._whole(spill.tables())

    def _whole(self, tables: Iterator[Any]) -> Iterator[Any]:
        # A merge needs all versions of a key in a run at once.
        return align_by_key(tables, self.key) if isinstance(self.fold, KeepAll) else tables

    def _in_memory(self, dictionaries: Collection[str] = ()) -> Iterator[Any]:
        """Yield the held rows, sorted and merged, in bounded pieces.

        Texts of ``dictionaries`` may be dictionary arrays.
        """
        if not self.held:
            return
        buffered = self.held
        rows = (
            buffered.in_place(dictionaries)
            if buffered.has_few_sources
            else buffered.blocks(lambda table: rough_order(self.key.key_words(table)))
        )
        sorted_rows = self.fold.prefilter(rows.kinds, self._sorted(rows))
        step = max(1, thresholds.emit_bytes * rows.count // max(1, rows.size))
        group = 0
        while group < len(sorted_rows.starts):
            first = int(sorted_rows.starts[group])
            until = int(np.searchsorted(sorted_rows.starts, first + step))
            last = int(sorted_rows.starts[until]) if until < len(sorted_rows.starts) else len(sorted_rows.order)
            positions = sorted_rows.order[first:last]
            kinds = None if rows.kinds is None else rows.kinds[positions]
            piece = _key_values(rows.take(positions), rows.arrival_numbers(positions) + self._first_sequence, kinds)
            groups = sorted_rows.starts[group:until] - first
            yield piece if len(groups) == len(positions) else self.fold.fold(piece, Sorted(np.arange(len(positions)), groups))
            group = until

    def _sorted(self, rows: Blocks | RowsInPlace) -> Sorted:
        """Return the order by key, user sequence and arrival.

        Blocks are in order of arrival, and so are equal keys in a block.
        """
        columns = rows.columns([*self.key.columns, *self.key.sequence_fields])
        return sort_rows(self.key.key_words(columns), self.key.sequence_words(columns), length=rows.count)


def _key_values(table: Any, sequence: Int64s, kinds: Int8s | None) -> Any:
    kinds = np.full(table.num_rows, INSERT, np.int8) if kinds is None else kinds
    names = [SEQUENCE_NUMBER, VALUE_KIND, *table.schema.names]
    return pa.Table.from_arrays([arrow_array(sequence), arrow_array(kinds), *table.columns], names=names)


def _in_batches(tables: Iterator[Any], size: int) -> Iterator[Any]:
    """Cut tables into pieces of spill batch size."""
    # Otherwise the in-memory run would make every merge round large.
    for table in tables:
        yield from (pa.Table.from_batches([batch]) for batch in table.to_batches(max_chunksize=batch_rows(table, size)))
