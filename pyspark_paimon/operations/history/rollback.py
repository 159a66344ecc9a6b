"""Rollback to a snapshot, tag, time or watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manifest.expire.rollback import rollback_to
from paimon_base.errors import InvalidArgument
from pyspark_paimon.operations.history.removal import HistoryChange, result_of
from pyspark_paimon.results.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.snapshot.snapshot import Snapshot
    from manifest.store import FileStore


class Rollback(HistoryChange):
    """Delete everything newer than a snapshot; one member names it.

    ``timestamp_millis``: The newest snapshot committed until then. ``watermark``: The oldest snapshot with at least that watermark.
    """

    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    watermark: int | None = None

    def change(self, store: FileStore) -> TableChangeResult:
        """Delete newer snapshots and tags with their files.

        Files that older snapshots use are kept.
        """
        target = self.target(store)
        return result_of(rollback_to(store, target)).model_copy(update={"snapshot_id": target.id})

    def target(self, store: FileStore) -> Snapshot:
        """Return the snapshot that becomes the newest."""
        snapshot = store.snapshots.travel(**self.model_dump(exclude={"dry_run"}))
        if snapshot is None:
            raise InvalidArgument("a rollback needs one of snapshot, tag, timestamp and watermark")
        return snapshot
