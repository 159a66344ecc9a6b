"""Decoded manifests of one opened table; a manifest never changes under its name, so nothing can be stale."""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from manifest.entry.columns import EntryColumns
from manifest.entry.manifest_list import ManifestFileMeta
from manifest.io.file_cache import SHARED, FileCache

_LISTS = 64
_LISTED = 20_000
_META_BYTES = 4096


@dataclass(slots=True)
class EntryCache:
    """The most recently used manifests, up to ``capacity`` bytes in memory, and lists; safe for several threads.

    In memory an entry takes about four times the bytes of its record once its file object is made.
    """

    capacity: int = 128 << 20
    files: FileCache = field(default=SHARED, repr=False)
    """What tables opened before have read of the same files."""
    _lists: OrderedDict[str, tuple[ManifestFileMeta, ...]] = field(default_factory=OrderedDict, repr=False)
    _held: OrderedDict[str, EntryColumns] = field(default_factory=OrderedDict, repr=False)
    _joined: tuple[tuple[str, ...], EntryColumns] | None = field(default=None, repr=False)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def get(self, name: str) -> EntryColumns | None:
        """The entries of a manifest, if they are held."""
        with self._lock:
            found = self._held.get(name)
            if found is not None:
                self._held.move_to_end(name)
            return found

    def put(self, name: str, entries: EntryColumns) -> None:
        """Hold the entries of a manifest, and let go of those not used for longest."""
        with self._lock:
            if name in self._held or entries_weight(entries) > self.capacity:
                return
            self._held[name] = entries
            self._bytes += entries_weight(entries)
            while self._bytes > self.capacity:
                self._bytes -= entries_weight(self._held.popitem(last=False)[1])

    def join(
        self, names: tuple[str, ...], parts: Sequence[EntryColumns], whole: EntryColumns | None = None, *, shared: bool = False
    ) -> EntryColumns:
        """The entries of several manifests as one; the last answer is held, for scans of one snapshot read the same ones.

        ``whole`` are all ``parts`` as one, if they came so. ``shared``: the parts are held for other tables, and so is the answer.
        """
        with self._lock:
            if self._joined is not None and self._joined[0] == names:
                return self._joined[1]
        held = self.files.get(("joined", names)) if shared else None
        if held is not None and all(map(operator.is_, held[0], parts)):
            joined: EntryColumns = held[1]
        else:
            joined = EntryColumns.concat(parts) if whole is None else whole
        weight = sum(map(entries_weight, parts))
        if len(parts) > 1 and weight <= self.capacity // 2:
            with self._lock:
                self._joined = names, joined
            if shared and (held is None or held[1] is not joined):
                self.files.put(("joined", names), (tuple(parts), joined), weight)
        return joined

    def get_list(self, name: str) -> tuple[ManifestFileMeta, ...] | None:
        """The manifests of a list, if they are held."""
        with self._lock:
            found = self._lists.get(name)
            if found is not None:
                self._lists.move_to_end(name)
            return found

    def put_list(self, name: str, metas: tuple[ManifestFileMeta, ...]) -> None:
        """Hold the manifests of a list; a few long lists or many short ones."""
        with self._lock:
            self._lists[name] = metas
            while len(self._lists) > _LISTS or (len(self._lists) > 2 and sum(map(len, self._lists.values())) > _LISTED):
                self._lists.popitem(last=False)


def nothing_held() -> EntryCache:
    """For a check of what is on storage, which must not take anything for known."""
    return EntryCache(files=FileCache(0))


def list_weight(metas: Sequence[ManifestFileMeta]) -> int:
    """Bytes in memory of a manifest list, about."""
    return _META_BYTES * (len(metas) + 1)


def entries_weight(entries: EntryColumns) -> int:
    """Bytes in memory, about."""
    return 4 * len(entries.payload)


__all__ = ["EntryCache", "entries_weight", "list_weight", "nothing_held"]
