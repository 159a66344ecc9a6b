"""New rows in other buckets: what a write does when another one has assigned keys to dynamic buckets, or to partitions, meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Mask
from fileindex.predicate.tree import Predicate
from lsm.arrow.row_kind import retracts
from lsm.keys.encoding import one_array
from lsm.keys.sort import VALUE_KIND
from lsm.read.full_scan import file_rows
from lsm.write.job import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.message import CommitMessage
from manifest.entry.manifest_entry import FileKind
from manifest.io.errors import CommitConflict, SnapshotNotFound
from manifest.schema.bucket_mode import BucketMode
from manifest.snapshot.snapshot import CommitKind
from manifest.store import FileStore


def rebucket(
    store: FileStore,
    messages: Sequence[CommitMessage],
    commit_id: str,
    *,
    threads: int = 2,
    overwrite: bool = False,
    replaces: Predicate | None = None,
) -> list[CommitMessage]:
    """Write rows again, in the partitions and buckets that their keys have now.

    The rows are read back from the files of the messages, which stay. On failure no new file remains.

    Raises:
        CommitConflict: rows were put into the partition of a key that another commit has deleted: which one they named is not known.
    """
    crosses = store.schema.bucket_mode is BucketMode.KEY_DYNAMIC
    if crosses and not overwrite:
        _refuse_lost_partitions(store, messages)
    with TableWrite(store, WriteJob(commit_id=commit_id, threads=threads, overwrites=overwrite, replaces=replaces)) as write:
        for rows in _in_order_of_writers(store, messages) if crosses else _of_files(store, _oldest_first(messages)):
            write.write(rows.select(store.schema.names), kinds=rows.column(VALUE_KIND))
        return write.prepare_commit()


def _oldest_first(messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    return sorted(messages, key=lambda message: min((file.min_sequence_number for file in message.new_files), default=0))


def _of_files(store: FileStore, messages: Sequence[CommitMessage]) -> Iterator[Any]:
    for message in messages:
        for file in message.new_files:
            yield from file_rows(store, message.partition, message.bucket, file)


def _in_order_of_writers(store: FileStore, messages: Sequence[CommitMessage]) -> Iterator[Any]:
    """Rows writer by writer, of each the deletes first: but for one row, what a writer has of a key are deletes in partitions that it left."""
    writers: dict[str, list[CommitMessage]] = {}
    for message in _oldest_first(messages):
        if message.new_files:
            writers.setdefault(message.new_files[0].file_name.rpartition("-")[0], []).append(message)
    for made in writers.values():
        for deletes in (True, False):
            for rows in _of_files(store, made):
                kept = _retracts(rows) == deletes
                if kept.any():
                    yield rows if kept.all() else rows.filter(pa.array(kept))


def _retracts(rows: Any) -> Mask:
    return retracts(one_array(rows.column(VALUE_KIND)).to_numpy(zero_copy_only=False).astype(np.int8))


def _refuse_lost_partitions(store: FileStore, messages: Sequence[CommitMessage]) -> None:
    """Rows that stay with their key have lost the partition that they named; it is wanted again where the key was deleted meanwhile."""
    bases = [message.base_snapshot_id for message in messages if message.base_snapshot_id is not None]
    latest = store.snapshots.latest()
    if store.options.engine.newest_replaces or store.options.engine.first_row_wins or not bases or latest is None:
        return
    try:
        for snapshot in store.snapshots.since(min(bases), latest.id):
            if snapshot.commit_kind is CommitKind.COMPACT:
                continue
            changes = store.delta_entries(snapshot)
            if (changes.kind == FileKind.DELETE).any() or any(file.delete_row_count for file in changes.files()):
                raise CommitConflict(
                    f"{store.root}: keys were deleted by snapshot {snapshot.id} while rows were written to them; nothing was committed, write again"
                )
    except SnapshotNotFound as error:
        raise CommitConflict(
            f"{store.root}: snapshots since the rows were written have expired; nothing was committed, write again"
        ) from error


__all__ = ["rebucket"]
