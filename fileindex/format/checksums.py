"""Checksums of an index container in a side file, where only a flipped bit of a payload would make a filter miss rows.

Paimon's format has none, but room behind the header's entries that its readers pass over: ours holds a mark, the checksum of the header
and one for every block of what follows, so that a question still reads only the blocks that it needs. Containers inside of manifests
need none, for manifests have theirs.
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


def room_needed(body: int) -> int:
    """Bytes that the checksums of payloads of ``body`` bytes take up."""
    return len(_MARK) + _CRC.size * (1 + -(-body // _BLOCK))


def checksums_of(name: str, header: bytes, body: bytes) -> bytes:
    """What stands behind the entries of ``header`` in the side file of that name.

    >>> len(checksums_of("a.index", b"header", bytes(1025))) == room_needed(1025)
    True
    """
    sums = [_of_header(name, header), *_sums(body)]
    return _MARK + struct.pack(f">{len(sums)}I", *sums)


@dataclass(frozen=True, slots=True)
class BlockChecksums:
    """The checksums of the blocks between ``start`` and ``end`` of a container, as they are stored: a question needs few of many."""

    start: int
    end: int
    sums: bytes

    @classmethod
    def of(cls, redundant: bytes, name: str, header: bytes, start: int, end: int) -> BlockChecksums | None:
        """What stands behind the entries of a header; None if that is nothing of ours. Raises ``CorruptIndex`` if it is of another."""
        if not redundant.startswith(_MARK):
            return None
        if len(redundant) != room_needed(end - start):
            raise CorruptIndex("an index container has checksums of another number of blocks")
        own = len(_MARK)
        if _CRC.unpack_from(redundant, own) != (_of_header(name, header),):
            raise CorruptIndex("the header of an index container has another checksum")
        return cls(start, end, redundant[own + _CRC.size :])

    def read(self, offset: int, length: int, read: Callable[[int, int], bytes]) -> bytes:
        """Bytes of the container, read with all of the blocks that they lie in. Raises ``CorruptIndex`` if one is another."""
        first = (offset - self.start) // _BLOCK
        at = self.start + first * _BLOCK
        end = min(self.end, self.start + -(-(offset + length - self.start) // _BLOCK) * _BLOCK)
        data = read(at, end - at)
        sums = _sums(data)
        if sums != list(struct.unpack_from(f">{len(sums)}I", self.sums, first * _CRC.size)):
            raise CorruptIndex("a block of an index container has another checksum")
        return data[offset - at : offset - at + length]


def _sums(data: bytes) -> list[int]:
    """Of every block."""
    crc32, view = zlib.crc32, memoryview(data)
    return [crc32(view[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK)]


def _of_header(name: str, header: bytes) -> int:
    return zlib.crc32(header, zlib.crc32(name.encode()))


__all__ = ["BlockChecksums", "checksums_of", "room_needed"]
