"""Which files the retained states of a table reach: what expiry and orphan removal must not touch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from fileindex.base.errors import CorruptFile
from manifest.entry.columns import EntryColumns
from manifest.entry.live import EntryFilter
from manifest.entry.manifest_entry import FileKind
from manifest.io.errors import SnapshotExpired, SnapshotNotFound
from manifest.io.paths import MAIN_BRANCH
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot
from manifest.snapshot.tag import Tag
from manifest.store import EVERYTHING, FileStore


@dataclass(slots=True)
class Reachable:
    """Names of files, unique in a table: ``data`` with side files, ``metadata`` (manifests and lists), ``indexes``, ``statistics``.

    Of states, ``data`` has what ``wanted`` asks for: who is about to delete files of few buckets need not know the others.
    """

    data: set[str] = field(default_factory=set)
    metadata: set[str] = field(default_factory=set)
    indexes: set[str] = field(default_factory=set)
    statistics: set[str] = field(default_factory=set)
    wanted: EntryFilter = EVERYTHING

    def _add_metadata(self, store: FileStore, snapshot: Snapshot) -> None:
        for name, size in snapshot.manifest_lists:
            self.metadata.add(name)
            self.metadata.update(meta.file_name for meta in store.manifest_lists.read(name, size))
        if snapshot.changelog_manifest_list:
            self.metadata.add(snapshot.changelog_manifest_list)
            with suppress(FileNotFoundError):  # a tag keeps the rows of an expired snapshot, perhaps not its changelog
                metas = store.manifest_lists.read(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
                self.metadata.update(meta.file_name for meta in metas)
        if snapshot.index_manifest:
            self.metadata.add(snapshot.index_manifest)
            self.indexes.update(entry.file_name for entry in store.index_manifests.read(snapshot.index_manifest))
        if snapshot.statistics:
            self.statistics.add(snapshot.statistics)

    def add_state(self, store: FileStore, snapshot: Snapshot, manager: SnapshotManager | None = None) -> None:
        """Add everything that reading ``snapshot`` needs.

        Raises ``CorruptFile`` if some of it is missing, ``SnapshotExpired`` if ``manager`` (default: the store's) does not have it any more.
        """
        with _needed_by(snapshot, manager or store.snapshots):
            self._add_metadata(store, snapshot)
            self.data |= store.live_entries(snapshot, self.wanted).physical_names()

    def add_changes(self, store: FileStore, snapshot: Snapshot, manager: SnapshotManager) -> None:
        """Add everything that ``snapshot`` added to its predecessor's state, and its changelog. Raises as ``add_state`` does."""
        with _needed_by(snapshot, manager):
            self._add_metadata(store, snapshot)
            changes = store.delta_entries(snapshot)
            self.data |= changes.select(changes.kind == FileKind.ADD).physical_names()
            self.add_changelog(store, snapshot)

    def add_changelog(self, store: FileStore, snapshot: Snapshot) -> None:
        """The changelog of ``snapshot``, if it has one. Raises ``FileNotFoundError``."""
        if snapshot.changelog_manifest_list:
            self.metadata.add(snapshot.changelog_manifest_list)
            for meta in store.manifest_lists.read(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size):
                self.metadata.add(meta.file_name)
                self.data |= store.manifests.read_meta(meta).physical_names()

    def add_kept(self, store: FileStore, changelog: Snapshot) -> None:
        """What is left of an expired snapshot whose changelog is kept: its changelog or, if it has none, the appended files that it tells of, and the data's manifests."""
        with suppress(FileNotFoundError):  # an expiry may be deleting it
            if changelog.changelog_manifest_list:
                self.add_changelog(store, changelog)
                return
            self.add_lists(store, [name for name, _ in changelog.manifest_lists])
            metas = store.manifest_lists.read(changelog.delta_manifest_list, changelog.delta_manifest_list_size)
            changes = store.manifests.read_metas(metas)
            self.data |= changes.select(changes.is_appended).physical_names()  # those it deleted go with it

    def add_lists(self, store: FileStore, names: Iterable[str]) -> None:
        """Manifest lists and their manifests; a list that is not there reaches nothing."""
        for name in names:
            with suppress(FileNotFoundError):
                self.metadata.update(meta.file_name for meta in store.manifest_lists.read(name))
                self.metadata.add(name)


@contextmanager
def _needed_by(snapshot: Snapshot, manager: SnapshotManager) -> Iterator[None]:
    """Explain a missing file: nobody knows what ``snapshot`` uses, so nothing may be deleted, unless it has just gone itself."""
    try:
        yield
    except (FileNotFoundError, SnapshotExpired) as error:
        what = "a tag of snapshot" if isinstance(snapshot, Tag) else "snapshot"
        if not manager.still_has(snapshot):
            raise SnapshotExpired(f"{manager.paths.root}: {what} {snapshot.id} was deleted while it was read") from error
        missing = error if isinstance(error, FileNotFoundError) else error.__cause__
        path = str(getattr(missing, "filename", "") or manager.paths.manifests)
        raise CorruptFile(path, f"is missing, but {what} {snapshot.id} needs it; nothing is deleted meanwhile") from error


def reachable(store: FileStore, states: Iterable[Snapshot], dead: EntryColumns) -> Reachable:
    """What ``states`` of the store's branch and every other branch reach, of data files at least those in buckets of ``dead``.

    ``CorruptFile`` if that cannot be told.
    """
    found = Reachable(wanted=EntryFilter(partitions=set(dead.partition_codes[1]), buckets=set(dead.bucket.tolist())))
    for state in states:
        # A tag may be deleted at any time.
        with suppress(SnapshotExpired) if isinstance(state, Tag) else nullcontext():
            found.add_state(store, state)
    for branch in branches_of(store):
        if branch.paths.branch != store.branch:
            _add_history(found, store, branch)
    return found


def everything_reachable(store: FileStore) -> Reachable:
    """What any retained snapshot, kept changelog, tag or branch reaches."""
    found = Reachable()
    for branch in branches_of(store):
        _add_history(found, store, branch)
    return found


def near_tags(store: FileStore, tagged: Mapping[int, Tag], first: int, end: int) -> list[Tag]:
    """Of tags, by snapshot, those that may need a file which the snapshots from ``first`` on to before ``end`` leave behind.

    Between two states of one history that have a file all have it, so of older tags the newest tells for all. Where branches are,
    tags may be of another history, and all are asked.
    """
    if store.snapshots.branch_names(unfinished=True):
        return list(tagged.values())
    older = max((tag for tag in tagged if tag < first), default=end)
    return [tag for snapshot_id, tag in tagged.items() if first <= snapshot_id < end or snapshot_id == older]


def branches_of(store: FileStore) -> Iterator[SnapshotManager]:
    """The snapshots of every branch, main first, whichever of them the store is."""
    for name in (MAIN_BRANCH, *store.snapshots.branch_names(unfinished=True)):
        yield SnapshotManager(store.file_io, store.paths.for_branch(name))


def _add_history(found: Reachable, store: FileStore, manager: SnapshotManager) -> None:
    """Add what one branch reaches. Snapshots and tags that are deleted meanwhile reach nothing."""
    for tag in manager.tags().values():
        with suppress(SnapshotExpired):
            found.add_state(store, tag, manager)
    previous = None
    for snapshot_id in manager.ids():
        try:
            snapshot = manager.get(snapshot_id)
            # After a gap, or a change of history that is one commit, the changes of snapshots do not add up to the state.
            if previous is None or previous + 1 != snapshot_id or snapshot.first_replaced is not None:
                found.add_state(store, snapshot, manager)
            found.add_changes(store, snapshot, manager)
            previous = snapshot_id
        except SnapshotNotFound:
            previous = None
    for snapshot in manager.kept.all():
        found.add_kept(store, snapshot)
    pending = manager.pending_history()
    for snapshot in pending.snapshots.values() if pending is not None else ():
        found.add_state(store, snapshot, manager)


__all__ = ["Reachable", "branches_of", "everything_reachable", "near_tags", "reachable"]
