"""Deletes and updates in this process.

They find rows in one snapshot and apply the change to it. After a conflict they find the rows again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa

from fileindex.predicate.tree import TRUE
from lsm.commit.row_transaction import RowTransaction
from lsm.keys.sort import DELETE, UPDATE_AFTER
from lsm.scan.splits import DataSplit
from lsm.write.bucket_writer import WriteJob
from lsm.write.copy_on_write import AppendChange, Update
from lsm.write.new_version import NewVersion
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import Round
from manifest.io.threads import map_in_threads
from manifest.snapshot.commit_info import commit_properties
from manifest.snapshot.snapshot import EMPTY_TABLE, ReadState, Snapshot
from manifest.store import FileStore
from pyspark_paimon.jobs.counting import write_counters, write_counts, write_result
from pyspark_paimon.jobs.progress import FlushProgress, PieceProgress, Steps
from pyspark_paimon.request.assignments import Assignments, refuse_delete
from pyspark_paimon.request.operation import OpenTable
from pyspark_paimon.request.requests import DeleteRequest
from pyspark_paimon.results.counters import Stopwatch
from pyspark_paimon.results.results import WriteResult
from sparkexpr.values.arrays import arrow_array


def delete_rows(table: OpenTable, request: DeleteRequest) -> WriteResult:
    """Delete rows that match the request.

    Writes deletes of the keys. In append tables, marks the rows or rewrites their files.
    """
    store = table.store(request.options)
    refuse_delete(store.schema, store.root)
    return _change_of(store)(table, store, request).run()


def update_rows(table: OpenTable, request: DeleteRequest, assigned: Assignments | str) -> WriteResult:
    """Update rows that match the request.

    Writes the rows with new values. In append tables, marks the old rows or rewrites their files.
    ``assigned``: new values, or their wire text.
    """
    store = table.store(request.options)
    values = Assignments.from_text(assigned, store.schema) if isinstance(assigned, str) else assigned
    values.refuse_columns("a table opened without spark=...")
    if values.schema.id != store.schema.id:  # the schema may have changed since the caller opened the table
        values = Assignments.of(values.values, store.schema)
    version = NewVersion.of(store.schema, values.values, store.root)

    def update(rows: pa.Table) -> pa.Table:
        new = values.apply(rows)
        return new if version is None else version.apply(rows, new)

    return _change_of(store)(table, store, request, update, tuple(values.values)).run()


def _change_of(store: FileStore) -> type[Change]:
    return FilesChange if store.schema.kind.changes_files else KeyedChange


@dataclass(frozen=True)
class Evaluated:
    """Files that a change wrote, computed from ``base``."""

    base: Snapshot | None
    rows: int
    """Number of changed rows."""
    messages: Sequence[CommitMessage]

    @classmethod
    def of(cls, change: Change) -> Self:
        """Evaluate a change on the newest snapshot. An error deletes its files."""
        messages: list[CommitMessage] = []
        base = change.store.snapshots.latest()
        try:
            return cls(base, change.evaluate(base, messages), messages)
        except BaseException:
            FileStoreCommit(change.store, change.request.commit_id).abort(messages, identifier=change.request.identifier)
            raise


@dataclass(frozen=True)
class Change(ABC):
    """A change computed from and committed on the newest snapshot.

    After a conflict it is computed again.
    """

    table: OpenTable
    store: FileStore
    request: DeleteRequest
    update: Update | None = None
    """Function that returns the new rows. None: rows are deleted."""
    columns: tuple[str, ...] | None = None
    """Columns that the update may change. None: rows may be deleted, too."""
    ready: Evaluated | None = None
    """First evaluation. None: it is still to be done."""

    def run(self) -> WriteResult:
        """Evaluate and commit.

        Repeats both if a concurrent commit changes the same buckets.
        """
        start = time.perf_counter()
        self.store.check_writable()
        attempt = _Attempt(self)
        commit, first_run = attempt.commit, self.request.first_run
        request, threads = self.request, self.table.threads
        transaction = RowTransaction(commit, request.compactor, request.identifier, is_new=first_run, threads=threads)
        committed = transaction.run(attempt.evaluate, attempt.publish)
        if not committed.rounds:
            return write_result(committed.result, 0, 0, start)
        attempt.stopwatch("compact")
        rows, retries = attempt.rows, committed.rounds - 1 + commit.retries
        counters = write_counters(committed.messages, rows=rows, retries=retries, millis=attempt.stopwatch.millis)
        files = sum(len(message.new_files) + len(message.compact_after) for message in committed.messages)
        return write_result(committed.result, rows, files, start, counters)

    @abstractmethod
    def evaluate(self, base: Snapshot | None, messages: list[CommitMessage]) -> int:
        """Evaluate on ``base`` and return the number of changed rows.

        Adds the written files to ``messages``.
        """

    @property
    def reads_all(self) -> bool:
        """Whether rows in buckets without writes affect the change."""
        return False

    @property
    def verb(self) -> str:
        """Name of the operation in the table's history."""
        return "delete" if self.update is None else "update"

    @property
    def changed(self) -> dict[str, int]:
        """Numbers of rows by kind of change, if there are several kinds."""
        return {}

    def action(self, commit: FileStoreCommit) -> Callable[..., CommitResult]:
        """Return the method that commits the messages."""
        return commit.commit


