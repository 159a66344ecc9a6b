"""Older versions of new keys, in deeper levels: a merge of sorted keys where Paimon's ``LookupLevels`` looks up key by key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s
from fileindex.rowset.roaring import bitmap_to_rows
from lsm.compaction.record_expiry import RecordExpiry
from lsm.deletion_vectors.maintainer import BucketVectors
from lsm.deletion_vectors.reader import dead_rows
from lsm.keys.encoding import one_array
from lsm.keys.sort import SortKey, sort_rows
from lsm.levels.sorted_runs import KeyOf
from lsm.merge.alignment import aligned
from lsm.merge.lookup_function import with_level
from lsm.merge.small_runs import gathered_runs
from lsm.read.data_file import DataFileRead
from lsm.read.full_scan import batch_bytes_of
from manifest.entry.data_file import DataFileMeta
from manifest.store import FileStore

_FILE, _POSITION = "_FILE", "_POSITION"


@dataclass(frozen=True, slots=True)
class Lookup:
    """Finds the visible rows of keys in files of deeper levels.

    Args:
        store: the table.
        partition: of the bucket, serialised.
        bucket: its number.
        key: the order of its rows.
        key_of: makes serialised keys comparable.
        vectors: dead rows are not found, and what is found dies; None for tables without deletion vectors.
        read: Collects the names of files whose rows were looked at, for the commit to check that they are still there.
    """

    store: FileStore
    partition: bytes
    bucket: int
    key: SortKey
    key_of: KeyOf
    vectors: BucketVectors | None
    read: set[str]

    def mark(self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], expiry: RecordExpiry | None = None) -> None:
        """Mark the rows of ``older`` files whose key a ``newer`` file has, in a row that has not expired."""
        for _ in self._found(newer, older, self.key.columns, expiry):
            pass

    def versions(
        self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], columns: Sequence[str], expiry: RecordExpiry | None = None
    ) -> Iterator[Any]:
        """The rows, marked as they come, of the keys in ``newer`` files: one a key, from the shallowest level of ``older``.

        Rows of ``newer`` files that have expired ask for nothing.

        Yields:
            Tables in key order of ``columns`` and ``_LEVEL``.
        """
        return (rows.drop_columns([_FILE, _POSITION]) for rows in self._found(newer, older, columns, expiry) if rows.num_rows)

    def _found(
        self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], columns: Sequence[str], expiry: RecordExpiry | None
    ) -> Iterator[Any]:
        reached = self._overlapping(newer, older)
        self.read.update(file.file_name for file in reached)
        levels = sorted({file.level for file in reached})
        if not levels:
            return
        size = batch_bytes_of(len(newer) + len(levels))
        kept, gathered = gathered_runs([self._keys(file, size, expiry) for file in newer], self.key)
        probes = [*kept, *gathered]
        runs = [self._run(reached, level, columns, size) for level in levels]
        for pieces in aligned([*probes, *runs], self.key):
            here = [piece for number, piece in pieces if number >= len(probes)]
            keys = [piece for number, piece in pieces if number < len(probes)]
            if not here or not keys:
                continue
            rows = pa.concat_tables(here).combine_chunks()
            hits, first = self._hits(rows, keys)
            self._mark(rows, hits, reached)
            yield rows.take(pa.array(first))

    def _overlapping(self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta]) -> list[DataFileMeta]:
        """The ``older`` files that can have a key of a ``newer`` one, by level, then key."""
        spans = [(self.key_of(file.min_key), self.key_of(file.max_key)) for file in newer]
        reached = [
            file for file in older if any(low <= self.key_of(file.max_key) and self.key_of(file.min_key) <= high for low, high in spans)
        ]
        return sorted(reached, key=lambda file: (file.level, self.key_of(file.min_key)))

    def _keys(self, file: DataFileMeta, batch_bytes: int, expiry: RecordExpiry | None) -> Iterator[Any]:
        names = list(self.key.columns)
        if expiry is None:
            return self._read(file, names, batch_bytes)
        alive = map(expiry.alive, self._read(file, list(dict.fromkeys([*names, expiry.column])), batch_bytes))
        return (rows.select(names) for rows in alive if rows.num_rows)

    def _run(self, files: Sequence[DataFileMeta], level: int, columns: Sequence[str], batch_bytes: int) -> Iterator[Any]:
        """The live rows of a level, and where each lies."""
        for number, file in enumerate(files):
            if file.level != level:
                continue
            positions = self._positions(file)
            start = 0
            for rows in self._read(file, columns, batch_bytes):
                there = positions[start : start + rows.num_rows]
                start += rows.num_rows
                rows = rows.append_column(_FILE, pa.array(np.full(rows.num_rows, number, np.int32)))  # noqa: PLW2901 - same rows
                yield with_level(rows.append_column(_POSITION, pa.array(there)), level)

    def _read(self, file: DataFileMeta, columns: Sequence[str], batch_bytes: int) -> Iterator[Any]:
        dead = None if self.vectors is None else self.vectors.dead_rows(file.file_name)
        names = tuple(columns)
        read = DataFileRead(
            self.store, self.partition, self.bucket, file, names, deletion_file=dead, use_index=False, batch_bytes=batch_bytes
        )
        return (pa.Table.from_batches([batch]) for batch in read.batches() if batch.num_rows)

    def _positions(self, file: DataFileMeta) -> Int64s:
        """The positions of a file's live rows."""
        vector = None if self.vectors is None else self.vectors.dead_rows(file.file_name)
        alive = np.ones(file.row_count, np.bool_)
        if vector is not None:
            alive[bitmap_to_rows(dead_rows(self.store.file_io, vector))] = False
        return np.flatnonzero(alive)

    def _hits(self, rows: Any, keys: Sequence[Any]) -> tuple[Int64s, Int64s]:
        """Rows whose key is among ``keys``; of each such key the first of its rows, in key order."""
        names = list(self.key.columns)
        both = pa.concat_tables([rows.select(names), *(piece.select(names) for piece in keys)])
        done = sort_rows(self.key.key_words(both), length=both.num_rows, runs=True)
        is_old = done.order < rows.num_rows
        asked = np.logical_or.reduceat(~is_old, done.starts)
        hits = done.order[is_old & np.repeat(asked, np.diff(done.starts, append=len(done.order)))]
        first = done.order[done.starts[asked]]  # the sort is stable, so an old row comes before the keys
        return hits, first[first < rows.num_rows]

    def _mark(self, rows: Any, hits: Int64s, files: Sequence[DataFileMeta]) -> None:
        if self.vectors is None:
            return
        where = one_array(rows.column(_FILE)).to_numpy()[hits]
        positions = one_array(rows.column(_POSITION)).to_numpy()[hits].astype(np.uint32)
        for number in np.unique(where).tolist():
            self.vectors.mark(files[number].file_name, positions[where == number])


__all__ = ["Lookup"]
