"""Decoded manifests of one opened table; a manifest never changes under its name, so nothing can be stale.

What is held is held by the process (``manifest/io/file_cache.py``), within its bound for all tables; a table notes under which keys, and
need not ask storage again whether a file is still the one that it read.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from fileindex.base.thresholds import thresholds
from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.file_cache import SHARED, FileCache, FreshCache
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot

_META_BYTES = 4096
_BYTES_A_PAYLOAD_BYTE, _WITHOUT_OBJECTS = 10, 3


class EntryCache:
    """What one opened table has read: manifests and their lists by name, and several manifests as one; safe for several threads.

    ``files`` holds it, and what tables opened before have read of the same files.
    """

    def __init__(self, files: FileCache = SHARED) -> None:
        self.files = files
        self._owner = files.owner(self)
        self._keys: dict[str, tuple[Hashable, bool]] = {}
        self.newest: dict[str, int] = {}
        """The newest snapshot that was seen, as ``SnapshotManager`` keeps it."""
        self.pinned: dict[int, Snapshot] = {}
        """Snapshots that were read for scans of them, which look again whether they are there."""
        self.schemas: dict[int, TableSchema] = {}
        """Versions of the schema that were seen, as ``SchemaManager`` keeps them."""

    def get(self, name: str) -> Any:
        """What was made of a manifest or a list, if it is still held."""
        key, shared = self._keys.get(name, (None, False))
        held = None if key is None else self.files.get(key)
        return held[1] if shared and held is not None else held

    def put(self, name: str, value: object, weight: int, shared: Hashable = None) -> None:
        """Hold what was made of a manifest or a list; ``shared`` is the key under which it is held for other tables, if it is."""
        if len(self._keys) >= thresholds().held_names:
            self._keys.clear()
        self._keys[name] = ((self._owner, name), False) if shared is None else (shared, True)
        if shared is None:
            self.files.put((self._owner, name), value, weight)

    def join(
        self, names: tuple[str, ...], parts: list[EntryColumns], whole: EntryColumns | None = None, *, shared: bool = False
    ) -> EntryColumns:
        """The entries of several manifests as one, held too, for scans of one snapshot read the same ones.

        ``parts`` are given away: of many, each is let go once it is copied. ``whole`` are all of them as one, if they came so. ``shared``: the parts are held for other tables, and so is the answer.
        """
        if len(parts) == 1 and whole is None:
            return parts[0]
        keys: tuple[Hashable, ...] = (("joined", names), (self._owner, "joined", names))
        for key in keys:
            held = self.files.get(key)
            if held is not None and all(map(operator.is_, held[0], parts)):
                joined: EntryColumns = held[1]
                return joined
        weight = sum(map(entries_weight, parts)) * (2 if whole is None else 1)  # the parts are kept with it, of which it may be a copy
        if weight > self.files.capacity // 2:
            return EntryColumns.concat(_taken(parts)) if whole is None else whole
        joined = EntryColumns.concat(parts) if whole is None else whole
        if len(parts) > 1:
            self.files.put(keys[0] if shared else keys[1], (tuple(parts), joined), weight)
        return joined


def _taken(parts: list[EntryColumns]) -> Iterator[EntryColumns]:
    parts.reverse()
    while parts:
        yield parts.pop()


def nothing_held() -> EntryCache:
    """For a check of what is on storage, which must not take anything for known."""
    return EntryCache(FreshCache(SHARED))


def list_weight(metas: Sequence[ManifestFileMeta]) -> int:
    """Bytes in memory of a manifest list, about."""
    return _META_BYTES * (len(metas) + 1)


def entries_weight(entries: EntryColumns) -> int:
    """Bytes in memory, about: an entry takes so many times the bytes of its record decoded, and more once its file object is made and held."""
    return (_BYTES_A_PAYLOAD_BYTE if len(entries) <= thresholds().held_objects else _WITHOUT_OBJECTS) * len(entries.payload)


__all__ = ["EntryCache", "entries_weight", "list_weight", "nothing_held"]
