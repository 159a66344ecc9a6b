"""Blocks of a payload: a body, the code of its codec, and a checksum.

The checksum covers the stored bytes and the code. The formats name it crc32c, but it is zlib's CRC-32.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pyarrow as pa

from fileindex.sorted_index.varints import INT_BYTES, encode_varint, varints_at
from paimon_base.errors import CorruptIndex

TRAILER_BYTES = 5
"""Bytes of a block after its body. Stored sizes exclude them."""
COMPRESSIONS = ("none", "zstd", "lz4")
"""Compressions by the code of their codec."""
_LZ4 = 2
_TRAILER = struct.Struct("<BI")
_LZ4_SIZES = struct.Struct("<ii")
_LEAST_LIMIT, _MOST_RATIO = 1 << 20, 256


def pack_block(body: bytes, compression: str, level: int) -> bytes:
    r"""Return the stored bytes of a block: body and trailer.

    A body that compression makes hardly smaller is stored as it is.

    >>> pack_block(b"\0\0\0\0\1", "none", 1).hex()
    '000000000100e290d9a8'
    """
    code, stored = COMPRESSIONS.index(compression), body
    if code:
        compressed = _codec(code, level).compress(body, asbytes=True)
        sizes = _LZ4_SIZES.pack(len(compressed), len(body)) if code == _LZ4 else b""
        stored = encode_varint(len(body)) + sizes + compressed
        if len(stored) >= len(body) - len(body) // 8 or len(body) > _limit(len(stored)):
            code, stored = 0, body
    return stored + _TRAILER.pack(code, zlib.crc32(bytes([code]), zlib.crc32(stored)))


def unpack_block(data: bytes) -> bytes:
    """Return the body of a stored block.

    Raises CorruptIndex for a wrong checksum, an unsupported codec, or a body far larger than its stored bytes.

    >>> unpack_block(pack_block(bytes(100), "lz4", 1)) == bytes(100)
    True
    """
    if len(data) < TRAILER_BYTES:
        raise CorruptIndex("a block of an index has no trailer")
    stored = memoryview(data)[:-TRAILER_BYTES]
    code, checksum = _TRAILER.unpack_from(data, len(stored))
    if zlib.crc32(bytes([code]), zlib.crc32(stored)) != checksum:
        raise CorruptIndex("a block of an index does not match its checksum")
    if not code:
        return bytes(stored)
    if code >= len(COMPRESSIONS):
        raise CorruptIndex(f"a block of an index has the codec {code}, which is not supported")
    (size,), (position,) = (part.tolist() for part in varints_at(np.frombuffer(stored, np.uint8), np.zeros(1, np.int64), INT_BYTES))
    if position > len(stored) or size > _limit(len(stored)):
        raise CorruptIndex(f"a block of an index states {size} bytes, of at most {_limit(len(stored))}")
    if code == _LZ4:
        if _LZ4_SIZES.unpack(stored[position : position + _LZ4_SIZES.size]) != (len(stored) - position - _LZ4_SIZES.size, size):
            raise CorruptIndex("a block of an index has other sizes than it states")
        position += _LZ4_SIZES.size
    try:
        return bytes(_codec(code).decompress(stored[position:], size, asbytes=True))
    except (OSError, ValueError) as error:
        raise CorruptIndex(f"a block of an index cannot be decompressed: {error}") from error


def _codec(code: int, level: int | None = None) -> pa.Codec:
    return pa.Codec("lz4_raw") if code == _LZ4 else pa.Codec("zstd", compression_level=level)


def _limit(stored: int) -> int:
    """Return the most bytes of the body of a compressed block."""
    return _LEAST_LIMIT + _MOST_RATIO * stored
