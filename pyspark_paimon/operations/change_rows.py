"""Deletes, updates and merges.

They find rows in one snapshot and apply the changes to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fileindex.base.lazy import LazyModule
from pyspark_paimon.request.assignments import Assignments, SentAssignments
from pyspark_paimon.request.backend import DeleteRequest
from pyspark_paimon.request.merge import MergeRequest
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.results import MergeResult, WriteResult

if TYPE_CHECKING:
    from pyspark_paimon.jobs import change_rows, merge_rows
else:  # the client of a server sends these operations and needs no storage engine
    change_rows = LazyModule("pyspark_paimon.jobs.change_rows")
    merge_rows = LazyModule("pyspark_paimon.jobs.merge_rows")


class DeleteRows(Operation[WriteResult]):
    """Delete the rows that match a filter."""

    stage: ClassVar[str | None] = "delete"
    request: DeleteRequest

    def run(self, table: OpenTable) -> WriteResult:
        """Delete in the process that reaches the files."""
        store = table.store(self.request.options)
        return change_rows.delete_rows(store, self.request, table.read, threads=table.threads, progress=table.progress)


class UpdateRows(Operation[WriteResult]):
    """Update the rows that match a filter."""

    stage: ClassVar[str | None] = "update"
    request: DeleteRequest
    values: SentAssignments

    def run(self, table: OpenTable) -> WriteResult:
        """Update in the process that reaches the files."""
        store = table.store(self.request.options)
        values = self.values if isinstance(self.values, Assignments) else Assignments.from_text(self.values, store.schema)
        return change_rows.update_rows(store, self.request, values, table.read, threads=table.threads, progress=table.progress)


class MergeRows(Operation[MergeResult]):
    """Merge rows of a source into the table."""

    stage: ClassVar[str | None] = "merge"
    request: DeleteRequest
    wanted: MergeRequest

    def run(self, table: OpenTable) -> MergeResult:
        """Merge in the process that reaches the files."""
        store = table.store(self.request.options)
        return merge_rows.merge_rows(store, self.request, self.wanted, table.read, threads=table.threads, progress=table.progress)


__all__ = ["DeleteRows", "MergeRows", "UpdateRows"]
