"""What the tasks of a Spark read have to do: the splits of a plan, cut and packed so that all are busy until the end."""

from __future__ import annotations

from fileindex.base.thresholds import thresholds
from lsm.incremental.planner import IncrementalSplit
from lsm.scan.plan import ScanPlan
from lsm.scan.split_units import units
from lsm.scan.splits import DataSplit, pack
from manifest.schema.table_schema import TableSchema


def tasks_of(plan: ScanPlan, schema: TableSchema, *, ordered: bool) -> list[list[str]]:
    """The splits of each task, as JSON.

    A split is packed for ``source.split.target-size``, which may be a whole bucket; it is cut into files and key sections, and
    small ones go to one task. ``ordered`` keeps the plan's order, in which rows come to a client; else long tasks come first.
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
