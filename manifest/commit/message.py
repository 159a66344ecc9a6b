"""Messages from writers to a commit, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from manifest.commit.index_change import BucketChange, IndexChange
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.entry.index_manifest import DELETION_VECTORS
from manifest.snapshot.snapshot import SnapshotKey


class CommitMessage(BaseModel):
    """Changes of one writer in one bucket.

    Frozen, picklable, and JSON with base64 bytes.

    Args:
        partition: Serialised partition.
        bucket: Bucket number.
        total_buckets: Buckets of the partition.
        new_files: Files with new rows.
        compact_before: Input files of the compaction.
        compact_after: Output files of the compaction.
        index_changes: At most one per kind, for the rows and for the compaction.
        changelog_files: Changelog of the new files.
        compact_changelog: Changelog of the compaction.
        base_snapshot_id: Newest snapshot when the writer opened. 0: the table was empty. None: unknown.
        base_manifest_list: Delta manifest list of that snapshot. Empty: unknown.
        compact_read: Data files of that snapshot that the output of the compaction depends on.
        compaction_error: Why the writer's own compaction failed. It was logged and dropped. None: it did not fail.

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
    base_snapshot_id: int | None = None
    base_manifest_list: str = ""
    compact_read: tuple[str, ...] = ()
    compaction_error: str | None = None

    @property
    def base(self) -> SnapshotKey | None:
        """Newest snapshot when the writer opened. None: unknown."""
        return None if self.base_snapshot_id is None else SnapshotKey(self.base_snapshot_id, self.base_manifest_list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.has_rows or self.has_compaction)

    @property
    def has_rows(self) -> bool:
        """Whether the rows' snapshot gets files or index changes."""
        return bool(self.new_files or self.changelog_files or self._changes_index(compaction=False))

    @property
    def has_compaction(self) -> bool:
        """Whether files were compacted."""
        return bool(self.compact_before or self.compact_after or self._changes_index(compaction=True))

    @property
    def marks_rows(self) -> bool:
        """Whether deletion vectors delete rows of older snapshots."""
        return any(change.kind == DELETION_VECTORS and not change.compaction and not change.is_empty for change in self.index_changes)

    @property
    def bucket_id(self) -> tuple[bytes, int]:
        """(partition, bucket)."""
        return self.partition, self.bucket

    def added_entries(self) -> Iterator[ManifestEntry]:
        """Return ADD entries of the new files."""
        return self._entries(FileKind.ADD, self.new_files)

    def compacted_entries(self) -> Iterator[ManifestEntry]:
        """Yield DELETE entries of inputs and ADD entries of outputs."""
        yield from self._entries(FileKind.DELETE, self.compact_before)
        yield from self._entries(FileKind.ADD, self.compact_after)

    def changelog(self, *, compaction: bool) -> Iterator[ManifestEntry]:
        """Return changelog entries of the rows, or of their compaction."""
        return self._entries(FileKind.ADD, self.compact_changelog if compaction else self.changelog_files)

    def index_changes_of(self, *, compaction: bool) -> Iterator[BucketChange]:
        """Return index changes of the rows, or of their compaction."""
        return ((self.bucket_id, change) for change in self.index_changes if change.compaction == compaction)

    def without_compaction(self) -> CommitMessage:
        """Return the same writes without compaction."""
        index = tuple(change for change in self.index_changes if not change.compaction)
        return self.model_copy(update={"compact_before": (), "compact_after": (), "compact_changelog": (), "index_changes": index})

    def compaction_files(self) -> Iterator[DataFileMeta]:
        """Yield physically new files of a compaction.

        An upgrade shares its data file with an older entry.
        """
        older = {name for file in (*self.new_files, *self.compact_before) for name in file.file_names}
        for file in (*self.compact_after, *self.compact_changelog):
            if file.file_name not in older:
                yield file

    def names_made_by_compaction(self) -> Iterator[tuple[DataFileMeta, str]]:
        """Yield each physical file of a compaction with its entry.

        A rewritten index yields only its side file.
        """
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
    """Snapshots of one logical commit.

    Args:
        snapshot_id: Snapshot of the rows. None: no rows were committed.
        compact_snapshot_id: Snapshot of the compaction.
        replayed: Whether an earlier call committed it.
        lost_compactions: (partition, bucket) of each dropped compaction, after a lost race or an error. Their rows are committed.
        compaction_error: The first of these errors. None: only races were lost.
    """

    snapshot_id: int | None = None
    compact_snapshot_id: int | None = None
    replayed: bool = False
    lost_compactions: tuple[tuple[bytes, int], ...] = ()
    compaction_error: str | None = None

    @property
    def compact_lost(self) -> bool:
        """Whether a compaction was dropped."""
        return bool(self.lost_compactions)


def compaction_counts(messages: Sequence[CommitMessage]) -> dict[str, int]:
    """Return counts of files, bytes, rows and buckets of compactions.

    A file that only changed its level was neither read nor written.
    """
    before = [file for message in messages for file in message.compact_before]
    after = [file for message in messages for file in message.compact_after]
    new_files = [file for message in messages for file in message.compaction_files()]
    reused_names = {file.file_name for file in after} - {file.file_name for file in new_files}
    return {
        "files_before": len(before),
        "files_after": len(after),
        "bytes_read": sum([file.file_size for file in before if file.file_name not in reused_names]),
        "bytes_written": sum([file.file_size for file in new_files]),
        "rows": sum([file.row_count for file in after]),
        "buckets": len(messages),
    }
