"""Packing of splits into tasks of a Spark read."""

from __future__ import annotations

from fileindex.base.thresholds import thresholds
from lsm.incremental.planner import IncrementalSplit
from lsm.scan.plan import ScanPlan
from lsm.scan.split_units import units
from lsm.scan.splits import DataSplit, pack
from manifest.schema.table_schema import TableSchema


def tasks_of(plan: ScanPlan, schema: TableSchema, *, ordered: bool) -> list[list[str]]:
    """Return the splits of each task, as JSON.

    A split may be a whole bucket (``source.split.target-size``). Large splits are cut into files and key sections, and small
    ones are combined.

    ordered: Keep the plan's order, in which rows reach a client. False: long tasks come first.
    """
    parts: list[DataSplit | IncrementalSplit] = []
    for split in plan.splits:
        parts.extend([split] if isinstance(split, IncrementalSplit) or split.file_size <= thresholds().task_bytes else units(split, schema))
    tasks = pack(parts, _weight, thresholds().task_bytes)
    if not ordered:
        tasks.sort(key=lambda task: -sum(map(_weight, task)))
    return [[part.to_json() for part in task] for task in tasks]


def _weight(split: DataSplit | IncrementalSplit) -> int:
    return max(split.file_size, thresholds().open_cost_bytes * len(split.files))


__all__ = ["tasks_of"]
