"""Random reads of one object, with caching of its parts.

A request's bytes are kept, so that headers, footers and adjacent parts need no further requests.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Protocol, Self

import pyarrow as pa

from manifest.io.errors import StorageError
from manifest.io.file_io import Holder
from manifest.storage.parallel import start
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import thresholds


class PartSource(Protocol):
    """A store whose files are read in parts: ``Bucket``, ``HdfsCluster``."""

    @property
    def fingerprint(self) -> int:
        """Number that identifies the store."""

    def path(self, key: str) -> str:
        """Return the whole path of a key."""

    def get_part(self, key: str, start: int, length: int) -> tuple[bytes, int]:
        """Return a part of a file, and the file's size. Negative ``start``: the last ``length`` bytes."""

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return (offset, length) ranges. A range beyond the file's end is shorter."""


class ObjectRanges:
    """Bytes of an immutable object. Thread-safe.

    Args:
        bucket: Store of the object.
        key: Key of the object.
        size: Size in bytes. None: taken from the first response.
        tail: Whether the object is read from its end.
        holder: Cache for the first response.
    """

    def __init__(self, bucket: PartSource, key: str, size: int | None = None, *, tail: bool, holder: Holder | None = None) -> None:
        self._bucket = bucket
        self._key = key
        self._size = size
        self._tail = tail
        self._holder = holder
        self._parts: dict[int, bytes] = {}
        self._starts: list[int] = []
        self._lock = threading.Lock()
        self._turn_lock = threading.Lock()
        self._turns: list[list[tuple[int, int]]] = []
        self._turn_of: dict[int, int] = {}
        self._under_way: dict[int, Future[None]] = {}

    @property
    def path(self) -> str:
        """Path of the object."""
        return self._bucket.path(self._key)

    def size(self) -> int:
        """Return the bytes of the object. Raises ``StorageError``."""
        if self._size is None:
            cache_key = ("object", self._bucket.fingerprint, self._key)
            cached = None if self._holder is None else self._holder.get(cache_key)
            data, size = cached or self._bucket.get_part(
                self._key, *((-1, thresholds.object_tail_bytes) if self._tail else (0, thresholds.object_head_bytes))
            )
            if self._holder is not None and cached is None:
                self._holder.put(cache_key, (data, size), len(data))
            self._hold(size - len(data) if self._tail else 0, data)
            self._size = size
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``.

        Raises ``CorruptFile`` if the object is shorter, ``StorageError``.
        """
        size = self.size()
        if offset < 0 or length < 0 or offset + length > size:
            raise CorruptFile(self.path, f"ends at byte {size}, but {length} bytes at {offset} are requested")
        cached = self._find(offset, length)
        if cached is None and self._turns:
            self._fetch_chunk(offset)
            cached = self._find(offset, length)
        if cached is not None:
            self._drop_chunk(offset)
            return cached
        # A file is read from its end in steps, its footer's length first: one request gets them all.
        at_end = self._tail and offset + length == size
        first = min(offset, max(0, size - thresholds.object_tail_bytes)) if at_end else offset
        end = offset + length if self._tail else min(size, max(offset + length, offset + thresholds.object_head_bytes))
        data, actual = self._bucket.get_part(self._key, first, end - first)
        if actual != size:
            raise CorruptFile(self.path, f"has {actual} bytes where the metadata say {size}")
        if at_end or not self._tail:
            self._hold(first, data)
        return data[offset - first : offset - first + length]

    def once(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset`` with a single request.

        Does not need the object's size.
        """
        if offset < 0 or length < 0:
            raise CorruptFile(self.path, f"negative range: {length} bytes at {offset}")
        if not length:
            return b""
        try:
            data, size = self._bucket.get_part(self._key, offset, length)
        except StorageError as error:
            if "416" not in str(error.strerror):
                raise
            raise CorruptFile(self.path, f"ends before byte {offset}, where {length} bytes are requested") from error
        if len(data) != length:
            raise CorruptFile(self.path, f"ends at byte {size}, but {length} bytes at {offset} are requested")
        return data

    def prefetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Prefetch (offset, length) ranges in parallel.

        Skips ranges that are already cached.
        """
        size = self.size()
        missing = sorted(
            {
                (offset, length)
                for offset, length in ranges
                if offset >= 0 and 0 < length <= size - offset and self._find(offset, length) is None
            }
        )
        if sum(length for _, length in missing) <= thresholds.object_held_bytes:
            for (offset, _), data in zip(missing, self._bucket.get_ranges(self._key, missing) if missing else (), strict=True):
                self._hold(offset, data)

    def _find(self, offset: int, length: int) -> bytes | None:
        with self._lock:
            index = bisect_right(self._starts, offset) - 1
            while index >= 0:
                start = self._starts[index]
                part = self._parts[start]
                if offset + length <= start + len(part):
                    return part[offset - start : offset - start + length]
                index -= 1
        return None

    def _hold(self, start: int, data: bytes) -> None:
        with self._lock:
            if len(data) > len(self._parts.get(start, b"")):
                self._parts[start] = data
            while len(self._parts) > 1 and sum(map(len, self._parts.values())) > thresholds.object_held_bytes:
                del self._parts[next(iter(self._parts))]
            self._starts = sorted(self._parts)

    def expect_in_turn(self, turns: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Prefetch groups of ranges in order.

        While one group is read, the next is fetched.
        """
        self._turns = [list(turn) for turn in turns if sum(length for _, length in turn) <= thresholds.object_held_bytes // 4]
        self._turn_of = {offset: number for number, turn in enumerate(self._turns) for offset, _ in turn}
        self._under_way = {}

    def _fetch_chunk(self, offset: int) -> None:
        """Wait for the group of ``offset`` and start the next."""
        number = self._turn_of.get(offset)
        if number is None:
            return
        with self._turn_lock:
            for ahead in range(number, min(number + 2, len(self._turns))):
                if ahead not in self._under_way:
                    self._under_way[ahead] = start(self.prefetch, self._turns[ahead])
            future = self._under_way[number]
        future.result()

    def _drop_chunk(self, offset: int) -> None:
        """Drop a chunk that was read whole."""
        if offset in self._turn_of:
            with self._lock:
                self._parts.pop(offset, None)
                self._starts = sorted(self._parts)


class ObjectInput(pa.PythonFile):  # type: ignore[misc]  # pyarrow ships no types
    """An object as a seekable Arrow file, with prefetching."""

    _ranges: ObjectRanges

    def __new__(cls, ranges: ObjectRanges) -> Self:
        """Create the object with its file, which Arrow requires here."""
        created: Self = super().__new__(cls, _Cursor(ranges), mode="r")
        created._ranges = ranges
        return created

    def __init__(self, ranges: ObjectRanges) -> None:  # noqa: ARG002  # __new__ has them
        super().__init__()

    def size(self) -> int:
        """Return the bytes of the object."""
        return self._ranges.size()

    def prefetch(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Prefetch. See ``ObjectRanges``."""
        self._ranges.prefetch(ranges)

    def expect_in_turn(self, turns: Sequence[Sequence[tuple[int, int]]]) -> None:
        """Prefetch. See ``ObjectRanges``."""
        self._ranges.expect_in_turn(turns)


class _Cursor:
    """Python file interface that Arrow uses."""

    closed = False

    def __init__(self, ranges: ObjectRanges) -> None:
        self._ranges = ranges
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._ranges.size())[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, length: int | None = None) -> bytes:
        left = max(0, self._ranges.size() - self._at)
        data = self._ranges.read(self._at, left if length is None or length < 0 else min(length, left))
        self._at += len(data)
        return data

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def can_prefetch(source: Any) -> bool:
    """Return whether an open file prefetches."""
    return isinstance(source, ObjectInput)


def prefetch(source: Any, ranges: Sequence[tuple[int, int]]) -> None:
    """Prefetch ranges of an open file, if it supports that."""
    if isinstance(source, ObjectInput) and ranges:
        source.prefetch(ranges)


def prefetch_in_order(source: Any, turns: Sequence[Sequence[tuple[int, int]]]) -> None:
    """Prefetch groups of ranges in order, if supported."""
    if isinstance(source, ObjectInput):
        source.expect_in_turn(turns)
