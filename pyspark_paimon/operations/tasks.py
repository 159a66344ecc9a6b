"""Questions about the tasks of an operation."""

from __future__ import annotations

from collections import Counter
from typing import Any

from manifest.entry.index_manifest import HASH
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.request.operation import OpenTable, Question, parse_request
from pyspark_paimon.request.tasks import TaskPlan


class PlanTasks(Question[TaskPlan]):
    """Tasks of an operation at the newest snapshot."""

    operation: str
    """Wire text of a ``TaskOperation``."""

    def answer(self, table: OpenTable) -> TaskPlan:
        """Read the manifests."""
        operation: TaskOperation[Any] = parse_request(self.operation, TaskOperation, "operation")  # type: ignore[type-abstract]  # only a base
        return operation.plan(table.store(operation.options))


class CountDynamicBuckets(Question[int]):
    """Dynamic buckets of the partition that has the most."""

    snapshot_id: int

    def answer(self, table: OpenTable) -> int:
        """Count hash index files."""
        store = table.store()
        entries = store.index_entries(store.snapshots.get(self.snapshot_id))
        return max(Counter(entry.partition for entry in entries if entry.index_type == HASH).values(), default=0)
