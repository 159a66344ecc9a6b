"""Selection of old partitions (Paimon's ``PartitionExpire``), and marks of complete ones."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import datetime, timedelta

import numpy as np

from manifest.entry.columns import EntryColumns
from manifest.io.paths import partition_text
from manifest.schema.partition_time import EXPIRATION_TIME, PartitionExpiration, PartitionTime
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument
from sparkexpr.values.arrays import Int64s
from sparkexpr.values.column_type import ColumnType, Plain

SUCCESS_FILE = "_SUCCESS"
"""Name of the file in the directory of a complete partition."""


def expired_partitions(store: FileStore, snapshot: Snapshot | None, older_than: datetime | None = None) -> list[bytes]:
    """Return serialised partitions from before ``older_than``, oldest first.

    ``older_than`` is local wall clock time. None: option ``partition.expiration-time``. Returns at most ``partition.expiration-max-num``.
    Raises ``InvalidArgument`` for a table without partitions or without a time, ``UnsupportedOption`` for an option.
    """
    if not store.schema.partition_keys:
        raise InvalidArgument(f"{store.root}: the table has no partitions that could expire")
    rules = PartitionExpiration.of(store.options.raw)
    if older_than is None:
        if rules.retained_ms is None:
            raise InvalidArgument(f"{store.root}: no partition expires: set option '{EXPIRATION_TIME}' or pass older_than")
        older_than = datetime.now() - timedelta(milliseconds=rules.retained_ms)  # noqa: DTZ005 -- as values have no zone
    times = _update_times(store, snapshot) if rules.by_update_time else _value_times(store, snapshot, rules)
    old = sorted((time, partition) for partition, time in times.items() if time is not None and time < older_than)
    return [partition for _, partition in old[: rules.max_partitions]]


def mark_done(store: FileStore, values: tuple[Plain, ...]) -> None:
    """Write the success file of a partition (Paimon's ``SuccessFile``).

    A repeated call keeps the creation time.
    """
    path = f"{store.paths.partition_dir(values)}/{SUCCESS_FILE}"
    now = time.time_ns() // 1_000_000
    created = now
    with suppress(FileNotFoundError):
        try:
            created = int(json.loads(store.file_io.read(path))["creationTime"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptFile(path, "is not a success file; delete it, and mark the partition again") from error
    store.file_io.write(path, json.dumps({"creationTime": created, "modificationTime": now}).encode(), overwrite=True)


def _value_times(store: FileStore, snapshot: Snapshot | None, rules: PartitionExpiration) -> dict[bytes, datetime | None]:
    extractor = PartitionTime(store.schema.partition_keys, rules.pattern, rules.formatter)
    types = store.paths.partition_types
    return {
        partition: extractor.of([_text(value, column) for value, column in zip(store.partition.decode(partition), types, strict=True)])
        for partition in store.live_partitions(snapshot)
    }


def _text(value: Plain, column: ColumnType) -> str | None:
    return None if value is None else partition_text(value, column, "", legacy=False)


def _update_times(store: FileStore, snapshot: Snapshot | None) -> dict[bytes, datetime | None]:
    entries = store.live_entries(snapshot)
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001 -- a wall clock's time is noted as if it were UTC
    newest = newest_files(entries)
    return {
        partition: epoch + timedelta(milliseconds=int(millis)) for partition, millis in zip(entries.partition_codes[1], newest, strict=True)
    }


def newest_files(entries: EntryColumns) -> Int64s:
    """Return the creation time of each partition's newest file.

    In milliseconds, by the wall clock of the writer, in the order of partition codes.
    """
    codes, partitions = entries.partition_codes
    newest = np.zeros(len(partitions), np.int64)
    if partitions:
        np.maximum.at(newest, codes, entries.numbers("_FILE._CREATION_TIME"))
    return newest
