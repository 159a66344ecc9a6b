"""Commit of written rows, with counts of files, bytes and rows."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.entry.live import EntryFilter
from manifest.snapshot.snapshot import ReadState
from manifest.store import FileStore
from pyspark_paimon.request.partition_spec import Spec, predicate_of, values_of
from pyspark_paimon.request.requests import WriteRequest
from pyspark_paimon.results.counters import WriteCounters
from pyspark_paimon.results.results import WriteResult


def write_counters(
    messages: Iterable[CommitMessage], *, rows: int, retries: int, millis: dict[str, float], bytes_in: int = 0
) -> WriteCounters:
    """Return the counters of a commit."""
    commits = list(messages)
    new = [file for message in commits for file in message.new_files]
    compacted_files = [file for message in commits for file in message.compaction_files()]
    before = [file for message in commits for file in message.compact_before]
    return WriteCounters(
        rows=rows,
        bytes_in=bytes_in,
        files=len(new) + len(compacted_files),
        bytes_written=sum(file.file_size for file in (*new, *compacted_files)),
        compacted_files=len(before),
        compacted_bytes=sum(file.file_size for file in before),
        retries=retries,
        millis=millis,
    )


def write_counts(messages: Sequence[CommitMessage], *, rows: int) -> dict[str, int]:
    """Return the counts that a commit notes in its snapshot."""
    names = {"rows", "bytes_written", "compacted_files", "compacted_bytes"}
    counts = write_counters(messages, rows=rows, retries=0, millis={}).model_dump(include=names)
    return {**counts, "files": sum(len(message.new_files) + len(message.compact_after) for message in messages)}


def write_result(result: CommitResult, rows: int, files: int, start: float, counters: WriteCounters | None = None) -> WriteResult:
    """Return the result of a commit.

    ``start``: its start time by ``time.perf_counter``.
    """
    return WriteResult(
        rows=rows,
        files=files,
        snapshot_id=result.snapshot_id,
        compact_snapshot_id=result.compact_snapshot_id,
        compact_lost=result.compact_lost,
        compact_error=result.compaction_error,
        replayed=result.replayed,
        counters=counters,
        seconds=time.perf_counter() - start,
    )


def publish_rows(
    commit: FileStoreCommit,
    request: WriteRequest,
    messages: Sequence[CommitMessage],
    rows: int,
    kinds: Mapping[str, int] | None = None,
    *,
    read: ReadState | None = None,
) -> CommitResult:
    """Commit the messages as the request's mode requires.

    Raises the errors of ``FileStoreCommit``.

    rows: Number of rows, for the table's history.
    kinds: Number of rows by kind of change, as for ``rows``.
    read: Used for appends only.
    """
    files = sum(len(message.new_files) for message in messages)
    properties = request.noted({**write_counts(messages, rows=rows), "files": files, **(kinds or {})})
    if request.mode != "overwrite":
        return commit.commit(messages, request.identifier, properties=properties, read=read)
    dynamic = request.dynamic and request.partition is None
    target = None if dynamic else _replaced_partitions(commit.store, request.partition, messages)
    return commit.overwrite(messages, request.identifier, partitions=target, dynamic=dynamic, properties=properties)


def _replaced_partitions(store: FileStore, spec: Spec | None, messages: Sequence[CommitMessage]) -> Collection[bytes] | None:
    """Return the partitions that a static overwrite replaces.

    Includes the matching partitions of the new rows. None: the whole table.
    """
    if spec is None:
        return None
    values = values_of(spec, store.schema)
    if values is not None:
        return {store.partition.encode(values)}
    predicate = predicate_of([spec], store.schema)
    written_partitions = {message.partition for message in messages if store.partition.keeps(predicate, message.partition)}
    return written_partitions.union(store.live_partitions(store.snapshots.latest(), EntryFilter(predicate=predicate)))
