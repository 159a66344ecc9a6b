"""Scans without the files that Spark's Parquet reader reads.

Plans the other files, and checks that the excluded files still exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lsm.scan.split_units import units
from paimon_base.errors import CorruptFile

if TYPE_CHECKING:
    from lsm.scan.plan import ScanPlan
    from manifest.store import FileStore
    from pyspark_paimon.request.requests import ScanRequest


def without_files(store: FileStore, plan: ScanPlan, excluded_files: Sequence[str]) -> ScanPlan:
    """Return the plan without ``excluded_files``.

    ``excluded_files``: paths of data files. Splits are divided into independent units.
    Raises ``CorruptFile`` if a merge needs one of the files: indexes changed between two plans of one snapshot.
    """
    excluded = frozenset(excluded_files)
    splits = []
    for split in plan.splits:
        for unit in units(split, store.schema):
            missing = [store.physical_files(unit.partition, unit.bucket, file)[0] in excluded for file in unit.files]
            if not any(missing):
                splits.append(unit)
            elif not unit.has_independent_files:
                raise CorruptFile(store.root, "is planned otherwise than when the DataFrame was made; make it again")
    return replace(plan, splits=tuple(splits))


def check_excluded(store: FileStore, request: ScanRequest) -> None:
    """Check that the files that Spark reads exist.

    Spark calls this after it has listed the files. Raises ``SnapshotExpired`` or ``CorruptFile``.
    """
    # Spark silently skips a file that was deleted just before the listing: rows would be missing.
    for path in request.excluded_files:
        if not store.file_io.exists(path):
            request.find_snapshot(store.snapshots)
            raise CorruptFile(path, "the data file is missing")
