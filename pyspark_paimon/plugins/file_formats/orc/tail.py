"""Tail of an ORC file: postscript, footer, types, stripes, statistics.

It is checked before a decoder reads it, because the decoder trusts it: an invalid decimal precision ends the process. Damage raises ``ValueError``.
Field numbers are from ORC's specification (``orc_proto.proto``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import pyarrow as pa
import zstandard

from lsm.parquet.footer import RowGroup
from lsm.parquet.page_index import ReadRange
from manifest.avro.codecs import snappy_size
from manifest.io.errors import UnsupportedTable
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.file_formats.orc.protobuf import OrcMessage, integer, integers, message, messages, text, texts

_NONE, _ZLIB, _SNAPPY, _LZ4, _ZSTD = 0, 1, 2, 4, 5
_HEADER = 3
_LEAST_MATCH = 4
_LONG = 15


def metadata_of(data: bytes, codec: int, block: int) -> bytes:
    """Return the content of a compressed section.

    Raises:
        ValueError: The bytes are damaged.
        UnsupportedTable: The codec is not supported.
    """
    if codec == _NONE:
        return data
    chunks: list[bytes] = []
    offset = 0
    while offset < len(data):
        if offset + _HEADER > len(data):
            raise ValueError("a compressed chunk has no header")
        header = int.from_bytes(data[offset : offset + _HEADER], "little")
        offset += _HEADER
        length = header >> 1
        if length > len(data) - offset:
            raise ValueError(f"a chunk of {length} bytes exceeds its section")
        chunk = data[offset : offset + length]
        offset += length
        plain = chunk if header & 1 else _decompress(chunk, codec, block)
        if len(plain) > block:
            raise ValueError(f"a chunk holds more than {block} bytes")
        chunks.append(plain)
    return b"".join(chunks)


def _decompress(chunk: bytes, codec: int, block: int) -> bytes:
    decompress = {_ZLIB: _inflate, _SNAPPY: _unsnappy, _LZ4: _unlz4, _ZSTD: _unzstd}.get(codec)
    if decompress is None:
        raise UnsupportedTable(f"ORC codec {codec} is not supported; supported are zlib, snappy, lz4, zstd")
    try:
        return decompress(chunk, block)
    except (zlib.error, zstandard.ZstdError) as error:
        raise ValueError(str(error)) from error


def _inflate(chunk: bytes, block: int) -> bytes:
    return zlib.decompressobj(-15).decompress(chunk, block + 1)


def _unzstd(chunk: bytes, block: int) -> bytes:
    return zstandard.ZstdDecompressor().decompress(chunk, max_output_size=block + 1)


def _unsnappy(chunk: bytes, block: int) -> bytes:
    size = snappy_size(chunk)
    if size > block:
        raise ValueError(f"a chunk holds more than {block} bytes")
    plain: bytes = pa.decompress(chunk, decompressed_size=size, codec="snappy", asbytes=True)
    return plain


def _unlz4(chunk: bytes, block: int) -> bytes:
    """Decompress an LZ4 block.

    >>> _unlz4(bytes([0x32]) + b"abc" + bytes([3, 0]) + bytes([0x10]) + b"!", 99)
    b'abcabcabc!'
    """
    # Library decoders need the length of the content, which an ORC chunk does not have.
    out = bytearray()
    offset = 0
    while offset < len(chunk):
        token = chunk[offset]
        length, offset = _length(chunk, offset + 1, token >> 4)
        if length > len(chunk) - offset:
            raise ValueError("literals exceed their chunk")
        out += chunk[offset : offset + length]
        offset += length
        if offset >= len(chunk):
            break
        back = int.from_bytes(chunk[offset : offset + 2], "little")
        if not 0 < back <= len(out) or offset + 2 > len(chunk):
            raise ValueError("a match starts before its chunk")
        length, offset = _length(chunk, offset + 2, token & _LONG)
        length += _LEAST_MATCH
        if len(out) + length > block:
            raise ValueError(f"a chunk holds more than {block} bytes")
        piece = out[-back:]
        out += (piece * (length // back + 1))[:length]
    return bytes(out)


def _length(chunk: bytes, offset: int, length: int) -> tuple[int, int]:
    if length == _LONG:
        while True:
            if offset >= len(chunk):
                raise ValueError("a length does not end")
            byte = chunk[offset]
            offset += 1
            length += byte
            if byte < 0xFF:
                break
    return length, offset


_MAGIC = b"ORC"
_MOST_DIGITS = 38
_MOST_DEPTH = 100
_IN_MEMORY = 30
"""Approximate bytes in memory per byte of a tail."""
_UTC = frozenset({"", "UTC", "GMT", "Etc/UTC", "Etc/GMT"})
_LARGEST_BLOCK = 1 << 23
"""The header of a chunk has 23 bits for its length."""


class OrcKind(IntEnum):
    """Type kinds of ORC."""

    BOOLEAN = 0
    BYTE = 1
    SHORT = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    DATE = 15
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18


_CHILDREN: dict[OrcKind, int] = {OrcKind.LIST: 1, OrcKind.MAP: 2}
OrcStatistics: TypeAlias = Sequence[OrcMessage]
"""Statistics by column number."""


@dataclass(frozen=True, slots=True)
class OrcType:
    """A node of the type tree.

    ``children`` are column numbers. ``names`` are a struct's field names.
    """

    kind: OrcKind
    children: tuple[int, ...]
    names: tuple[str, ...]
    precision: int
    scale: int


@dataclass(frozen=True)
class OrcTail:
    """Metadata of an ORC file.

    Args:
        types: Types in the order of columns. The first is the row.
        row_groups: Stripes.
        statistics: Statistics of the file. (): unknown.
        stripe_statistics: Statistics of each stripe. (): unknown.
        size: Bytes of the tail.
        footers: Offset and length of each stripe's footer.
        packing: Codec and maximum size of an uncompressed chunk.
    """

    types: tuple[OrcType, ...]
    row_groups: tuple[RowGroup, ...]
    statistics: OrcStatistics
    stripe_statistics: Sequence[OrcStatistics]
    size: int
    footers: tuple[tuple[int, int], ...] = ()
    packing: tuple[int, int] = (0, 0)
    checked_footers: set[object] = field(default_factory=set, repr=False)

    @classmethod
    def read(cls, read_range: ReadRange, size: int) -> OrcTail:
        """Read the tail of a file of ``size`` bytes.

        Raises:
            ValueError, LookupError: The tail is damaged.
            UnsupportedTable: The codec is not supported.
        """
        end = read_range(max(0, size - thresholds.orc_tail_bytes), min(size, thresholds.orc_tail_bytes))
        if len(end) < len(_MAGIC) + 1 or end[-1] + 1 > len(end):
            raise ValueError(f"the file has only {size} bytes")
        postscript = message(end[-1 - end[-1] : -1])
        footer_length, metadata_length = integer(postscript, 1), integer(postscript, 5)
        if text(postscript, 8000) != _MAGIC:
            raise ValueError("the file does not end like an ORC file")
        tail = end[-1] + 1 + footer_length + metadata_length
        if tail > size - len(_MAGIC):
            raise ValueError(f"a footer of {footer_length} bytes exceeds the file")
        if tail > len(end):
            end = read_range(size - tail, tail)
        codec, block = integer(postscript, 2), integer(postscript, 3)
        if codec and not 0 < block < _LARGEST_BLOCK:
            raise ValueError(f"the chunk size {block} is invalid")
        body = end[len(end) - tail : len(end) - end[-1] - 1]
        footer = message(metadata_of(body[metadata_length:], codec, block))
        types = tuple(_type(node) for node in messages(footer, 4))
        _check_tree(types)
        described = messages(footer, 3)
        stripes = tuple(_stripes(described, size - tail))
        if sum(stripe.num_rows for stripe in stripes) != integer(footer, 6):
            raise ValueError("the stripes have other rows than the footer says")
        file_statistics = tuple(messages(footer, 7))
        each = tuple(tuple(messages(stripe, 1)) for stripe in messages(message(metadata_of(body[:metadata_length], codec, block)), 1))
        if len(each) != len(stripes) or any(len(stripe_columns) != len(types) for stripe_columns in each):
            each = ()
        footers = tuple(map(_footer_place, described))
        return cls(types, stripes, file_statistics if len(file_statistics) == len(types) else (), each, tail, footers, (codec, block))

    def writer_zone(self, read_range: ReadRange, stripe: int) -> str:
        """Return the time zone of a stripe's writer.

        '' means UTC.

        Raises:
            ValueError: The stripe's footer is damaged.
            UnsupportedTable: The codec is not supported.
        """
        zone = text(message(metadata_of(read_range(*self.footers[stripe]), *self.packing)), 3).decode()
        return "" if zone in _UTC else zone

    @property
    def weight(self) -> int:
        """Approximate bytes in memory."""
        return _IN_MEMORY * self.size

    @cached_property
    def columns(self) -> dict[str, int]:
        """Numbers of the top-level columns."""
        root = self.types[0]
        return dict(zip(root.names, root.children, strict=True))

    def below(self, column: int) -> range:
        """Return the numbers of a column and its parts.

        They are consecutive.
        """
        last = column
        while self.types[last].children:
            last = self.types[last].children[-1]
        return range(column, last + 1)


def _type(node: OrcMessage) -> OrcType:
    kind = OrcKind(integer(node, 1))
    names = tuple(name.decode() for name in texts(node, 3))
    orc_type = OrcType(kind, tuple(integers(node, 2)), names, integer(node, 5), integer(node, 6))
    if kind is OrcKind.UNION:
        raise ValueError("ORC type UNION is not supported")
    if kind is OrcKind.STRUCT and len(names) != len(orc_type.children):
        raise ValueError("a struct has another number of names than of fields")
    if kind is not OrcKind.STRUCT and len(orc_type.children) != _CHILDREN.get(kind, 0):
        raise ValueError(f"a {kind.name} has {len(orc_type.children)} parts")
    if kind is OrcKind.DECIMAL and not (1 <= orc_type.precision <= _MOST_DIGITS and orc_type.scale <= orc_type.precision):
        raise ValueError(f"DECIMAL({orc_type.precision}, {orc_type.scale}) is not a valid type")
    return orc_type


def _check_tree(types: Sequence[OrcType]) -> None:
    """Check that types are a tree numbered in pre-order.

    Raises:
        ValueError: They are not.
    """
    if not types or types[0].kind is not OrcKind.STRUCT:
        raise ValueError("the root type is not a struct")
    if len({*types[0].names}) != len(types[0].names):
        raise ValueError("two columns have the same name")
    following = 0
    waiting = [(0, 0)]
    while waiting:
        number, depth = waiting.pop()
        if number != following or depth > _MOST_DEPTH:
            raise ValueError("the types are not a tree")
        following += 1
        waiting += [(child, depth + 1) for child in reversed(types[number].children)]
        if number >= len(types):
            raise ValueError("the types are not a tree")
    if following != len(types):
        raise ValueError("the types are not a tree")


def _footer_place(stripe: OrcMessage) -> tuple[int, int]:
    return sum(integer(stripe, part) for part in (1, 2, 3)), integer(stripe, 4)


def _stripes(stripes: Sequence[OrcMessage], limit: int) -> Iterator[RowGroup]:
    first_row, end = 0, len(_MAGIC)
    for index, stripe in enumerate(stripes):
        offset, rows = integer(stripe, 1), integer(stripe, 5)
        size = sum(integer(stripe, part) for part in (2, 3, 4))
        if offset < end or offset + size > limit:
            raise ValueError(f"stripe {index} exceeds the file, or overlaps another stripe")
        yield RowGroup(index, first_row, rows, size)
        first_row, end = first_row + rows, offset + size


def with_parts(array: Any, change: Callable[[Any, int], Any]) -> Any:
    """Apply ``change`` to each part of a nested array.

    ``change`` receives the part of the row, list or map, and its position. Parts must keep their types.
    """
    kind = array.type
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        parts = [change(array.field(index), index) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=nulls)
    offsets = pa.array(array.offsets.to_numpy())  # a copy: Arrow accepts no null mask together with sliced offsets
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(offsets, change(array.keys, 0), change(array.items, 1), type=kind, mask=nulls)
    return pa.ListArray.from_arrays(offsets, change(array.values, 0), type=kind, mask=nulls)
