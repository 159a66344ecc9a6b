"""Notebook picture of a plan: pruning stages and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from lsm.scan.plan import ScanPlan
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import wall_clock_millis
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.report.page import render_plan
from pyspark_paimon.tree.buckets import TreeFile, bucket_trees
from pyspark_paimon.views.explain import funnel_stage

_MOST_BOXES = 300
_MOST_BUCKETS = 6


@dataclass(frozen=True, slots=True, eq=False)
class PlanPicture(ScanPlan):
    """A ``ScanPlan`` that notebooks show as a picture.

    It equals a ``ScanPlan`` of the same values. ``table_schema`` is needed to decode keys.
    """

    table_schema: TableSchema | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScanPlan) and all(getattr(self, one.name) == getattr(other, one.name) for one in fields(ScanPlan))

    def __hash__(self) -> int:
        return hash((self.snapshot_id, self.splits, self.report))

    def _repr_html_(self) -> str:
        files = []
        splits: Sequence[object] = self.splits  # plans of incremental scans have other splits
        for split in splits:
            if not isinstance(split, DataSplit):
                continue
            vectors = split.deletion_files or (None,) * len(split.files)
            for file, vector in zip(split.files, vectors, strict=True):
                deleted = (file.delete_row_count or 0) + (0 if vector is None else vector.cardinality or 0)
                files.append(TreeFile(split.partition, split.bucket, file, deleted, kept=True))
        trees = () if self.table_schema is None else bucket_trees(files, self.table_schema, most_boxes=_MOST_BOXES)
        drawn = sorted((tree for tree in trees if tree.boxes), key=lambda tree: -tree.size)[:_MOST_BUCKETS]
        return render_plan(tuple(map(funnel_stage, self.report)), drawn, len(trees), wall_clock_millis())


__all__ = ["PlanPicture"]
