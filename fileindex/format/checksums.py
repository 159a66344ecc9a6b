"""Checksums of an index container in a side file.

Without them, a flipped bit of a payload could make a filter miss rows. Paimon's format has no checksums, but its readers ignore
extra bytes after the header's entries. There we store a magic number, the checksum of the header, and one for every block
of the body. A query still reads only the blocks that it needs. Containers in manifests need none: manifests have checksums.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from fileindex.base.corrupt import CorruptIndex

_MARK = b"crc32/1k"
_BLOCK = 1024
_CRC = struct.Struct(">I")


def checksums_size(body: int) -> int:
    """Return the bytes of the checksums of ``body`` payload bytes."""
    return len(_MARK) + _CRC.size * (1 + -(-body // _BLOCK))


def checksums_of(name: str, header: bytes, body: bytes) -> bytes:
    """Return the checksum bytes that follow the entries of ``header``.

    ``name`` is the name of the side file.

    >>> len(checksums_of("a.index", b"header", bytes(1025))) == checksums_size(1025)
    True
    """
    sums = [_header_checksum(name, header), *_sums(body)]
    return _MARK + struct.pack(f">{len(sums)}I", *sums)


@dataclass(frozen=True, slots=True)
class BlockChecksums:
    """Checksums of the blocks of a container.

    The blocks lie from ``start`` to ``end``. ``sums`` are the stored bytes. A query decodes only the sums that it needs.
    """

    start: int
    end: int
    sums: bytes

    @classmethod
    def of(cls, redundant: bytes, name: str, header: bytes, start: int, end: int) -> BlockChecksums | None:
        """Parse the bytes that follow the entries of a header.

        None if they are not our checksums. Raises ``CorruptIndex`` if they do not match the header.
        """
        if not redundant.startswith(_MARK):
            return None
        if len(redundant) != checksums_size(end - start):
            raise CorruptIndex("an index container has a wrong number of block checksums")
        own = len(_MARK)
        if _CRC.unpack_from(redundant, own) != (_header_checksum(name, header),):
            raise CorruptIndex("the header of an index container does not match its checksum")
        return cls(start, end, redundant[own + _CRC.size :])

    def read(self, offset: int, length: int, read: Callable[[int, int], bytes]) -> bytes:
        """Return verified bytes of the container.

        Reads the whole blocks that contain them. Raises ``CorruptIndex`` on a mismatch.
        """
        first = (offset - self.start) // _BLOCK
        at = self.start + first * _BLOCK
        end = min(self.end, self.start + -(-(offset + length - self.start) // _BLOCK) * _BLOCK)
        data = read(at, end - at)
        sums = _sums(data)
        if sums != list(struct.unpack_from(f">{len(sums)}I", self.sums, first * _CRC.size)):
            raise CorruptIndex("a block of an index container does not match its checksum")
        return data[offset - at : offset - at + length]


def _sums(data: bytes) -> list[int]:
    crc32, view = zlib.crc32, memoryview(data)
    return [crc32(view[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)]


def _header_checksum(name: str, header: bytes) -> int:
    return zlib.crc32(header, zlib.crc32(name.encode()))


__all__ = ["BlockChecksums", "checksums_of", "checksums_size"]
