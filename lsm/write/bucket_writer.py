"""Common parts of the writers of one (partition, bucket)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lsm.data_files.spill import SpillSpace
from lsm.data_files.writer import FileTarget
from lsm.rows_in.policy import DEFAULT_POLICY, RowPolicy
from lsm.write_buffer.source import BufferedRows, Source
from manifest.commit.index_change import IndexChange
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta
from manifest.io.errors import UnmergeableRows, UnsupportedTable
from manifest.io.paths import FileNames
from manifest.snapshot.snapshot import EMPTY_TABLE, SnapshotKey
from manifest.store import FileStore
from paimon_base.errors import UnsupportedOption, describe_error
from paimon_base.lazy import cached_property
from paimon_base.log import logger_of
from sparkexpr.values.arrays import Int64s
from sparkexpr.values.column_type import Plain

if TYPE_CHECKING:
    from fileindex.predicate.tree import Predicate
    from lsm.bucket.dynamic import BucketWriters
    from lsm.compaction.secondary_indexes import BucketIndexes
    from lsm.deletion_vectors.maintainer import BucketVectors


_LOG = logger_of(__name__)


@dataclass(frozen=True, kw_only=True)
class BucketContext:
    """Inputs of a bucket writer.

    Holds the bucket's live files at the start of the write and the target of new files.
    """

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
    indexes: BucketIndexes | None = None
    """The bucket's secondary indexes; None for tables without."""
    looked_up: set[str] = field(default_factory=set)
    """Names of files in which compactions looked up older versions of keys."""
    writes_changelog: bool = True
    """Write changelog files if the table has a producer. False for an overwrite."""
    total_buckets: int | None = None
    """Number of buckets of the partition. None: option 'bucket' of the table."""

    @cached_property
    def target(self) -> FileTarget:
        """Target directory, names and format of data files."""
        size = self.store.schema.kind.target_file_size
        directory = self.store.paths.bucket_dir(self.values, self.bucket)
        return FileTarget(store=self.store, directory=directory, names=self.names, target_size=size)

    @property
    def next_sequence(self) -> int:
        """First sequence number of new rows.

        Above all rows of the bucket, unless ``first_sequence`` is set.
        """
        return self.max_sequence + 1 if self.first_sequence is None else self.first_sequence

    @cached_property
    def max_sequence(self) -> int:
        """Greatest sequence number of the bucket, -1 if empty."""
        return max([-1, *[file.max_sequence_number for file in self.existing]])

    @cached_property
    def knows_all_columns(self) -> bool:
        """Whether no file has a newer schema than the writer."""
        # Rewriting a file of a newer schema would lose the added columns.
        schema_id = self.store.schema.id
        return not [file for file in self.existing if file.schema_id > schema_id]

    def message(
        self,
        new_files: Sequence[DataFileMeta] = (),
        compact_before: Sequence[DataFileMeta] = (),
        compact_after: Sequence[DataFileMeta] = (),
        changelog_files: Sequence[DataFileMeta] = (),
        compact_changelog: Sequence[DataFileMeta] = (),
        *,
        compaction_error: str | None = None,
        upkeep: bool = False,
    ) -> CommitMessage:
        """Return the commit message of this bucket.

        The message of a compaction includes its changes of deletion vectors and of secondary indexes. With ``upkeep`` missing payloads are
        built even if no file was compacted.
        """
        return CommitMessage(
            partition=self.partition,
            bucket=self.bucket,
            total_buckets=self.store.options.bucket if self.total_buckets is None else self.total_buckets,
            new_files=tuple(new_files),
            compact_before=tuple(compact_before),
            compact_after=tuple(compact_after),
            changelog_files=tuple(changelog_files),
            compact_changelog=tuple(compact_changelog),
            index_changes=self._index_changes(new_files, compact_before, compact_after, upkeep=upkeep),
            base_snapshot_id=self.base.id,
            base_manifest_list=self.base.delta_manifest_list,
            compact_read=tuple(sorted(self.looked_up.intersection(f.file_name for f in self.existing))) if compact_after else (),
            compaction_error=compaction_error,
        )

    def _index_changes(
        self,
        new_files: Sequence[DataFileMeta],
        compact_before: Sequence[DataFileMeta],
        compact_after: Sequence[DataFileMeta],
        *,
        upkeep: bool,
    ) -> tuple[IndexChange, ...]:
        compacted = bool(compact_before or compact_after)
        vectors = (self.vectors.change(compaction=True),) if self.vectors is not None and compacted else ()
        if self.indexes is None or not (compacted or upkeep):
            return vectors
        replaced = {file.file_name for file in compact_before}
        files = [file for file in (*self.existing, *new_files) if file.file_name not in replaced]
        return (*vectors, *self.indexes.changes([*files, *compact_after]))

    def try_compaction(self, compact: Callable[[], object]) -> str | None:
        """Run a due compaction. Return its error, None if it succeeded.

        A failure is logged; the new rows are committed without it.

        Raises:
            UnmergeableRows, UnsupportedOption, UnsupportedTable: No later compaction could succeed.
        """
        marks = None if self.vectors is None else self.vectors.marks
        try:
            compact()
        except (UnmergeableRows, UnsupportedOption, UnsupportedTable):
            raise
        except Exception as error:  # noqa: BLE001 -- the error concerns older files: keep the new rows
            _LOG.warning("%s: bucket %d was not compacted; its new rows are kept", self.store.root, self.bucket, exc_info=True)
            if self.vectors is not None and marks is not None:
                self.vectors.reset(marks)
            return describe_error(error)
        return None


