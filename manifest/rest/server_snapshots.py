"""Snapshots that a catalog's server makes: it takes one if its id is free, and knows the newest.

The answer to a commit may be lost, while the commit stands; a gateway may have sent the request twice, so that "taken" is said of our own
snapshot. So whatever is not a plain yes is followed by a look at the snapshot of that id: ours is known by its commit user, its
identifier and its list of changes, whose name no other commit has. Where nobody has that snapshot yet, the request may still be on its
way, and nothing is known: the files stay, and the next attempt asks for the same id, which the server gives to one of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from fileindex.base.log import logger_of
from manifest.io.errors import CatalogRefused
from manifest.rest.api import RestApi
from manifest.rest.errors import CatalogUnavailable, NotAuthorized, ResourceMissing, ResourceTaken
from manifest.rest.messages import CommitRequest, Identifier
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.snapshot_commit import Changed

_LOG = logger_of(__name__)


@dataclass(frozen=True)
class ServerSnapshots:
    """The snapshots of ``table``, which had the id ``table_id`` when it was opened: another table of its name takes no commit of ours."""

    api: RestApi
    table: Identifier
    table_id: str | None

    def latest(self) -> Snapshot | None:
        """As the server says."""
        return self.api.latest_snapshot(self.table)

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """As the server says, of any, or of the newest if it tells of no others."""
        found = self.api.snapshot(self.table, snapshot_id)
        if found is None:
            newest = self.latest()
            found = newest if newest is not None and newest.id == snapshot_id else None
        return found

    def commit(self, snapshot: Snapshot, changed: Changed) -> bool:
        """See ``SnapshotCommit``."""
        request = CommitRequest(table_id=self.table_id, snapshot=snapshot, statistics=tuple(changed()))
        try:
            if self.api.commit(self.table, request):
                return True
        except ResourceMissing as error:
            raise CatalogRefused(f"{error}; the table was dropped or renamed meanwhile, nothing was committed") from error
        except CatalogUnavailable as error:
            _LOG.warning("%s: the answer to snapshot %d is lost, it is looked for", self.table.full_name, snapshot.id)
            found = self._found(snapshot.id, error)
            if found is None:
                raise
            return _same(found, snapshot)
        except ResourceTaken:
            pass
        found = self.snapshot(snapshot.id)
        return found is not None and _same(found, snapshot)

    def _found(self, snapshot_id: int, lost: CatalogUnavailable) -> Snapshot | None:
        try:
            return self.snapshot(snapshot_id)
        except (CatalogUnavailable, NotAuthorized) as error:
            raise lost from error


def _same(found: Snapshot, ours: Snapshot) -> bool:
    return (found.commit_user, found.commit_identifier, found.delta_manifest_list) == (
        ours.commit_user,
        ours.commit_identifier,
        ours.delta_manifest_list,
    )


__all__ = ["ServerSnapshots"]
