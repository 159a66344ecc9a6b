"""Framing of Avro files: integers, header, and a bounded cursor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
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
                if value >> _MOST_BITS + 1:
                    raise ValueError("a number is longer than 64 bits")
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > _MOST_BITS:
                raise ValueError("a number is longer than 64 bits")

    def prefixed_bytes(self) -> bytes:
        """Return the next bytes, which follow their number."""
        return self.take(self.long())

    def items(self, item: Callable[[], T]) -> list[T]:
        """Return the next array, or the pairs of the next map.

        ``item`` reads one.
        """
        values: list[T] = []
        while (count := self.long()) != 0:
            if count < 0:
                self.long()
            values += [item() for _ in range(abs(count))]
        return values

    def header(self) -> tuple[dict[bytes, bytes], bytes]:
        """Return the file's metadata and its sync marker."""
        if self.take(len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin with Avro's magic bytes")
        metadata = dict(self.items(lambda: (self.prefixed_bytes(), self.prefixed_bytes())))
        return metadata, self.take(SYNC_BYTES)


class BytesCursor(AvroCursor):
    """Cursor over bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    @property
    def at_end(self) -> bool:
        """Whether no bytes are left."""
        return self.position >= len(self._data)

    def take(self, length: int) -> bytes:
        """See ``AvroCursor``."""
        end = self.position + length
        if length < 0 or end > len(self._data):
            raise ValueError(f"{length} bytes at {self.position} exceed the file of {len(self._data)} bytes")
        piece = self._data[self.position : end]
        self.position = end
        return piece


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
    parts = [MAGIC, encode_long(len(metadata))]
    for key, value in metadata.items():
        parts += encode_long(len(key)), key, encode_long(len(value)), value
    return b"".join([*parts, encode_long(0)])


def block_prefix(count: int, content: bytes) -> bytes:
    """Return the bytes before a block's content: two counts.

    The number of records and the number of bytes.
    """
    return encode_long(count) + encode_long(len(content))
