"""Deletion vectors: deleted rows of a data file (Paimon's ``DeletionVector``).

Rows are positions in the file. A deletion-vector file has a version byte and one record per data file. The index manifest has the location of each
record. ``BitmapDeletionVector`` (32-bit positions) and ``Bitmap64DeletionVector`` are supported, also together in one file.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from fileindex.rowset.roaring import deserialize
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import FileIO
from paimon_base.errors import CorruptFile, CorruptIndex

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
    """Location of the deletion vector of one data file.

    ``path``, ``offset`` and ``length`` are as in the index manifest. ``cardinality`` is the number of deleted rows, None if not recorded.
    ``rows`` is the number of rows of the data file, None if unknown.
    """

    path: str
    offset: int
    length: int
    cardinality: int | None = None
    rows: int | None = field(default=None, compare=False)

    def within(self, data_file: str, rows: int) -> DeletionFile:
        """Return the location with the number of rows of its data file.

        Raises ``CorruptFile`` if the vector has more positions.
        """
        if self.cardinality is not None and not 0 <= self.cardinality <= rows:
            raise CorruptFile(
                self.path,
                f"the index manifest says {self.cardinality} deleted rows at byte {self.offset}, but data file {data_file} has {rows}",
            )
        return replace(self, rows=rows)


def read_deletion_vector(file_io: FileIO, file: DeletionFile) -> BitMap:
    """Read the deleted positions of a data file.

    Raises:
        CorruptFile: The file is missing, or the record is damaged (its checksum included).
        UnsupportedTable: A position is beyond 2^32.
    """
    if file.length < _LEAST:
        raise CorruptFile(file.path, f"a deletion vector has only {file.length} bytes")
    try:
        ranges = file_io.open_ranges(file.path)
        version = ranges.read(0, 1)[0]
        if version != VECTOR_FILE_VERSION:
            raise CorruptFile(file.path, f"deletion vectors have version {version}; supported is {VECTOR_FILE_VERSION}")
        record = ranges.read(file.offset, file.length)
        if record[_SIZE_BYTES:_LEAST] == MAGIC_32:  # this format's length excludes the size field and the checksum
            record += ranges.read(file.offset + file.length, VECTOR_FRAME)
    except FileNotFoundError as error:
        raise CorruptFile(file.path, "the deletion-vector file is missing") from error
    try:
        rows = decode_deletion_vector(record)
    except CorruptIndex as error:
        raise CorruptFile(file.path, f"the deletion vector at byte {file.offset}: {error}") from error
    if file.cardinality is not None and file.cardinality != len(rows):
        raise CorruptFile(file.path, f"{len(rows)} deleted rows at byte {file.offset}, but the index manifest says {file.cardinality}")
    if file.rows is not None and rows and rows.max() >= file.rows:
        raise CorruptFile(
            file.path, f"the deletion vector at byte {file.offset} marks row {rows.max()} of a data file with {file.rows} rows"
        )
    return rows


def dead_rows(file_io: FileIO, vector: DeletionFile | BitMap) -> BitMap:
    """Return the deleted positions of a data file.

    Reads them if ``vector`` is a location.

    Raises the errors of ``read_deletion_vector``.
    """
    return vector if isinstance(vector, BitMap) else read_deletion_vector(file_io, vector)


def decode_deletion_vector(record: bytes) -> BitMap:
    """Decode a whole record: size, magic, bitmap, checksum.

    Raises:
        CorruptIndex: The record is damaged.
        UnsupportedTable: A position is beyond 2^32.

    >>> dump = "0000001a5e43f2d03a300000010000000000020010000000030004000500238d0859"
    >>> decode_deletion_vector(bytes.fromhex(dump))
    BitMap([3, 4, 5])
    """
    size = int.from_bytes(record[:_SIZE_BYTES], "big")
    if size != len(record) - VECTOR_FRAME:
        raise CorruptIndex(f"the record declares {size} bytes but has {len(record) - VECTOR_FRAME}")
    body = record[_SIZE_BYTES:-_CRC_BYTES]
    if zlib.crc32(body) != int.from_bytes(record[-_CRC_BYTES:], "big"):
        raise CorruptIndex("the checksum does not match")
    magic, bitmap = body[:_MAGIC_BYTES], body[_MAGIC_BYTES:]
    if magic == MAGIC_32:
        return deserialize(bitmap)[0]
    if magic == MAGIC_64:
        return _decode_64(bitmap)
    raise CorruptIndex(f"unknown magic {magic.hex()}")


def _decode_64(data: bytes) -> BitMap:
    """Decode 64-bit bitmaps.

    The data is a count of bitmaps, then the high 32 bits and the low bitmap of each. Missing bitmaps are empty.
    """
    count = int.from_bytes(data[:8], "little")
    rows, offset, previous = BitMap(), 8, -1
    for _ in range(count):
        high = int.from_bytes(data[offset : offset + 4], "little")
        if offset + 4 > len(data) or high <= previous:
            raise CorruptIndex("the bitmaps end early, or are out of order")
        low, length = deserialize(data[offset + 4 :])
        if low and high:
            raise UnsupportedTable("a deletion vector marks rows beyond 2^32 of one data file")
        rows |= low
        offset, previous = offset + 4 + length, high
    return rows
