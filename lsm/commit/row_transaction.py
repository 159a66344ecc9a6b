"""Row transactions: replay check, rounds and compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lsm.commit.post_commit import compact_after_commit, finish_compaction
from lsm.data_files.rolling import discard_files, key_value_writer
from lsm.data_files.spill import SpillSpace
from lsm.data_files.writer import data_file_names
from lsm.keys.sort import SEQUENCE_NUMBER
from lsm.read.full_scan import file_rows
from lsm.write.bucket_writer import BucketContext
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.repeated_commits import committed_before
from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.entry.data_file import DataFileMeta, FileSource
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore

ResequencePlan = Callable[[bytes, int, list[DataFileMeta], int], list[DataFileMeta]]


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """Result of a row transaction."""

    result: CommitResult
    messages: Sequence[CommitMessage]
    rounds: int
    """Number of evaluations. 0: an earlier run committed the rows."""


@dataclass(frozen=True, slots=True)
class RowTransaction:
    """One commit of rows by ``commit.user``.

    Args:
        commit: Commits the rows.
        compactor: Commit user of the compaction that follows.
        identifier: Commit identifier of the rows.
        is_new: No earlier run can have committed it, so skip the replay check.
        owned: Each bucket had one writer.
        compacts: Run the due compaction after the commit.
        threads: Number of buckets compacted in parallel.
    """

    commit: FileStoreCommit
    compactor: str
    identifier: int = BATCH_IDENTIFIER
    is_new: bool = False
    owned: bool = True
    compacts: bool = True
    threads: int = 1

    def run(
        self,
        evaluate: Callable[[Round[CommitMessage]], object],
        publish: Callable[[list[CommitMessage]], CommitResult],
        *,
        rework: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]] | None = None,
        lost: Sequence[CommitMessage] | None = None,
        evaluations: int = EVALUATIONS,
    ) -> CommittedRows:
        """Commit once and compact, like ``Transaction.run``.

        Raises:
            CommitReplayed: It cannot be determined whether an earlier run committed.
        """
        store = self.commit.store
        earlier = None if self.is_new else committed_before(store, self.commit.user, self.identifier)
        if earlier is not None:
            finished = finish_compaction(store, self.compactor, self.commit.finish_earlier(earlier), threads=self.threads)
            return CommittedRows(finished, [], 0)
        transaction = Transaction(partial(self.commit.abort, identifier=self.identifier))
        result = transaction.run(evaluate, publish, rework=rework, lost=lost, evaluations=evaluations)
        if self.compacts:
            result = compact_after_commit(store, self.compactor, result, transaction.work, owned=self.owned, threads=self.threads)
        return CommittedRows(result, transaction.work, transaction.rounds)


def resequence(store: FileStore, commit_id: str | None = None) -> ResequencePlan:
    """Return the resequencing function of ``FileStoreCommit``.

    It maps ``(partition, bucket, files, first sequence)`` to files. It copies each file with all numbers shifted by the same amount, so that the
    smallest becomes ``first sequence``. The originals are kept. On failure all copies are deleted.
    """
    names = data_file_names(store, commit_id)

    def shift_files(partition: bytes, bucket: int, files: list[DataFileMeta], first: int) -> list[DataFileMeta]:
        values = store.partition.decode(partition)
        target = BucketContext(store=store, partition=partition, values=values, bucket=bucket, names=names, space=SpillSpace("")).target
        shift = first - min((file.min_sequence_number for file in files), default=first)
        copies: list[DataFileMeta] = []
        try:
            for file in files:
                writer = key_value_writer(target, file.level, FileSource.APPEND)
                copies += writer.write_all(_shift(file_rows(store, partition, bucket, file), shift))
        except BaseException:
            for copy in copies:
                discard_files(store.file_io, target.directory, copy)
            raise
        return copies

    return shift_files


def _shift(tables: Iterator[Any], shift: int) -> Iterator[Any]:
    for table in tables:
        column_index = table.schema.get_field_index(SEQUENCE_NUMBER)
        yield table.set_column(column_index, SEQUENCE_NUMBER, pc.add_checked(table.column(column_index), pa.scalar(shift, pa.int64())))
