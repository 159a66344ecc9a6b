"""Writes of few rows, deletes, updates and merges.

All but writes find rows in one snapshot and apply the changes to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from lsm.rows_in.arrow import ArrowRows
from paimon_base.lazy import LazyModule
from pyspark_paimon.request.assignments import SentAssignments
from pyspark_paimon.request.bound import BoundRows
from pyspark_paimon.request.merge import MergeRequest
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.requests import DeleteRequest, WriteRequest
from pyspark_paimon.results.results import MergeResult, WriteResult

if TYPE_CHECKING:
    from lsm.compaction import due
    from pyspark_paimon.jobs import change_rows, merge_rows
    from pyspark_paimon.operations import alter
else:  # the client of a server sends these operations and needs no storage engine
    due = LazyModule("lsm.compaction.due")
    change_rows = LazyModule("pyspark_paimon.jobs.change_rows")
    merge_rows = LazyModule("pyspark_paimon.jobs.merge_rows")
    alter = LazyModule("pyspark_paimon.operations.alter")


A = TypeVar("A")


class WriteRows(Operation[WriteResult]):
    """Write rows that travel with the request."""

    stage: ClassVar[str | None] = "write"
    request: WriteRequest
    rows: BoundRows

    @property
    def identity(self) -> str:
        """Id of its commit."""
        return self.request.identity

    def is_small(self, table: OpenTable, most_bytes: int) -> bool:
        """Return whether a due compaction is small."""
        return due.compaction_bytes(table.store(self.request.options)) <= most_bytes

    def run(self, table: OpenTable) -> WriteResult:
        """Write in the process that reaches the files."""
        return table.write(self.request, ArrowRows(self.rows.to_reader()))


class _ChangeRows(Operation[A], Generic[A]):
    """A change of rows that are found first."""

    request: DeleteRequest

    @property
    def identity(self) -> str:
        """Id of its commit."""
        return self.request.identity

    def is_small(self, table: OpenTable, most_bytes: int) -> bool:
        """Return whether the scan and a due compaction are small."""
        store = table.store(self.request.options)
        latest = store.snapshots.latest()
        scan = self.request.scan(store.schema, None if latest is None else latest.id)
        return table.scan_bytes(scan) + due.compaction_bytes(store) <= most_bytes


class DeleteRows(_ChangeRows[WriteResult]):
    """Delete the rows that match a filter."""

    stage: ClassVar[str | None] = "delete"

    def run(self, table: OpenTable) -> WriteResult:
        """Delete in the process that reaches the files."""
        return change_rows.delete_rows(table, self.request)


class UpdateRows(_ChangeRows[WriteResult]):
    """Update the rows that match a filter."""

    stage: ClassVar[str | None] = "update"
    values: SentAssignments

    def run(self, table: OpenTable) -> WriteResult:
        """Update in the process that reaches the files."""
        return change_rows.update_rows(table, self.request, self.values)


class MergeRows(_ChangeRows[MergeResult]):
    """Merge rows of a source into the table."""

    stage: ClassVar[str | None] = "merge"
    merge: MergeRequest

    def is_small(self, table: OpenTable, most_bytes: int) -> bool:
        """Return whether all data files are small."""
        store = table.store(self.request.options)
        return int(store.live_entries(store.snapshots.latest()).file_size.sum()) <= most_bytes

    def run(self, table: OpenTable) -> MergeResult:
        """Merge in the process that reaches the files."""
        return merge_rows.merge_rows(table, self.request, self.merge, alter.store_pending)
