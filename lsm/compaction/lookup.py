"""Lookup of older versions in deeper levels.

Merges sorted keys, where Paimon's ``LookupLevels`` looks up one key at a time.
"""

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
from lsm.merge.alignment import align_runs
from lsm.merge.lookup_function import with_level
from lsm.merge.small_runs import gather_runs
from lsm.read.data_file import DataFileRead
from lsm.read.full_scan import batch_bytes_of
from manifest.entry.data_file import DataFileMeta
from manifest.store import FileStore

_FILE, _POSITION = "_FILE", "_POSITION"


@dataclass(frozen=True, slots=True)
class Lookup:
    """Lookup of the visible rows of keys in deeper files.

    Args:
        store: Store of the table.
        partition: Serialised partition of the bucket.
        bucket: Number of the bucket.
        key: Order of rows.
        key_of: Makes serialised keys comparable.
        vectors: Deleted rows are skipped, and rows found are marked as deleted. None for tables without deletion vectors.
        read: Collects the names of files read, so that the commit can check that they are still live.
    """

    store: FileStore
    partition: bytes
    bucket: int
    key: SortKey
    key_of: KeyOf
    vectors: BucketVectors | None
    read: set[str]

    def mark(self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], expiry: RecordExpiry | None = None) -> None:
        """Mark rows of ``older`` files whose key is in ``newer``.

        Expired rows of ``newer`` files are ignored.
        """
        for _ in self._find(newer, older, self.key.columns, expiry):
            pass

    def versions(
        self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], columns: Sequence[str], expiry: RecordExpiry | None = None
    ) -> Iterator[Any]:
        """Return and mark the old rows of keys in ``newer``.

        One row per key, from the shallowest level of ``older``. Expired rows of ``newer`` files are ignored.

        Yields:
            Tables in key order of ``columns`` and ``_LEVEL``.
        """
        return (rows.drop_columns([_FILE, _POSITION]) for rows in self._find(newer, older, columns, expiry) if rows.num_rows)

    def _find(
        self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta], columns: Sequence[str], expiry: RecordExpiry | None
    ) -> Iterator[Any]:
        reached = self._overlapping(newer, older)
        self.read.update(file.file_name for file in reached)
        levels = sorted({file.level for file in reached})
        if not levels:
            return
        size = batch_bytes_of(len(newer) + len(levels))
        kept, gathered = gather_runs([self._keys(file, size, expiry) for file in newer], self.key)
        probes = [*kept, *gathered]
        runs = [self._run(reached, level, columns, size) for level in levels]
        for pieces in align_runs([*probes, *runs], self.key):
            here = [piece for number, piece in pieces if number >= len(probes)]
            keys = [piece for number, piece in pieces if number < len(probes)]
            if not here or not keys:
                continue
            rows = pa.concat_tables(here).combine_chunks()
            hits, first = self._match(rows, keys)
            self._mark(rows, hits, reached)
            yield rows.take(pa.array(first))

    def _overlapping(self, newer: Sequence[DataFileMeta], older: Sequence[DataFileMeta]) -> list[DataFileMeta]:
        """Return the ``older`` files that overlap ``newer`` files.

        Sorted by level, then key.
        """
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
        """Yield the live rows of a level with file positions."""
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
        """Return the positions of a file's live rows."""
        vector = None if self.vectors is None else self.vectors.dead_rows(file.file_name)
        alive = np.ones(file.row_count, np.bool_)
        if vector is not None:
            alive[bitmap_to_rows(dead_rows(self.store.file_io, vector))] = False
        return np.flatnonzero(alive)

    def _match(self, rows: Any, keys: Sequence[Any]) -> tuple[Int64s, Int64s]:
        """Return the rows whose key is in ``keys``.

        The second result has the first such row of each key, in key order.
        """
        names = list(self.key.columns)
        both = pa.concat_tables([rows.select(names), *(piece.select(names) for piece in keys)])
        done = sort_rows(self.key.key_words(both), length=both.num_rows, runs=True)
        is_old = done.order < rows.num_rows
        wanted = np.logical_or.reduceat(~is_old, done.starts)
        hits = done.order[is_old & np.repeat(wanted, np.diff(done.starts, append=len(done.order)))]
        first = done.order[done.starts[wanted]]  # the sort is stable: an old row comes before the keys
        return hits, first[first < rows.num_rows]

    def _mark(self, rows: Any, hits: Int64s, files: Sequence[DataFileMeta]) -> None:
        if self.vectors is None:
            return
        where = one_array(rows.column(_FILE)).to_numpy()[hits]
        positions = one_array(rows.column(_POSITION)).to_numpy()[hits].astype(np.uint32)
        for number in np.unique(where).tolist():
            self.vectors.mark(files[number].file_name, positions[where == number])


__all__ = ["Lookup"]
