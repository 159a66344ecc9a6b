"""New buckets or partitions for rows after a lost race.

Used if another commit assigned keys to dynamic buckets, or to partitions, in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.predicate.tree import Predicate
from lsm.arrow.row_kind import retracts
from lsm.keys.encoding import one_array
from lsm.keys.sort import VALUE_KIND
from lsm.read.full_scan import file_rows
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import FileKind
from manifest.io.errors import CommitConflict, SnapshotNotFound
from manifest.schema.table_schema import BucketMode
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
    """Rewrite rows to their keys' current partitions and buckets.

    Rows are read from the files of the messages, which are kept. On failure all new files are deleted.

    Raises:
        CommitConflict: Rows were written to the partition of a key that another commit has deleted. The partition they named is not known.
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
    """Yield rows by writer, deletes first.

    A writer has at most one add of a key; its deletes are in partitions that the key left.
    """
    writers: dict[str, list[CommitMessage]] = {}
    for message in _oldest_first(messages):
        if message.new_files:
            writers.setdefault(message.new_files[0].file_name.rpartition("-")[0], []).append(message)
    for writer_messages in writers.values():
        for deletes in (True, False):
            for rows in _of_files(store, writer_messages):
                mask = retracts(one_array(rows.column(VALUE_KIND)).to_numpy(zero_copy_only=False).astype(np.int8)) == deletes
                if mask.any():
                    yield rows if mask.all() else rows.filter(pa.array(mask))


def _refuse_lost_partitions(store: FileStore, messages: Sequence[CommitMessage]) -> None:
    """Raise ``CommitConflict`` if a key may have been deleted.

    Rows written to the key's partition lost the partition they named, which they would need after a delete.
    """
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
                    f"{store.root}: snapshot {snapshot.id} deleted keys while rows were written to them; nothing was committed. Write again"
                )
    except SnapshotNotFound as error:
        raise CommitConflict(
            f"{store.root}: snapshots since the rows were written have expired; nothing was committed. Write again"
        ) from error
