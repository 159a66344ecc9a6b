"""Deletion vectors of one bucket during a write.

Paimon's ``BucketedDvMaintainer`` and ``AppendDeleteFileMaintainer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from fileindex.rowset.roaring import rows_to_bitmap
from lsm.deletion_vectors.reader import DeletionFile, dead_rows
from lsm.deletion_vectors.writer import DeletionVectorWriter
from manifest.commit.index_change import IndexChange
from manifest.entry.index_manifest import DELETION_VECTORS, IndexManifestEntry
from sparkexpr.values.arrays import UInt32s


@dataclass(frozen=True, slots=True)
class VectorMarks:
    """Saved state of a bucket's deletion-vector changes."""

    marked: Mapping[str, BitMap]
    removed: frozenset[str]


class BucketVectors:
    """Deleted positions by data file.

    Vectors of the snapshot are read on demand, and combined with new marks.

    Args:
        writer: Writes the bucket's index files.
        entries: Deletion-vector files of the bucket in the snapshot.
        files: Number of rows of each live data file. Vectors of other files are dropped.
    """

    def __init__(self, writer: DeletionVectorWriter, entries: Sequence[IndexManifestEntry], files: Mapping[str, int]) -> None:
        self._writer = writer
        self._entries = list(entries)
        self._rows = files
        self._stored = {
            vector.data_file: DeletionFile(
                writer.path(entry.file_name, entry.external_path), vector.offset, vector.length, vector.cardinality
            )
            for entry in entries
            for vector in entry.vectors or ()
            if vector.data_file in files
        }
        self._marked: dict[str, BitMap] = {}
        self._removed: set[str] = set()

    def __contains__(self, file_name: object) -> bool:
        return file_name in self._marked or (file_name in self._stored and file_name not in self._removed)

    def dead_rows(self, file_name: str) -> DeletionFile | BitMap | None:
        """Return the deleted positions of a data file.

        They may be the location of a stored vector. None: no row is deleted.
        """
        if file_name in self._marked:
            return self._marked[file_name]
        return self._location(file_name) if file_name in self else None

    def dead_count(self, file_name: str) -> int:
        """Return the number of deleted rows of a data file."""
        vector = self.dead_rows(file_name)
        if vector is None:
            return 0
        cardinality = vector.cardinality if isinstance(vector, DeletionFile) else None
        return len(dead_rows(self._writer.store.file_io, vector)) if cardinality is None else cardinality

    def mark(self, file_name: str, rows: UInt32s) -> int:
        """Mark positions of a data file as deleted.

        Returns the number of newly deleted rows.
        """
        if not len(rows):
            return 0
        vector = self.dead_rows(file_name)
        before = BitMap() if vector is None else dead_rows(self._writer.store.file_io, vector)
        after = before | rows_to_bitmap(rows)
        self._marked[file_name] = after
        return len(after) - len(before)

    def remove(self, file_names: Iterable[str]) -> None:
        """Remove the vectors of removed data files."""
        for name in file_names:
            self._marked.pop(name, None)
            if name in self._stored:
                self._removed.add(name)

    @property
    def marks(self) -> VectorMarks:
        """Current changes, for ``reset``."""
        return VectorMarks(dict(self._marked), frozenset(self._removed))

    def reset(self, marks: VectorMarks) -> None:
        """Restore the changes of ``marks``."""
        self._marked, self._removed = dict(marks.marked), set(marks.removed)

    def change(self, *, compaction: bool) -> IndexChange:
        """Write the changed vectors.

        A bucket has one file with all its vectors. Without buckets only files with changed vectors are replaced. The change has the names of
        its base files, even if it replaces none.
        """
        touched = {*self._marked, *self._removed}
        one_file = self._writer.target_size is None
        replaced = [
            entry for entry in self._entries if (one_file and touched) or any(vector.data_file in touched for vector in entry.vectors or ())
        ]
        unchanged = {vector.data_file for entry in replaced for vector in entry.vectors or ()} & self._stored.keys() - self._removed
        vectors = {name: self._bitmap(name) for name in sorted({*unchanged, *self._marked})}
        return IndexChange(
            kind=DELETION_VECTORS,
            new=tuple(self._writer.write(vectors)),
            removed=tuple(entry.file for entry in replaced),
            base=tuple(entry.file_name for entry in self._entries),
            compaction=compaction,
        )

    def _bitmap(self, file_name: str) -> BitMap:
        marked = self._marked.get(file_name)
        return dead_rows(self._writer.store.file_io, self._location(file_name) or BitMap()) if marked is None else marked

    def _location(self, file_name: str) -> DeletionFile | None:
        stored = self._stored.get(file_name)
        return None if stored is None else stored.within(file_name, self._rows[file_name])
