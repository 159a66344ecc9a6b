"""Write an older state as a new snapshot."""

from __future__ import annotations

from contextlib import suppress

from pydantic import Field

from lsm.commit.restore import differing_partitions, restore_state
from manifest.expire.tags import delete_tag
from manifest.io.errors import SnapshotNotFound
from paimon_base.errors import InvalidArgument
from pyspark_paimon.operations.history.removal import Destruction, preview_partitions
from pyspark_paimon.request.operation import OpenTable
from pyspark_paimon.results.message import CommitId, CommitProperties
from pyspark_paimon.results.state_results import TableChangeResult


class Restore(Destruction):
    """Restore a snapshot, a tag or an older state.

    Exactly one of ``snapshot_id``, ``tag`` and ``timestamp_millis`` is set.
    """

    commit_id: CommitId
    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    properties: CommitProperties = Field(default_factory=dict)

    def run(self, table: OpenTable) -> TableChangeResult:
        """Overwrite the partitions that differ."""
        store = table.store()
        target = store.snapshots.travel(snapshot_id=self.snapshot_id, tag=self.tag, timestamp_millis=self.timestamp_millis)
        if target is None:
            raise InvalidArgument("restore needs one of snapshot, tag and timestamp")
        if self.dry_run:
            return preview_partitions(store, differing_partitions(store, target, store.snapshots.latest()))
        if self.tag is not None:
            return TableChangeResult(snapshot_id=restore_state(store, target, self.commit_id, properties=self.properties).snapshot_id)
        # A temporary tag protects the snapshot from expiry while its rows are copied.
        pin = f"restore-{self.commit_id}"
        if pin not in store.snapshots.tags():
            store.snapshots.create_tag(pin, target)
        try:
            return TableChangeResult(snapshot_id=restore_state(store, target, self.commit_id, properties=self.properties).snapshot_id)
        finally:
            with suppress(SnapshotNotFound):  # a concurrent rollback deletes the tag, too
                delete_tag(store, pin)
