"""Removal of data files that do not exist."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.missing_files import MissingFiles, find_missing
from manifest.commit.repeated_commits import committed_before
from manifest.io.errors import UnsupportedTable
from manifest.snapshot.commit_info import commit_properties
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.results.message import CommitId, CommitProperties
from pyspark_paimon.results.state_results import MissingFilesResult


class RemoveUnexistingFiles(Operation[MissingFilesResult]):
    """Remove data files that do not exist from the newest state.

    ``dry_run``: only report them.
    """

    stage: ClassVar[str | None] = "remove-unexisting-files"
    commit_id: CommitId
    properties: CommitProperties = Field(default_factory=dict)
    dry_run: bool = False

    @property
    def identity(self) -> str:
        """Id of its commit."""
        return self.commit_id

    def run(self, table: OpenTable) -> MissingFilesResult:
        """Look for each file, and commit the removal of those that are missing."""
        store = table.writable()
        if store.options.data_evolution_enabled:
            raise UnsupportedTable(
                f"{store.root}: option 'data-evolution.enabled': the columns of a row are in several files, and one of them cannot be "
                "removed; restore the file from a backup, or roll back to a snapshot or tag that does not need it"
            )
        missing, snapshot_id = MissingFiles(), None
        if self.dry_run:
            missing.entries = find_missing(store, store.snapshots.latest())
        else:
            earlier, commit = committed_before(store, self.commit_id), FileStoreCommit(store, self.commit_id)
            if earlier is not None:
                return MissingFilesResult(snapshot_id=commit.finish_earlier(earlier).snapshot_id)
            noted = commit_properties("remove-unexisting-files", {}, self.properties)
            snapshot_id = commit.remove_missing(missing, properties=noted)
        rows = sum(entry.file.row_count for entry in missing.entries)
        return MissingFilesResult(paths=missing.paths(store), rows=rows, snapshot_id=snapshot_id, dry_run=self.dry_run)
