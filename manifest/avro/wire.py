"""Framing of Avro files: integers, header, and a bounded cursor."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping

import fastavro

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
_METADATA = fastavro.parse_schema({"type": "map", "values": "bytes"})
_MOST_BITS = 63


class AvroCursor(ABC):
    """Reads an Avro file from its beginning.

    Every method raises ``ValueError`` or ``LookupError`` for invalid bytes.
    """

    @abstractmethod
    def take(self, length: int) -> bytes:
        """Return the next ``length`` bytes.

        Raises if the file has fewer.
        """

    def long(self) -> int:
        """Return the next integer, a zigzag varint."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > _MOST_BITS:
                raise ValueError("a number is longer than 64 bits")

    def header(self) -> tuple[dict[bytes, bytes], bytes]:
        """Return the file's metadata and its sync marker."""
        if self.take(len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin with Avro's magic bytes")
        metadata: dict[bytes, bytes] = {}
        while (pairs := self.long()) != 0:
            if pairs < 0:
                self.long()
            for _ in range(abs(pairs)):
                key = self.take(self.long())
                metadata[key] = self.take(self.long())
        return metadata, self.take(SYNC_BYTES)


def encode_long(value: int) -> bytes:
    r"""Encode an integer of 64 bits as a zigzag varint.

    >>> encode_long(-1), encode_long(64)
    (b'\x01', b'\x80\x01')
    """
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def encode_header(metadata: Mapping[bytes, bytes]) -> bytes:
    """Return the bytes before the first sync marker."""
    out = io.BytesIO()
    out.write(MAGIC)
    fastavro.schemaless_writer(out, _METADATA, {key.decode(): value for key, value in metadata.items()})
    return out.getvalue()


def block_prefix(count: int, content: bytes) -> bytes:
    """Return the bytes before a block's content: two counts.

    The number of records and the number of bytes.
    """
    return encode_long(count) + encode_long(len(content))
