"""Restore of an older state by rewriting its rows.

Its files cannot be referenced again: an expiry, ours or another engine's, deletes files that a snapshot has removed, whatever a later snapshot says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from lsm.commit.copy_rows import copy_rows, without_defaults
from lsm.commit.rebucket import rebucket
from lsm.commit.row_transaction import RowTransaction, resequence
from lsm.scan.planner import ScanPlanner
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import EVALUATIONS, Round
from manifest.options.core_options import OWN_BRANCH
from manifest.schema.table_schema import BucketMode
from manifest.snapshot.commit_info import RESTORE, commit_properties
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

_NOTHING = CommitResult(None, None, replayed=False)


def restore_state(
    store: FileStore, target: Snapshot, commit_id: str, *, threads: int = 2, properties: Mapping[str, str] | None = None
) -> CommitResult:
    """Overwrite the partitions that differ from ``target``.

    The caller must protect ``target`` from expiry. Columns are matched by id, as in any old file: dropped ones are omitted, added ones are null.

    Raises:
        CommitConflict: A rollback removed ``target`` in the meantime. Nothing was changed. Other errors are as for a write.
    """
    store.check_writable()
    commit = FileStoreCommit(store, commit_id, resequence=resequence(store, commit_id))
    crosses = store.schema.bucket_mode is BucketMode.KEY_DYNAMIC
    differing: set[bytes] = set()

    def partitions() -> set[bytes] | None:
        return None if crosses else differing  # a key may have moved between differing and equal partitions

    def evaluate(current: Round[CommitMessage]) -> None:
        differing.update(differing_partitions(store, target, store.snapshots.latest()))
        if not differing:
            return
        with TableWrite(without_defaults(store), WriteJob(commit_id=commit_id, threads=threads, overwrites=True)) as write:
            for split in ScanPlanner(store.with_options(OWN_BRANCH)).plan(snapshot=target, partitions=partitions()).splits:
                copy_rows(store, split, write)
            current.work.extend(write.prepare_commit())

    def publish(messages: Sequence[CommitMessage]) -> CommitResult:
        noted = commit_properties(RESTORE, {"restored_snapshot": target.id}, properties)
        return commit.overwrite(messages, partitions=partitions(), copied=target, properties=noted) if differing else _NOTHING

    transaction = RowTransaction(commit, commit_id, threads=threads)
    rework = partial(rebucket, store, commit_id=commit_id, threads=threads, overwrite=True)
    return transaction.run(evaluate, publish, rework=rework, evaluations=EVALUATIONS if store.schema.bucket_mode.assigns_keys else 1).result


def differing_partitions(store: FileStore, target: Snapshot, latest: Snapshot | None) -> set[bytes]:
    """Return the partitions whose files or deletion vectors differ."""
    now, then = (store.live_entries(state) for state in (latest, target))
    files = set(zip(now.partition, now.file_name, strict=True)) ^ set(zip(then.partition, then.file_name, strict=True))
    indexes = [{(entry.partition, entry.file_name) for entry in store.index_entries(state)} for state in (latest, target)]
    return {partition for partition, _ in files | (indexes[0] ^ indexes[1])}
