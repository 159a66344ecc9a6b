"""Index and changelog changes of a commit, and their paths."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from manifest.commit.attempt import CommitChange
from manifest.commit.conflicts import BucketId, Conflict
from manifest.commit.index_change import BucketChange, apply_changes, index_conflicts
from manifest.commit.message import CommitMessage
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.index_manifest import IndexFile, IndexManifestEntry
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


@dataclass(frozen=True, slots=True)
class IndexUpdate:
    """Index changes on top of a snapshot's index files.

    Args:
        entries: Index files that stay unless a change removes them.
        changes: Changes of buckets.
        dropped: Whether an overwrite removed other entries.
    """

    entries: Sequence[IndexManifestEntry]
    changes: Sequence[BucketChange]
    dropped: bool = False

    @classmethod
    def of(cls, store: FileStore, latest: Snapshot | None, messages: Iterable[CommitMessage], *, compaction: bool) -> IndexUpdate:
        """Return index changes of the rows, or of the compaction."""
        changes = [change for message in messages for change in message.index_changes_of(compaction=compaction)]
        return cls(store.index_entries(latest) if changes else (), changes)

    def overwriting(self, store: FileStore, latest: Snapshot | None, partitions: Collection[bytes] | None) -> IndexUpdate:
        """Return the update without index files of ``partitions``.

        None: of all partitions.
        """
        before = store.index_entries(latest)
        untouched = [] if partitions is None else [entry for entry in before if entry.partition not in partitions]
        return IndexUpdate(untouched, self.changes, len(untouched) < len(before))

    def conflicts(self, base: EntryColumns, delta: EntryColumns) -> list[Conflict]:
        """Return conflicts with index files, and data files after ``delta``."""
        if not self.changes:
            return []
        buckets = {bucket for bucket, _ in self.changes}
        return index_conflicts(self.entries, self.changes, _names_after(base, delta, buckets))

    def complete(self, store: FileStore, change: CommitChange) -> CommitChange:
        """Return ``change``, with a new index manifest if needed."""
        if not self.dropped and all(update.is_empty for _, update in self.changes):
            return change
        name = store.index_manifests.write(apply_changes(self.entries, self.changes))
        files = frozenset(file.file_name for _, update in self.changes for file in update.new)
        return replace(change, index_changed=True, index_manifest=name, index_files=files)


def changelog_of(messages: Iterable[CommitMessage], *, compaction: bool) -> EntryColumns:
    """Return changelog entries of the rows, or of their compaction."""
    return EntryColumns.of(entry for message in messages for entry in message.changelog(compaction=compaction))


def index_path(store: FileStore, bucket: BucketId, file: IndexFile) -> str:
    """Return the path of an index file."""
    return store.paths.index(file.file_name, store.partition.decode(bucket[0]), bucket[1], file.external_path)


def row_paths(store: FileStore, message: CommitMessage) -> Iterator[str]:
    """Yield all files written with the rows of ``message``."""
    for file in (*message.new_files, *message.changelog_files):
        yield from store.physical_files(message.partition, message.bucket, file)
    yield from _index_paths(store, message, compaction=False)


def compaction_paths(store: FileStore, message: CommitMessage) -> Iterator[str]:
    """Yield all files written by the compaction of ``message``."""
    for file, name in message.names_made_by_compaction():
        paths = dict(zip(file.file_names, store.physical_files(message.partition, message.bucket, file), strict=True))
        yield paths[name]
    yield from _index_paths(store, message, compaction=True)


def _index_paths(store: FileStore, message: CommitMessage, *, compaction: bool) -> Iterator[str]:
    for bucket, change in message.index_changes_of(compaction=compaction):
        for file in change.new:
            yield index_path(store, bucket, file)


def _names_after(base: EntryColumns, delta: EntryColumns, buckets: Collection[BucketId]) -> dict[BucketId, set[str]]:
    """Return the data files of each bucket after ``delta``."""
    live: dict[BucketId, set[str]] = {bucket: set() for bucket in buckets}
    for entries, kind in ((base, FileKind.ADD), (delta, FileKind.DELETE), (delta, FileKind.ADD)):
        of_kind = entries.select(entries.kind == kind)
        for partition, bucket, name in zip(of_kind.partition, of_kind.bucket.tolist(), of_kind.file_name, strict=True):
            if (partition, bucket) not in live:
                continue
            if kind == FileKind.ADD:
                live[partition, bucket].add(name)
            else:
                live[partition, bucket].discard(name)
    return live
