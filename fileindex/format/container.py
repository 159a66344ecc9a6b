"""Index container of one data file.

It stores all index payloads behind one header, in a ``.index`` file or inside a manifest entry. Layout as in Paimon's ``FileIndexFormat``:
magic, version, header length, then per column its name and per index its type, offset and length. Numbers are big endian,
names are in Java's modified UTF-8. Offset -1 marks an empty index, which was built from no values.

Side files have checksums. Without them, a flipped bit of a payload could make a filter miss rows. Paimon's format has no checksums, but its readers ignore
extra bytes after the header's entries. There we store a magic number, the checksum of the header, and one for every block
of the body. A query still reads only the blocks that it needs. Containers in manifests need none: manifests have checksums.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from pyroaring import BitMap

from fileindex.format.int_range import MAX_INT, check_size
from fileindex.keys.modified_utf import decode_utf, encode_utf
from fileindex.rowset.roaring import bytes_in_memory, deserialize
from paimon_base.errors import CorruptIndex

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
        checksum_offset = len(_MARK)
        if _CRC.unpack_from(redundant, checksum_offset) != (_header_checksum(name, header),):
            raise CorruptIndex("the header of an index container does not match its checksum")
        return cls(start, end, redundant[checksum_offset + _CRC.size :])

    def read(self, offset: int, length: int, read: Callable[[int, int], bytes]) -> bytes:
        """Return verified bytes of the container.

        Reads the whole blocks that contain them. Raises ``CorruptIndex`` on a mismatch.
        """
        first = (offset - self.start) // _BLOCK
        block_start = self.start + first * _BLOCK
        end = min(self.end, self.start + -(-(offset + length - self.start) // _BLOCK) * _BLOCK)
        data = read(block_start, end - block_start)
        sums = _sums(data)
        if sums != list(struct.unpack_from(f">{len(sums)}I", self.sums, first * _CRC.size)):
            raise CorruptIndex("a block of an index container does not match its checksum")
        return data[offset - block_start : offset - block_start + length]


def _sums(data: bytes) -> list[int]:
    crc32, view = zlib.crc32, memoryview(data)
    return [crc32(view[block_start : block_start + _BLOCK]) for block_start in range(0, len(data), _BLOCK)]


def _header_checksum(name: str, header: bytes) -> int:
    return zlib.crc32(header, zlib.crc32(name.encode()))


T = TypeVar("T")
CONTAINER_MAGIC = 1493475289347502
CONTAINER_VERSION = 1
_FIXED = struct.Struct(">qii")
_ENTRY_IN_MEMORY = 300
ROW_BLOCKS = "bloom-filter-blocks"
"""Our own index type (``format.row_blocks``)."""
NGRAMS = "ngram-filter"
"""Our own index type (``format.ngram_filter``)."""
OWN_SUFFIXES = {ROW_BLOCKS: "#row-blocks", NGRAMS: "#ngrams"}
"""Index types that Paimon does not have. They are stored under names that are not columns, so other engines ignore them."""
StoredIndex: TypeAlias = tuple[str, str, bytes | None]
"""Column (a name or ``map[key]``), index type and payload. None: the marker of an empty index."""


@dataclass(frozen=True, slots=True)
class ContainerEntry:
    """One index of a container.

    ``column`` is a column name or ``map[key]``. ``start`` is -1 for the marker of an empty index.
    """

    column: str
    index_type: str
    start: int
    length: int

    @property
    def is_empty(self) -> bool:
        """True for the marker of an empty index."""
        return self.start < 0


def stored_name(column: str, index_type: str) -> str:
    """Return the name under which a column's index is stored.

    >>> stored_name("a", "bitmap"), stored_name("a", ROW_BLOCKS)
    ('a', 'a#row-blocks')
    """
    return column + OWN_SUFFIXES.get(index_type, "")


def worth_storing(payloads: Sequence[StoredIndex], threshold: int) -> list[StoredIndex]:
    """Return the indexes to store.

    Row blocks are dropped if the container fits the manifest, up to ``threshold`` bytes, only without them.

    >>> indexes = [("a", "bloom-filter", b"xyz"), ("a", "bloom-filter-blocks", bytes(500))]
    >>> [len(worth_storing(indexes, threshold)) for threshold in (50, 500, 1000)]
    [2, 1, 2]
    """
    without_blocks = [index for index in payloads if index[1] != ROW_BLOCKS]
    return without_blocks if container_size(without_blocks) <= threshold < container_size(payloads) else list(payloads)


def container_size(payloads: Sequence[StoredIndex]) -> int:
    """Return the container's bytes, without checksums.

    Raises as ``write_index_container``.

    >>> container_size([("a", "bitmap", b"xyz")]) == len(write_index_container([("a", "bitmap", b"xyz")]))
    True
    """
    return _head_length(_by_column(payloads)) + _body_length(payloads)


def write_index_container(payloads: Sequence[StoredIndex], name: str | None = None) -> bytes:
    """Return the container of the indexes, in their order.

    With ``name``, the name of its side file, the container has checksums.

    Raises:
        OverflowError: A name exceeds 65535 bytes, or the container 2^31-1.

    >>> write_index_container([]).hex()
    '00054e4ed01a35ae00000001000000180000000000000000'
    """
    columns = _by_column(payloads)
    room = 0 if name is None else checksums_size(_body_length(payloads))
    head_length = _head_length(columns) + room
    head = [_FIXED.pack(CONTAINER_MAGIC, CONTAINER_VERSION, head_length), struct.pack(">i", len(columns))]
    body: list[bytes] = []
    start = head_length
    for column, indexes in columns.items():
        head += [column, struct.pack(">i", len(indexes))]
        for type_name, payload in indexes:
            if payload is None:
                head += [type_name, struct.pack(">ii", -1, 0)]
                continue
            head += [type_name, struct.pack(">ii", min(start, MAX_INT), len(payload))]
            body.append(payload)
            start += len(payload)
    check_size("an index container", start)
    header, content = b"".join(head), b"".join(body)
    return b"".join([header, struct.pack(">i", room), b"" if name is None else checksums_of(name, header, content), content])


def _by_column(payloads: Sequence[StoredIndex]) -> dict[bytes, list[tuple[bytes, bytes | None]]]:
    """Return encoded types and payloads by encoded column, in order."""
    columns: dict[bytes, list[tuple[bytes, bytes | None]]] = {}
    for column, index_type, payload in payloads:
        columns.setdefault(encode_utf(stored_name(column, index_type)), []).append((encode_utf(index_type), payload))
    return columns


def _head_length(columns: dict[bytes, list[tuple[bytes, bytes | None]]]) -> int:
    """Return the bytes of the header, without checksums."""
    of_types = sum(len(type_name) + 8 for indexes in columns.values() for type_name, _ in indexes)
    return _FIXED.size + 8 + sum(len(column) + 4 for column in columns) + of_types


def _body_length(payloads: Sequence[StoredIndex]) -> int:
    return sum(len(payload or b"") for _, _, payload in payloads)


@dataclass(frozen=True, slots=True)
class ContainerHeader:
    """Indexes of a container, and the checksums of its blocks.

    Of a repeated (column, type) only the last entry is kept. Without checksums, ``checksums`` has no value (None).
    """

    entries: tuple[ContainerEntry, ...]
    checksums: BlockChecksums | None

    @property
    def weight(self) -> int:
        """Approximate bytes in memory."""
        return _ENTRY_IN_MEMORY * (1 + len(self.entries)) + (0 if self.checksums is None else len(self.checksums.sums))


class PartCache(Protocol):
    """Cache of a container's parts.

    ``make`` reads a part, ``weight`` returns its bytes in memory. ``lesser`` parts may be evicted first.
    """

    def __call__(self, part: Hashable, make: Callable[[], T], weight: Callable[[T], int], *, lesser: bool = False) -> T:
        """Return the cached part, or the result of ``make``."""


def uncached(part: Hashable, make: Callable[[], T], weight: Callable[[T], int], *, lesser: bool = False) -> T:  # noqa: ARG001
    """Return the result of ``make``."""
    return make()


class ContainerReader:
    """Reader of a container, by byte ranges.

    It reads the header once, when first needed, and only the parts of payloads that a query needs.

    Args:
        read: ``read(offset, length)`` returns that part of the container.
        size: Bytes of the container.
        name: Name of its side file.
        hold: Cache of the header and row sets. Do not modify the returned objects.

    >>> reader = ContainerReader.of(write_index_container([("a", "bitmap", b"xyz"), ("m[k]", "bsi", None)]))
    >>> [(entry.column, entry.index_type, entry.length, entry.is_empty) for entry in reader.entries()]
    [('a', 'bitmap', 3, False), ('m[k]', 'bsi', 0, True)]
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        name: str = "",
        hold: PartCache = uncached,
    ) -> None:
        self._read = read
        self._name = name
        self._hold = hold
        self._header: ContainerHeader | None = None
        self.size = size
        self.bytes_read = 0

    @classmethod
    def of(cls, data: bytes, name: str = "") -> ContainerReader:
        """Return a reader of a container in memory."""
        return cls(lambda offset, length: data[offset : offset + length], len(data), name)

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes of the container.

        Raises CorruptIndex if they lie outside.
        """
        if offset < 0 or length < 0 or offset + length > self.size:
            raise CorruptIndex(f"bytes {offset}+{length} lie outside an index container of {self.size} bytes")
        if self._header is not None and self._header.checksums is not None and length:
            return self._header.checksums.read(offset, length, self._fetch)
        return self._fetch(offset, length)

    def _fetch(self, offset: int, length: int) -> bytes:
        data = self._read(offset, length)
        self.bytes_read += len(data)
        if len(data) != length:
            raise CorruptIndex(f"an index container ends at byte {offset + len(data)} instead of {self.size}")
        return data

    def entries(self) -> tuple[ContainerEntry, ...]:
        """Return all indexes in header order.

        Of a repeated (column, type) only the last.

        Raises:
            CorruptIndex: Wrong magic, unknown version, a malformed header, or payloads that do not fill the rest.
        """
        if self._header is None:
            self._header = self._hold("header", self._read_header, lambda header: header.weight)
        return self._header.entries

    def _read_header(self) -> ContainerHeader:
        fixed = self.read(0, _FIXED.size)
        magic, version, head_length = _FIXED.unpack(fixed)
        if magic != CONTAINER_MAGIC:
            raise CorruptIndex("the bytes are not an index container: wrong magic number")
        if version != CONTAINER_VERSION:
            raise CorruptIndex(f"index container version {version} is unknown; only {CONTAINER_VERSION} is supported")
        header = _Header(self.read(_FIXED.size, head_length - _FIXED.size))
        entries = list(_parse(header))
        entries_end, redundant = header.end()
        _check_extents(entries, head_length, self.size)
        checksums = BlockChecksums.of(redundant, self._name, fixed + entries_end, head_length, self.size)
        return ContainerHeader(tuple({(entry.column, entry.index_type): entry for entry in entries}.values()), checksums)

    def of_column(self, column: str) -> tuple[ContainerEntry, ...]:
        """Return the indexes of a column (``name`` or ``map[key]``)."""
        return tuple(entry for entry in self.entries() if entry.column == column)

    def payload(self, entry: ContainerEntry) -> Payload:
        """Return the payload of one index.

        Raises CorruptIndex if it lies outside the container.
        """
        if entry.start < 0 or entry.length < 0 or entry.start + entry.length > self.size:
            raise CorruptIndex(f"the {entry.index_type} of '{entry.column}' lies outside its container")
        return Payload(self.read, entry.start, entry.length, self._hold)


class Payload:
    """Bytes of one index.

    A small payload is fetched whole at the first read. Of a large one only the requested ranges are read.
    """

    WHOLE = 16 * 1024

    def __init__(self, read: Callable[[int, int], bytes], start: int, length: int, hold: PartCache = uncached) -> None:
        self._read_container = read
        self._hold = hold
        self._start = start
        self.length = length
        self._whole: bytes | None = None

    @classmethod
    def of(cls, data: bytes) -> Payload:
        """Return a payload in memory."""
        return cls(ContainerReader.of(data).read, 0, len(data))

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes, starting at ``offset`` of the payload.

        Raises CorruptIndex if the payload is shorter.
        """
        if offset < 0 or length < 0 or offset + length > self.length:
            raise CorruptIndex(f"bytes {offset}+{length} lie outside an index of {self.length} bytes")
        if self.length <= self.WHOLE or self._whole is not None:
            return self.whole()[offset : offset + length]
        return self._read_container(self._start + offset, length)

    def whole(self) -> bytes:
        """Return all bytes, and cache them."""
        if self._whole is None:
            read = partial(self._read_container, self._start, self.length)
            self._whole = self._hold(("payload", self._start), read, len, lesser=True) if self.length <= self.WHOLE else read()
        return self._whole

    def row_set(self, offset: int, length: int | None, row_count: int) -> BitMap:
        """Return the row set at ``offset``.

        ``length`` is its number of bytes. None: until its end. Do not modify the set: it is cached.

        Raises:
            CorruptIndex: It is malformed, has another length, or contains rows beyond ``row_count``.
        """
        make = partial(self._row_set, offset, length, row_count)
        return self._hold((self._start + offset, length), make, bytes_in_memory, lesser=True)

    def _row_set(self, offset: int, length: int | None, row_count: int) -> BitMap:
        rows, used = deserialize(self.read(offset, self.length - offset if length is None else length))
        if length not in {None, used}:
            raise CorruptIndex(f"a row set has {used} bytes instead of {length}")
        if rows and rows.max() >= row_count:
            raise CorruptIndex(f"a row set contains row {rows.max()}, but the file has {row_count} rows")
        return rows


