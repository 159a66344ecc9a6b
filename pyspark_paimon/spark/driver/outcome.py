"""Outcomes of commits and answers of commands, for the client that asks.

The source of an outcome is the table's snapshots, or the outcome that the commit hook stored on this driver.
Every write starts with this question, so this module imports no write code when it is loaded.
"""

from __future__ import annotations

import os
from typing import Any

from manifest.commit.message import CommitResult
from manifest.commit.repeated_commits import committed_before
from manifest.io.errors import CommitReplayed
from manifest.snapshot.commit_info import CommitInfo
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore
from pyspark_paimon.request.operation import OpenTable, Operation
from pyspark_paimon.results.results import Outcome
from pyspark_paimon.spark.driver.job_files import (
    answer_once,
    exclusively,
    is_running,
    mark_ended,
    mark_started,
    stored_answer,
    wait_for_end,
)
from pyspark_paimon.system.opened import local_engine

_THREADS = 4
"""Maximum number of buckets compacted in parallel. The driver is shared and is not a worker."""


def compaction_threads() -> int:
    """Return the number of buckets the driver compacts in parallel."""
    return min(_THREADS, os.cpu_count() or 1)


def job_name(store: FileStore, commit_id: str) -> str:
    """Return the name of a commit's job on its driver.

    The name contains the creation time of the table: another table at the same path has other names.
    """
    return f"{store.root}:{store.schemas.get(store.schemas.ids()[0]).time_millis}:{commit_id}"


def outcome(store: FileStore, commit_id: str) -> str | None:
    """Return the ``Outcome`` of a commit as JSON.

    None: the commit is not visible. Waits a limited time for a running job whose commit is not visible yet.

    If the commit hook stopped after the commit, its compaction is finished first.
    """
    name = job_name(store, commit_id)
    outcome_text = wait_for_end(name, lambda: _outcome(store, commit_id))
    if outcome_text is not None and stored_answer(name) is None and not is_running(name):
        from lsm.commit.post_commit import finish_compaction  # noqa: PLC0415  # see test_imports

        user, _, batch = commit_id.partition("#")
        answer = Outcome.model_validate_json(outcome_text)
        result = CommitResult(answer.snapshot_id, answer.compact_snapshot_id, replayed=True)
        finished = finish_compaction(store, f"{user}-compact" if batch else user, result, threads=compaction_threads())
        return answer.model_copy(update={"compact_snapshot_id": finished.compact_snapshot_id}).model_dump_json()
    return outcome_text


def _outcome(store: FileStore, commit_id: str) -> str | None:
    user, _, batch = commit_id.partition("#")
    stored_text = stored_answer(job_name(store, commit_id))
    try:
        result = committed_before(store, user, int(batch) if batch else BATCH_IDENTIFIER)
    except CommitReplayed:
        if stored_text is None:
            raise
        result = None
    if stored_text is not None and (result is not None or _has_expired(store, Outcome.model_validate_json(stored_text))):
        return stored_text
    return None if result is None else outcome_of(store, result).model_dump_json()


def _has_expired(store: FileStore, stored_outcome: Outcome) -> bool:
    """Return whether the snapshots of the commit have expired."""
    # After a rollback, or in a new table at the same path, the ids are not below the earliest.
    earliest = store.snapshots.earliest_id()
    return earliest is not None and max(stored_outcome.snapshot_id or 0, stored_outcome.compact_snapshot_id or 0) < earliest


def outcome_of(store: FileStore, result: CommitResult) -> Outcome:
    """Return the snapshots of a commit and their counts."""
    noted = result.snapshot_id or result.compact_snapshot_id
    counts = {} if noted is None else CommitInfo.of(store.snapshots.get(noted)).metrics
    return Outcome(
        snapshot_id=result.snapshot_id,
        compact_snapshot_id=result.compact_snapshot_id,
        compact_lost=result.compact_lost,
        compact_error=result.compaction_error,
        counts=counts,
    )


def run_command(path: str, command_id: str, operation: Operation[Any]) -> None:
    """Run an operation once and store its answer.

    ``path`` is the path of the table.
    """
    answer_once(command_id, lambda: operation.answer_text(local_engine(path).run(operation)))


def run_if_small(table: OpenTable, command_id: str, operation: Operation[Any], most_bytes: int) -> str | None:
    """Run an operation once and return its answer.

    None: it needs a job.
    """
    with exclusively(command_id):  # Spark or the client may repeat the request while the first one runs
        mark_started(command_id)
        try:
            if stored_answer(command_id) is None and not operation.is_small(table, most_bytes):
                return None
            return answer_once(command_id, lambda: operation.answer_text(table.run(operation)))
        finally:
            mark_ended(command_id)


def answer_of_command(command_id: str) -> str | None:
    """Return the answer of a command.

    Waits a limited time for the end of its job. None: the command did not succeed.
    """
    return wait_for_end(command_id, lambda: stored_answer(command_id))
