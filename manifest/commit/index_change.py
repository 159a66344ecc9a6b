"""Changes of index files in a commit.

The hash index or the deletion vectors of a bucket are one state, replaced as a whole. A change lists the files that it was
computed from. If the newest snapshot has others, the change would lose marks or hashes, and it conflicts. The payloads of
secondary indexes follow the same rule, so that two compactions never leave two payloads of one level.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from fileindex.sorted_index.build_options import SortedIndexKind
from manifest.commit.conflicts import BucketId, Conflict
from manifest.entry.index_manifest import DELETION_VECTORS, IndexFile, IndexManifestEntry

BucketChange = tuple[BucketId, "IndexChange"]
"""(bucket, change)."""


class IndexChange(BaseModel):
    """Replacement of index files of one kind in a bucket.

    A writer that relies on index files without changing them adds a change with neither ``new`` nor ``removed``.

    Args:
        kind: Index type.
        new: Added files.
        removed: Deleted files.
        base: Names of all files of the kind that the writer read in the bucket.
        compaction: Whether the change becomes visible with the compaction, not with the rows.
        partition_wide: Whether ``base`` lists the files of the whole partition: a new key must be new to all its buckets.

    >>> IndexChange(kind="HASH", base=("index-1",)).is_empty
    True
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    kind: Literal["DELETION_VECTORS", "HASH"] | SortedIndexKind
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
    """Return conflicts with the index files of the newest snapshot.

    Args:
        entries: Index files of the newest snapshot.
        changes: Changes to commit, at most one for a bucket and kind.
        live: Names of the data files that the commit leaves in each bucket. Rows marked in other files are a conflict.
    """
    present: dict[tuple[BucketId, str], set[str]] = {}
    in_partition: dict[tuple[bytes, str], set[str]] = {}
    for entry in entries:
        present.setdefault(((entry.partition, entry.bucket), entry.index_type), set()).add(entry.file_name)
        in_partition.setdefault((entry.partition, entry.index_type), set()).add(entry.file_name)
    conflicts = []
    changed_indexes: set[tuple[BucketId, str]] = set()
    for bucket, change in changes:
        if (bucket, change.kind) in changed_indexes:
            conflicts.append(Conflict(bucket, f"one commit changes its {change.kind} files twice"))
        changed_indexes.add((bucket, change.kind))
        now = in_partition.get((bucket[0], change.kind)) if change.partition_wide else present.get((bucket, change.kind))
        if (now or set()) != set(change.base):
            conflicts.append(Conflict(bucket, f"its {change.kind} files were replaced by a newer commit"))
        # Such a file was rewritten without the marks.
        gone = change.marked_files - set(live.get(bucket, ()))
        if gone and change.kind == DELETION_VECTORS:
            conflicts.append(Conflict(bucket, f"file {min(gone)}, in which rows are marked as deleted, was removed by a newer commit"))
    return conflicts


def apply_changes(entries: Iterable[IndexManifestEntry], changes: Iterable[BucketChange]) -> list[IndexManifestEntry]:
    """Return all index files after ``changes``."""
    index_entries = list(entries)
    for (partition, bucket), change in changes:
        gone = {(partition, bucket, change.kind, file.file_name) for file in change.removed}
        index_entries = [entry for entry in index_entries if (entry.partition, entry.bucket, entry.index_type, entry.file_name) not in gone]
        index_entries += [IndexManifestEntry.of(file, partition, bucket, change.kind) for file in change.new]
    return index_entries
