"""Cache of decoded manifests of one opened table.

A manifest never changes under its name, so entries are never stale. The values are in the cache of the process
(``manifest/io/file_cache.py``), which bounds them for all tables. A table keeps their keys and need not check the file again.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.file_cache import SHARED, FileCache, FreshCache
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from paimon_base.thresholds import thresholds

_META_BYTES = 4096
_BYTES_A_PAYLOAD_BYTE, _WITHOUT_OBJECTS = 10, 3


class EntryCache:
    """Manifests and lists read by one opened table. Thread-safe.

    ``files`` has the values, and those read by tables opened before.
    """

    def __init__(self, files: FileCache = SHARED) -> None:
        self.files = files
        self._owner = files.owner(self)
        self._keys: dict[str, tuple[Hashable, bool]] = {}
        self.newest: dict[str, int] = {}
        """Newest snapshot seen, for ``SnapshotManager.newest_seen``."""
        self.pinned: dict[int, Snapshot] = {}
        """Snapshots read for scans. Scans check again that they exist."""
        self.schemas: dict[int, TableSchema] = {}
        """Schema versions seen, for ``SchemaManager``."""

    def get(self, name: str) -> Any:
        """Return the cached value of a manifest or list."""
        key, shared = self._keys.get(name, (None, False))
        cached = None if key is None else self.files.get(key)
        return cached[1] if shared and cached is not None else cached

    def put(self, name: str, value: object, weight: int, shared: Hashable = None) -> None:
        """Cache the value of a manifest or list.

        ``shared`` is the key under which other tables cache it. None: not shared.
        """
        if len(self._keys) >= thresholds.held_names:
            self._keys.clear()
        self._keys[name] = ((self._owner, name), False) if shared is None else (shared, True)
        if shared is None:
            self.files.put((self._owner, name), value, weight)

    def join(
        self, names: tuple[str, ...], parts: list[EntryColumns], batch: EntryColumns | None = None, *, shared: bool = False
    ) -> EntryColumns:
        """Return the joined entries of several manifests, and cache them.

        Args:
            names: Names of the manifests.
            parts: Entries of each manifest. The list is emptied if that saves memory.
            batch: All entries as one, if they are already joined.
            shared: Whether the parts are cached for other tables, so that the result is cached for them too.
        """
        # Scans of one snapshot join the same manifests.
        if len(parts) == 1 and batch is None:
            return parts[0]
        keys: tuple[Hashable, ...] = (("joined", names), (self._owner, "joined", names))
        for key in keys:
            cached = self.files.get(key)
            if cached is not None and all(map(operator.is_, cached[0], parts)):
                joined: EntryColumns = cached[1]
                return joined
        # The parts are cached too, and the joined entries may be a copy.
        weight = sum(map(entries_weight, parts)) * (2 if batch is None else 1)
        if weight > self.files.capacity // 2:
            return EntryColumns.concat(_pop_all(parts)) if batch is None else batch
        joined = EntryColumns.concat(parts) if batch is None else batch
        if len(parts) > 1:
            self.files.put(keys[0] if shared else keys[1], (tuple(parts), joined), weight)
        return joined


def _pop_all(parts: list[EntryColumns]) -> Iterator[EntryColumns]:
    """Yield and release each of ``parts``."""
    parts.reverse()
    while parts:
        yield parts.pop()


def nothing_held() -> EntryCache:
    """Return an empty cache, for checks that must read storage."""
    return EntryCache(FreshCache(SHARED))


def list_weight(metas: Sequence[ManifestFileMeta]) -> int:
    """Return the approximate bytes in memory of a manifest list."""
    return _META_BYTES * (len(metas) + 1)


def entries_weight(entries: EntryColumns) -> int:
    """Return the approximate bytes in memory of entries."""
    # A decoded entry takes a multiple of its record's bytes, and more once its file object is built and cached.
    return (_BYTES_A_PAYLOAD_BYTE if len(entries) <= thresholds.held_objects else _WITHOUT_OBJECTS) * len(entries.payload)