class BucketWriter(Protocol):
    """Writer of one bucket.

    Call ``add`` and ``release`` in any order, then ``prepare`` or ``abort``.
    """

    context: BucketContext

    @property
    def held(self) -> BufferedRows:
        """Input rows held in memory."""

    @property
    def reorders(self) -> bool:
        """Whether the writer copies unchanged input rows in another order."""

    @property
    def is_compaction_due(self) -> bool:
        """Whether a compaction would change flushed files."""

    @property
    def is_crowded(self) -> bool:
        """Whether the bucket has so many runs that writers wait."""

    def add(self, source: Source, rows: Int64s | None) -> None:
        """Buffer rows of an input table. None: all rows."""

    def release(self, *, close: bool) -> None:
        """Spill or encode held rows to free their memory.

        Args:
            close: Also close the open file of the writer.
        """

    def prepare(self) -> CommitMessage:
        """Flush, compact if due, and return the commit message."""

    def abort(self) -> None:
        """Delete uncommitted files. Never raises."""


@dataclass(frozen=True, slots=True)
class WriteJob:
    """The part of a commit that one process writes."""

    commit_id: str | None = None
    """Prefix of all file names, so that an abort finds the files of a commit."""
    threads: int = 2
    """Number of buckets flushed and compacted in parallel."""
    write_only: bool | None = None
    """True: do not compact after a flush. None: as the table's option says."""
    base_snapshot_id: int | None = None
    """Snapshot to build on. All writers of one commit agree on it. 0: an empty table. None: the newest."""
    buckets: Collection[int] | None = None
    """Buckets to write. Files of others are not read. None: all."""
    overwrites: bool = False
    """Write as if the buckets were empty."""
    replaces: Predicate | None = None
    """Partitions that an overwrite replaces, besides those of its rows. No key may live in another one. None: all."""
    first_sequence: int | None = None
    """First sequence number in every bucket, for writers that share buckets. None: above the bucket's rows."""
    bucket_writers: BucketWriters | None = None
    """Dynamic buckets that this writer may add keys to. None: all."""
    policy: RowPolicy = DEFAULT_POLICY
    """Treatment of columns that the rows lack."""
    finds_keys: bool = True
    """Look up keys that cross partitions. False: the committer assigns partitions (``lsm.commit.rebucket``)."""
