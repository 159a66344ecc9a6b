"""Create, replace, rename, delete and expire tags."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from manifest.expire.automatic_tags import make_tags
from manifest.expire.tags import create_tag, delete_tag, expire_tags, rename_tag, replace_tag
from manifest.io.errors import SnapshotNotFound
from manifest.options.durations import parse_duration_millis
from manifest.options.tag_periods import TAG_MODE
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.operations.history.removal import HistoryChange, result_of
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.results.state_results import TableChangeResult

if TYPE_CHECKING:
    from manifest.snapshot.snapshot import Snapshot
    from manifest.store import FileStore

_DEFAULT_RETAINED = "tag.default-time-retained"


class CreateTag(Operation[TableChangeResult]):
    """Name a snapshot.

    ``since_millis``: tag the oldest snapshot from this time on. Without it and ``snapshot_id``: the newest.
    """

    name: str
    snapshot_id: int | None = None
    since_millis: int | None = None
    retained_ms: int | None = None

    def run(self, table: OpenTable) -> TableChangeResult:
        """Write the tag file."""
        store = table.store()
        snapshot, retained = tagged_snapshot(store, self)
        create_tag(store, self.name, snapshot, retained)
        return TableChangeResult(snapshot_id=snapshot.id, tags=(self.name,))


class CreateDueTags(Operation[TableChangeResult]):
    """Create the tags that ``tag.automatic-creation`` asks for now."""

    def run(self, table: OpenTable) -> TableChangeResult:
        """Create the due tags, and delete those that have expired.

        Raises ``UnsupportedOption`` where the table creates no tags.
        """
        store = table.store()
        if store.options.raw.get(TAG_MODE, "none").strip().lower() == "none":
            raise UnsupportedOption(TAG_MODE, f"is not set on {store.root}, so no tag is due")
        before = store.snapshots.tags().keys()
        make_tags(store, store.snapshots.latest_id())
        return TableChangeResult(tags=tuple(sorted(store.snapshots.tags().keys() - before)))


class ReplaceTag(HistoryChange):
    """Move a tag to another snapshot. None: the newest."""

    name: str
    snapshot_id: int | None = None
    retained_ms: int | None = None

    def change(self, store: FileStore) -> TableChangeResult:
        """Replace the tag file.

        Deletes files that only the old tag used.
        """
        snapshot, retained = tagged_snapshot(store, self)
        removed = result_of(replace_tag(store, self.name, snapshot, retained))
        tags = () if self.dry_run else (self.name,)  # the tag stays, so it is not part of a removal
        return removed.model_copy(update={"snapshot_id": snapshot.id, "tags": tags})


class RenameTag(Operation[TableChangeResult]):
    """Rename a tag."""

    name: str
    new_name: str

    def run(self, table: OpenTable) -> TableChangeResult:
        """Write the new tag file, then delete the old one."""
        return TableChangeResult(snapshot_id=rename_tag(table.store(), self.name, self.new_name).id, tags=(self.new_name,))


class DeleteTag(HistoryChange):
    """Delete a tag."""

    name: str

    def change(self, store: FileStore) -> TableChangeResult:
        """Delete the tag and the files that only it used."""
        return result_of(delete_tag(store, self.name))


class ExpireTags(HistoryChange):
    """Delete tags whose retention has passed.

    ``older_than``: local time; tags created before it are deleted, too.
    """

    older_than: datetime | None = None

    def change(self, store: FileStore) -> TableChangeResult:
        """Delete the tags and the files that only they used."""
        return result_of(expire_tags(store, older_than=self.older_than))


def tagged_snapshot(store: FileStore, tag: CreateTag | ReplaceTag) -> tuple[Snapshot, int | None]:
    """Return the snapshot to tag and the retention in milliseconds.

    Raises ``SnapshotNotFound``.
    """
    since = tag.since_millis if isinstance(tag, CreateTag) else None
    snapshot = store.snapshots.travel(snapshot_id=tag.snapshot_id) if since is None else store.snapshots.first_since(since)
    if snapshot is None:
        raise SnapshotNotFound(f"{store.root}: the table has no snapshot to tag")
    retained = tag.retained_ms
    if retained is None and (text := store.options.raw.get(_DEFAULT_RETAINED)) is not None:
        retained = parse_duration_millis(text, _DEFAULT_RETAINED)
    return snapshot, retained
