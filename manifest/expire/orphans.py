"""Files that no metadata refers to (Paimon's ``LocalOrphanFilesClean``).

Killed writers and lost races leave them. An uncommitted file of a running write looks the same: only its age protects it.

Files that retained states reach must not be deleted, by expiry or orphan removal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.live import EntryFilter
from manifest.io.errors import PathNotOwned, SnapshotExpired, SnapshotNotFound
from manifest.io.file_io import FileStatus
from manifest.io.paths import BUCKET, CHANGELOG, EARLIEST, LATEST, MAIN_BRANCH, ROLLBACK, SNAPSHOT, escape, parse_number
from manifest.snapshot.manager import SnapshotManager
from manifest.snapshot.snapshot import Snapshot, Tag
from manifest.store import EVERYTHING, FileStore, table_around
from paimon_base.errors import CorruptFile
from paimon_base.log import logger_of
from paimon_base.plugins import plugin

_LOG = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class Orphan:
    """An unreferenced file.

    Args:
        path: Path of the file.
        size: Size in bytes.
        mtime_ms: Last change, in milliseconds since the epoch.
    """

    path: str
    size: int
    mtime_ms: int


def list_orphans(store: FileStore, older_than_ms: int) -> list[Orphan]:
    """Return unreferenced files last changed before ``older_than_ms``, by path.

    ``older_than_ms`` is in milliseconds since the epoch. Lists the directories of manifests, indexes, statistics, snapshots, changelogs,
    buckets and Iceberg metadata only. Raises ``CorruptFile`` if some metadata cannot be read: the used files are unknown then.
    Raises ``PathNotOwned`` for a directory outside of the table, or behind a link.
    """
    # Before the metadata is read, so that files of commits in between are not listed.
    listed = [*_metadata_files(store), *_bucket_files(store)]
    used: dict[str, Callable[[str], bool]] = {}
    if store.writes_iceberg:
        iceberg = plugin("orphans", "iceberg")
        directory, of_iceberg = iceberg.list_files(store)
        listed += [(directory, status) for status in of_iceberg]
        used[directory] = iceberg.needed_names(store).__contains__
    needed = everything_reachable(store)
    used |= {
        store.paths.manifests: needed.metadata.__contains__,
        store.paths.indexes: needed.indexes.__contains__,
        store.paths.all_statistics: needed.statistics.__contains__,
    }
    for branch in branches_of(store):
        used[branch.paths.snapshots] = lambda name: name in {LATEST, EARLIEST, ROLLBACK} or parse_number(name, SNAPSHOT) is not None
        used[branch.paths.changelogs] = lambda name: name in {LATEST, EARLIEST} or parse_number(name, CHANGELOG) is not None
    in_bucket = needed.data | needed.indexes
    orphans = [
        Orphan(f"{directory}/{status.name}", status.size, status.mtime_ms)
        for directory, status in listed
        if status.mtime_ms < older_than_ms and not used.get(directory, in_bucket.__contains__)(status.name)
    ]
    return sorted(orphans, key=lambda orphan: orphan.path)


def remove_orphans(store: FileStore, older_than_ms: int) -> list[Orphan]:
    """Delete the files of ``list_orphans`` and return those deleted."""
    gone = [orphan for orphan in list_orphans(store, older_than_ms) if store.file_io.delete(orphan.path)]
    if gone:
        _LOG.info("%s: removed %d orphans, %d bytes", store.root, len(gone), sum(orphan.size for orphan in gone))
    return gone


def _metadata_files(store: FileStore) -> Iterator[tuple[str, FileStatus]]:
    paths = store.paths
    directories = [paths.manifests, paths.indexes, paths.all_statistics]
    for branch in branches_of(store):
        directories += [branch.paths.snapshots, branch.paths.changelogs]
    for directory in directories:
        yield from ((directory, status) for status in store.file_io.list(store.owned.directory(directory)) if not status.is_dir)


def _bucket_files(store: FileStore) -> Iterator[tuple[str, FileStatus]]:
    """Yield files in ``bucket-*`` directories of all partitions."""
    # One level of key=value directories per partition key.
    directories = [store.owned.directory(store.paths.data)]
    if table_around(store, store.paths.data) is not None:
        raise PathNotOwned(store.root, store.paths.data)
    for key in store.schema.partition_keys:
        directories = [
            store.owned.directory(f"{directory}/{status.name}")
            for directory in directories
            for status in store.file_io.list(directory)
            if status.is_dir and status.name.startswith(f"{escape(key)}=")
        ]
    for directory in directories:
        for status in store.file_io.list(directory):
            if status.is_dir and status.name.startswith(BUCKET):
                bucket = store.owned.directory(f"{directory}/{status.name}")
                yield from ((bucket, file) for file in store.file_io.list(bucket) if not file.is_dir)


@dataclass(slots=True)
class Reachable:
    """Names of reachable files, unique in a table.

    Args:
        data: Data files and their side files, for states only those that ``entry_filter`` selects.
        metadata: Manifests and manifest lists.
        indexes: Index files.
        statistics: Statistics files.
        entry_filter: Filter of entries. A deletion in few buckets need not load the files of others.
    """

    data: set[str] = field(default_factory=set)
    metadata: set[str] = field(default_factory=set)
    indexes: set[str] = field(default_factory=set)
    statistics: set[str] = field(default_factory=set)
    entry_filter: EntryFilter = EVERYTHING

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

        Raises ``CorruptFile`` if some of it is missing, ``SnapshotExpired`` if ``manager`` (default: the store's) no longer has the snapshot.
        """
        with _needed_by(snapshot, manager or store.snapshots):
            self._add_metadata(store, snapshot)
            self.data |= store.live_entries(snapshot, self.entry_filter).physical_names()

    def add_changes(self, store: FileStore, snapshot: Snapshot, manager: SnapshotManager) -> None:
        """Add the files ``snapshot`` added, and its changelog.

        Raises as ``add_state`` does.
        """
        with _needed_by(snapshot, manager):
            self._add_metadata(store, snapshot)
            changes = store.delta_entries(snapshot)
            self.data |= changes.select(changes.kind == FileKind.ADD).physical_names()
            self.add_changelog(store, snapshot)

    def add_changelog(self, store: FileStore, snapshot: Snapshot) -> None:
        """Add the changelog of ``snapshot``. Raises ``FileNotFoundError``."""
        if snapshot.changelog_manifest_list:
            self.metadata.add(snapshot.changelog_manifest_list)
            for meta in store.manifest_lists.read(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size):
                self.metadata.add(meta.file_name)
                self.data |= store.manifests.read_meta(meta).physical_names()

    def add_kept(self, store: FileStore, changelog: Snapshot) -> None:
        """Add the files of a kept changelog.

        Without changelog files these are the appended files and the data manifests.
        """
        with suppress(FileNotFoundError):  # an expiry may be deleting it
            if changelog.changelog_manifest_list:
                self.add_changelog(store, changelog)
                return
            self.add_lists(store, [name for name, _ in changelog.manifest_lists])
            metas = store.manifest_lists.read(changelog.delta_manifest_list, changelog.delta_manifest_list_size)
            changes = store.manifests.read_metas(metas)
            self.data |= changes.select(changes.is_appended).physical_names()  # files that it deleted are not kept

    def add_lists(self, store: FileStore, names: Iterable[str]) -> None:
        """Add manifest lists and their manifests. Skip missing lists."""
        for name in names:
            with suppress(FileNotFoundError):
                self.metadata.update(meta.file_name for meta in store.manifest_lists.read(name))
                self.metadata.add(name)