class _Header:
    """Cursor over the header's bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def end(self) -> tuple[bytes, bytes]:
        """Return the entries' bytes, and the bytes after them.

        Raises CorruptIndex if the header has another length than it states.
        """
        entries = self._data[: self._at]
        redundant = self._take(max(0, self.number()))
        if self._at != len(self._data):
            raise CorruptIndex("the header of an index container is longer than its entries")
        return entries, redundant

    def utf(self) -> str:
        return decode_utf(self._take(int.from_bytes(self._take(2), "big")))

    def _take(self, length: int) -> bytes:
        data = self._data[self._at : self._at + length]
        if len(data) != length:
            raise CorruptIndex("the header of an index container is truncated")
        self._at += length
        return data


def _check_extents(entries: Iterable[ContainerEntry], start: int, size: int) -> None:
    """Raise ``CorruptIndex`` unless the payloads fill the container.

    They must follow one another from ``start`` to the end, in any order.
    """
    # Without checksums, nothing else would reveal inserted or lost bytes.
    for first, length in sorted({(entry.start, entry.length) for entry in entries if not entry.is_empty}):
        if length < 0 or first != start:
            raise CorruptIndex(f"a payload of {length} bytes lies at byte {first} of an index container instead of {start}")
        start += length
    if start != size:
        raise CorruptIndex(f"an index container of {size} bytes has payloads up to byte {start}")


def _parse(header: _Header) -> Iterable[ContainerEntry]:
    for _ in range(header.number()):
        column = header.utf()
        for _ in range(header.number()):
            index_type = header.utf()
            name = column.removesuffix(OWN_SUFFIXES.get(index_type, ""))
            yield ContainerEntry(name, index_type, header.number(), header.number())
