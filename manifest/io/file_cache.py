"""Process-wide cache of decoded immutable files.

Paimon writes every schema, manifest, data and index file once, under a unique name. The cache still checks: a value is valid only for
the file (``FileIO.identity``) that it was decoded from. A recreated table, a restored file and a file damaged in place are read again.
Hints, snapshots and consumers are never cached. The size is bounded in bytes, for all tables together.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar

from manifest.io.file_io import FileIO
from paimon_base.memory_size import parse_memory_size
from paimon_base.process import run_after_fork

T = TypeVar("T")
StatIdentity: TypeAlias = tuple[int, ...] | None

SETTING = "PYSPARK_PAIMON_CACHE"
"""Environment variable with the cache size of a process (``256 mb``). ``0`` disables the cache."""

CAPACITY = parse_memory_size(os.environ.get(SETTING, "256 mb"), SETTING)
"""Cache size in bytes, for all tables of the process."""


_LESSER = 4
"""Divisor of the capacity for lesser values."""


class _Owner:
    """First part of the keys that end with a user. Identity is equality."""

    __slots__ = ()


class FileCache:
    """LRU cache of up to ``capacity`` bytes. Thread-safe.

    A capacity of 0 caches nothing. Large values that are cheap to compute are ``lesser``. Together they get a part of the capacity, by
    default a quarter, so they do not evict the others.

    >>> cache = FileCache(10)
    >>> for name in "abc":
    ...     cache.put(name, name.upper(), 5)
    >>> cache.get("a"), cache.get("c"), cache.held_bytes
    (None, 'C', 10)
    """

    def __init__(self, capacity: int = CAPACITY, lesser_bytes: int | None = None) -> None:
        self.capacity = capacity
        self.lesser_capacity = capacity // _LESSER if lesser_bytes is None else lesser_bytes
        self.held_bytes = 0
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lesser: OrderedDict[Hashable, None] = OrderedDict()
        self.lesser_bytes = 0
        self._lock = threading.Lock()
        self._ended: deque[_Owner] = deque()
        self._keys_by_owner: dict[_Owner, set[Hashable]] = {}

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
        """Return the cached result of ``make``, or call it.

        Raises ``FileNotFoundError`` and the errors of ``make``, which are not cached.

        Args:
            file_io: Storage of the file.
            path: The file.
            kind: Distinguishes uses of one file.
            make: Computes the value from the file.
            weight: Returns the bytes of a value in memory.
            listed: Identity of the file, if it has just been listed. None: read it.
            lesser: Whether the value belongs to the lesser quarter.
        """
        identity, cached = self.recall(file_io, path, kind, listed)
        if cached is not None:
            hit: T = cached
            return hit
        value = make()
        self.keep(path, kind, identity, value, weight(value), lesser=lesser)
        return value

    def recall(self, file_io: FileIO, path: str, kind: Hashable, listed: StatIdentity = None) -> tuple[StatIdentity, Any]:
        """Return the file's current identity and its cached value.

        The value is missing (None) unless cached. Raises ``FileNotFoundError``.
        """
        identity = None if not self.capacity else file_io.identity(path) if listed is None else listed
        cached = None if identity is None else self.get((kind, path))
        return identity, cached[1] if cached is not None and cached[0] == identity else None

    def keep(self, path: str, kind: Hashable, identity: StatIdentity, value: object, weight: int, *, lesser: bool = False) -> None:
        """Cache a value computed from the file.

        ``identity`` is the one that ``recall`` returned before the file was read.
        """
        if identity is not None:
            self.put((kind, path), (identity, value), weight, lesser=lesser)

    def get(self, key: Hashable) -> Any:
        """Return the cached value of ``key``, or None."""
        with self._lock:
            cached = self._held.get(key)
            if cached is None:
                return None
            self._held.move_to_end(key)
            if key in self._lesser:
                self._lesser.move_to_end(key)
            return cached[0]

    def put(self, key: Hashable, value: object, weight: int, *, lesser: bool = False) -> None:
        """Cache ``value`` for ``key`` and evict the least recently used."""
        with self._lock:
            while self._ended:
                for ended_key in tuple(self._keys_by_owner.get(self._ended.popleft(), ())):
                    self._drop(ended_key)
            self._drop(key)
            room = self.lesser_capacity if lesser else self.capacity
            if not 0 <= weight <= room or not self.capacity:
                return
            if (owner := _owner_of(key)) is not None:
                self._keys_by_owner.setdefault(owner, set()).add(key)
            self._held[key] = value, weight
            self.held_bytes += weight
            if lesser:
                self._lesser[key] = None
                self.lesser_bytes += weight
                while self.lesser_bytes > room:
                    self._drop(next(iter(self._lesser)))
            while self.held_bytes > self.capacity:
                self._drop(next(iter(self._held)))

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._held.clear()
            self._lesser.clear()
            self._keys_by_owner.clear()
            self.held_bytes = self.lesser_bytes = 0

    def owner(self, user: object) -> Hashable:
        """Return a key prefix whose values are dropped after ``user``.

        They are useless once ``user`` is garbage collected.
        """
        owner = _Owner()
        weakref.finalize(user, self._ended.append, owner).atexit = False  # runs during garbage collection, so it takes no lock
        return owner

    def after_fork(self) -> None:
        """Reset the lock in the child of a fork."""
        amid = self._lock.locked()  # its thread does not exist here and may have left a partial change
        self._lock = threading.Lock()
        if amid:
            self.clear()

    def _drop(self, key: Hashable) -> None:
        cached = self._held.pop(key, None)
        if cached is None:
            return
        self.held_bytes -= cached[1]
        if key in self._lesser:
            del self._lesser[key]
            self.lesser_bytes -= cached[1]
        if (owner := _owner_of(key)) is not None:
            keys = self._keys_by_owner[owner]
            keys.discard(key)
            if not keys:
                del self._keys_by_owner[owner]


def _owner_of(key: Hashable) -> _Owner | None:
    """Return the owner that a key begins with, or None."""
    return key[0] if isinstance(key, tuple) and key and isinstance(key[0], _Owner) else None


class FileParts:
    """Cache of parts of one file.

    The file's identity is read once, before the first part.

    Args:
        cache: Keeps the values.
        file_io: Storage of the file.
        path: The file.
    """

    def __init__(self, cache: FileCache, file_io: FileIO, path: str) -> None:
        self._cache = cache
        self._file_io = file_io
        self._path = path
        self._identity = file_io.identity(path) if cache.capacity else None

    def load(self, part: Hashable, make: Callable[[], T], weight: Callable[[T], int], *, lesser: bool = False) -> T:
        """Return a part's cached value, or call ``make``.

        See ``FileCache.load``.
        """
        if self._identity is None:
            return make()
        return self._cache.load(self._file_io, self._path, part, make, weight, listed=self._identity, lesser=lesser)

    def get(self, part: Hashable) -> Any:
        """Return a part's cached value, or None."""
        return None if self._identity is None else self._cache.recall(self._file_io, self._path, part, self._identity)[1]

    def put(self, part: Hashable, value: object, weight: int, *, lesser: bool = False) -> None:
        """Cache a part's value."""
        self._cache.keep(self._path, part, self._identity, value, weight, lesser=lesser)


class FreshCache(FileCache):
    """A view of ``shared`` that starts empty.

    Its values count towards the capacity of ``shared``. Other users do not see them.

    >>> whole = FileCache(10)
    >>> whole.put("a", 1, 4)
    >>> fresh = FreshCache(whole)
    >>> fresh.put("a", 2, 4)
    >>> whole.get("a"), fresh.get("a"), whole.held_bytes
    (1, 2, 8)
    """

    def __init__(self, shared: FileCache) -> None:
        super().__init__(shared.capacity)
        self._whole = shared
        self._owner = shared.owner(self)

    def get(self, key: Hashable) -> Any:
        """See ``FileCache``."""
        return self._whole.get((self._owner, key))

    def put(self, key: Hashable, value: object, weight: int, *, lesser: bool = False) -> None:
        """See ``FileCache``."""
        self._whole.put((self._owner, key), value, weight, lesser=lesser)


SHARED = FileCache()
"""The cache of this process."""

# Another thread may hold the lock at a fork, and does not exist in the child.
run_after_fork(SHARED.after_fork)
