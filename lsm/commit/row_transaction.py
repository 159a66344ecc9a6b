"""Row transactions: replay check, rounds and compaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lsm.commit.post_commit import compact_after_commit, finish_compaction
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.runs import committed_before
from manifest.commit.transaction import EVALUATIONS, Round, Transaction
from manifest.snapshot.snapshot import BATCH_IDENTIFIER


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
            return CommittedRows(finish_compaction(store, self.compactor, earlier, threads=self.threads), [], 0)
        transaction = Transaction(partial(self.commit.abort, identifier=self.identifier))
        result = transaction.run(evaluate, publish, rework=rework, lost=lost, evaluations=evaluations)
        if self.compacts:
            result = compact_after_commit(store, self.compactor, result, transaction.work, owned=self.owned, threads=self.threads)
        return CommittedRows(result, transaction.work, transaction.rounds)


__all__ = ["CommittedRows", "RowTransaction"]
