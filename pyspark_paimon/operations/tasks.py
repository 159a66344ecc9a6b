"""Questions about the tasks of an operation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from manifest.entry.index_manifest import HASH
from paimon_base.lazy import LazyModule
from pyspark_paimon.jobs.task_operation import TaskOperation
from pyspark_paimon.request.operation import OpenTable, Question, parse_request
from pyspark_paimon.request.fsck_problem import Origin
from pyspark_paimon.request.tasks import TaskPlan

if TYPE_CHECKING:
    from pyspark_paimon.plugins.fsck import walk
else:  # a client of a server asks these questions and needs no storage engine
    walk = LazyModule("pyspark_paimon.plugins.fsck.walk")


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


class FindExpired(Question[list[bool]]):
    """Whether each state has expired since a check read it."""

    origins: tuple[Origin, ...]

    def answer(self, table: OpenTable) -> list[bool]:
        """Look each state up."""
        return walk.gone(table.store(), self.origins)
