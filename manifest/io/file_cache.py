"""A cache of what was decoded from immutable files, shared by all tables of the process and bounded in bytes.

Paimon writes every schema, manifest, data and index file once, under a name of its own. Still nothing is taken for unchanged: an
answer counts only for the very file (``FileIO.identity``) that it was made of, so a table that was dropped and made anew, a file that
was restored from a copy or damaged in place, is read again. Hints, snapshots and consumers are never held.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar

from fileindex.base.memory_size import parse_memory_size
from fileindex.base.process import run_after_fork
from manifest.io.file_io import FileIO

T = TypeVar("T")
StatIdentity: TypeAlias = tuple[int, ...] | None

SETTING = "PYSPARK_PAIMON_CACHE"
"""The environment variable that bounds what a process holds: a size (``256 mb``); ``0`` holds nothing."""

CAPACITY = parse_memory_size(os.environ.get(SETTING, "256 mb"), SETTING)
"""Bytes of a process, for all its tables."""


_LESSER = 4
"""What is lesser gets a part in so many of the capacity."""


class FileCache:
    """The most recently used answers, up to ``capacity`` bytes in memory (0: none); safe for several threads.

    What is large and soon made again is ``lesser``: together it gets a quarter, so that the rest is not driven out by it.

    >>> cache = FileCache(10)
    >>> for name in "abc":
    ...     cache.put(name, name.upper(), 5)
    >>> cache.get("a"), cache.get("c"), cache.held_bytes
    (None, 'C', 10)
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.held_bytes = 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lesser: OrderedDict[Hashable, None] = OrderedDict()
        self._lesser_bytes = 0
        self._lock = threading.Lock()
        self._ended: deque[object] = deque()

    def load(
        self,
        file_io: FileIO,
        path: str,
        kind: Hashable,
        make: Callable[[], T],
        weight: Callable[[T], int],
        *,
        listed: StatIdentity = None,
        lesser: bool = False,
    ) -> T:
        """What ``make`` makes of the file at ``path``, made again only if it is another file now; ``kind`` tells uses of one file apart.

        Raises ``FileNotFoundError`` and whatever ``make`` raises; what fails is not held. ``weight`` tells bytes in memory; ``listed`` is the
        file's identity if that has just been told.
        """
        identity, held = self.recall(file_io, path, kind, listed)
        if held is not None:
            found: T = held
            return found
        made = make()
        self.keep(path, kind, identity, made, weight(made), lesser=lesser)
        return made

    def recall(self, file_io: FileIO, path: str, kind: Hashable, listed: StatIdentity = None) -> tuple[StatIdentity, Any]:
        """The file that is at ``path`` now, and what is held of it (None: nothing). Raises ``FileNotFoundError``."""
        identity = None if not self.capacity else file_io.identity(path) if listed is None else listed
        held = None if identity is None else self.get((kind, path))
        return identity, held[1] if held is not None and held[0] == identity else None

    def keep(self, path: str, kind: Hashable, identity: StatIdentity, value: object, weight: int, *, lesser: bool = False) -> None:
        """Hold what was made of the file that ``recall`` told, before it was read."""
        if identity is not None:
            self.put((kind, path), (identity, value), weight, lesser=lesser)

    def get(self, key: Hashable) -> Any:
        """What is held for ``key``; None if nothing is."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            if key in self._lesser:
                self._lesser.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: object, weight: int, *, lesser: bool = False) -> None:
        """Hold ``value``, in place of what was held for ``key``, and let go of what was not used for longest."""
        with self._lock:
            while self._ended:
                owner = self._ended.popleft()
                for held in [held for held in self._held if isinstance(held, tuple) and held and held[0] is owner]:
                    self._drop(held)
            self._drop(key)
            room = self.capacity // _LESSER if lesser else self.capacity
            if not 0 <= weight <= room or not self.capacity:
                return
            self._held[key] = value, weight
            self.held_bytes += weight
            if lesser:
                self._lesser[key] = None
                self._lesser_bytes += weight
                while self._lesser_bytes > room:
                    self._drop(next(iter(self._lesser)))
            while self.held_bytes > self.capacity:
                self._drop(next(iter(self._held)))

    def clear(self) -> None:
        """Hold nothing."""
        with self._lock:
            self._held.clear()
            self._lesser.clear()
            self.held_bytes = self._lesser_bytes = 0

    def owner(self, user: object) -> object:
        """The first part of keys that are of no use to anybody once ``user`` is gone."""
        owner = object()
        weakref.finalize(user, self._ended.append, owner).atexit = False  # in a collection, so it takes no lock
        return owner

    def after_fork(self) -> None:
        """In the child of a fork: whoever had the lock stayed behind, perhaps amid a change."""
        amid = self._lock.locked()
        self._lock = threading.Lock()
        if amid:
            self.clear()

    def _drop(self, key: Hashable) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self.held_bytes -= found[1]
            if key in self._lesser:
                del self._lesser[key]
                self._lesser_bytes -= found[1]


class FileParts:
    """What ``cache`` holds of parts of one file, which is looked at once, before the first of them is read.

    Args:
        cache: where they are held.
        file_io: how the file is reached.
        path: the file.
    """

    def __init__(self, cache: FileCache, file_io: FileIO, path: str) -> None:
        self._cache = cache
        self._file_io = file_io
        self._path = path
        self._identity = file_io.identity(path) if cache.capacity else None

    def load(self, part: Hashable, make: Callable[[], T], weight: Callable[[T], int], *, lesser: bool = False) -> T:
        """What ``make`` makes of a part; made again only if it is not held, or of another file. See ``FileCache.load``."""
        if self._identity is None:
            return make()
        return self._cache.load(self._file_io, self._path, part, make, weight, listed=self._identity, lesser=lesser)


class FreshCache(FileCache):
    """A view of ``whole`` that knows nothing yet: what it holds counts there, and nobody else sees it.

    >>> whole = FileCache(10)
    >>> whole.put("a", 1, 4)
    >>> fresh = FreshCache(whole)
    >>> fresh.put("a", 2, 4)
    >>> whole.get("a"), fresh.get("a"), whole.held_bytes
    (1, 2, 8)
    """

    def __init__(self, whole: FileCache) -> None:
        super().__init__(whole.capacity)
        self._whole = whole
        self._owner = whole.owner(self)

    def get(self, key: Hashable) -> Any:
        """See ``FileCache``."""
        return self._whole.get((self._owner, key))

    def put(self, key: Hashable, value: object, weight: int, *, lesser: bool = False) -> None:
        """See ``FileCache``."""
        self._whole.put((self._owner, key), value, weight, lesser=lesser)


SHARED = FileCache()
"""That of this process."""

# Another thread may hold the lock at a fork, and does not exist in the child.
run_after_fork(SHARED.after_fork)


__all__ = ["CAPACITY", "SETTING", "SHARED", "FileCache", "FileParts", "FreshCache"]
