"""Scans of which somebody else reads some files: what is left of their plan, and whether the others' files are still there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from manifest.errors import CorruptFile

if TYPE_CHECKING:
    from lsm.plan import ScanPlan
    from manifest.store import FileStore
    from pyspark_paimon.engine import ScanRequest


def without_files(store: FileStore, plan: ScanPlan, left_out: Sequence[str]) -> ScanPlan:
    """The plan without the files that Spark reads by itself.

    Raises ``CorruptFile`` for one of them that is needed to merge others: indexes or files changed between two plans of one snapshot.
    """
    known = frozenset(left_out)
    splits = []
    for split in plan.splits:
        mine = [store.physical_files(split.partition, split.bucket, file)[0] not in known for file in split.files]
        if all(mine):
            splits.append(split)
        elif not split.raw_convertible and any(mine):
            raise CorruptFile(store.root, "is planned otherwise than when the DataFrame was made; make it again")
        elif any(mine):
            vectors = split.deletion_files
            kept = None if vectors is None else tuple(vector for vector, own in zip(vectors, mine, strict=True) if own)
            files = tuple(file for file, own in zip(split.files, mine, strict=True) if own)
            splits.append(split.model_copy(update={"files": files, "deletion_files": kept}))
    return replace(plan, splits=tuple(splits))


def check_left_out(store: FileStore, request: ScanRequest) -> None:
    """Raise ``SnapshotExpired`` or ``CorruptFile`` if a file that Spark reads by itself is gone.

    Spark calls this after it has listed the files: one that vanishes just before the listing would be missing without a word.
    """
    for path in request.left_out:
        if not store.file_io.exists(path):
            if request.snapshot_id is not None:
                store.snapshots.readable(request.snapshot_id)
            raise CorruptFile(path, "the data file is missing")


__all__ = ["check_left_out", "without_files"]
