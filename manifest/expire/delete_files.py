"""Deletion of files that no retained state reaches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import FileKind, ManifestEntry
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.expire.orphans import Reachable, everything_reachable
from manifest.io.threads import run_parallel
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore, table_around
from paimon_base.errors import PaimonError
from paimon_base.log import logger_of

_LOG = logger_of(__name__)


def delete_files(store: FileStore, dead: Iterable[ManifestEntry], reachable: Reachable) -> int:
    """Delete unreachable files of ``dead`` entries and return their number."""
    paths: dict[str, None] = {}
    for entry in dead:
        for name, path in zip(entry.file.file_names, store.physical_files(entry.partition, entry.bucket, entry.file), strict=True):
            if name not in reachable.data and (
                path.rpartition("/")[0] in _homes(store, entry.partition, entry.bucket) or _warn(store, path)
            ):
                paths[path] = None
    deleted = store.file_io.delete_many(_owned(store, paths))
    if store.options.snapshot_clean_empty_directories:
        for bucket in {path.rpartition("/")[0] for path in paths}:
            _delete_empty(store, bucket)
    return deleted


def _homes(store: FileStore, partition: bytes, number: int) -> set[str]:
    """Return the directories in which this table writes the files of a bucket."""
    bucket = store.paths.bucket_dir(store.partition.decode(partition), number)
    return {bucket, *(f"{directory}/{bucket.removeprefix(f'{store.root}/')}" for directory in store.owned.further_roots)}


def _owned(store: FileStore, paths: Collection[str]) -> list[str]:
    """Return the paths that the table may delete. Files of others stay, also where options name directories of other tables."""
    foreign_by_directory = {
        directory: table_around(store, directory) is not None
        for directory in {store.paths.data, *store.owned.further_roots} - {store.root}
        if any(path.startswith(f"{directory}/") for path in paths)
    }
    foreign = tuple(f"{directory}/" for directory, is_foreign in foreign_by_directory.items() if is_foreign)
    return [path for path in paths if (store.owned.owns(path) and not path.startswith(foreign)) or _warn(store, path)]


def _warn(store: FileStore, path: str) -> bool:
    """Log that a file of others stays, and return False."""
    _LOG.warning("%s: %s is not in the table's own directories and was not deleted", store.root, path)
    return False


def _delete_empty(store: FileStore, directory: str) -> None:
    """Delete an empty bucket directory, then its empty partition directories."""
    levels = 1 + len(store.schema.partition_keys)
    while levels and store.owned.owns(directory) and store.file_io.delete_directory(directory):
        directory, levels = directory.rpartition("/")[0], levels - 1


def delete_metadata(store: FileStore, forgotten: Iterable[Snapshot], reachable: Reachable) -> int:
    """Delete unreachable metadata files of ``forgotten`` snapshots.

    Deletes manifests, manifest lists, index files and statistics. Returns the number of manifests and lists.
    """
    names: dict[str, None] = {}
    leaves: dict[str, None] = {}
    for index_files, metadata in run_parallel(
        store.file_io, [partial(_metadata_names, store, snapshot, reachable) for snapshot in forgotten]
    ):
        leaves.update(dict.fromkeys(index_files))
        names.update(dict.fromkeys(metadata))
    store.file_io.delete_many(_owned(store, leaves))
    # Lists after their manifests: a run that continues an interrupted one still finds them.
    gone = _owned(store, [store.paths.manifest(name) for name in names if name not in reachable.metadata])
    lists = [path for path in gone if path.rpartition("/")[2].startswith("manifest-list-")]
    return store.file_io.delete_many([path for path in gone if path not in set(lists)]) + store.file_io.delete_many(lists)


def _metadata_names(store: FileStore, snapshot: Snapshot, reachable: Reachable) -> tuple[list[str], list[str]]:
    """Return unreachable files and all metadata names of a snapshot.

    The first list has paths of index files and statistics, the second names of manifests and lists, reachable or not.
    """
    leaves: list[str] = []
    names: list[str] = []
    index, statistics = snapshot.index_manifest, snapshot.statistics
    if index and index not in reachable.metadata:
        with suppress(FileNotFoundError):
            for entry in store.index_manifests.read(index):
                if entry.file_name not in reachable.indexes:
                    partition = store.partition.decode(entry.partition)
                    path = store.paths.index(entry.file_name, partition, entry.bucket, entry.external_path)
                    homes = {store.paths.indexes, *_homes(store, entry.partition, entry.bucket)}
                    if path.rpartition("/")[0] in homes or _warn(store, path):
                        leaves.append(path)
        names.append(index)
    if statistics and statistics not in reachable.statistics:
        leaves.append(store.paths.statistics(statistics))
    lists = [name for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list) if name]
    for metas in store.file_io.run_parallel(*(partial(_read_if_exists, store, name) for name in lists)):
        names += [meta.file_name for meta in metas]
    return leaves, names + lists


def _read_if_exists(store: FileStore, list_name: str) -> Sequence[ManifestFileMeta]:
    with suppress(FileNotFoundError):
        return store.manifest_lists.read(list_name)
    return ()


def entries_of(store: FileStore, list_name: str) -> EntryColumns:
    """Return the entries of a list's manifests."""
    return EntryColumns.concat(list(_manifests_if_exist(store, list_name, lambda _: True)))


