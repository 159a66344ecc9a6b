"""What every writer of one (partition, bucket) has: where it writes, what was there before, what it makes for the commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fileindex.base.arrays import Int64s
from fileindex.base.column_type import Plain
from fileindex.base.errors import UnsupportedOption
from fileindex.base.lazy import cached_property
from fileindex.base.log import logger_of
from lsm.data_files.spill import SpillSpace
from lsm.data_files.writer import FileTarget
from lsm.write_buffer.source import BufferedRows, Source
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.io.paths import FileNames
from manifest.snapshot.snapshot import EMPTY_TABLE, SnapshotKey
from manifest.store import FileStore

if TYPE_CHECKING:
    from lsm.deletion_vectors.maintainer import BucketVectors

_LOG = logger_of(__name__)


@dataclass(frozen=True, kw_only=True)
class BucketContext:
    """One bucket as a writer finds it: its live files when the write began, and where new ones go."""

    store: FileStore
    partition: bytes
    values: tuple[Plain, ...]
    bucket: int
    names: FileNames
    space: SpillSpace
    existing: Sequence[DataFileMeta] = ()
    base: SnapshotKey = EMPTY_TABLE
    compacts: bool = True
    first_sequence: int | None = None
    vectors: BucketVectors | None = None
    """The bucket's deletion vectors; None for tables without."""
    looked_up: set[str] = field(default_factory=set)
    """Names of files in which compactions looked up older versions."""
    logs: bool = True
    """Whether changelog files are written where the table has a producer; an overwrite has none."""
    total_buckets: int | None = None
    """The number of buckets of the partition; None: as the table's option says."""

    @cached_property
    def target(self) -> FileTarget:
        """Where and how data files are written."""
        schema = self.store.schema
        size = self.store.options.target_size(has_primary_key=schema.is_primary_key_table)
        directory = self.store.paths.bucket_dir(self.values, self.bucket)
        return FileTarget(store=self.store, directory=directory, names=self.names, target_size=size)

    @property
    def next_sequence(self) -> int:
        """The first sequence number of new rows: above all in the bucket, unless the writer has a range of its own."""
        return self.max_sequence + 1 if self.first_sequence is None else self.first_sequence

    @cached_property
    def max_sequence(self) -> int:
        """The greatest sequence number of the bucket, -1 if it is empty."""
        return max([-1, *[file.max_sequence_number for file in self.existing]])

    @cached_property
    def knows_all_columns(self) -> bool:
        """Whether no file is of a newer schema than the writer's: rewriting one would lose the columns that were added."""
        own = self.store.schema.id
        return not [file for file in self.existing if file.schema_id > own]

    def message(
        self,
        new_files: Sequence[DataFileMeta] = (),
        compact_before: Sequence[DataFileMeta] = (),
        compact_after: Sequence[DataFileMeta] = (),
        changelog_files: Sequence[DataFileMeta] = (),
        compact_changelog: Sequence[DataFileMeta] = (),
        *,
        compaction_failed: bool = False,
    ) -> CommitMessage:
        """The message of this bucket; a compaction says what it did to the deletion vectors, or on which it relied."""
        compacted = self.vectors is not None and bool(compact_before or compact_after)
        return CommitMessage(
            partition=self.partition,
            bucket=self.bucket,
            total_buckets=self.store.options.bucket if self.total_buckets is None else self.total_buckets,
            new_files=tuple(new_files),
            compact_before=tuple(compact_before),
            compact_after=tuple(compact_after),
            changelog_files=tuple(changelog_files),
            compact_changelog=tuple(compact_changelog),
            index_changes=(self.vectors.change(compaction=True),) if self.vectors is not None and compacted else (),
            base_max_sequence=self.max_sequence,
            base_snapshot_id=self.base.id,
            base_manifest_list=self.base.delta_manifest_list,
            compact_read=tuple(sorted(self.looked_up.intersection(f.file_name for f in self.existing))) if compact_after else (),
            compaction_failed=compaction_failed,
        )

    def loses_compaction(self, compact: Callable[[], None]) -> bool:
        """Run a compaction that is due, and return whether it failed. The rows are committed all the same.

        Raises errors of the rows or the table's options, which no later compaction would overcome.
        """
        marks = None if self.vectors is None else self.vectors.marks
        try:
            compact()
        except (UnmergeableRows, UnsupportedOption, UnsupportedTable):
            raise
        except Exception:  # noqa: BLE001 -- an error of other files: no reason to refuse the new rows
            _LOG.warning("%s: bucket %d was not compacted, its new rows are kept", self.store.root, self.bucket, exc_info=True)
            if self.vectors is not None and marks is not None:
                self.vectors.reset(marks)
            return True
        return False


@dataclass(slots=True)
class WriteMetrics:
    """What a write has done so far; ``spilled_bytes`` are bytes on local disk."""

    rows: int = 0
    files: int = 0
    bytes_written: int = 0
    bytes_read: int = 0
    spilled_bytes: int = 0
    compactions: int = 0

    def add(self, other: WriteMetrics) -> None:
        """Sum up."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class BucketWriter(Protocol):
    """A writer of one bucket. Call order: ``add`` and ``release`` at will; then ``prepare`` or ``abort``."""

    context: BucketContext
    metrics: WriteMetrics

    @property
    def held(self) -> BufferedRows:
        """The input rows that it holds in memory."""

    @property
    def reorders(self) -> bool:
        """Whether it copies rows, as they are, out of its inputs in an order of its own."""

    @property
    def runs_due(self) -> int:
        """The sorted runs of the bucket, with what is flushed, if a compaction has something to do; 0 if it has not."""

    def add(self, source: Source, rows: Int64s | None) -> None:
        """Take rows of an input table."""

    def release(self, *, close: bool) -> None:
        """Give back the memory of held rows by spilling or encoding them; ``close``: keep no file open for it."""

    def compact(self, *, full: bool) -> None:
        """Flush, then compact."""

    def rewrite(self, names: Collection[str]) -> None:
        """Write the bucket's files of these names anew, each by itself: its rows stay, what metadata say of them is made again."""

    def prepare(self) -> CommitMessage:
        """Flush everything, compact if that is due, and hand over what a commit has to publish."""

    def abort(self) -> None:
        """Delete everything written and not yet handed over; never raises."""


__all__ = ["BucketContext", "BucketWriter", "WriteMetrics"]
