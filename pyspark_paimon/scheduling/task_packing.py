"""Number of tasks of a Spark job, and its splits or work by task."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from lsm.incremental.planner import IncrementalSplit
from lsm.scan.plan import ScanPlan
from lsm.scan.split_units import units
from lsm.scan.splits import DataSplit, pack
from manifest.schema.table_schema import TableSchema
from paimon_base.thresholds import thresholds

_MOST_PER_CORE = 4
"""More tasks would not balance better; each needs a buffer and writes separate files."""


def pack_tasks(plan: ScanPlan, schema: TableSchema, *, ordered: bool) -> list[list[str]]:
    """Return the splits of each task, as JSON.

    A split may be a whole bucket (``source.split.target-size``). Large splits are cut into files and key sections, and small
    ones are combined.

    ordered: Keep the plan's order, in which rows reach a client. False: long tasks come first.
    """
    parts: list[DataSplit | IncrementalSplit] = []
    for split in plan.splits:
        parts.extend([split] if isinstance(split, IncrementalSplit) or split.file_size <= thresholds.task_bytes else units(split, schema))
    tasks = pack(parts, _weight, thresholds.task_bytes)
    if not ordered:
        tasks.sort(key=lambda task: -sum(map(_weight, task)))
    return [[part.to_json() for part in task] for task in tasks]


def _weight(split: DataSplit | IncrementalSplit) -> int:
    return max(split.file_size, thresholds.open_cost_bytes * len(split.files))


def assign_by_size(sizes: Sequence[int], tasks: int) -> list[int]:
    """Return the task of each piece.

    Tasks are numbered from 0. The largest piece comes first, and each goes to the task with the fewest bytes. No task gets more
    than 4/3 of the optimum (Graham's bound).

    >>> assign_by_size([700 << 20, 100 << 20, 400 << 20, 300 << 20], 2)
    [0, 0, 1, 1]
    """
    heap = [(0, task) for task in range(tasks)]
    assigned = [0] * len(sizes)
    for piece in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        load, task = heap[0]
        assigned[piece] = task
        heapq.heapreplace(heap, (load + max(sizes[piece], thresholds.piece_cost_bytes), task))
    return assigned


def task_count(size: int, cores: int) -> int:
    """Return the number of tasks for ``size`` bytes.

    The result is at least 1. Small jobs use one core for each few megabytes. Large jobs have several tasks per core.

    >>> [task_count(size << 20, 8) for size in (0, 1, 20, 200, 1000, 1 << 20)]
    [1, 1, 3, 8, 16, 32]
    """
    cores = max(1, cores)
    # Several tasks per core let all cores end at about the same time.
    return max(1, min(cores, -(-size // thresholds.idle_core_bytes)), min(cores * _MOST_PER_CORE, -(-size // thresholds.busy_core_bytes)))
