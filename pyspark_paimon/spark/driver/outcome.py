"""What became of a commit, for the client that asks: from its snapshots, or as its hook left it on this driver.

Every write begins with this question, so nothing here imports what writes.
"""

from __future__ import annotations

import os

from manifest.commit.message import CommitResult
from manifest.commit.runs import committed_before
from manifest.io.errors import CommitReplayed
from manifest.snapshot.snapshot import BATCH_IDENTIFIER
from manifest.store import FileStore
from pyspark_paimon.request.results import Outcome
from pyspark_paimon.spark.driver.answers import stored_answer
from pyspark_paimon.spark.driver.running_jobs import after_its_end, runs

PREFIX = "pyspark-paimon."
"""Leads the names of the counts that a snapshot notes in its properties."""
_THREADS = 4
"""Buckets that the driver compacts at a time: it is not a worker, and others use it too."""


def compaction_threads() -> int:
    """Buckets that the driver compacts at a time."""
    return min(_THREADS, os.cpu_count() or 1)


def job_name(store: FileStore, commit_id: str) -> str:
    """What the job of a commit is called on its driver; another table at the same path has other names."""
    return f"{store.root}:{store.schemas.get(store.schemas.ids()[0]).time_millis}:{commit_id}"


def outcome(store: FileStore, commit_id: str) -> str | None:
    """The ``Outcome`` of a commit as JSON, None if it is not visible: from its snapshots, else as its hook left it on this driver.

    While its job is under way, and the commit is not visible yet, this waits for the end of the job, for a bounded time. If its hook
    was cut off after the commit, the compaction that somebody waits for is done first.
    """
    name = job_name(store, commit_id)
    found = after_its_end(name, lambda: _outcome(store, commit_id))
    if found is not None and stored_answer(name) is None and not runs(name):
        from lsm.commit.post_commit import finish_compaction  # noqa: PLC0415  # see test_imports

        user, _, batch = commit_id.partition("#")
        told = Outcome.model_validate_json(found)
        result = CommitResult(told.snapshot_id, told.compact_snapshot_id, replayed=True)
        done = finish_compaction(store, f"{user}-compact" if batch else user, result, threads=compaction_threads())
        return told.model_copy(update={"compact_snapshot_id": done.compact_snapshot_id}).model_dump_json()
    return found


def _outcome(store: FileStore, commit_id: str) -> str | None:
    user, _, batch = commit_id.partition("#")
    kept = stored_answer(job_name(store, commit_id))
    try:
        result = committed_before(store, user, int(batch) if batch else BATCH_IDENTIFIER)
    except CommitReplayed:
        if kept is None:
            raise
        result = None
    if kept is not None and (result is not None or _has_expired(store, Outcome.model_validate_json(kept))):
        return kept
    return None if result is None else outcome_of(store, result).model_dump_json()


def _has_expired(store: FileStore, kept: Outcome) -> bool:
    """Whether the snapshots were there and expired; after a rollback, or in a new table at the same path, they were not."""
    earliest = store.snapshots.earliest_id()
    return earliest is not None and max(kept.snapshot_id or 0, kept.compact_snapshot_id or 0) < earliest


def outcome_of(store: FileStore, result: CommitResult) -> Outcome:
    """The snapshots of a commit, and the counts that they note."""
    noted = result.snapshot_id or result.compact_snapshot_id
    properties = (store.snapshots.get(noted).properties or {}) if noted is not None else {}
    counts = {key.removeprefix(PREFIX): int(value) for key, value in properties.items() if key.startswith(PREFIX)}
    return Outcome(
        snapshot_id=result.snapshot_id, compact_snapshot_id=result.compact_snapshot_id, compact_lost=result.compact_lost, counts=counts
    )


__all__ = ["PREFIX", "compaction_threads", "job_name", "outcome", "outcome_of"]
