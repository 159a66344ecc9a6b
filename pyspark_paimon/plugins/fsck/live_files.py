"""Live files, snapshot by snapshot, to find inconsistent entries."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from manifest.entry.columns import EntryColumns
from manifest.stats.column_stats import PartitionType
from pyspark_paimon.plugins.fsck.manifests import kinds

LiveBucket = tuple[bytes, int]


class LiveFile(NamedTuple):
    """A live file.

    ``content`` is equal for entries with the same data file and side files.
    """

    bucket_id: LiveBucket
    total_buckets: int
    level: int
    name: str
    rows: int
    size: int
    min_key: bytes
    max_key: bytes
    content: bytes


class Overlap(NamedTuple):
    """Two files of a level with overlapping key ranges."""

    first: LiveFile
    second: LiveFile


@dataclass(slots=True)
class LiveChange:
    """Result of applying entries. Positions refer to these entries.

    Attributes:
        twice: ADDs of an identity that exists, or that a manifest of the state deleted before.
        absent: DELETEs of an identity that does not exist.
        gone: DELETEs after which the state has no entry of the same data file and side files.
        buckets: Buckets with changes.
        rows: Change of the number of rows.
    """

    twice: list[int] = field(default_factory=list)
    absent: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    buckets: set[LiveBucket] = field(default_factory=set)
    rows: int = 0


@dataclass
class LiveFiles:
    """Live files of a state.

    Memory grows with their number. ``manifests`` has the names of its manifests in order.
    """

    manifests: tuple[str, ...] = ()
    files: dict[bytes, LiveFile] = field(default_factory=dict)
    by_bucket: dict[LiveBucket, set[bytes]] = field(default_factory=dict)
    contents: Counter[bytes] = field(default_factory=Counter)
    deleted: Counter[bytes] = field(default_factory=Counter)
    rows: int = 0

    def apply(self, entries: EntryColumns) -> LiveChange:
        """Apply ADDs and DELETEs in order."""
        change = LiveChange()
        added, change.rows = kinds(entries)
        live = list(_live_files(entries))
        gone: list[tuple[int, bytes]] = []
        for position, identity in enumerate(_digests(entries)):
            file = live[position]
            change.buckets.add(file.bucket_id)
            if added[position]:
                if identity in self.files or identity in self.deleted:
                    change.twice.append(position)
                else:
                    self._put(identity, file)
            elif identity in self.files:
                self._drop(identity)
                gone.append((position, file.content))
                self.deleted[identity] += 1
            else:
                change.absent.append(position)
                self.deleted[identity] += 1
        change.gone = [position for position, content in gone if content not in self.contents]
        return change

    def _put(self, identity: bytes, file: LiveFile) -> None:
        self.files[identity] = file
        self.by_bucket.setdefault(file.bucket_id, set()).add(identity)
        self.contents[file.content] += 1
        self.rows += file.rows

    def _drop(self, identity: bytes) -> None:
        file = self.files.pop(identity)
        self.rows -= file.rows
        self.by_bucket[file.bucket_id].discard(identity)
        if not self.by_bucket[file.bucket_id]:
            del self.by_bucket[file.bucket_id]
        self.contents[file.content] -= 1
        if not self.contents[file.content]:
            del self.contents[file.content]

    def apply_merge(self, before: EntryColumns, after: EntryColumns) -> list[str]:
        """Replace merged manifests and return names of files that differ.

        Args:
            before: Entries of the manifests before the merge.
            after: Entries of the merged manifests.
        """
        old, new = _net_entries(before), _net_entries(after)
        self.deleted.subtract(identity for identity, add in zip(_digests(before), kinds(before)[0], strict=True) if not add)
        self.deleted.update(identity for identity, add in zip(_digests(after), kinds(after)[0], strict=True) if not add)
        self.deleted = +self.deleted
        return sorted(
            {name for identity in old.keys() | new.keys() if old.get(identity) != new.get(identity) for name in _names(old, new, identity)}
        )

    def bucket(self, bucket_id: LiveBucket) -> list[LiveFile]:
        """Return the files of a bucket."""
        return [self.files[identity] for identity in self.by_bucket.get(bucket_id, ())]

    def overlaps(self, bucket_id: LiveBucket, key: PartitionType) -> Iterator[Overlap]:
        """Yield files with overlapping keys on levels above 0.

        Raises ``CorruptFile`` for keys that cannot be decoded.
        """
        by_level: dict[int, list[LiveFile]] = {}
        for file in self.bucket(bucket_id):
            if file.level > 0:
                by_level.setdefault(file.level, []).append(file)
        for _, files in sorted(by_level.items()):
            ranges = sorted(((key.order(file.min_key), key.order(file.max_key), file) for file in files), key=lambda earlier: earlier[:2])
            reach: Any = None
            for (_, high, earlier), (low, _, other) in pairwise(ranges):
                if reach is None or high > reach[0]:
                    reach = (high, earlier)
                if low <= reach[0]:
                    yield Overlap(reach[1], other)


def _net_entries(entries: EntryColumns) -> dict[bytes, tuple[bool, str, int, int]]:
    """Return entries that remain after ADDs and DELETEs cancel.

    By identity: (is an ADD, name, rows, bytes).
    """
    left: dict[bytes, tuple[bool, str, int, int]] = {}
    added = kinds(entries)[0]
    rows, sizes, names = entries.row_count.tolist(), entries.file_size.tolist(), entries.file_name
    for position, identity in enumerate(_digests(entries)):
        if added[position]:
            left[identity] = (True, names[position], rows[position], sizes[position])
        elif identity in left and left[identity][0]:
            del left[identity]
        else:
            left[identity] = (False, names[position], 0, 0)
    return left


def _names(old: dict[bytes, tuple[bool, str, int, int]], new: dict[bytes, tuple[bool, str, int, int]], identity: bytes) -> Iterable[str]:
    return {state[identity][1] for state in (old, new) if identity in state}


def _live_files(entries: EntryColumns) -> Iterator[LiveFile]:
    parts = zip(*(entries.content(f"_FILE.{name}") for name in _CONTENT), strict=True)
    return map(
        LiveFile._make,
        zip(
            zip(entries.partition, entries.bucket.tolist(), strict=True),
            entries.total_buckets.tolist(),
            entries.level.tolist(),
            entries.file_name,
            entries.row_count.tolist(),
            entries.file_size.tolist(),
            entries.min_key,
            entries.max_key,
            map(digest, parts),
            strict=True,
        ),
    )


_CONTENT = ("_FILE_NAME", "_EXTRA_FILES", "_EMBEDDED_FILE_INDEX", "_EXTERNAL_PATH")


def _digests(entries: EntryColumns) -> list[bytes]:
    return [digest(identity) for identity in entries.identities()]


def digest(parts: Sequence[bytes]) -> bytes:
    """Return a 16-byte hash of a sequence of bytes."""
    blake = hashlib.blake2b(digest_size=16)
    for part in parts:
        blake.update(len(part).to_bytes(8, "big"))
        blake.update(part)
    return blake.digest()
