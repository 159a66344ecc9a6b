"""Tables to write to, and their rows read back from the data files without the read path's help."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lsm.commit.row_transaction import resequence
from lsm.data_files.spill import SpillFile, SpillSpace
from lsm.write.bucket_writer import WriteJob
from lsm.write.compaction_job import compact_together
from lsm.write.table_write import TableWrite
from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage
from manifest.entry.data_file import DataFileMeta
from manifest.io.file_io import LocalFileIO
from manifest.schema.manager import SchemaManager
from manifest.schema.validation import build_schema
from manifest.store import FileStore


def make(path: Path, ddl: str, keys: tuple[str, ...] = (), partitions: tuple[str, ...] = (), **options: str) -> FileStore:
    """A new table; ``__`` in an option's name stands for a dot, ``_`` for a dash."""
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    SchemaManager(LocalFileIO(), str(path)).create(build_schema(ddl, primary_keys=keys, partition_keys=partitions, options=named))
    return FileStore.open(path)


def commit(store: FileStore, messages: list[CommitMessage], identifier: int = 2**63 - 1) -> None:
    FileStoreCommit(store, "test", resequence=resequence(store), fresh=True).commit(messages, identifier)


def write(store: FileStore, *tables: pa.Table, kinds: Any = None, **settings: Any) -> list[CommitMessage]:
    """Write and commit; kinds go with a single table."""
    with TableWrite(store, WriteJob(**settings)) as job:
        for table in tables:
            job.write(table, kinds=kinds)
        messages = job.prepare_commit()
    commit(store, messages)
    return messages


def note_spills(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the files that are spilled from now on."""
    sizes: list[int] = []
    spill = SpillSpace.write

    def noting(space: SpillSpace, tables: Iterable[Any]) -> SpillFile:
        spilled = spill(space, tables)
        sizes.append(spilled.size)
        return spilled

    monkeypatch.setattr(SpillSpace, "write", noting)
    return sizes


def compact_bucket(store: FileStore, partition: bytes, bucket: int, **how: Any) -> CommitMessage | None:
    """What compacting one bucket gives to commit."""
    messages = compact_together(store, [(partition, bucket)], **how)
    return messages[0] if messages else None


def compact_all(store: FileStore, *, full: bool = True) -> list[CommitMessage]:
    """Compact and commit every bucket."""
    buckets = sorted({(entry.partition, entry.bucket) for entry in live(store)})
    found = [compact_bucket(store, partition, bucket, full=full) for partition, bucket in buckets]
    messages = [message for message in found if message is not None]
    commit(store, messages)
    return messages


def live(store: FileStore) -> list[Any]:
    """Entries of the newest snapshot."""
    return store.live_entries(store.snapshots.latest()).entries()


def live_files(store: FileStore) -> list[DataFileMeta]:
    return [entry.file for entry in live(store)]


def path_of(store: FileStore, entry: Any) -> str:
    return store.paths.data_file(store.partition.decode(entry.partition), entry.bucket, entry.file.file_name)


def raw(store: FileStore, entry: Any) -> pa.Table:
    """All physical columns of a file."""
    return pq.ParquetFile(path_of(store, entry)).read()


def newest_rows(store: FileStore) -> list[dict[str, Any]]:
    """The table's rows by the rule: of each key the largest (user sequence, sequence number) counts, unless it is a retract."""
    schema = store.schema
    sign = -1 if schema.core.sequence_descending else 1
    best: dict[Any, tuple[Any, dict[str, Any]]] = {}
    for entry in live(store):
        for row in raw(store, entry).to_pylist():
            key = tuple(row[name] for name in schema.primary_keys)
            user = tuple((row[name] is not None, sign * row[name]) for name in schema.core.sequence_field)
            rank = (user, row["_SEQUENCE_NUMBER"])
            if key not in best or rank > best[key][0]:
                best[key] = (rank, row)
    rows = [row for _, row in best.values() if row["_VALUE_KIND"] in {0, 2}]
    return sorted(({name: row[name] for name in schema.names} for row in rows), key=str)


def append_rows(store: FileStore) -> list[dict[str, Any]]:
    """All rows of an append table, files of a bucket in the order of their sequence numbers."""
    entries = sorted(live(store), key=lambda e: (e.partition, e.bucket, e.file.min_sequence_number, e.file.creation_time))
    return [row for entry in entries for row in raw(store, entry).to_pylist()]


def data_files(store: FileStore) -> list[str]:
    """Names of all files in bucket directories, side files included."""
    return sorted(path.name for path in Path(store.root).rglob("bucket-*/*"))