@contextmanager
def _needed_by(snapshot: Snapshot, manager: SnapshotManager) -> Iterator[None]:
    """Explain a missing file that ``snapshot`` needs."""
    try:
        yield
    except (FileNotFoundError, SnapshotExpired) as error:
        what = "a tag of snapshot" if isinstance(snapshot, Tag) else "snapshot"
        # Unless the snapshot was just deleted, the used files are unknown and nothing may be deleted.
        if not manager.stores(snapshot):
            raise SnapshotExpired(f"{manager.paths.root}: {what} {snapshot.id} was deleted while it was read") from error
        missing = error if isinstance(error, FileNotFoundError) else error.__cause__
        path = str(getattr(missing, "filename", "") or manager.paths.manifests)
        raise CorruptFile(path, f"is missing, but {what} {snapshot.id} needs it; nothing is deleted meanwhile") from error


def reachable(store: FileStore, states: Iterable[Snapshot], dead: EntryColumns) -> Reachable:
    """Return the files that ``states`` and all other branches reach.

    Of data files, has at least those in buckets of ``dead``. Raises ``CorruptFile`` if the files are unknown.
    """
    result = Reachable(entry_filter=EntryFilter(partitions=set(dead.partition_codes[1]), buckets=set(dead.bucket.tolist())))
    for state in states:
        # A tag may be deleted at any time.
        with suppress(SnapshotExpired) if isinstance(state, Tag) else nullcontext():
            result.add_state(store, state)
    for branch in branches_of(store):
        if branch.paths.branch != store.branch:
            _add_history(result, store, branch)
    return result


