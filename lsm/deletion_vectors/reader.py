"""Deletion vectors: which rows of a data file are dead, by their position in the file (Paimon's ``DeletionVector``).

A deletion-vector file is a version byte and one record per data file; the index manifest says where each record lies. Both
flavours are read: ``BitmapDeletionVector`` (32-bit positions) and ``Bitmap64DeletionVector``, also side by side in one file.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pyroaring import BitMap

from fileindex.base.corrupt import CorruptIndex
from fileindex.base.errors import CorruptFile
from fileindex.rowset.roaring import deserialize
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import FileIO

VECTOR_FILE_VERSION = 1
_SIZE_BYTES = 4
_CRC_BYTES = 4
_MAGIC_BYTES = 4
VECTOR_FRAME = _SIZE_BYTES + _CRC_BYTES
MAGIC_32 = bytes.fromhex("5e43f2d0")
MAGIC_64 = bytes.fromhex("d1d33964")
_LEAST = _SIZE_BYTES + _MAGIC_BYTES


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Where the deletion vector of one data file lies: ``path``, ``offset`` and ``length`` as the index manifest gives them.

    ``cardinality`` is the number of dead rows, None if the writer did not record it.
    """

    path: str
    offset: int
    length: int
    cardinality: int | None = None


def read_deletion_vector(file_io: FileIO, file: DeletionFile) -> BitMap:
    """The dead positions of a data file.

    Raises:
        CorruptFile: the file is missing, or the record is not what its format promises (its checksum included).
        UnsupportedTable: positions beyond 2^32.
    """
    if file.length < _LEAST:
        raise CorruptFile(file.path, f"a deletion vector of {file.length} bytes")
    try:
        ranges = file_io.open_ranges(file.path)
        version = ranges.read(0, 1)[0]
        if version != VECTOR_FILE_VERSION:
            raise CorruptFile(file.path, f"deletion vectors of version {version}; {VECTOR_FILE_VERSION} is read")
        record = ranges.read(file.offset, file.length)
        if record[_SIZE_BYTES:_LEAST] == MAGIC_32:  # here the length leaves out the size field and the checksum
            record += ranges.read(file.offset + file.length, VECTOR_FRAME)
    except FileNotFoundError as error:
        raise CorruptFile(file.path, "the deletion-vector file is missing") from error
    try:
        rows = decode_deletion_vector(record)
    except CorruptIndex as error:
        raise CorruptFile(file.path, f"the deletion vector at byte {file.offset}: {error}") from error
    if file.cardinality is not None and file.cardinality != len(rows):
        raise CorruptFile(file.path, f"{len(rows)} dead rows at byte {file.offset} where the index manifest says {file.cardinality}")
    return rows


def dead_rows(file_io: FileIO, vector: DeletionFile | BitMap) -> BitMap:
    """The dead positions of a data file, read if they are not at hand. Raises as ``read_deletion_vector``."""
    return vector if isinstance(vector, BitMap) else read_deletion_vector(file_io, vector)


def decode_deletion_vector(record: bytes) -> BitMap:
    """The positions in a whole record: size, magic, bitmap, checksum.

    Raises:
        CorruptIndex: the record does not hold together.
        UnsupportedTable: positions beyond 2^32.

    >>> dump = "0000001a5e43f2d03a300000010000000000020010000000030004000500238d0859"
    >>> decode_deletion_vector(bytes.fromhex(dump))
    BitMap([3, 4, 5])
    """
    size = int.from_bytes(record[:_SIZE_BYTES], "big")
    if size != len(record) - VECTOR_FRAME:
        raise CorruptIndex(f"it says {size} bytes where it has {len(record) - VECTOR_FRAME}")
    body = record[_SIZE_BYTES:-_CRC_BYTES]
    if zlib.crc32(body) != int.from_bytes(record[-_CRC_BYTES:], "big"):
        raise CorruptIndex("wrong checksum")
    magic, bitmap = body[:_MAGIC_BYTES], body[_MAGIC_BYTES:]
    if magic == MAGIC_32:
        return deserialize(bitmap)[0]
    if magic == MAGIC_64:
        return _decode_64(bitmap)
    raise CorruptIndex(f"unknown magic {magic.hex()}")


def _decode_64(data: bytes) -> BitMap:
    """A count of bitmaps, then each one's high 32 bits and its low ones; gaps are empty bitmaps."""
    count = int.from_bytes(data[:8], "little")
    rows, at, previous = BitMap(), 8, -1
    for _ in range(count):
        high = int.from_bytes(data[at : at + 4], "little")
        if at + 4 > len(data) or high <= previous:
            raise CorruptIndex("its bitmaps end early, or are out of order")
        low, length = deserialize(data[at + 4 :])
        if low and high:
            raise UnsupportedTable("a deletion vector marks rows beyond 2^32 of one data file")
        rows |= low
        at, previous = at + 4 + length, high
    return rows


__all__ = [
    "MAGIC_32",
    "MAGIC_64",
    "VECTOR_FILE_VERSION",
    "VECTOR_FRAME",
    "DeletionFile",
    "dead_rows",
    "decode_deletion_vector",
    "read_deletion_vector",
]
