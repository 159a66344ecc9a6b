"""Renumbers new rows so that sequence order is commit order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeAlias

from manifest.commit.conflicts import BucketId, max_sequences
from manifest.commit.index_update import compaction_paths
from manifest.commit.message import CommitMessage
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import CommitConflict
from manifest.store import FileStore

ResequenceFiles: TypeAlias = Callable[[bytes, int, list[DataFileMeta], int], list[DataFileMeta]]
"""(partition, bucket, files, first sequence number) -> durable copies of the files, numbered from that number in the same order."""


class Resequencer:
    """Messages of a commit, renumbered above concurrent commits.

    A bucket with rewritten files loses its own compaction, which was computed with the old sequence numbers.
    """

    def __init__(self, store: FileStore, messages: Sequence[CommitMessage], resequence: ResequenceFiles | None) -> None:
        self.messages = list(messages)
        self.lost: tuple[BucketId, ...] = ()
        self._store = store
        self._resequence = resequence
        self._original = tuple(messages)
        self._ordered = store.schema.kind.orders_by_sequence

    def fit(self, base: EntryColumns) -> None:
        """Number new files above the live files of their buckets.

        Raises ``CommitConflict`` if files must be rewritten and no ``resequence`` was given.
        """
        if not self._ordered:
            return
        writers: dict[BucketId, list[int]] = {}
        for position, message in enumerate(self.messages):
            if message.new_files:
                writers.setdefault(message.bucket_id, []).append(position)
        for bucket, newest in max_sequences(base, writers).items():
            positions = sorted(writers[bucket], key=lambda p: min(f.min_sequence_number for f in self.messages[p].new_files))
            first = min(file.min_sequence_number for file in self.messages[positions[0]].new_files)
            if first <= newest:
                self._renumber(bucket, positions, newest + 1)

    def _renumber(self, bucket: BucketId, positions: Sequence[int], first: int) -> None:
        if self._resequence is None:
            values = self._store.partition.decode(bucket[0])
            raise CommitConflict(
                f"{self._store.root}: bucket {bucket[1]} of partition {values} has newer rows than this write was based on"
            )
        for position in positions:
            message = self.messages[position]
            files = self._resequence(*bucket, list(message.new_files), first)
            self._delete(message.new_files, message, unless=self._original[position].new_files)
            self.messages[position] = message.without_compaction().model_copy(update={"new_files": tuple(files)})
            first = max((file.max_sequence_number for file in files), default=first - 1) + 1
        if any(self._original[position].has_compaction for position in positions) and bucket not in self.lost:
            self.lost += (bucket,)

    @contextmanager
    def abort_on_error(self, abort: Callable[[Sequence[CommitMessage]], object]) -> Iterator[None]:
        """Call ``abort`` with the rewritten messages if the block raises.

        The caller keeps the files that it passed in.
        """
        try:
            yield
        except BaseException:
            rewritten = [message for message, original in zip(self.messages, self._original, strict=True) if message is not original]
            abort([message.model_copy(update={"index_changes": (), "changelog_files": ()}) for message in rewritten])
            raise

    def delete_replaced(self) -> None:
        """Delete the files replaced by rewritten ones, after the commit."""
        for message, original in zip(self.messages, self._original, strict=True):
            if message is not original:
                self._delete(original.new_files, original, unless=message.new_files)
                for path in compaction_paths(self._store, original):
                    with suppress(OSError):  # an orphan at worst
                        self._store.file_io.delete(path)

    def _delete(self, files: Sequence[DataFileMeta], message: CommitMessage, *, unless: Sequence[DataFileMeta]) -> None:
        used_names = {file.file_name for file in unless}
        for file in files:
            if file.file_name not in used_names:
                for path in self._store.physical_files(message.partition, message.bucket, file):
                    with suppress(OSError):  # an orphan at worst
                        self._store.file_io.delete(path)
