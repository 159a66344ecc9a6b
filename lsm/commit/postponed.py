"""Distribution of postponed rows to buckets.

Files of the postpone bucket are read in commit order, and their rows are written to real buckets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lsm.keys.encoding import one_array
from lsm.keys.sort import VALUE_KIND
from lsm.read.data_file import DataFileRead
from lsm.write.bucket_writer import WriteJob
from lsm.write.table_write import TableWrite
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta
from manifest.entry.live import EntryFilter
from manifest.io.errors import UnsupportedTable
from manifest.io.paths import POSTPONE_BUCKET
from manifest.snapshot.snapshot import Snapshot, SnapshotKey
from manifest.store import FileStore


def waiting_files(store: FileStore, snapshot: Snapshot | None, entry_filter: EntryFilter) -> dict[bytes, list[DataFileMeta]]:
    """Return the files of the postpone bucket, by partition."""
    files_by_partition: dict[bytes, list[DataFileMeta]] = defaultdict(list)
    entries = store.live_entries(snapshot, entry_filter)
    for entry in entries.select(entries.bucket == POSTPONE_BUCKET).entries():
        files_by_partition[entry.partition].append(entry.file)
    return files_by_partition


def move_rows(
    store: FileStore, waiting: Mapping[bytes, Sequence[DataFileMeta]], commit_id: str, snapshot: SnapshotKey, *, threads: int = 1
) -> list[CommitMessage]:
    """Write the rows of postponed files into their buckets.

    Returns messages that replace the postponed files.

    Raises:
        UnsupportedTable: The rows would need a changelog.
    """
    if store.options.changelog_producer == "input":
        raise UnsupportedTable(f"{store.root}: changelog-producer 'input' is not supported with postponed buckets")
    columns = (*store.schema.names, VALUE_KIND)
    with TableWrite(store, WriteJob(commit_id=commit_id, write_only=True, threads=threads, base_snapshot_id=snapshot.id)) as write:
        for partition, files in waiting.items():
            for file in sorted(files, key=_arrival):
                for batch in DataFileRead(store, partition, POSTPONE_BUCKET, file, columns).batches():
                    kinds = one_array(batch.column(VALUE_KIND)).to_numpy(zero_copy_only=False).astype(np.int8)
                    write.write(pa.Table.from_batches([batch.select(list(store.schema.names))]), kinds=pa.array(kinds))
        messages = write.prepare_commit()
    gone = [
        CommitMessage(
            partition=partition,
            bucket=POSTPONE_BUCKET,
            total_buckets=POSTPONE_BUCKET,
            compact_before=tuple(files),
            base_snapshot_id=snapshot.id,
            base_manifest_list=snapshot.delta_manifest_list,
        )
        for partition, files in waiting.items()
    ]
    return [*messages, *gone]


def _arrival(file: DataFileMeta) -> tuple[int, str]:
    return file.creation_time or 0, file.file_name
