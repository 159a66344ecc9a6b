"""Index files in commits: what a writer read and what it puts in its place, merged into a snapshot's complete list.

The hash index or the deletion vectors of a bucket are one state, replaced as a whole. So a change remembers the files that it was
computed from; if the newest snapshot has others, somebody's marks or hashes would be lost, and the change does not fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from manifest.commit.conflicts import BucketId, Conflict
from manifest.entry.index_manifest import DELETION_VECTORS, IndexFile, IndexManifestEntry

BucketChange = tuple[BucketId, "IndexChange"]
"""A change and the bucket that it belongs to."""


class IndexChange(BaseModel):
    """Index files of one kind that a writer of a bucket replaces.

    ``base`` names all files of that kind in the bucket as the writer read them, or with ``partition_wide`` in its whole
    partition: a key that is new to one bucket must be new to all. A writer that relies on them without changing them says so
    by a change with neither ``new`` nor ``removed``. Changes made by ``compaction`` become visible with it, others with the rows.

    >>> IndexChange(kind="HASH", base=("index-1",)).is_empty
    True
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    kind: Literal["DELETION_VECTORS", "HASH"]
    new: tuple[IndexFile, ...] = ()
    removed: tuple[IndexFile, ...] = ()
    base: tuple[str, ...] = ()
    compaction: bool = False
    partition_wide: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it replaces nothing."""
        return not (self.new or self.removed)

    @property
    def marked_files(self) -> set[str]:
        """Data files for which ``new`` has deletion vectors."""
        return {vector.data_file for file in self.new for vector in file.vectors or ()}


def index_conflicts(
    entries: Iterable[IndexManifestEntry], changes: Sequence[BucketChange], live: Mapping[BucketId, Collection[str]]
) -> list[Conflict]:
    """Buckets whose index files are no longer those that a change was computed from.

    Args:
        entries: the index files of the newest snapshot.
        changes: what is to be committed; at most one for a bucket and kind.
        live: names of the data files that the commit leaves in each bucket; a deletion vector of another one means that
            the file was rewritten without the marks.
    """
    present: dict[tuple[BucketId, str], set[str]] = {}
    in_partition: dict[tuple[bytes, str], set[str]] = {}
    for entry in entries:
        present.setdefault(((entry.partition, entry.bucket), entry.index_type), set()).add(entry.file_name)
        in_partition.setdefault((entry.partition, entry.index_type), set()).add(entry.file_name)
    found = []
    seen: set[tuple[BucketId, str]] = set()
    for bucket, change in changes:
        if (bucket, change.kind) in seen:
            found.append(Conflict(bucket, f"one commit changes its {change.kind} files twice"))
        seen.add((bucket, change.kind))
        now = in_partition.get((bucket[0], change.kind)) if change.partition_wide else present.get((bucket, change.kind))
        if (now or set()) != set(change.base):
            found.append(Conflict(bucket, f"its {change.kind} files were replaced by a newer commit"))
        gone = change.marked_files - set(live.get(bucket, ()))
        if gone and change.kind == DELETION_VECTORS:
            found.append(Conflict(bucket, f"file {min(gone)}, in which rows are marked as deleted, was removed by a newer commit"))
    return found


def replaced(entries: Iterable[IndexManifestEntry], changes: Iterable[BucketChange]) -> list[IndexManifestEntry]:
    """The complete list of index files after ``changes``."""
    kept = list(entries)
    for (partition, bucket), change in changes:
        gone = {(partition, bucket, change.kind, file.file_name) for file in change.removed}
        kept = [entry for entry in kept if (entry.partition, entry.bucket, entry.index_type, entry.file_name) not in gone]
        kept += [IndexManifestEntry.of(file, partition, bucket, change.kind) for file in change.new]
    return kept


__all__ = ["BucketChange", "IndexChange", "index_conflicts", "replaced"]
