"""Deleting the files that forgotten snapshots named and nothing retained reaches."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_entry import ManifestEntry
from manifest.expire.reachable import Reachable
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


def delete_files(store: FileStore, dead: Iterable[ManifestEntry], kept: Reachable) -> int:
    """Delete the physical files of ``dead`` entries that nothing kept reaches; returns how many were there."""
    paths: dict[str, None] = {}
    for entry in dead:
        for name, path in zip(entry.file.file_names, store.physical_files(entry.partition, entry.bucket, entry.file), strict=True):
            if name not in kept.data:
                paths[path] = None
    deleted = store.file_io.delete_many(list(paths))
    if store.options.snapshot_clean_empty_directories:
        for bucket in {path.rpartition("/")[0] for path in paths}:
            _delete_empty(store, bucket)
    return deleted


def _delete_empty(store: FileStore, directory: str) -> None:
    """Delete a bucket's directory, then those of its partition, as long as they are empty."""
    levels = 1 + len(store.schema.partition_keys)
    while levels and directory.startswith(f"{store.root}/") and store.file_io.delete_directory(directory):
        directory, levels = directory.rpartition("/")[0], levels - 1


def delete_metadata(store: FileStore, forgotten: Iterable[Snapshot], kept: Reachable) -> int:
    """Delete manifests, lists, index files and statistics of ``forgotten`` that nothing kept reaches; returns how many manifests and lists."""
    names: dict[str, None] = {}
    for snapshot in forgotten:
        index, statistics = snapshot.index_manifest, snapshot.statistics
        if index and index not in kept.metadata:
            with suppress(FileNotFoundError):
                for entry in store.index_manifests.read(index):
                    if entry.file_name not in kept.indexes:
                        partition = store.partition.decode(entry.partition)
                        store.file_io.delete(store.paths.index(entry.file_name, partition, entry.bucket, entry.external_path))
            names[index] = None
        if statistics and statistics not in kept.statistics:
            store.file_io.delete(store.paths.statistics(statistics))
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list):
            if name:
                with suppress(FileNotFoundError):
                    names.update((meta.file_name, None) for meta in store.manifest_lists.read(name))
                names[name] = None
    # a list goes after its manifests, so that an interrupted run still finds them
    gone = [store.paths.manifest(name) for name in names if name not in kept.metadata]
    lists = [path for path in gone if path.rpartition("/")[2].startswith("manifest-list-")]
    return store.file_io.delete_many([path for path in gone if path not in set(lists)]) + store.file_io.delete_many(lists)


def entries_of(store: FileStore, list_name: str) -> EntryColumns:
    """Entries of a list's manifests; those that an interrupted expiry has deleted are done with."""
    parts: list[EntryColumns] = []
    with suppress(FileNotFoundError):
        for meta in store.manifest_lists.read(list_name):
            with suppress(FileNotFoundError):
                parts.append(store.manifests.read_meta(meta))
    return EntryColumns.concat(parts)


__all__ = ["delete_files", "delete_metadata", "entries_of"]
