"""Drop and expire partitions."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.repeated_commits import committed_before
from manifest.entry.live import EntryFilter
from manifest.expire.partitions import expired_partitions, mark_done
from manifest.snapshot.commit_info import commit_properties
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.operations.history.removal import Destruction, partition_names, preview_partitions
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.request.partition_spec import predicate_of
from pyspark_paimon.results.message import CommitId, CommitProperties
from pyspark_paimon.results.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.store import FileStore


_DONE_ACTION, _SUCCESS_FILE = "partition.mark-done-action", "success-file"


class _PartitionRemoval(Destruction):
    verb: ClassVar[str]
    commit_id: CommitId
    options: dict[str, str] = Field(default_factory=dict)
    properties: CommitProperties = Field(default_factory=dict)

    def run(self, table: OpenTable) -> TableChangeResult:
        """Commit an overwrite of the partitions without new files."""
        store = table.writable(self.options)
        partitions = self.partitions_of(store)
        if not partitions:
            return TableChangeResult()
        if self.dry_run:
            return preview_partitions(store, partitions)
        names = partition_names(store, partitions)
        earlier = committed_before(store, self.commit_id)
        commit = FileStoreCommit(store, self.commit_id)
        if earlier is not None:
            return TableChangeResult(snapshot_id=commit.finish_earlier(earlier).snapshot_id)
        committed = commit.truncate(
            partitions=partitions, properties=commit_properties(self.verb, {"partitions": len(partitions)}, self.properties)
        )
        return TableChangeResult(snapshot_id=committed.snapshot_id, partitions=names)

    @abstractmethod
    def partitions_of(self, store: FileStore) -> list[bytes]:
        """Return the partitions to remove."""


class DropPartitions(_PartitionRemoval):
    """Remove all rows of partitions."""

    verb: ClassVar[str] = "drop-partitions"
    partitions: tuple[dict[str, str | None], ...]

    def partitions_of(self, store: FileStore) -> list[bytes]:
        """Return the partitions with files that match the specifications."""
        entry_filter = EntryFilter(predicate=predicate_of(self.partitions, store.schema))
        return store.live_partitions(store.snapshots.latest(), entry_filter)


class ExpirePartitions(_PartitionRemoval):
    """Remove partitions older than ``partition.expiration-time`` or ``older_than``.

    ``older_than`` is local wall-clock time.
    """

    verb: ClassVar[str] = "expire-partitions"
    older_than: datetime | None = None

    def partitions_of(self, store: FileStore) -> list[bytes]:
        """Return the partitions that are too old."""
        return expired_partitions(store, store.snapshots.latest(), self.older_than)


class MarkPartitionsDone(Operation[TableChangeResult]):
    """Write a success file into partitions."""

    partitions: tuple[dict[str, str | None], ...]

    def run(self, table: OpenTable) -> TableChangeResult:
        """Write the file of each partition that has rows.

        Raises ``UnsupportedOption`` for another ``partition.mark-done-action``.
        """
        store = table.writable()
        for action in store.options.raw.get(_DONE_ACTION, _SUCCESS_FILE).split(","):
            if action.strip() != _SUCCESS_FILE:
                raise UnsupportedOption(_DONE_ACTION, f"'{action.strip()}' is not supported, only '{_SUCCESS_FILE}'; nothing was marked")
        entry_filter = EntryFilter(predicate=predicate_of(self.partitions, store.schema))
        partitions = store.live_partitions(store.snapshots.latest(), entry_filter)
        for partition in partitions:
            mark_done(store, store.partition.decode(partition))
        return TableChangeResult(partitions=partition_names(store, partitions))
