"""Create, delete and fast-forward branches."""

from __future__ import annotations

from manifest.expire.branches import create_branch, delete_branch, fast_forward, rename_branch
from manifest.io.paths import with_branch
from manifest.store import FileStore
from pyspark_paimon.operations.history.removal import HistoryChange, result_of
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.results.state_results import TableChangeResult


class CreateBranch(Operation[TableChangeResult]):
    """Create a branch from a tag, or an empty one."""

    name: str
    tag: str | None = None

    def run(self, table: OpenTable) -> TableChangeResult:
        """Copy the schemas and the tag's snapshot."""
        create_branch(table.store(), self.name, self.tag)
        return TableChangeResult(done=(f"branch '{self.name}' created",))


class DeleteBranch(HistoryChange):
    """Delete a branch."""

    name: str

    def change(self, store: FileStore) -> TableChangeResult:
        """Delete the branch and the files that only it used."""
        return result_of(delete_branch(store, self.name), f"branch '{self.name}' deleted")

    def branch_to_delete(self, store: FileStore) -> FileStore | None:
        """Return the branch, if it exists."""
        if self.name not in store.snapshots.branch_names():
            return None
        return FileStore.open(with_branch(store.root, self.name), store.file_io)


class RenameBranch(Operation[TableChangeResult]):
    """Rename a branch."""

    name: str
    new_name: str

    def run(self, table: OpenTable) -> TableChangeResult:
        """Rename its directory."""
        rename_branch(table.store(), self.name, self.new_name)
        return TableChangeResult(done=(f"branch '{self.name}' renamed to '{self.new_name}'",))


class FastForward(HistoryChange):
    """Replace the table's history by that of a branch."""

    name: str

    def change(self, store: FileStore) -> TableChangeResult:
        """Copy the branch's snapshots and delete main's newer ones."""
        return result_of(fast_forward(store, self.name), f"history of branch '{self.name}' taken")
