"""Base of operations that delete something, with their dry run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.partition_spec import display_partition
from pyspark_paimon.results.results import Removal
from pyspark_paimon.results.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.expire.delete_files import Removed
    from manifest.expire.dry_run import RemovalCounts
    from manifest.store import FileStore


class Destruction(Operation[TableChangeResult]):
    """A change that deletes something. ``dry_run``: only report what."""

    dry_run: bool = False


class HistoryChange(Destruction):
    """A change of snapshots, tags or branches."""

    def run(self, table: OpenTable) -> TableChangeResult:
        """Make the change, or report what it would delete."""
        store = table.store()
        return self._preview(store) if self.dry_run else self.change(store)

    @abstractmethod
    def change(self, store: FileStore) -> TableChangeResult:
        """Make the change."""

    def branch_to_delete(self, store: FileStore) -> FileStore | None:  # noqa: ARG002  # overridden
        """Return the branch whose own files are deleted."""
        return None

    def _preview(self, store: FileStore) -> TableChangeResult:
        from manifest.expire.dry_run import run_dry  # noqa: PLC0415  # imports the deletion code

        preview, counts = run_dry(store, self.change, self.branch_to_delete(store))
        return preview.model_copy(
            update={"removal": removal_of(counts, snapshots=preview.snapshots, tags=preview.tags, manifests=preview.manifests)}
        )


def preview_partitions(store: FileStore, partitions: Collection[bytes]) -> TableChangeResult:
    """Return what the newest snapshot would lose with ``partitions``."""
    from manifest.expire.dry_run import partition_removal  # noqa: PLC0415  # imports the deletion code

    names = partition_names(store, partitions)
    return TableChangeResult(partitions=names, removal=removal_of(partition_removal(store, partitions), partitions=names))


def partition_names(store: FileStore, partitions: Collection[bytes]) -> tuple[str, ...]:
    """Return partitions in the form ``day=2024-01-31``, sorted."""
    return tuple(sorted(display_partition(store.partition.decode(partition), store.schema) for partition in partitions))


def removal_of(counts: RemovalCounts, **more_counts: Any) -> Removal:
    """Return files, rows and bytes of ``counts`` with ``more_counts``."""
    return Removal(data_files=counts.data_files, files=counts.files, rows=counts.rows, bytes=counts.bytes, **more_counts)


def result_of(removed: Removed, *done: str) -> TableChangeResult:
    """Return the result of a deletion."""
    return TableChangeResult(
        snapshots=removed.snapshots, tags=removed.tags, data_files=removed.data_files, manifests=removed.manifests, done=done
    )