class _Attempt:
    """The current round of a change, from its base snapshot to the commit."""

    def __init__(self, change: Change) -> None:
        self._change, self._ready = change, change.ready
        self._base: Snapshot | None = None
        self.commit = FileStoreCommit(change.store, change.request.commit_id, fresh=change.request.first_run)
        self.stopwatch = Stopwatch()
        self.rows = 0
        """Number of changed rows."""

    def evaluate(self, current: Round[CommitMessage]) -> None:
        """Evaluate the change on the newest snapshot."""
        ready, self._ready = self._ready, None
        if ready is not None:
            self._base, self.rows = ready.base, ready.rows
            current.work.extend(ready.messages)
        else:
            self._base = self._change.store.snapshots.latest()
            self.rows = self._change.evaluate(self._base, current.work)
        self.stopwatch("find")

    def publish(self, messages: Sequence[CommitMessage]) -> CommitResult:
        """Commit the messages of the round."""
        change, base = self._change, self._base
        if base is None and not messages:
            return CommitResult()
        counts = {**write_counts(messages, rows=self.rows), **change.changed}
        properties = commit_properties(change.verb, counts, change.request.properties)
        read = ReadState(EMPTY_TABLE if base is None else base.key, change.reads_all)
        result = change.action(self.commit)(messages, change.request.identifier, properties=properties, read=read)
        self.stopwatch("commit")
        return result


class KeyedChange(Change):
    """A change that writes new versions of rows."""

    def evaluate(self, base: Snapshot | None, messages: list[CommitMessage]) -> int:
        """Write a new version of each row that matches."""
        if base is None:
            return 0
        user = self.request.commit_id
        changed_rows, flush = 0, FlushProgress(self.table.progress)
        store = self.store.with_listener(flush)
        with TableWrite(store, WriteJob(commit_id=user, threads=self.table.threads, base_snapshot_id=base.id)) as write:
            for batch in self.table.read(self.request.scan(self.store.schema, base.id), stage=self.verb):
                kind = DELETE if self.update is None else UPDATE_AFTER
                rows = batch if self.update is None else self.update(pa.Table.from_batches([batch]))
                write.write(rows, kinds=arrow_array(np.full(batch.num_rows, kind, np.int8)))
                changed_rows += batch.num_rows
            with flush.begin(changed_rows):
                messages += write.prepare_commit()
        return changed_rows


class FilesChange(Change):
    """A change that marks rows in their files, or rewrites the files."""

    def evaluate(self, base: Snapshot | None, messages: list[CommitMessage]) -> int:
        """Change the files that have matching rows."""
        if base is None:
            return 0
        predicate = TRUE if self.request.predicate is None else self.request.predicate
        change = AppendChange(self.store, base, predicate, self.request.commit_id, self.update, self.columns)
        return self.rewrite_files(change, self.verb, messages)

    def rewrite_files(self, change: AppendChange, stage: str, messages: list[CommitMessage]) -> int:
        """Change an append table's files; return the number of rows."""
        rows: list[int] = []
        buckets = list(change.buckets().values())
        total = sum(split.file_size for splits in buckets for split in splits)
        steps = Steps(self.table.progress, stage, len(buckets), total_bytes=total)

        def one(splits: Sequence[DataSplit]) -> None:
            piece = PieceProgress(steps, sum(split.file_size for split in splits))
            changed = replace(change, store=self.store.with_listener(piece)).run(splits)
            if changed is not None:
                # Several threads get here: appending to a list is atomic in CPython.
                messages.append(changed[0])
                rows.append(changed[1])
            piece.finish()

        map_in_threads(one, buckets, self.table.threads)
        return sum(rows)

    def action(self, commit: FileStoreCommit) -> Callable[..., CommitResult]:
        """Commit new files and vectors, or replace files."""
        options = self.store.options
        return commit.commit if options.deletion_vectors_enabled or options.data_evolution_enabled else commit.replace
