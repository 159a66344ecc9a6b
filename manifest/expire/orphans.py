"""Files that no metadata refers to (Paimon's ``LocalOrphanFilesClean``).

Killed writers and lost races leave them. An uncommitted file of a running write looks the same: only its age protects it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fileindex.base.log import logger_of
from manifest.expire.reachable import branches_of, everything_reachable
from manifest.io.file_io import FileStatus
from manifest.io.partition_path import escape
from manifest.io.paths import BUCKET, CHANGELOG, EARLIEST, LATEST, ROLLBACK, SNAPSHOT, numbered
from manifest.store import FileStore

_LOG = logger_of(__name__)


@dataclass(frozen=True, slots=True)
class Orphan:
    """An unreferenced file.

    Args:
        path: Path of the file.
        size: Size in bytes.
        mtime_ms: Last change, in milliseconds since the epoch.
    """

    path: str
    size: int
    mtime_ms: int


def list_orphans(store: FileStore, older_than_ms: int) -> list[Orphan]:
    """Return unreferenced files last changed before ``older_than_ms``, by path.

    ``older_than_ms`` is in milliseconds since the epoch. Lists the directories of manifests, indexes, statistics, snapshots, changelogs
    and buckets only. Raises ``CorruptFile`` if some metadata cannot be read: the used files are unknown then.
    """
    # Before the metadata is read, so that files of commits in between are not listed.
    listed = [*_metadata_files(store), *_bucket_files(store)]
    found = everything_reachable(store)
    used: dict[str, Callable[[str], bool]] = {
        store.paths.manifests: found.metadata.__contains__,
        store.paths.indexes: found.indexes.__contains__,
        store.paths.all_statistics: found.statistics.__contains__,
    }
    for branch in branches_of(store):
        used[branch.paths.snapshots] = lambda name: name in {LATEST, EARLIEST, ROLLBACK} or numbered(name, SNAPSHOT) is not None
        used[branch.paths.changelogs] = lambda name: name in {LATEST, EARLIEST} or numbered(name, CHANGELOG) is not None
    in_bucket = found.data | found.indexes
    orphans = [
        Orphan(f"{directory}/{status.name}", status.size, status.mtime_ms)
        for directory, status in listed
        if status.mtime_ms < older_than_ms and not used.get(directory, in_bucket.__contains__)(status.name)
    ]
    return sorted(orphans, key=lambda orphan: orphan.path)


def remove_orphans(store: FileStore, older_than_ms: int) -> list[Orphan]:
    """Delete the files of ``list_orphans`` and return those deleted."""
    gone = [orphan for orphan in list_orphans(store, older_than_ms) if store.file_io.delete(orphan.path)]
    if gone:
        _LOG.info("%s: removed %d orphans, %d bytes", store.root, len(gone), sum(orphan.size for orphan in gone))
    return gone


def _metadata_files(store: FileStore) -> Iterator[tuple[str, FileStatus]]:
    paths = store.paths
    directories = [paths.manifests, paths.indexes, paths.all_statistics]
    for branch in branches_of(store):
        directories += [branch.paths.snapshots, branch.paths.changelogs]
    for directory in directories:
        yield from ((directory, status) for status in store.file_io.list(directory) if not status.is_dir)


def _bucket_files(store: FileStore) -> Iterator[tuple[str, FileStatus]]:
    """Yield files in ``bucket-*`` directories of all partitions."""
    # One level of key=value directories per partition key.
    directories = [store.paths.data]
    for key in store.schema.partition_keys:
        directories = [
            f"{directory}/{status.name}"
            for directory in directories
            for status in store.file_io.list(directory)
            if status.is_dir and status.name.startswith(f"{escape(key)}=")
        ]
    for directory in directories:
        for status in store.file_io.list(directory):
            if status.is_dir and status.name.startswith(BUCKET):
                bucket = f"{directory}/{status.name}"
                yield from ((bucket, file) for file in store.file_io.list(bucket) if not file.is_dir)


__all__ = ["Orphan", "list_orphans", "remove_orphans"]
