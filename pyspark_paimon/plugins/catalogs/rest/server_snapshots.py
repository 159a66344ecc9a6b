"""Snapshots committed by a catalog's server.

The server accepts a snapshot if its id is free, and knows the newest one. The answer to a successful commit may be lost, or a gateway may
send the request twice, so that "exists" refers to our own snapshot. So after any answer other than success, the snapshot of that id is
read. Ours has our commit user, identifier and delta manifest list, whose name no other commit has. If no such snapshot exists yet, the
request may still arrive and the outcome is unknown: the files stay, and the next attempt requests the same id, which the server gives to
one of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from manifest.io.catalog_errors import CatalogUnavailable, NotAuthorized, ResourceMissing, ResourceTaken
from manifest.io.errors import CatalogRefused
from manifest.snapshot.snapshot import Changed, Snapshot
from paimon_base.log import logger_of
from pyspark_paimon.plugins.catalogs.rest.api import RestApi
from pyspark_paimon.plugins.catalogs.rest.messages import CommitRequest, Identifier

_LOG = logger_of(__name__)


@dataclass(frozen=True)
class ServerSnapshots:
    """Snapshots of ``table`` on a server.

    ``table_id`` is the table's id when it was opened. The server rejects commits to another table of the same name.
    """

    api: RestApi
    table: Identifier
    table_id: str | None

    def latest(self) -> Snapshot | None:
        """Return the server's newest snapshot."""
        return self.api.latest_snapshot(self.table)

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot from the server.

        Uses the newest one if the server returns no others.
        """
        snapshot = self.api.snapshot(self.table, snapshot_id)
        if snapshot is None:
            newest = self.latest()
            snapshot = newest if newest is not None and newest.id == snapshot_id else None
        return snapshot

    def commit(self, snapshot: Snapshot, changed: Changed) -> bool:
        """See ``SnapshotCommit``."""
        request = CommitRequest(table_id=self.table_id, snapshot=snapshot, statistics=tuple(changed()))
        try:
            if self.api.commit(self.table, request):
                return True
        except ResourceMissing as error:
            raise CatalogRefused(f"{error}; the table was dropped or renamed meanwhile, nothing was committed") from error
        except CatalogUnavailable as error:
            _LOG.warning("%s: the answer to the commit of snapshot %d was lost, reading that snapshot", self.table.full_name, snapshot.id)
            stored = self._read_again(snapshot.id, error)
            if stored is None:
                raise
            return _same(stored, snapshot)
        except ResourceTaken:
            pass
        stored = self.snapshot(snapshot.id)
        return stored is not None and _same(stored, snapshot)

    def _read_again(self, snapshot_id: int, lost: CatalogUnavailable) -> Snapshot | None:
        try:
            return self.snapshot(snapshot_id)
        except (CatalogUnavailable, NotAuthorized) as error:
            raise lost from error


def _same(stored: Snapshot, ours: Snapshot) -> bool:
    return (stored.commit_user, stored.commit_identifier, stored.delta_manifest_list) == (
        ours.commit_user,
        ours.commit_identifier,
        ours.delta_manifest_list,
    )
