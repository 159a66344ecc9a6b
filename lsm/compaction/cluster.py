"""Clustering of append buckets (Paimon's sort compaction).

Sorted rows give files and statistics narrow ranges. The sort is external: sorted runs beyond ``write-buffer-size`` go to local disk.

Incremental clustering (Paimon's ``IncrementalClusterManager``) keeps levels. Appended files are on level 0, each as a separate run. Files sorted together are one run on a deeper level. Universal compaction
picks runs as in a merge tree, so each row is sorted a few times only.

Space-filling curves: rows near each other in several columns get keys near each other. Values become ranks by quantiles of a sample, so that each column has
equal weight, whatever its type and range. The ranks of a row are a grid cell. Its key is the position of the cell on a Z-order or Hilbert curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.compaction.rewriter import CompactResult
from lsm.data_files.rolling import row_writer
from lsm.data_files.spill import SpillSpace
from lsm.data_files.writer import FileTarget
from lsm.deletion_vectors.maintainer import BucketVectors
from lsm.keys.encoding import WordColumn, one_array
from lsm.keys.sort import SortKey, sort_rows
from lsm.levels.sorted_runs import LevelRun, SortedRun
from lsm.levels.universal import CompactUnit, UniversalCompaction
from lsm.merge.function import Deduplicate
from lsm.read.full_scan import file_rows
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import Source
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.options.core_options import CoreOptions
from manifest.schema.clustering import CurveName, clustering_strategy
from manifest.schema.table_schema import BucketMode
from manifest.store import FileStore
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, UInt64s

_CURVE, _ROW = "_CURVE_KEY", "_ROW_NUMBER"
_KEY_BITS = 64
_MOST_BITS = 16


@dataclass(frozen=True, slots=True)
class Clustering:
    """Columns and order of clustered rows.

    Strategy ``order`` sorts by one column after the other. Other strategies sort along a curve through all columns.
    """

    columns: tuple[str, ...]
    strategy: CurveName = "order"


@dataclass(frozen=True)
class BucketCluster:
    """Sort of the live rows of an append bucket."""

    target: FileTarget
    partition: bytes
    bucket: int
    clustering: Clustering
    space: SpillSpace
    vectors: BucketVectors | None = None

    def rewrite(self, files: Sequence[DataFileMeta]) -> CompactResult:
        """Sort ``files`` into new files with ascending key ranges.

        On failure all new files are deleted.
        """
        keyed = self._keyed(files)
        columns = self.clustering.columns if self.clustering.strategy == "order" else (_CURVE,)
        buffer = SortBuffer(SortKey((*columns, _ROW)), Deduplicate(), 0)
        budget = self.target.store.options.write_buffer_size
        try:
            for rows in keyed:
                numbers = np.arange(buffer.rows, buffer.rows + rows.num_rows)  # makes every key unique, so no row is dropped
                buffer.add(Source(rows.append_column(_ROW, pa.array(numbers)).combine_chunks()), None)
                if buffer.held.size > budget:
                    buffer.spill(self.space)
            names = list(self.target.store.schema.names)
            sorted_rows = (rows.select(names) for rows in buffer.drain(self.space))
            first = min((file.min_sequence_number for file in files), default=0)
            new_files = row_writer(self.target, FileSource.COMPACT, first).write_all(sorted_rows)
        finally:
            buffer.clear()
        if self.vectors is not None:
            self.vectors.remove(file.file_name for file in files)
        return CompactResult(list(files), new_files)

    def _keyed(self, files: Sequence[DataFileMeta]) -> Iterator[Any]:
        """Yield the rows with their sort columns."""
        if self.clustering.strategy == "order":
            return self._rows(files)
        curve = z_order if self.clustering.strategy == "zorder" else hilbert
        quantiles = self._quantiles(files)
        bits = bits_per_column(len(quantiles))
        return (
            rows.append_column(_CURVE, pa.array(curve([cut.ranks(rows.column(name)) for name, cut in quantiles.items()], bits)))
            for rows in self._rows(files)
        )

    def _quantiles(self, files: Sequence[DataFileMeta]) -> dict[str, Quantiles]:
        """Return quantiles per column, from evenly spaced sample rows."""
        columns = list(self.clustering.columns)
        step = max(1, sum(file.row_count for file in files) // thresholds.cluster_sample_rows)
        row_count, parts = 0, [self.target.store.schema.arrow.empty_table().select(columns)]
        for rows in self._rows(files, columns):
            parts.append(rows.take(pa.array(sample_rows(row_count, rows.num_rows, step))))
            row_count += rows.num_rows
        sample = pa.concat_tables(parts)
        bits = bits_per_column(len(columns))
        return {name: Quantiles.of(sample.column(name), bits) for name in columns}

    def _rows(self, files: Sequence[DataFileMeta], columns: Sequence[str] | None = None) -> Iterator[Any]:
        for file in files:
            dead = None if self.vectors is None else self.vectors.dead_rows(file.file_name)
            yield from file_rows(self.target.store, self.partition, self.bucket, file, dead=dead, columns=columns)


@dataclass(frozen=True)
class IncrementalClustering:
    """Clustering rule of an append table without buckets."""

    store: FileStore
    clustering: Clustering
    universal: UniversalCompaction
    max_level: int

    @classmethod
    def of(cls, store: FileStore) -> IncrementalClustering | None:
        """Return the rule from the table's options.

        None: files are joined without sorting.
        """
        options = store.options
        if not options.clustering_incremental or store.schema.bucket_mode is not BucketMode.BUCKET_UNAWARE:
            return None
        universal = UniversalCompaction(
            options.compaction_max_size_amplification_percent, options.compaction_size_ratio, options.num_sorted_run_compaction_trigger
        )
        return cls(store, Clustering(options.clustering_columns, clustering_strategy(options)), universal, options.max_level)

    def pick(self, files: Sequence[DataFileMeta], *, full: bool) -> CompactUnit | None:
        """Return the files of a partition to sort together.

        None: no clustering is due.
        """
        runs = _runs(files)
        if not full:
            unit = self.universal.pick(runs, self.max_level)
            return None if unit is None or unit.changes_nothing else unit
        if not runs or (len(runs) == 1 and runs[0].level == self.max_level and self._is_sorted(runs[0])):
            return None
        return CompactUnit.of(self.max_level, runs, full=True)

    def _is_sorted(self, run: LevelRun) -> bool:
        """Return whether a run was sorted by the current columns."""
        options = CoreOptions.of(self.store.schemas.get(run.run.files[0].schema_id).options)
        return options.clustering_columns == self.clustering.columns


def _runs(files: Sequence[DataFileMeta]) -> list[LevelRun]:
    ordered = sorted(files, key=lambda file: (file.level, file.min_sequence_number, file.creation_time or 0, file.file_name))
    runs: list[LevelRun] = []
    for level, grouped in groupby(ordered, key=lambda file: file.level):
        members = tuple(grouped)
        runs += [LevelRun(level, SortedRun(run)) for run in ([(file,) for file in members] if level == 0 else [members])]
    return runs


def bits_per_column(columns: int) -> int:
    """Return the bits of a 64-bit key for each column.

    >>> bits_per_column(2), bits_per_column(8)
    (16, 8)
    """
    return min(_MOST_BITS, _KEY_BITS // columns)


@dataclass(frozen=True)
class Quantiles:
    """Quantile boundaries of a column.

    They cut the column into about ``2 ** bits`` parts of equal row count. Nulls come first. Any ordered type is allowed.
    """

    bounds: Any
    bits: int

    @classmethod
    def of(cls, sample: Any, bits: int) -> Quantiles:
        """Return the quantiles of a sample (Array or ChunkedArray).

        >>> Quantiles.of(pa.array([10, 20, 30, 40]), 1).ranks(pa.array([5, 10, 29, 31, None])).tolist()
        [0, 0, 0, 1, 0]
        """
        values = one_array(sample)
        parts = 1 << bits
        ordered = values.take(pa.array(sort_rows([WordColumn.of(values)], length=len(values)).order))
        places = np.unique(np.arange(1, parts) * len(ordered) // parts)
        return cls(ordered.take(pa.array(places)) if len(ordered) else ordered, bits)

    def ranks(self, column: Any) -> UInt64s:
        """Return the number of boundaries below each value.

        Equal values have equal ranks.
        """
        values = one_array(column)
        joined = pa.concat_arrays([values, self.bounds.cast(values.type)])
        sorted_rows = sort_rows([WordColumn.of(joined)], length=len(joined))
        is_bound = sorted_rows.order >= len(values)
        before: Int64s = np.cumsum(is_bound) - is_bound
        ranks = np.zeros(len(joined), np.uint64)
        sizes = np.diff(sorted_rows.starts, append=len(joined))
        ranks[sorted_rows.order] = np.repeat(before[sorted_rows.starts], sizes)
        value_ranks: UInt64s = ranks[: len(values)]
        return value_ranks


def z_order(ranks: Sequence[UInt64s], bits: int) -> UInt64s:
    """Interleave the bits of all ranks, first rank leading.

    >>> z_order([np.array([0b11], np.uint64), np.array([0b00], np.uint64)], 2).tolist() == [0b1010]
    True
    """
    key = np.zeros(len(ranks[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            key = (key << np.uint64(1)) | ((rank >> np.uint64(bit)) & np.uint64(1))
    return key


def hilbert(ranks: Sequence[UInt64s], bits: int) -> UInt64s:
    """Return the position of each cell on the Hilbert curve.

    Consecutive positions are adjacent cells. John Skilling, "Programming the Hilbert curve" (2004).

    >>> hilbert([np.array([0, 0, 1, 1], np.uint64), np.array([0, 1, 1, 0], np.uint64)], 1).tolist()
    [0, 1, 2, 3]
    """
    # Undo the rotations of the curve, from the coarsest cells to the finest.
    axes = [rank.astype(np.uint64, copy=True) for rank in ranks]
    for bit in range(bits - 1, 0, -1):
        lower = np.uint64((1 << bit) - 1)
        for axis in range(len(axes)):
            is_set = _bit(axes[axis], bit)
            exchanged = np.where(is_set, np.uint64(0), (axes[0] ^ axes[axis]) & lower)
            axes[0] ^= np.where(is_set, lower, exchanged)
            axes[axis] ^= exchanged
    for axis in range(1, len(axes)):
        axes[axis] ^= axes[axis - 1]
    turned = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        turned ^= np.where(_bit(axes[-1], bit), np.uint64((1 << bit) - 1), np.uint64(0))
    return z_order([axis ^ turned for axis in axes], bits)


def _bit(words: UInt64s, bit: int) -> Any:
    return (words >> np.uint64(bit)) & np.uint64(1) == 1


def sample_rows(row_count: int, count: int, step: int) -> Int64s:
    """Return the sampled positions of the next ``count`` rows.

    Every ``step``-th row is sampled. ``row_count`` is the number of rows before these.

    >>> sample_rows(3, 5, 4).tolist()
    [1]
    """
    return np.arange(-row_count % step, count, step)
