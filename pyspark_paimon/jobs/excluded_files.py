"""Scans without the files that Spark's own Parquet reader takes: the rest of the plan, and whether those files are still there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fileindex.base.errors import CorruptFile
from lsm.scan.split_units import units

if TYPE_CHECKING:
    from lsm.scan.plan import ScanPlan
    from manifest.store import FileStore
    from pyspark_paimon.request.backend import ScanRequest


def without_files(store: FileStore, plan: ScanPlan, excluded_files: Sequence[str]) -> ScanPlan:
    """The plan without the data files at the paths ``excluded_files``, cut into parts that can be read apart.

    Raises ``CorruptFile`` if one of them is needed to merge others: indexes changed between two plans of one snapshot.
    """
    known = frozenset(excluded_files)
    kept = []
    for split in plan.splits:
        for unit in units(split, store.schema):
            missing = [store.physical_files(unit.partition, unit.bucket, file)[0] in known for file in unit.files]
            if not any(missing):
                kept.append(unit)
            elif not unit.has_independent_files:
                raise CorruptFile(store.root, "is planned otherwise than when the DataFrame was made; make it again")
    return replace(plan, splits=tuple(kept))


def check_excluded(store: FileStore, request: ScanRequest) -> None:
    """Raise ``SnapshotExpired`` or ``CorruptFile`` if a file that Spark reads by itself is gone.

    Spark calls this after it has listed the files: one that vanishes just before the listing would be missing without a word.
    """
    for path in request.excluded_files:
        if not store.file_io.exists(path):
            request.find_snapshot(store.snapshots)
            raise CorruptFile(path, "the data file is missing")


__all__ = ["check_excluded", "without_files"]
