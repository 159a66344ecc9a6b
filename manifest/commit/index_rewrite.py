"""Commits of rewritten file indexes (Paimon's ``rewrite_file_index``).

A file keeps its name, rows and level. Only its entry changes. The rewrite of a file conflicts only with a removal of its entry,
and does not affect the rewrites of other files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from manifest.commit.attempt import CommitChange
from manifest.commit.conflicts import BucketId
from manifest.commit.index_update import compaction_paths
from manifest.commit.message import CommitMessage
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind
from manifest.entry.live import EntryFilter
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


class IndexRewrites:
    """Messages with pairs of old and new file entries.

    ``compact_before`` and ``compact_after`` have the same length and order.
    """

    def __init__(self, store: FileStore, messages: Sequence[CommitMessage]) -> None:
        self._store = store
        self._left = [single for message in messages for single in _singles(message)]
        self._lost: list[CommitMessage] = []

    @property
    def lost(self) -> tuple[BucketId, ...]:
        """Bucket of each dropped rewrite."""
        return tuple(message.bucket_id for message in self._lost)

    def change(self, store: FileStore, latest: Snapshot | None) -> CommitChange | None:
        """Return the rewrites whose old entry is live, or None."""
        entry_filter = EntryFilter(partitions={message.partition for message in self._left})
        live = set(store.live_entries(latest, entry_filter).identities())
        old = EntryColumns.of(entry for message in self._left for entry in message.compacted_entries() if entry.kind == FileKind.DELETE)
        fits = [
            identity in live and all(map(store.file_io.exists, compaction_paths(store, message)))
            for identity, message in zip(old.identities(), self._left, strict=True)
        ]
        self._lost += [message for message, fit in zip(self._left, fits, strict=True) if not fit]
        self._left = [message for message, fit in zip(self._left, fits, strict=True) if fit]
        if not self._left or latest is None:
            return None
        entries = EntryColumns.of(entry for message in self._left for entry in message.compacted_entries())
        added = entries.select(entries.kind == FileKind.ADD)
        return CommitChange(entries, revives=not _deleted_identities(store, latest, entry_filter).isdisjoint(added.identities()))

    def delete_lost_files(self) -> None:
        """Delete side files of dropped rewrites.

        Files that the newest state uses stay.
        """
        if not self._lost:
            return
        entry_filter = EntryFilter(partitions={message.partition for message in self._lost})
        used = self._store.live_entries(self._store.snapshots.latest(), entry_filter).physical_names()
        for message in self._lost:
            for path in compaction_paths(self._store, message):
                if path.rpartition("/")[2] not in used:
                    with suppress(OSError):  # an orphan at worst
                        self._store.file_io.delete(path)


def _singles(message: CommitMessage) -> Iterator[CommitMessage]:
    for before, after in zip(message.compact_before, message.compact_after, strict=True):
        yield message.model_copy(update={"compact_before": (before,), "compact_after": (after,)})


def _deleted_identities(store: FileStore, latest: Snapshot, entry_filter: EntryFilter) -> set[tuple[bytes, ...]]:
    """Return identities of all DELETE entries of ``latest``."""
    listed = [meta for meta in store.manifest_metas(latest) if meta.num_deleted_files > 0]
    with store.reading(latest):
        read = [store.manifests.read_meta(meta) for meta in entry_filter.manifests(listed, store.partition, store.paths.manifests)]
    return {identity for entries in read for identity in entries.select(entries.kind == FileKind.DELETE).identities()}
