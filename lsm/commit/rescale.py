"""Rewriting of a partition into another number of buckets (Paimon's ``rescale``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lsm.commit.copy_rows import copy_rows, without_defaults
from lsm.commit.row_transaction import RowTransaction
from lsm.scan.planner import ScanPlanner
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.commit.transaction import Round
from manifest.entry.live import EntryFilter
from manifest.io.paths import POSTPONE_BUCKET
from manifest.options.core_options import OWN_BRANCH
from manifest.snapshot.commit_info import commit_properties
from manifest.snapshot.snapshot import ReadState, Snapshot
from manifest.store import FileStore

_NOTHING = CommitResult(None, None, replayed=False)


def partitions_to_rescale(store: FileStore, latest: Snapshot | None, entry_filter: EntryFilter) -> list[bytes]:
    """Return partitions whose bucket count differs from the table's option."""
    entries = store.live_entries(latest, entry_filter)
    differing_entries = entries.select((entries.total_buckets != store.options.bucket) & (entries.bucket != POSTPONE_BUCKET))
    return list(differing_entries.partition_codes[1])


def rescale_partition(
    store: FileStore, partition: bytes, commit_id: str, *, threads: int = 2, properties: Mapping[str, str] | None = None
) -> CommitResult:
    """Rewrite a partition into the table's number of buckets.

    Rows that other commits add to it meanwhile start another round, so none is lost.

    Raises:
        CommitConflict: Other commits changed the partition in every round. Nothing was changed.
    """
    commit = FileStoreCommit(store, commit_id)
    read: list[Snapshot] = []

    def evaluate(current: Round[CommitMessage]) -> None:
        read.clear()
        latest = store.snapshots.latest()
        if latest is None or not partitions_to_rescale(store, latest, EntryFilter(partitions={partition})):
            return
        read.append(latest)
        job = WriteJob(commit_id=commit_id, threads=threads, overwrites=True, write_only=True)
        with TableWrite(without_defaults(store), job) as write:
            for split in ScanPlanner(store.with_options(OWN_BRANCH)).plan(snapshot=latest, partitions={partition}).splits:
                copy_rows(store, split, write)
            current.work.extend(write.prepare_commit())

    def publish(messages: Sequence[CommitMessage]) -> CommitResult:
        if not read:
            return _NOTHING
        noted = commit_properties("rescale", {"buckets": store.options.bucket}, properties)
        return commit.overwrite(messages, partitions={partition}, read=ReadState(read[0].key), properties=noted)

    return RowTransaction(commit, commit_id, is_new=True, threads=threads).run(evaluate, publish).result
