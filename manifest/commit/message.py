"""What writers hand to a commit, and what a commit answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from manifest.commit.index_change import BucketChange, IndexChange
from manifest.entry.data_file import DataFileMeta
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.entry.manifest_entry import FileKind, ManifestEntry
from manifest.snapshot.snapshot import SnapshotKey


class CommitMessage(BaseModel):
    """The changes of one writer in one bucket; frozen, picklable, and JSON with base64 bytes.

    Changelog files describe the new files or, ``compact_changelog``, the compaction. ``index_changes`` has at most one per kind.
    ``base_snapshot_id`` is the newest snapshot when the writer opened (0: there was none; None: unknown), ``base_manifest_list`` its
    delta manifest list (empty: unknown). ``compact_read`` names data files of that snapshot that decided about the compaction's output, and
    ``base_max_sequence`` the greatest sequence number it saw in the bucket. ``compaction_failed``: the writer's own compaction met an
    error, which is logged, and was dropped.

    >>> CommitMessage(partition=bytes(12), bucket=0, total_buckets=1).is_empty
    True
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    partition: bytes
    bucket: int
    total_buckets: int
    new_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    index_changes: tuple[IndexChange, ...] = ()
    changelog_files: tuple[DataFileMeta, ...] = ()
    compact_changelog: tuple[DataFileMeta, ...] = ()
    base_max_sequence: int = -1
    base_snapshot_id: int | None = None
    base_manifest_list: str = ""
    compact_read: tuple[str, ...] = ()
    compaction_failed: bool = False

    @property
    def base(self) -> SnapshotKey | None:
        """The newest snapshot when the writer opened, as far as it is known."""
        return None if self.base_snapshot_id is None else SnapshotKey(self.base_snapshot_id, self.base_manifest_list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.has_rows or self.has_compaction)

    @property
    def has_rows(self) -> bool:
        """Whether the snapshot of the rows has something of it; deletion vectors that mark rows count as such."""
        return bool(self.new_files or self.changelog_files or self._changes_index(compaction=False))

    @property
    def has_compaction(self) -> bool:
        """Whether files were compacted."""
        return bool(self.compact_before or self.compact_after or self._changes_index(compaction=True))

    @property
    def marks_rows(self) -> bool:
        """Whether rows of older snapshots are deleted by marks, so that the commit is more than an append."""
        return any(change.kind == DELETION_VECTORS and not change.compaction and not change.is_empty for change in self.index_changes)

    @property
    def bucket_id(self) -> tuple[bytes, int]:
        """(partition, bucket)."""
        return self.partition, self.bucket

    def added(self) -> Iterator[ManifestEntry]:
        """ADD entries of the new files."""
        return self._entries(FileKind.ADD, self.new_files)

    def compacted(self) -> Iterator[ManifestEntry]:
        """DELETE entries of the files before the compaction, ADD entries of those after it."""
        yield from self._entries(FileKind.DELETE, self.compact_before)
        yield from self._entries(FileKind.ADD, self.compact_after)

    def changelog(self, *, compaction: bool) -> Iterator[ManifestEntry]:
        """ADD entries of the changelog files that come with the rows, or with their compaction."""
        return self._entries(FileKind.ADD, self.compact_changelog if compaction else self.changelog_files)

    def index_changes_of(self, *, compaction: bool) -> Iterator[BucketChange]:
        """The index changes that become visible with the rows, or with their compaction."""
        return ((self.bucket_id, change) for change in self.index_changes if change.compaction == compaction)

    def without_compaction(self) -> CommitMessage:
        """The same writes, uncompacted."""
        index = tuple(change for change in self.index_changes if not change.compaction)
        return self.model_copy(update={"compact_before": (), "compact_after": (), "compact_changelog": (), "index_changes": index})

    def made_by_compaction(self) -> Iterator[DataFileMeta]:
        """Files of a compaction that are physically new: an upgrade shares its data file with an older entry."""
        older = {name for file in (*self.new_files, *self.compact_before) for name in file.file_names}
        for file in (*self.compact_after, *self.compact_changelog):
            if file.file_name not in older:
                yield file

    def names_made_by_compaction(self) -> Iterator[tuple[DataFileMeta, str]]:
        """Each physical file that a compaction made, with the entry it belongs to; of a rewritten index that is the side file alone."""
        older = {name for file in (*self.new_files, *self.compact_before) for name in file.file_names}
        for file in (*self.compact_after, *self.compact_changelog):
            yield from ((file, name) for name in file.file_names if name not in older)

    def _changes_index(self, *, compaction: bool) -> bool:
        return any(change.compaction == compaction and not change.is_empty for change in self.index_changes)

    def _entries(self, kind: FileKind, files: Iterable[DataFileMeta]) -> Iterator[ManifestEntry]:
        for file in files:
            yield ManifestEntry(kind=kind, partition=self.partition, bucket=self.bucket, total_buckets=self.total_buckets, file=file)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The snapshots of one logical commit.

    ``snapshot_id`` made the rows visible (None: there were none), ``compact_snapshot_id`` holds its compaction.
    ``replayed``: an earlier call had committed it. ``lost_compactions`` are the (partition, bucket) whose compaction lost
    to a newer commit, or met an error, and was dropped; their rows, if any, are committed all the same.
    """

    snapshot_id: int | None = None
    compact_snapshot_id: int | None = None
    replayed: bool = False
    lost_compactions: tuple[tuple[bytes, int], ...] = ()

    @property
    def compact_lost(self) -> bool:
        """Whether some compaction was dropped."""
        return bool(self.lost_compactions)


__all__ = ["CommitMessage", "CommitResult"]