def everything_reachable(store: FileStore) -> Reachable:
    """Return files of all snapshots, kept changelogs, tags and branches."""
    result = Reachable()
    for branch in branches_of(store):
        _add_history(result, store, branch)
    return result


def near_tags(store: FileStore, tagged: Mapping[int, Tag], first: int, end: int) -> list[Tag]:
    """Return tags that may need files of the given snapshots.

    Args:
        store: The table.
        tagged: Tags by snapshot id.
        first: First snapshot that is removed.
        end: First snapshot that is kept.
    """
    # With branches, tags may belong to another history.
    if store.snapshots.branch_names(unfinished=True):
        return list(tagged.values())
    # If two states of one history have a file, all states between have it. So the newest of the older tags covers the others.
    older = max((tag for tag in tagged if tag < first), default=end)
    return [tag for snapshot_id, tag in tagged.items() if first <= snapshot_id < end or snapshot_id == older]


def branches_of(store: FileStore) -> Iterator[SnapshotManager]:
    """Yield the snapshot managers of every branch, main first."""
    for name in (MAIN_BRANCH, *store.snapshots.branch_names(unfinished=True)):
        yield SnapshotManager(store.file_io, store.paths.for_branch(name))


def _add_history(collected: Reachable, store: FileStore, manager: SnapshotManager) -> None:
    """Add everything that one branch reaches.

    Snapshots and tags that are deleted meanwhile are skipped.
    """
    # With a pending rollback or fast-forward both histories count: other engines read the old one, and a later commit makes the pending
    # file void.
    pending = manager.pending_history()
    for tag in manager.stored_tags().values():
        with suppress(SnapshotExpired):
            collected.add_state(store, tag, manager)
    previous = None
    for snapshot_id in manager.stored_ids():
        snapshot = manager.stored(snapshot_id)
        if snapshot is None:
            previous = None
            continue
        try:
            # After a gap, or a change of history that is one commit, the changes of snapshots do not add up to the state.
            if previous is None or previous + 1 != snapshot_id or snapshot.first_replaced is not None:
                collected.add_state(store, snapshot, manager)
            collected.add_changes(store, snapshot, manager)
            previous = snapshot_id
        except SnapshotNotFound:
            previous = None
    for snapshot in manager.kept.all():
        collected.add_kept(store, snapshot)
    for state in pending.states if pending is not None else ():
        collected.add_state(store, state, manager)
