"""Clustering of append buckets (Paimon's sort compaction).

Sorted rows give files and statistics narrow ranges. The sort is external: sorted runs beyond ``write-buffer-size`` go to local disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.thresholds import thresholds
from lsm.compaction.space_filling_curve import Quantiles, bits_per_column, hilbert, sample_rows, z_order
from lsm.compaction.task import CompactTaskResult
from lsm.data_files.rolling import row_writer
from lsm.data_files.spill import SpillSpace
from lsm.data_files.writer import FileTarget
from lsm.deletion_vectors.maintainer import BucketVectors
from lsm.keys.sort import SortKey
from lsm.merge.function import Deduplicate
from lsm.read.full_scan import file_rows
from lsm.write_buffer.sort_buffer import SortBuffer
from lsm.write_buffer.source import Source
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.schema.clustering import CurveName

_CURVE, _ROW = "_CURVE_KEY", "_ROW_NUMBER"


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

    def rewrite(self, files: Sequence[DataFileMeta]) -> CompactTaskResult:
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
            made = row_writer(self.target, FileSource.COMPACT, first).write_all(sorted_rows)
        finally:
            buffer.clear()
        if self.vectors is not None:
            self.vectors.remove(file.file_name for file in files)
        return CompactTaskResult(list(files), made)

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
        step = max(1, sum(file.row_count for file in files) // thresholds().cluster_sample_rows)
        seen, parts = 0, [self.target.store.schema.arrow.empty_table().select(columns)]
        for rows in self._rows(files, columns):
            parts.append(rows.take(pa.array(sample_rows(seen, rows.num_rows, step))))
            seen += rows.num_rows
        sample = pa.concat_tables(parts)
        bits = bits_per_column(len(columns))
        return {name: Quantiles.of(sample.column(name), bits) for name in columns}

    def _rows(self, files: Sequence[DataFileMeta], columns: Sequence[str] | None = None) -> Iterator[Any]:
        for file in files:
            dead = None if self.vectors is None else self.vectors.dead_rows(file.file_name)
            yield from file_rows(self.target.store, self.partition, self.bucket, file, dead=dead, columns=columns)


__all__ = ["BucketCluster", "Clustering"]
