"""Incremental clustering of append tables (Paimon's ``IncrementalClusterManager``).

Appended files are on level 0, each as a separate run. Files sorted together are one run on a deeper level. Universal compaction
picks runs as in a merge tree, so each row is sorted a few times only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from lsm.compaction.cluster import Clustering
from lsm.levels.sorted_runs import LevelRun, SortedRun
from lsm.levels.universal import CompactUnit, UniversalCompaction
from manifest.entry.data_file import DataFileMeta
from manifest.options.core_options import CoreOptions
from manifest.schema.bucket_mode import BucketMode
from manifest.schema.clustering import clustering_strategy
from manifest.store import FileStore


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
    found: list[LevelRun] = []
    for level, grouped in groupby(ordered, key=lambda file: file.level):
        members = tuple(grouped)
        found += [LevelRun(level, SortedRun(run)) for run in ([(file,) for file in members] if level == 0 else [members])]
    return found


__all__ = ["IncrementalClustering"]
