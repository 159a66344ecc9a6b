"""The checksums that our data files carry between their page indexes and their footer, where every reader passes over them.

Parquet has checksums for pages alone: one flipped bit in a footer, or in a page index, may spell another valid minimum, and rows are
missing. So in front of the footer stand, four bytes each and little-endian: a CRC-32 for every block of what lies between the last column chunk
and here (Bloom filters, column and offset indexes), ``PPS1``, the length of that region, and a CRC-32 of these numbers and the
footer. Not of the file's name: people move Parquet files from one table to another, and other names are no damage.
Blocks, because a lookup reads a few page indexes only. Readers find footers from the end and all else by offsets, so that they never see
this; files without it are taken at their word.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

_MAGIC = b"PPS1"
_BLOCK = 4096
_SEAL = struct.Struct("<4sII")
_NUMBER = struct.Struct("<I")
_MOST = 1 << 32


def footer_seal(indexes: bytes, footer: bytes) -> bytes:
    """What stands between ``indexes``, the bytes after the last column chunk, and ``footer``; nothing if these are 4 GiB or more.

    >>> check_footer_seal(footer_seal(b"abc", b"footer"), b"footer", 103 + 16)
    FooterSeal(start=100, end=103, checksums=(891568578,))
    """
    if len(indexes) >= _MOST:
        return b""
    checksums = b"".join(_NUMBER.pack(zlib.crc32(indexes[at : at + _BLOCK])) for at in range(0, len(indexes), _BLOCK))
    said = _MAGIC + _NUMBER.pack(len(indexes))
    return checksums + said + _NUMBER.pack(zlib.crc32(footer, zlib.crc32(checksums + said)))


@dataclass(frozen=True)
class FooterSeal:
    """The bytes ``start`` to ``end`` of a file, page indexes and the like, and a checksum for each of their blocks."""

    start: int
    end: int
    checksums: tuple[int, ...]

    def reading(self, read_range: Callable[[int, int], bytes]) -> Callable[[int, int], bytes]:
        """``read_range(offset, length)`` of the file, that raises ``ValueError`` for what is not as it was written."""

        def read(offset: int, length: int) -> bytes:
            if not self.start <= offset <= offset + length <= self.end:
                return read_range(offset, length)
            first, last = (offset - self.start) // _BLOCK, -(-(offset + length - self.start) // _BLOCK)
            begin = self.start + first * _BLOCK
            data = read_range(begin, min(self.start + last * _BLOCK, self.end) - begin)
            found = tuple(zlib.crc32(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK))
            if found != self.checksums[first:last]:
                raise ValueError(f"its page indexes from {begin} on are not what was written: their checksum is another")
            return data[offset - begin : offset - begin + length]

        return read


def footer_seal_length(before: bytes) -> int:
    """How many bytes of seal stand at the end of ``before``, the bytes in front of a footer; 0 if there is none."""
    if len(before) < _SEAL.size:
        return 0
    magic, length, _ = _SEAL.unpack_from(before, len(before) - _SEAL.size)
    return _SEAL.size + _NUMBER.size * -(-length // _BLOCK) if magic == _MAGIC else 0


def check_footer_seal(seal: bytes, footer: bytes, footer_start: int) -> FooterSeal:
    """The ``seal`` in front of the ``footer`` that begins at ``footer_start``. Raises ``ValueError`` if they are not what was written."""
    _, length, checksum = _SEAL.unpack_from(seal, len(seal) - _SEAL.size)
    if checksum != zlib.crc32(footer, zlib.crc32(seal[: -_NUMBER.size])):
        raise ValueError("its footer is not what was written: its checksum is another")
    end = footer_start - len(seal)
    return FooterSeal(end - length, end, tuple(number for (number,) in _NUMBER.iter_unpack(seal[: -_SEAL.size])))


__all__ = ["FooterSeal", "check_footer_seal", "footer_seal", "footer_seal_length"]
