"""Bloom filters and dictionaries of column chunks.

Both show that a chunk lacks some values, in files of every writer. A Bloom filter is Parquet's split block Bloom filter: a value
sets one bit in each of the eight words of a block. A dictionary has all values of a chunk if all its data pages use the dictionary.

Only values with one plain encoding are searched: no NaN, no INT96, no decimals of variable length.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import xxhash

from fileindex.predicate.tree import derive
from lsm.parquet.fields import (
    BloomFilterHeader,
    ColumnMetaData,
    CompressionCodec,
    DictionaryPageHeader,
    Encoding,
    PageEncodingStats,
    PageHeader,
    PageType,
    PhysicalType,
    byte_width,
    encode_plain,
    value,
    value_or,
    values_of,
)
from lsm.parquet.page_index import ReadRange
from lsm.parquet.page_reader import LONGEST
from lsm.parquet.thrift import Struct, decode_struct
from sparkexpr.values.column_type import Plain

_Encoded: TypeAlias = tuple[bytes, ...]
_BLOCK = 32
_HEADER = 64
"""Bytes that hold the header of a Bloom filter."""
_UNION_OF_FIRST = {1}
"""The only known member of the unions in a header: split blocks, xxHash, not compressed."""
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)  # fmt: skip
_DATA_PAGES = frozenset({PageType.DATA_PAGE, PageType.DATA_PAGE_V2})
_OF_META = (ColumnMetaData.TYPE, ColumnMetaData.CODEC, ColumnMetaData.NUM_VALUES, ColumnMetaData.TOTAL_UNCOMPRESSED_SIZE)
_FLOATS = frozenset({PhysicalType.FLOAT, PhysicalType.DOUBLE})
_CODECS = {
    CompressionCodec.SNAPPY: "snappy",
    CompressionCodec.GZIP: "gzip",
    CompressionCodec.BROTLI: "brotli",
    CompressionCodec.ZSTD: "zstd",
    CompressionCodec.LZ4_RAW: "lz4_raw",
}
"""Arrow's names of codecs."""


@dataclass(frozen=True, slots=True)
class ChunkValues:
    """Locations of a chunk's Bloom filter and dictionary.

    Args:
        bloom: Offset of the Bloom filter, and its length, 0 if unknown. None: there is no filter.
        dictionary: Offset and length of a dictionary that has all values. None: there is no such dictionary.
        physical_type: Physical type of the chunk.
        codec: Compression of the chunk.
        values: Number of values of the chunk, with nulls.
        plain_size: Bytes of the chunk before compression.
    """

    bloom: tuple[int, int] | None
    dictionary: tuple[int, int] | None
    physical_type: int
    codec: int
    values: int
    plain_size: int

    @classmethod
    def of(cls, meta: Struct) -> ChunkValues | None:
        """Return the locations in ``ColumnMetaData``.

        None: there are none.
        """
        bloom = dictionary = None
        values = values_of(meta)
        if ColumnMetaData.BLOOM_FILTER_OFFSET in meta:
            bloom = values[ColumnMetaData.BLOOM_FILTER_OFFSET], values.get(ColumnMetaData.BLOOM_FILTER_LENGTH, 0)
        if ColumnMetaData.DICTIONARY_PAGE_OFFSET in meta and ColumnMetaData.ENCODING_STATS in meta:
            start, end = values[ColumnMetaData.DICTIONARY_PAGE_OFFSET], values[ColumnMetaData.DATA_PAGE_OFFSET]
            if 0 < start < end and _has_readable_dictionary(values):
                dictionary = start, end - start
        if bloom is None and dictionary is None:
            return None
        return cls(bloom, dictionary, *itemgetter(*_OF_META)(values))

    def bloom_cost(self, searched: int) -> int:
        """Return the bytes read for a search of ``searched`` values."""
        return _HEADER + searched * _BLOCK


def _has_readable_dictionary(meta: Mapping[int, Any]) -> bool:
    """Return whether all data pages use a readable dictionary.

    ``meta``: values of ``ColumnMetaData``.
    """
    codec, (_, encoding_stats) = meta[ColumnMetaData.CODEC], meta[ColumnMetaData.ENCODING_STATS]
    if codec != CompressionCodec.UNCOMPRESSED and codec not in _CODECS:
        return False
    page_encodings = set()
    for stats in map(values_of, encoding_stats):
        if stats[PageEncodingStats.PAGE_TYPE] in _DATA_PAGES and stats[PageEncodingStats.COUNT]:
            page_encodings.add(stats[PageEncodingStats.ENCODING])
    return bool(page_encodings) and page_encodings <= Encoding.OF_DICTIONARY


