"""Checksums of page indexes and footer in our data files.

Parquet has checksums for pages only. A flipped bit in a footer or page index may produce another valid minimum, so that rows are
missing. So these numbers are in front of the footer, four bytes each and little-endian:

* a CRC-32 for every block of the region between the last column chunk and here (Bloom filters, column and offset indexes)
* ``PPS1``
* the length of that region
* a CRC-32 of these numbers and the footer

The file name is not included, because Parquet files may be moved between tables. Blocks allow a lookup to read a few page indexes
only. Other readers find the footer from the end and everything else by offsets, so they ignore these bytes. Files without
checksums are not checked.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

_MAGIC = b"PPS1"
_BLOCK = 4096
_TRAILER = struct.Struct("<4sII")
_NUMBER = struct.Struct("<I")
_MOST = 1 << 32


def footer_checksums(indexes: bytes, footer: bytes) -> bytes:
    """Return the bytes between page indexes and footer.

    ``indexes`` are the bytes after the last column chunk. Empty if they are 4 GiB or more.

    >>> verify_footer_checksums(footer_checksums(b"abc", b"footer"), b"footer", 103 + 16)
    FooterChecksums(start=100, end=103, checksums=(891568578,))
    """
    if len(indexes) >= _MOST:
        return b""
    checksums = b"".join(_NUMBER.pack(zlib.crc32(indexes[start : start + _BLOCK])) for start in range(0, len(indexes), _BLOCK))
    head = _MAGIC + _NUMBER.pack(len(indexes))
    return checksums + head + _NUMBER.pack(zlib.crc32(footer, zlib.crc32(checksums + head)))


@dataclass(frozen=True)
class FooterChecksums:
    """Block checksums of a file from ``start`` to ``end``."""

    start: int
    end: int
    checksums: tuple[int, ...]

    def reading(self, read_range: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
        """Return a ``read_range(offset, length)`` that verifies checksums.

        It raises ``ValueError`` if a checksum does not match.
        """

        def read(offset: int, length: int) -> bytes:
            if not self.start <= offset <= offset + length <= self.end:
                return read_range(offset, length)
            first, last = (offset - self.start) // _BLOCK, -(-(offset + length - self.start) // _BLOCK)
            begin = self.start + first * _BLOCK
            data = read_range(begin, min(self.start + last * _BLOCK, self.end) - begin)
            checksums = tuple(zlib.crc32(data[start : start + _BLOCK]) for start in range(0, len(data), _BLOCK))
            if checksums != self.checksums[first:last]:
                raise ValueError(f"the checksum of the page indexes at byte {begin} does not match")
            return data[offset - begin : offset - begin + length]

        return read


def footer_checksums_length(before: bytes) -> int:
    """Return the length of checksums at the end of ``before``.

    ``before`` are the bytes in front of a footer. 0: no checksums.
    """
    if len(before) < _TRAILER.size:
        return 0
    magic, length, _ = _TRAILER.unpack_from(before, len(before) - _TRAILER.size)
    return _TRAILER.size + _NUMBER.size * -(-length // _BLOCK) if magic == _MAGIC else 0


def verify_footer_checksums(checksums: bytes, footer: bytes, footer_start: int) -> FooterChecksums:
    """Verify the checksum of a footer, and return the others.

    ``checksums`` are the bytes in front of the ``footer`` at ``footer_start``.

    Raises:
        ValueError: The checksum does not match.
    """
    _, length, checksum = _TRAILER.unpack_from(checksums, len(checksums) - _TRAILER.size)
    if checksum != zlib.crc32(footer, zlib.crc32(checksums[: -_NUMBER.size])):
        raise ValueError("the checksum of the footer does not match")
    end = footer_start - len(checksums)
    return FooterChecksums(end - length, end, tuple(number for (number,) in _NUMBER.iter_unpack(checksums[: -_TRAILER.size])))
