"""Removal of data files that do not exist from the newest state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from manifest.commit.attempt import CommitChange
from manifest.commit.index_change import BucketChange, IndexChange, apply_changes
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import ManifestEntry
from manifest.entry.index_manifest import DELETION_VECTORS, IndexManifestEntry
from manifest.io.threads import run_parallel
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore


@dataclass
class MissingFiles:
    """Data files of the newest state without a file on storage.

    ``entries`` are those of the last call of ``change``.
    """

    entries: tuple[ManifestEntry, ...] = ()

    def change(self, store: FileStore, latest: Snapshot | None) -> CommitChange | None:
        """Return the change that deletes the entries of missing files.

        Their deletion vectors leave the index manifest, too. None: no file is missing.
        """
        self.entries = find_missing(store, latest)
        if not self.entries:
            return None
        change = CommitChange(EntryColumns.of(self.entries).deleted())
        names = {entry.file.file_name for entry in self.entries}
        stored = store.index_entries(latest)
        updates = list(_without_vectors(stored, names))
        if not updates:
            return change
        # The index files keep their names, so they prove nothing about this commit.
        manifest = store.index_manifests.write(apply_changes(stored, updates))
        return CommitChange(change.entries, index_changed=True, index_manifest=manifest)

    def paths(self, store: FileStore) -> tuple[str, ...]:
        """Return the paths of the missing files."""
        return tuple(_path(store, entry) for entry in self.entries)


def find_missing(store: FileStore, snapshot: Snapshot | None) -> tuple[ManifestEntry, ...]:
    """Return the live entries whose data file does not exist."""
    entries = store.live_entries(snapshot).entries()
    existence = run_parallel(store.file_io, [partial(store.file_io.exists, _path(store, entry)) for entry in entries])
    return tuple(entry for entry, exists in zip(entries, existence, strict=True) if not exists)


def _path(store: FileStore, entry: ManifestEntry) -> str:
    return store.physical_files(entry.partition, entry.bucket, entry.file)[0]


def _without_vectors(entries: Iterable[IndexManifestEntry], names: set[str]) -> Iterator[BucketChange]:
    """Yield the changes of index files with vectors of ``names``."""
    for entry in entries:
        vectors = tuple(vector for vector in entry.vectors or () if vector.data_file not in names)
        if entry.index_type == DELETION_VECTORS and len(vectors) < len(entry.vectors or ()):
            rest = (entry.file.model_copy(update={"vectors": vectors, "row_count": len(vectors)}),) if vectors else ()
            yield (entry.partition, entry.bucket), IndexChange(kind=DELETION_VECTORS, new=rest, removed=(entry.file,))
