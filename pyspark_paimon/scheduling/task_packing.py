"""What the tasks of a Spark read have to do: the splits of a plan, cut and packed so that all are busy until the end."""

from __future__ import annotations

from lsm.incremental.planner import IncrementalSplit
from lsm.scan.plan import ScanPlan
from lsm.scan.split_units import units
from lsm.scan.splits import DataSplit, pack
from manifest.schema.table_schema import TableSchema

TASK_BYTES = 16 << 20
"""What a task should read at least: about what it decodes in the time that Spark needs to start one."""
OPEN_COST = 1 << 20
"""What a file counts at least."""


def tasks_of(plan: ScanPlan, schema: TableSchema, *, ordered: bool) -> list[list[str]]:
    """The splits of each task, as JSON.

    A split is packed for ``source.split.target-size``, which may be a whole bucket; it is cut into files and key sections, and
    small ones go to one task. ``ordered`` keeps the plan's order, in which rows come to a client; else long tasks come first.
    """
    parts: list[DataSplit | IncrementalSplit] = []
    for split in plan.splits:
        parts.extend([split] if isinstance(split, IncrementalSplit) or split.file_size <= TASK_BYTES else units(split, schema))
    tasks = pack(parts, _weight, TASK_BYTES)
    if not ordered:
        tasks.sort(key=lambda task: -sum(map(_weight, task)))
    return [[part.to_json() for part in task] for task in tasks]


def _weight(split: DataSplit | IncrementalSplit) -> int:
    return max(split.file_size, OPEN_COST * len(split.files))


__all__ = ["OPEN_COST", "TASK_BYTES", "tasks_of"]
