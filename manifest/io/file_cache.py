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
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from manifest.io.file_io import FileIO
from paimon_base.machine_memory import machine_memory
from paimon_base.memory_size import parse_memory_size
from paimon_base.process import is_spark_worker, run_after_fork

T = TypeVar("T")
StatIdentity: TypeAlias = tuple[int, ...] | None

SETTING = "PYSPARK_PAIMON_CACHE"
"""Environment variable with the cache size of a process (``256 mb``). ``0`` disables the cache."""

_LEAST_BYTES = 256 << 20
_MEMORY_SHARE = 16


def default_capacity() -> int:
    """Return the cache size in bytes of a process without ``SETTING``."""
    # A machine runs a Python worker of Spark for each of its cores.
    return _LEAST_BYTES if is_spark_worker() else max(_LEAST_BYTES, machine_memory() // _MEMORY_SHARE)


CAPACITY = parse_memory_size(os.environ[SETTING], SETTING) if SETTING in os.environ else default_capacity()
"""Cache size in bytes, for all tables of the process."""


_LESSER = 4
"""Divisor of the capacity for lesser values."""
_COLUMNS = 2
"""Divisor of the capacity for columns."""
_LOCKS = 64


@dataclass(slots=True)
class _Entry:
    """A cached value. ``last_use`` is the number of uses of the cache until then."""

    value: Any
    weight: int
    last_use: int


class _Owner:
    """First part of the keys that end with a user. Identity is equality."""

    __slots__ = ()


class FileCache:
    """LRU cache of up to ``capacity`` bytes. Thread-safe.

    A capacity of 0 caches nothing. Large values that are cheap to compute are ``lesser``. Together they get a part of the capacity, by
    default a quarter, so they do not evict the others. Columns get at most half, and ``admit`` says what they may evict.

    >>> cache = FileCache(10)
    >>> for name in "abc":
    ...     cache.put(name, name.upper(), 5)
    >>> cache.get("a"), cache.get("c"), cache.held_bytes
    (None, 'C', 10)
    """

    def __init__(self, capacity: int = CAPACITY, lesser_bytes: int | None = None) -> None:
        self.capacity = capacity
        self.lesser_capacity = capacity // _LESSER if lesser_bytes is None else lesser_bytes
        self.column_capacity = capacity // _COLUMNS
        self.held_bytes = 0
        self._held: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lesser: OrderedDict[Hashable, None] = OrderedDict()
        self._columns: OrderedDict[Hashable, None] = OrderedDict()
        self.lesser_bytes = self.column_bytes = 0
        self._uses = 0
        self._lock = threading.Lock()
        self._making = [threading.Lock() for _ in range(_LOCKS)]
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
            self._uses += 1
            cached.last_use = self._uses
            self._held.move_to_end(key)
            if key in self._lesser:
                self._lesser.move_to_end(key)
            elif key in self._columns:
                self._columns.move_to_end(key)
            return cached.value

    def put(self, key: Hashable, value: object, weight: int, *, lesser: bool = False) -> None:
        """Cache ``value`` for ``key`` and evict the least recently used."""
        with self._lock:
            self._drop_ended()
            self._drop(key)
            room = self.lesser_capacity if lesser else self.capacity
            if not 0 <= weight <= room or not self.capacity:
                return
            self._add(key, value, weight)
            if lesser:
                self._lesser[key] = None
                self.lesser_bytes += weight
                while self.lesser_bytes > room:
                    self._drop(next(iter(self._lesser)))
            while self.held_bytes > self.capacity:
                self._drop(next(iter(self._held)))

    def admit(self, key: Hashable, value: object, weight: int, since: int) -> bool:
        """Cache a column, if there is room.

        It evicts only values that were last used before ``since``, the time when the column was last read. Columns that a loop reads in
        turn thus never evict one another. Returns whether the column is cached.
        """
        with self._lock:
            self._drop_ended()
            victims = self._colder(weight, since)
            if victims is None:
                return False
            for victim in (key, *victims):
                self._drop(victim)
            self._add(key, value, weight)
            self._columns[key] = None
            self.column_bytes += weight
            return True

    def now(self) -> int:
        """Return the time, as the number of uses so far."""
        return self._uses

    def has_room(self, weight: int, since: int) -> bool:
        """Return whether ``admit`` would cache a column of ``weight`` bytes."""
        with self._lock:
            return self._colder(weight, since) is not None

    def _colder(self, weight: int, since: int) -> set[Hashable] | None:
        """Return the values to evict for a column of ``weight`` bytes. None: too few are colder than ``since``."""
        victims: set[Hashable] = set()
        freed = 0
        for keys, excess in (
            (self._columns, self.column_bytes + weight - self.column_capacity),
            (self._held, self.held_bytes + weight - self.capacity),
        ):
            for key in keys:
                if freed >= excess:
                    break
                if self._held[key].last_use > since:
                    return None
                if key not in victims:
                    victims.add(key)
                    freed += self._held[key].weight
            if freed < excess:
                return None
        return victims

    def making(self, key: Hashable) -> threading.Lock:
        """Return the lock of those who make the value of ``key``. Other keys may have the same one."""
        return self._making[hash(key) % _LOCKS]

    def uses(self) -> list[tuple[Hashable, int]]:
        """Return the keys and bytes of all values."""
        with self._lock:
            return [(key, cached.weight) for key, cached in self._held.items()]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._held.clear()
            self._lesser.clear()
            self._columns.clear()
            self._keys_by_owner.clear()
            self.held_bytes = self.lesser_bytes = self.column_bytes = 0

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
        self._making = [threading.Lock() for _ in range(_LOCKS)]
        if amid:
            self.clear()

    def _add(self, key: Hashable, value: object, weight: int) -> None:
        if (owner := _owner_of(key)) is not None:
            self._keys_by_owner.setdefault(owner, set()).add(key)
        self._uses += 1
        self._held[key] = _Entry(value, weight, self._uses)
        self.held_bytes += weight

    def _drop_ended(self) -> None:
        """Remove the values of users that were garbage collected."""
        while self._ended:
            for key in tuple(self._keys_by_owner.get(self._ended.popleft(), ())):
                self._drop(key)

    def _drop(self, key: Hashable) -> None:
        cached = self._held.pop(key, None)
        if cached is None:
            return
        self.held_bytes -= cached.weight
        if key in self._lesser:
            del self._lesser[key]
            self.lesser_bytes -= cached.weight
        elif key in self._columns:
            del self._columns[key]
            self.column_bytes -= cached.weight
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

    def now(self) -> int:
        """Return the cache's time."""
        return self._cache.now()

    def has_room(self, weight: int, since: int) -> bool:
        """See ``FileCache``. Without an identity of the file nothing is cached."""
        return self._identity is not None and self._cache.has_room(weight, since)

    def admit(self, part: Hashable, value: object, weight: int, since: int) -> bool:
        """Cache a column, see ``FileCache``."""
        return self._identity is not None and self._cache.admit((part, self._path), (self._identity, value), weight, since)

    @contextmanager
    def making(self, part: Hashable) -> Iterator[None]:
        """Let one thread at a time make the value of a part."""
        with self._cache.making((part, self._path)):
            yield


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

    def admit(self, key: Hashable, value: object, weight: int, since: int) -> bool:
        """See ``FileCache``."""
        return self._whole.admit((self._owner, key), value, weight, since)

    def has_room(self, weight: int, since: int) -> bool:
        """See ``FileCache``."""
        return self._whole.has_room(weight, since)

    def now(self) -> int:
        """See ``FileCache``."""
        return self._whole.now()


SHARED = FileCache()
"""The cache of this process."""

# Another thread may hold the lock at a fork, and does not exist in the child.
run_after_fork(SHARED.after_fork)
