"""The compressed chunks that ORC keeps its metadata in, each decompressed under a limit."""

from __future__ import annotations

import zlib

import pyarrow as pa
import zstandard

from manifest.avro.codecs import snappy_size
from manifest.io.errors import UnsupportedTable

_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_HEADER = 3
_LEAST_MATCH = 4
_LONG = 15


def metadata_of(data: bytes, codec: int, block: int) -> bytes:
    """The content of a compressed section. Raises ``ValueError`` for wrong bytes, ``UnsupportedTable`` for a codec that is not read."""
    if codec == _NONE:
        return data
    found: list[bytes] = []
    at = 0
    while at < len(data):
        if at + _HEADER > len(data):
            raise ValueError("a compressed chunk has no header")
        header = int.from_bytes(data[at : at + _HEADER], "little")
        at += _HEADER
        length = header >> 1
        if length > len(data) - at:
            raise ValueError(f"a chunk of {length} bytes leaves its section")
        chunk = data[at : at + length]
        at += length
        plain = chunk if header & 1 else _decompressed(chunk, codec, block)
        if len(plain) > block:
            raise ValueError(f"a chunk holds more than {block} bytes")
        found.append(plain)
    return b"".join(found)


def _decompressed(chunk: bytes, codec: int, block: int) -> bytes:
    decompress = {_ZLIB: _inflated, _SNAPPY: _unsnappy, _LZ4: _unlz4, _ZSTD: _unzstd}.get(codec)
    if decompress is None:
        raise UnsupportedTable(f"ORC's codec {codec} is none of zlib, snappy, lz4, zstd")
    try:
        return decompress(chunk, block)
    except (zlib.error, zstandard.ZstdError) as error:
        raise ValueError(str(error)) from error


def _inflated(chunk: bytes, block: int) -> bytes:
    return zlib.decompressobj(-15).decompress(chunk, block + 1)


def _unzstd(chunk: bytes, block: int) -> bytes:
    return zstandard.ZstdDecompressor().decompress(chunk, max_output_size=block + 1)


def _unsnappy(chunk: bytes, block: int) -> bytes:
    size = snappy_size(chunk)
    if size > block:
        raise ValueError(f"a chunk holds more than {block} bytes")
    found: bytes = pa.decompress(chunk, decompressed_size=size, codec="snappy", asbytes=True)
    return found


def _unlz4(chunk: bytes, block: int) -> bytes:
    """An LZ4 block, which does not say how long its content is: a decoder of a library would have to be told.

    >>> _unlz4(bytes([0x32]) + b"abc" + bytes([3, 0]) + bytes([0x10]) + b"!", 99)
    b'abcabcabc!'
    """
    out = bytearray()
    at = 0
    while at < len(chunk):
        token = chunk[at]
        length, at = _length(chunk, at + 1, token >> 4)
        if length > len(chunk) - at:
            raise ValueError("literals leave their chunk")
        out += chunk[at : at + length]
        at += length
        if at >= len(chunk):
            break
        back = int.from_bytes(chunk[at : at + 2], "little")
        if not 0 < back <= len(out) or at + 2 > len(chunk):
            raise ValueError("a match lies before its chunk")
        length, at = _length(chunk, at + 2, token & _LONG)
        length += _LEAST_MATCH
        if len(out) + length > block:
            raise ValueError(f"a chunk holds more than {block} bytes")
        piece = out[-back:]
        out += (piece * (length // back + 1))[:length]
    return bytes(out)


def _length(chunk: bytes, at: int, length: int) -> tuple[int, int]:
    if length == _LONG:
        while True:
            if at >= len(chunk):
                raise ValueError("a length does not end")
            byte = chunk[at]
            at += 1
            length += byte
            if byte < 0xFF:
                break
    return length, at


__all__ = ["metadata_of"]
