"""Table writes (Paimon's ``TableWrite`` over ``FileStoreWrite``).

Input rows are routed to buckets, and all buckets share one memory budget. A thread pool flushes and compacts buckets in parallel.
Nothing is visible before the messages are committed. ``abort`` deletes all files of the write.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.pieces import in_pieces
from lsm.arrow.row_kind import ROW_KINDS, retracts
from lsm.bucket.router import BucketRows
from lsm.data_files.spill import SpillDirectory
from lsm.data_files.writer import data_file_names
from lsm.keys.encoding import one_array
from lsm.keys.sort import DELETE, UPDATE_BEFORE
from lsm.merge.function import merge_function_for
from lsm.rows_in.conform import conform
from lsm.rows_in.constrain import UnorderedValues
from lsm.write.base_files import ExistingFiles
from lsm.write.bucket_assignment import AssignmentContext, bucket_assignment
from lsm.write.bucket_contexts import BucketContexts, spill_space
from lsm.write.bucket_writer import BucketWriter, WriteJob
from lsm.write.merge_tree_writer import MergeTreeWriter
from lsm.write_buffer.source import Source, concat_kinds
from manifest.commit.conflicts import BucketId
from manifest.commit.index_update import compaction_paths, row_paths
from manifest.commit.message import CommitMessage
from manifest.io import failpoints
from manifest.io.errors import SchemaMismatch, UnmergeableRows
from manifest.io.group_sync import GroupSync
from manifest.io.paths import FileNames
from manifest.io.threads import WorkerPool
from manifest.schema.merge_options import MergeOptions
from manifest.schema.table_schema import BucketMode, TableSchema
from manifest.schema.validation import check_crossing_keys, check_written_columns
from manifest.store import FileStore
from paimon_base.lazy import LazyModule, cached_property
from paimon_base.log import logger_of
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int8s, numpy_array
from sparkexpr.values.column_type import Plain

if TYPE_CHECKING:
    from lsm.write import append_writer
else:  # Only append tables need it.
    append_writer = LazyModule("lsm.write.append_writer")

_LOG = logger_of(__name__)
_WARNED: set[str] = set()
"""Tables about whose late events a warning was logged."""


@dataclass(frozen=True)
class WriteKinds:
    """Row kinds of a write (Paimon's ``RowKindGenerator`` and ``RowKindFilter``)."""

    schema: TableSchema
    table: str = "the table"

    def of(self, rows: Any, kinds: Any = None) -> tuple[Any, Int8s | None]:
        """Return the rows to write and their kinds.

        Kinds None means that all are ``+I``. ``kinds`` kinds take precedence over ``rowkind.field``.

        Raises:
            SchemaMismatch: Kinds are missing or invalid, or the table has no keys to delete rows by.
            UnmergeableRows: The table's merge engine cannot merge such a row.

        >>> from manifest.schema.validation import build_schema
        >>> options = {"bucket": "1", "rowkind.field": "op", "ignore-delete": "true"}
        >>> kinds = WriteKinds(build_schema("id INT, op STRING", primary_keys=["id"], options=options))
        >>> rows, numbers = kinds.of(pa.table({"id": [1, 2], "op": ["+U", "-D"]}))
        >>> rows["id"].to_pylist(), numbers.tolist()
        ([1], [2])
        """
        numbers = self._numbers(rows, kinds)
        if numbers is None:
            return rows, None
        retract = retracts(numbers)
        if not retract.any():
            return rows, numbers if numbers.any() else None
        if not self.schema.is_primary_key_table:
            raise SchemaMismatch(f"{self.table}: an append table has no keys, so rows cannot be deleted by writing '-D' or '-U'")
        options = self.schema.core
        dropped = retract if options.ignore_delete else (numbers == UPDATE_BEFORE) & options.ignore_update_before
        if dropped.any():
            rows, numbers = rows.filter(pa.array(~dropped)), numbers[~dropped]
        for kind in (UPDATE_BEFORE, DELETE):
            reason = self._refusals[kind]
            if reason is not None and (numbers == kind).any():
                raise UnmergeableRows(f"{self.table}: rows of kind '{ROW_KINDS[kind]}' cannot be written: {reason}")
        resurrects = options.sequence_field and options.engine.newest_replaces and options.delete_time_retained is None
        if resurrects and (numbers == DELETE).any():
            _warn_of_late_rows(self.table)
        return rows, numbers if numbers.any() else None

    @cached_property
    def _refusals(self) -> dict[int, str | None]:
        fold = merge_function_for(self.schema)
        return {kind: fold.refusal(kind) for kind in (UPDATE_BEFORE, DELETE)}

    def _numbers(self, rows: Any, kinds: Any) -> Int8s | None:
        if kinds is None:
            name = self.schema.core.rowkind_field
            return None if name is None else _parse_kinds(rows.column(name), name)
        numbers: Int8s = numpy_array(one_array(kinds).cast(pa.int8()))
        if len(numbers) != rows.num_rows or (len(numbers) and not 0 <= numbers.min() <= numbers.max() <= 3):
            raise SchemaMismatch(f"kinds must be numbers from 0 to 3, one for each of the {rows.num_rows} rows")
        return numbers


def _warn_of_late_rows(table: str) -> None:
    """Log that deletes are dropped, once per table and process."""
    if table not in _WARNED:
        _WARNED.add(table)
        _LOG.warning(
            "%s: a full compaction drops deletes, so an event that arrives later with a smaller 'sequence.field' brings its row back; "
            "set 'delete.time-retained' to the longest delay of an event",
            table,
        )


def _parse_kinds(column: Any, name: str) -> Int8s:
    texts = one_array(column)
    codes = pc.index_in(texts, value_set=pa.array(ROW_KINDS, texts.type))
    if codes.null_count:
        wrong = texts.filter(codes.is_null())[0].as_py()
        raise SchemaMismatch(f"column '{name}' (rowkind.field) holds {wrong!r}; allowed values are {', '.join(ROW_KINDS)}")
    numbers: Int8s = codes.to_numpy().astype(np.int8)
    return numbers


T = TypeVar("T")


class TableWrite:
    """One write job of one process, a context manager.

    An exception aborts the write. Leaving the block does not commit it.

    Args:
        store: The table, with its newest schema.
        job: What this process writes.

    Raises:
        UnsupportedTable, UnsupportedOption: The table's options need a feature that is not implemented.
    """

    def __init__(self, store: FileStore, job: WriteJob = WriteJob()) -> None:  # noqa: B008  # frozen
        store.check_writable()
        check_written_columns(store.schema, store.root)
        check_crossing_keys(store.schema)
        self._job = job
        self._durable = GroupSync(store.storage)
        self.store = store.through(self._durable)
        self._kinds = WriteKinds(store.schema, store.root)
        groups = MergeOptions.of(store.schema).groups if store.schema.is_primary_key_table else ()
        self._unordered = UnorderedValues(store.root, groups) if groups else None
        compacts = not (store.options.write_only if job.write_only is None else job.write_only)
        # An overwrite does not compact, except with 'lookup': it writes no changelog, so its rows must not wait on level 0.
        compacts = compacts and (not job.overwrites or store.options.changelog_producer == "lookup")
        self._process = os.getpid()
        self._spill = SpillDirectory()
        self._space = spill_space(store, self._spill)
        self._pool = WorkerPool(max(1, job.threads), thread_name_prefix="paimon-write")
        self._existing = ExistingFiles(store, ignore=job.overwrites, snapshot_id=job.base_snapshot_id, buckets=job.buckets)
        self._contexts = BucketContexts(
            store=self.store,
            existing=self._existing,
            names=data_file_names(store, job.commit_id),
            index_names=FileNames("index-", commit_id=job.commit_id),
            space=self._space,
            compacts=compacts,
            writes_changelog=not job.overwrites,
            first_sequence=job.first_sequence,
        )
        self._writers: dict[tuple[bytes, int], BucketWriter] = {}
        self._prepared: list[CommitMessage] = []
        self._waiting: list[tuple[Any, Int8s | None]] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._assignment = bucket_assignment(
            AssignmentContext(self.store, job, self._existing, self._contexts.index_names, self._space, self._pool.map)
        )
        self._handed_over: dict[BucketId, BucketWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() != self._process:  # a forked child has no threads to wait for, and the files are its parent's
            return
        self._pool.shutdown(wait=True, cancel_futures=True)  # after an interrupt, threads may still be writing files
        if kind is not None:
            self.abort()
        self.close()

    @property
    def pending_compaction(self) -> dict[BucketId, bool]:
        """Buckets with a due compaction; True: writers wait for it.

        Covers the buckets of the last ``prepare_commit``.
        """
        return {bucket: writer.is_crowded for bucket, writer in self._handed_over.items() if writer.is_compaction_due}

    def write(self, batch: Any, *, kinds: Any = None) -> None:
        """Buffer a Table or RecordBatch.

        The last row of a key wins.

        Args:
            batch: Rows that fit the table's schema (``lsm.rows_in.conform``).
            kinds: Row kind of each row, 0 to 3 (``+I -U +U -D``). None: all ``+I``. Append tables accept ``+I`` only.

        Raises:
            SchemaMismatch: The rows do not fit.
        """
        for piece, piece_kinds in in_pieces(batch, kinds):
            rows, numbers = self._kinds.of(conform(piece, self.store.schema, piece_kinds, self._job.policy), piece_kinds)
            if self._unordered is not None:
                self._unordered.check(rows)
            if rows.num_rows:
                self._waiting.append((rows, numbers))
                self._waiting_rows += rows.num_rows
                self._waiting_bytes += rows.nbytes
            if self._waiting_rows >= thresholds.route_rows or self._waiting_bytes >= thresholds.route_bytes:
                self._route()

    def prepare_commit(self) -> list[CommitMessage]:
        """Flush and compact all buckets. Return their non-empty messages.

        The write can continue afterwards.
        """
        self._route()
        for routed in self._assignment.drain():
            self._hand_out(*routed)
            self._make_room()
        self._encode_texts()
        messages = self._each(self._prepare, list(self._writers.values()))
        messages = [message if message.is_empty else self._with_index_changes(message) for message in messages]
        self._durable.flush()
        failpoints.point("after-data-files")
        self._prepared = []
        self._handed_over, self._writers = self._writers, {}
        self._existing.refresh()
        self._assignment.reset()
        return [message for message in messages if not message.is_empty]

    def abort(self) -> None:
        """Delete all uncommitted files of this write. Never raises."""
        self._waiting = []
        self._assignment.clear()
        self._durable.close()
        for writer in self._writers.values():
            writer.abort()
        self._writers = {}
        for message in self._prepared:  # buckets that were prepared when another one failed
            for path in (*row_paths(self.store, message), *compaction_paths(self.store, message)):
                with suppress(OSError):  # leaves at most an orphan file
                    self.store.file_io.delete(path)
        self._prepared = []

    def close(self) -> None:
        """Free the thread pool and the spill directory."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._durable.close()
        self._spill.cleanup()

    def _with_index_changes(self, message: CommitMessage) -> CommitMessage:
        extended = self._assignment.with_index_changes(message)
        if extended is not message:
            self._prepared.append(extended)
        return extended

    def _prepare(self, writer: BucketWriter) -> CommitMessage:
        message = writer.prepare()
        self._prepared.append(message)
        return message

    def _route(self) -> None:
        """Hand the pending rows to their buckets."""
        waiting, self._waiting = self._waiting, []
        self._waiting_rows = self._waiting_bytes = 0
        if not waiting:
            return
        table, kinds = pa.concat_tables([table for table, _ in waiting]), concat_kinds([(t.num_rows, k) for t, k in waiting])
        self._make_room()
        for routed in self._assignment.add(table, kinds):
            self._hand_out(*routed)

    def _hand_out(self, source: Source, shares: Sequence[BucketRows]) -> None:
        if not self._is_unaware:
            self._existing.load({share.partition for share in shares})
        for share in shares:
            self._writer(share.partition, share.bucket).add(source, share.rows)

    def _make_room(self) -> None:
        """Keep held rows within ``write-buffer-size``.

        The largest buckets spill. The others copy their rows out of shared input tables.
        """
        writers = [writer for writer in self._writers.values() if writer.held]
        # A shared table is freed only when its last bucket has released it. Until then copied rows are in memory twice,
        # so only small buckets copy. Called before new rows arrive: the last rows belong to the caller until then,
        # so a write of one in-memory table never spills.
        used = sum({id(source): source.size for writer in writers for source in writer.held.sources}.values())
        budget = self.store.options.write_buffer_size
        if used <= budget:
            return
        writers.sort(key=lambda writer: writer.held.size, reverse=True)
        freed = spilled = 0
        while freed < used - budget // thresholds.kept_share and spilled < len(writers):
            freed += writers[spilled].held.size
            spilled += 1
        close = len(self._writers) > thresholds.open_files
        self._each(lambda writer: writer.release(close=close), writers[:spilled])
        self._each(lambda writer: writer.held.gather(), writers[spilled:])

    def _encode_texts(self) -> None:
        """Encode text columns of large inputs, one column per thread.

        The encoded form is the one from which buckets copy rows.
        """
        keys = {*self.store.schema.trimmed_primary_keys, *self.store.options.sequence_field}
        sources = {id(source): source for writer in self._writers.values() if writer.reorders for source in writer.held.sources}
        large = [source for source in sources.values() if source.table.num_rows >= thresholds.text_rows]
        jobs = [(source, field.name) for source in large for field in source.table.schema if pa.types.is_string(field.type)]
        wait([self._pool.submit(source.encode, name) for source, name in jobs if name not in keys])

    @property
    def _is_unaware(self) -> bool:
        """Whether this is an append table without buckets.

        Only its compaction needs the existing files.
        """
        return self.store.schema.bucket_mode is BucketMode.BUCKET_UNAWARE

    def _writer(self, partition: tuple[Plain, ...], bucket: int) -> BucketWriter:
        encoded = self.store.partition.encode(partition)
        writer = self._writers.get((encoded, bucket))
        if writer is None:
            context = self._contexts.of_new_rows(partition, encoded, bucket)
            writer = MergeTreeWriter(context) if self.store.schema.is_primary_key_table else append_writer.AppendOnlyWriter(context)
            self._writers[encoded, bucket] = writer
        return writer

    def _each(self, work: Callable[[BucketWriter], T], writers: Sequence[BucketWriter]) -> list[T]:
        """Run ``work`` for several buckets in parallel, largest first.

        Raises the first error after all buckets have ended.
        """
        largest_first = sorted(range(len(writers)), key=lambda index: writers[index].held.size, reverse=True)
        futures = {index: self._pool.submit(work, writers[index]) for index in largest_first}
        wait(futures.values())
        return [futures[index].result() for index in range(len(writers))]
