"""Roll back to a snapshot or a tag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fileindex.base.errors import InvalidArgument
from manifest.expire.rollback import rollback_to
from pyspark_paimon.operations.removal import HistoryChange, result_of
from pyspark_paimon.request.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.store import FileStore


class Rollback(HistoryChange):
    """Delete everything newer than a snapshot or a tag; one of them is set."""

    snapshot_id: int | None = None
    tag: str | None = None

    def change(self, store: FileStore) -> TableChangeResult:
        """Delete newer snapshots and tags, and the files that only they used."""
        target = store.snapshots.travel(snapshot_id=self.snapshot_id, tag=self.tag)
        if target is None:
            raise InvalidArgument("a rollback goes to a snapshot or a tag: name one")
        return result_of(rollback_to(store, target)).model_copy(update={"snapshot_id": target.id})


__all__ = ["Rollback"]
