"""Decoded manifests of one opened table; a manifest never changes under its name, so nothing can be stale."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from manifest.entry_columns import EntryColumns


@dataclass(slots=True)
class EntryCache:
    """The most recently used manifests, up to ``capacity`` bytes of records; safe for several threads."""

    capacity: int = 32 << 20
    _held: OrderedDict[str, EntryColumns] = field(default_factory=OrderedDict, repr=False)
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
            if name in self._held or len(entries.payload) > self.capacity:
                return
            self._held[name] = entries
            self._bytes += len(entries.payload)
            while self._bytes > self.capacity:
                self._bytes -= len(self._held.popitem(last=False)[1].payload)
