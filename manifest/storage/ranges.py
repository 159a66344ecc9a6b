"""One object that is read here and there: what one request brought is held, so that headers, footers and neighbours cost no other."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Self

import pyarrow as pa

from fileindex.base.errors import CorruptFile
from manifest.io.errors import StorageError
from manifest.storage.bucket import Bucket

TAIL_BYTES = 64 << 10
"""Of a data file, with which its footer and mostly its page indexes come."""
HEAD_BYTES = 1 << 20
"""Of a side file, which mostly is all of it."""
_HELD_BYTES = 64 << 20
"""Of one object; what was fetched first goes first."""


class ObjectRanges:
    """Bytes of an object that does not change; safe for several threads.

    ``size`` is what metadata say of it, None if nobody knows yet; then the first answer tells. ``tail``: it is read from its end.
    """

    def __init__(self, bucket: Bucket, key: str, size: int | None = None, *, tail: bool) -> None:
        self._bucket = bucket
        self._key = key
        self._size = size
        self._tail = tail
        self._parts: dict[int, bytes] = {}
        self._starts: list[int] = []
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """Where it lies."""
        return self._bucket.path(self._key)

    def size(self) -> int:
        """Bytes of the object. Raises ``StorageError``."""
        if self._size is None:
            data, self._size = self._bucket.get_part(self._key, *((-1, TAIL_BYTES) if self._tail else (0, HEAD_BYTES)))
            self._hold(self._size - len(data) if self._tail else 0, data)
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``. Raises ``CorruptFile`` if the object ends before, ``StorageError``."""
        size = self.size()
        if offset < 0 or length < 0 or offset + length > size:
            raise CorruptFile(self.path, f"ends at byte {size}, but {length} bytes at {offset} are referred to")
        held = self._held(offset, length)
        if held is not None:
            return held
        start = min(offset, max(0, size - TAIL_BYTES)) if self._tail and offset + length == size else offset
        data, actual = self._bucket.get_part(self._key, start, offset + length - start)
        if actual != size:
            raise CorruptFile(self.path, f"has {actual} bytes where the metadata say {size}")
        if start < offset:
            self._hold(start, data)
        return data[offset - start :]

    def once(self, offset: int, length: int) -> bytes:
        """As ``read``, of an object whose size does not matter: one request for just this."""
        if offset < 0 or length < 0:
            raise CorruptFile(self.path, f"negative range: {length} bytes at {offset}")
        if not length:
            return b""
        try:
            data, size = self._bucket.get_part(self._key, offset, length)
        except StorageError as error:
            if "416" not in str(error.strerror):
                raise
            raise CorruptFile(self.path, f"ends before byte {offset}, where {length} bytes are referred to") from error
        if len(data) != length:
            raise CorruptFile(self.path, f"ends at byte {size}, but {length} bytes at {offset} are referred to")
        return data

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """(offset, length) of what is going to be read: got now, side by side, as far as it is not held."""
        size = self.size()
        wanted = sorted({(at, length) for at, length in ranges if at >= 0 and 0 < length <= size - at and self._held(at, length) is None})
        if sum(length for _, length in wanted) <= _HELD_BYTES:
            for (offset, _), data in zip(wanted, self._bucket.get_ranges(self._key, wanted) if wanted else (), strict=True):
                self._hold(offset, data)

    def _held(self, offset: int, length: int) -> bytes | None:
        with self._lock:
            at = bisect_right(self._starts, offset) - 1
            while at >= 0:
                start = self._starts[at]
                part = self._parts[start]
                if offset + length <= start + len(part):
                    return part[offset - start : offset - start + length]
                at -= 1
        return None

    def _hold(self, start: int, data: bytes) -> None:
        with self._lock:
            if len(data) > len(self._parts.get(start, b"")):
                self._parts[start] = data
            while len(self._parts) > 1 and sum(map(len, self._parts.values())) > _HELD_BYTES:
                del self._parts[next(iter(self._parts))]
            self._starts = sorted(self._parts)


class ObjectInput(pa.PythonFile):  # type: ignore[misc]  # pyarrow ships no types
    """An object as a seekable Arrow file; ``expect`` tells it what is going to be read."""

    _ranges: ObjectRanges

    def __new__(cls, ranges: ObjectRanges) -> Self:
        """Arrow takes its file when it makes the object, not later."""
        made: Self = super().__new__(cls, _Cursor(ranges), mode="r")
        made._ranges = ranges
        return made

    def __init__(self, ranges: ObjectRanges) -> None:  # noqa: ARG002  # __new__ has them
        super().__init__()

    def size(self) -> int:
        """Bytes of the object."""
        return self._ranges.size()

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """See ``ObjectRanges``."""
        self._ranges.expect(ranges)


class _Cursor:
    """What Arrow asks of a Python file."""

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


def told(source: Any, ranges: Sequence[tuple[int, int]]) -> None:
    """Tell an open file what is going to be read, if it wants to know."""
    expect = getattr(source, "expect", None)
    if expect is not None and ranges:
        expect(ranges)


__all__ = ["HEAD_BYTES", "TAIL_BYTES", "ObjectInput", "ObjectRanges", "told"]
