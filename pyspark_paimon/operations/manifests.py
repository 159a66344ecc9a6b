"""Merge small manifests."""

from __future__ import annotations

from manifest.commit.file_store_commit import FileStoreCommit
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.results.message import CommitId
from pyspark_paimon.results.state_results import TableChangeResult


class CompactManifests(Operation[TableChangeResult]):
    """Merge all manifests below the target size into few.

    No data file changes.
    """

    commit_id: CommitId

    def run(self, table: OpenTable) -> TableChangeResult:
        """Commit a snapshot with the merged manifests, if any merge is due."""
        snapshot_id = FileStoreCommit(table.writable(), self.commit_id).compact_manifests()
        return TableChangeResult(snapshot_id=snapshot_id)
