"""Commit of written rows: append or overwrite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from manifest.commit.file_store_commit import FileStoreCommit
from manifest.commit.message import CommitMessage, CommitResult
from manifest.entry.live import EntryFilter
from manifest.snapshot.snapshot import ReadState
from manifest.store import FileStore
from pyspark_paimon.request.backend import WriteRequest
from pyspark_paimon.request.partition_spec import Spec, predicate_of, values_of


def publish_rows(
    commit: FileStoreCommit,
    request: WriteRequest,
    messages: Sequence[CommitMessage],
    *,
    properties: Mapping[str, str] | None = None,
    read: ReadState | None = None,
) -> CommitResult:
    """Commit the messages as the request's mode requires.

    ``read``: used for appends only. Raises the errors of ``FileStoreCommit``.
    """
    if request.mode != "overwrite":
        return commit.commit(messages, request.identifier, properties=properties, read=read)
    dynamic = request.dynamic and request.partition is None
    target = None if dynamic else _replaced(commit.store, request.partition, messages)
    return commit.overwrite(messages, request.identifier, partitions=target, dynamic=dynamic, properties=properties)


def _replaced(store: FileStore, spec: Spec | None, messages: Sequence[CommitMessage]) -> Collection[bytes] | None:
    """Return the partitions that a static overwrite replaces.

    Includes the matching partitions of the new rows. None: the whole table.
    """
    if spec is None:
        return None
    values = values_of(spec, store.schema)
    if values is not None:
        return {store.partition.encode(values)}
    wanted = predicate_of([spec], store.schema)
    written = {message.partition for message in messages if store.partition.keeps(wanted, message.partition)}
    return written.union(store.live_partitions(store.snapshots.latest(), EntryFilter(predicate=wanted)))


__all__ = ["publish_rows"]
