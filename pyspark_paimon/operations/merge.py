"""Merge rows of a source into a table."""

from __future__ import annotations

from typing import ClassVar

from pyspark_paimon.request.backend import DeleteRequest
from pyspark_paimon.request.merge import MergeRequest
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.results import MergeResult


class MergeHeldRows(Operation[MergeResult]):
    """Merge rows that travel with the operation."""

    stage: ClassVar[str | None] = "merge"
    request: DeleteRequest
    wanted: MergeRequest

    def run(self, table: OpenTable) -> MergeResult:
        """Merge in the process that reaches the files."""
        return table.merge(self.request, self.wanted)


__all__ = ["MergeHeldRows"]
