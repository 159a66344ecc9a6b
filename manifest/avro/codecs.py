"""Codecs of Avro containers, with bounded decompression.

Supports every codec of Avro's specification.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
import zstandard

from manifest.io.errors import UnsupportedTable
from paimon_base.errors import UnsupportedOption

MAX_PAYLOAD = 1 << 30
"""Maximal decompressed bytes of a manifest. Paimon rolls manifests at 8 MB compressed."""
BROKEN_BLOCK = (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError, EOFError)
"""Errors of decompressing a corrupt block."""

_CODECS = {
    **dict.fromkeys(["zstd", "zstandard"], "zstandard"),
    **dict.fromkeys(["none", "null"], "null"),
    **dict.fromkeys(["deflate", "gzip"], "deflate"),
    **{name: name for name in ("snappy", "bzip2", "xz")},
}
_SNAPPY_CHECKSUM = 4
_SNAPPY_RATIO = 22
"""A copy of 64 bytes, the longest, takes 3 bytes."""
_LZMA_MEMORY = 256 << 20
"""Bytes that a stream may demand for its dictionary."""
_STEP = 1 << 20
"""Bytes that are decompressed at once."""


class _Stream(Protocol):
    """A decompressor of the standard library."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def codec_name(compression: str) -> str:
    """Return Avro's name of a ``manifest.compression`` value.

    Raises ``UnsupportedOption``.

    >>> codec_name("zstd"), codec_name("none")
    ('zstandard', 'null')
    """
    try:
        return _CODECS[compression.strip().lower()]
    except KeyError:
        raise UnsupportedOption(
            "manifest.compression", f"'{compression}' is not supported; use one of zstd, deflate, snappy, bzip2, xz, none"
        ) from None


def data_codec_name(compression: str) -> str:
    """Return Avro's name of a ``file.compression`` value.

    Raises ``UnsupportedOption``.
    """
    try:
        return codec_name(compression)
    except UnsupportedOption:
        message = f"'{compression}' is not a codec of Avro files; choose zstd, gzip, snappy or none"
        raise UnsupportedOption("file.compression", message) from None


def decompressor(path: str, codec: str) -> Callable[[bytes, int], bytes]:
    """Return a function that decompresses a block.

    Its arguments are the block and a size limit of the content. Raises ``UnsupportedTable`` for an unknown codec.
    """
    match codec:
        case "null":
            return _check_size
        case "deflate":
            return lambda data, limit: _decompress_stream(zlib.decompressobj(-15), data, limit)
        case "zstandard":
            return _unzstd
        case "snappy":
            return _unsnappy
        case "bzip2":
            return lambda data, limit: _decompress_stream(bz2.BZ2Decompressor(), data, limit)
        case "xz":
            return lambda data, limit: _decompress_stream(lzma.LZMADecompressor(memlimit=_LZMA_MEMORY), data, limit)
        case _:
            raise UnsupportedTable(f"{path}: Avro codec '{codec}' is unknown; known are zstandard, deflate, snappy, bzip2, xz, null")


def compressor(codec: str, level: int) -> Callable[[bytes], bytes]:
    """Return a function that compresses a block.

    ``level`` is for zstandard only.
    """
    match codec:
        case "zstandard":
            return zstandard.ZstdCompressor(level=level, write_checksum=True).compress
        case "deflate":
            return lambda block: (stream := zlib.compressobj(wbits=-15)).compress(block) + stream.flush()
        case "snappy":
            return lambda block: pa.compress(block, codec="snappy", asbytes=True) + zlib.crc32(block).to_bytes(_SNAPPY_CHECKSUM, "big")
        case "bzip2":
            return bz2.compress
        case "xz":
            return lzma.compress
        case _:
            return bytes


def _check_size(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise _too_large(limit)
    return data


def _too_large(limit: int) -> ValueError:
    return ValueError(f"more than {limit} bytes of records")


def _decompress_stream(stream: _Stream, data: bytes, limit: int) -> bytes:
    chunks: list[bytes] = []
    size, pending = 0, data
    while not stream.eof:
        chunk = stream.decompress(pending, _STEP)
        pending = getattr(stream, "unconsumed_tail", b"")  # others than zlib keep it
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        if not chunk and not stream.eof:
            raise ValueError("a block is truncated")
        chunks.append(chunk)
    return b"".join(chunks)


def _unzstd(data: bytes, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    for chunk in zstandard.ZstdDecompressor().read_to_iter(data):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _unsnappy(data: bytes, limit: int) -> bytes:
    """Decompress raw snappy, followed by a checksum of the content."""
    size = snappy_size(data)
    if size > limit:
        raise _too_large(limit)
    if size > _SNAPPY_RATIO * len(data):  # the size may be wrong, and the memory is allocated before it is checked
        raise ValueError(f"a block of {len(data)} bytes claims {size} bytes of records")
    block: bytes = pa.decompress(data[:-_SNAPPY_CHECKSUM], decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(block) != int.from_bytes(data[-_SNAPPY_CHECKSUM:], "big"):
        raise ValueError("the checksum of a block is wrong")
    return block


def snappy_size(data: bytes) -> int:
    """Return the content length of raw snappy.

    >>> snappy_size(bytes([0x80, 0x01]))
    128
    """
    # A varint at the start.
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return size