def deletes_of(store: FileStore, list_name: str) -> EntryColumns:
    """Return the DELETE entries of a list's manifests."""
    return EntryColumns.concat(
        [
            entries.select(entries.kind == FileKind.DELETE)
            for entries in _manifests_if_exist(store, list_name, lambda meta: meta.num_deleted_files > 0)
        ]
    )


def _manifests_if_exist(store: FileStore, list_name: str, is_read: Callable[[ManifestFileMeta], bool]) -> Iterator[EntryColumns]:
    """Yield the entries of each ``is_read`` manifest that still exists."""
    # An interrupted expiry may have deleted some: their files are gone already.
    for meta in filter(is_read, _read_if_exists(store, list_name)):
        with suppress(FileNotFoundError):
            yield store.manifests.read_meta(meta)


@dataclass(frozen=True, slots=True)
class Removed:
    """Numbers of deleted snapshots and files, and names of tags."""

    snapshots: int = 0
    tags: tuple[str, ...] = ()
    data_files: int = 0
    manifests: int = 0


def remove_unreachable(store: FileStore, states: Iterable[Snapshot], changes: Sequence[Snapshot]) -> tuple[int, int]:
    """Delete files of removed snapshots that no retained state reaches.

    Returns the numbers of data files and manifests. Files that no snapshot refers to may belong to running writes and stay. An error is
    logged and leaves orphans, because the caller's history change has already happened.

    Args:
        store: The table.
        states: Removed snapshots or tags, with all files of their state.
        changes: Removed snapshots, with the files that they added and deleted.
    """
    try:
        return _delete_unreachable(store, states, changes)
    except (PaimonError, OSError):
        _LOG.warning("%s: some files of deleted states could not be deleted; they are orphans now", store.root, exc_info=True)
        return 0, 0


def _delete_unreachable(store: FileStore, states: Iterable[Snapshot], changes: Sequence[Snapshot]) -> tuple[int, int]:
    reachable = everything_reachable(store)
    dead: list[ManifestEntry] = []
    forgotten = [*states, *changes]
    for state in forgotten[: len(forgotten) - len(changes)]:
        for name, _ in state.manifest_lists:
            dead += entries_of(store, name).entries()
    for change in changes:
        dead += entries_of(store, change.delta_manifest_list).entries()
    for snapshot in forgotten:
        if snapshot.changelog_manifest_list:
            dead += entries_of(store, snapshot.changelog_manifest_list).entries()
    return delete_files(store, dead, reachable), delete_metadata(store, forgotten, reachable)