def encodings(values: tuple[Plain, ...], physical_type: int, length: int) -> _Encoded | None:
    r"""Return every plain encoding of ``values``, without lengths.

    None: a value may have other encodings.

    >>> from lsm.parquet.fields import PhysicalType
    >>> encodings(("a", "b"), PhysicalType.BYTE_ARRAY, 0), encodings((0.0,), PhysicalType.FLOAT, 0)
    ((b'a', b'b'), (b'\x00\x00\x00\x00', b'\x00\x00\x00\x80'))
    """

    def encode(literals: tuple[Plain, ...]) -> _Encoded | None:
        encoded_values: list[bytes] = []
        for literal in literals:
            # The two zeros are equal.
            for number in (0.0, -0.0) if literal == 0 and physical_type in _FLOATS else (literal,):
                encoded = encode_plain(number, physical_type, length)
                if encoded is None:
                    return None
                encoded_values.append(encoded)
        return tuple(encoded_values)

    return derive(values, ("parquet", physical_type, length), encode)


def bloom_has_one(read: ReadRange, filter_range: tuple[int, int], end: int, encoded: _Encoded, max_read_bytes: int) -> bool:
    """Return whether a Bloom filter may have one of some values.

    Args:
        read: Reads a range of the file.
        filter_range: Offset and length of the filter. A length of 0 is unknown.
        end: One past the greatest possible offset of the filter.
        encoded: Values in plain encoding.
        max_read_bytes: Bytes up to which a filter is read at once.

    Raises:
        ValueError: The filter is damaged. Other errors of damaged bytes are possible.
    """
    offset, length = filter_range
    head = read(offset, min(length if 0 < length <= max_read_bytes else _HEADER, end - offset))
    fields, size = decode_struct(head)
    count = value(fields, BloomFilterHeader.NUM_BYTES)
    for number in (BloomFilterHeader.ALGORITHM, BloomFilterHeader.HASH, BloomFilterHeader.COMPRESSION):
        if value(fields, number).keys() != _UNION_OF_FIRST:
            raise ValueError("a Bloom filter has an unknown algorithm, hash function or compression")
    if count <= 0 or count % _BLOCK or count > end - offset - size or (length and count + size != length):
        raise ValueError(f"a Bloom filter of {count} bytes does not fit its place")
    hashes = np.array([xxhash.xxh64_intdigest(encoded_value) for encoded_value in encoded], np.uint64)
    blocks = ((hashes >> np.uint64(32)) * np.uint64(count // _BLOCK) >> np.uint64(32)).tolist()
    masks = np.uint32(1) << (hashes.astype(np.uint32)[:, None] * _SALTS >> np.uint32(27))
    for block, mask in zip(blocks, masks, strict=True):
        block_offset = size + block * _BLOCK
        words = head[block_offset : block_offset + _BLOCK] if block_offset + _BLOCK <= len(head) else read(offset + block_offset, _BLOCK)
        if ((np.frombuffer(words, "<u4") & mask) == mask).all():
            return True
    return False


def dictionary_has_one(page: bytes, chunk: ChunkValues, length: int, encoded: _Encoded) -> bool:
    """Return whether a dictionary page may have one of some values.

    Args:
        page: Dictionary page with its header.
        chunk: Chunk of the page.
        length: Bytes of a value of fixed length.
        encoded: Values in plain encoding.

    Raises:
        ValueError: The page is damaged. Other errors of damaged bytes are possible.
    """
    fields, head = decode_struct(page[:LONGEST])
    count = value(value(fields, PageHeader.DICTIONARY_PAGE_HEADER), DictionaryPageHeader.NUM_VALUES)
    size, plain_size = value(fields, PageHeader.COMPRESSED_PAGE_SIZE), value(fields, PageHeader.UNCOMPRESSED_PAGE_SIZE)
    checksum = value_or(fields, PageHeader.CRC, None)
    body = memoryview(page)[head : head + size]
    if (
        len(body) != size
        or not 0 <= plain_size <= chunk.plain_size
        or not 0 <= count <= chunk.values
        or (checksum is not None and zlib.crc32(body) != checksum & 0xFFFFFFFF)
    ):
        raise ValueError("a dictionary page is too short or too long, or its checksum does not match")
    data = decompress(body, chunk.codec, plain_size)
    width = byte_width(chunk.physical_type) or length
    if not width:
        # A match inside of another value only means that the value may exist.
        return any(data.find(struct.pack("<I", len(encoded_value)) + encoded_value) >= 0 for encoded_value in encoded)
    if len(data) != count * width:
        raise ValueError(f"a dictionary page has {len(data)} bytes for {count} values")
    form = f"<i{width}" if width in {4, 8} else f"V{width}"
    return bool(np.isin(np.frombuffer(data, form), np.frombuffer(b"".join(encoded), form)).any())


def decompress(body: memoryview, codec: int, size: int) -> bytes:
    """Decompress a page. ``codec`` is a ``CompressionCodec``.

    Raises:
        ValueError: The bytes are damaged, or the codec is not supported.
    """
    if codec == CompressionCodec.UNCOMPRESSED:
        return bytes(body)
    try:
        data: bytes = pa.decompress(pa.py_buffer(body), size, _CODECS[codec], asbytes=True)
    except (OSError, KeyError) as error:  # Arrow's error of damaged bytes, or an unknown codec
        raise ValueError(f"a page cannot be decompressed: {error}") from error
    return data
