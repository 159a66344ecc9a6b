"""Files of one BLOB column.

Each value is framed and has a checksum. The lengths of all values are at the end.
A value is: magic (4 bytes), its bytes, the length of the whole frame (8, little-endian), CRC-32 of all before (4). The end is: the lengths as zigzag
varints of differences, -1 for null, then the size of these varints (4) and the version (1).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from manifest.entry.data_file import DataFileMeta
from manifest.io.file_io import FileIO
from manifest.io.output_file import OutputFile
from manifest.io.storage_errors import storage_errors
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s

_MAGIC = struct.pack("<i", 1481511375)
_VERSION = 1
_FRAME, _TAIL = 16, 5


def blob_batches(file_io: FileIO, path: str, file: DataFileMeta) -> Iterator[Any]:
    """Yield the values of a file as binary arrays.

    Each array has about 16 MiB, or one larger value.

    Raises:
        CorruptFile: The file is missing or damaged.
    """
    try:
        size = file_io.size(path)
    except FileNotFoundError as error:
        raise CorruptFile(path, "the data file is missing") from error
    lengths = _lengths(file_io, path, size)
    if size != file.file_size or lengths.size != file.row_count:
        raise CorruptFile(path, f"has {size} bytes and {lengths.size} values but its metadata says {file.file_size} and {file.row_count}")
    ends = np.cumsum(np.maximum(lengths, 0))
    row = 0
    while row < lengths.size:
        start = int(ends[row - 1]) if row else 0
        stop = max(int(np.searchsorted(ends, start + thresholds.blob_batch_bytes, side="right")), row + 1)
        stop = min(stop, row + thresholds.blob_batch_rows)
        content = file_io.read_range(path, start, int(ends[stop - 1]) - start)
        places = ((ends[row:stop] - start).tolist(), lengths[row:stop].tolist())
        yield pa.array([_value(content, end, length, path) for end, length in zip(*places, strict=True)], pa.binary())
        row = stop


class BlobFileWriter:
    """Writer of one file of a BLOB column.

    Call ``write`` any number of times, then ``close`` or ``abort``. Values are written one by one, as each has a checksum.
    """

    def __init__(self, file_io: FileIO, path: str) -> None:
        self.path = path
        self._output = OutputFile(file_io, path)
        self._lengths: list[int] = []

    @property
    def bytes_written(self) -> int:
        """Bytes of the values so far."""
        return self._output.size

    @property
    def row_count(self) -> int:
        """Number of values so far."""
        return len(self._lengths)

    def write(self, value: bytes | None) -> None:
        """Append a value."""
        if value is None:
            self._lengths.append(-1)
            return
        length = len(value) + _FRAME
        framed = b"".join([_MAGIC, value, struct.pack("<q", length)])
        with storage_errors(self.path):
            sink = self._output.open()
            sink.write(framed)
            sink.write(struct.pack("<I", zlib.crc32(framed)))
        self._lengths.append(length)

    def close(self) -> int:
        """Finish the file durably. Return its size in bytes."""
        differences = np.diff(np.array([0, *self._lengths], np.int64)).tolist()
        coded = b"".join(_varint(difference << 1 if difference >= 0 else (-difference << 1) - 1) for difference in differences)
        with storage_errors(self.path):
            self._output.open().write(coded + struct.pack("<iB", len(coded), _VERSION))
        return self._output.finish()

    def abort(self) -> None:
        """Delete the file. Never raises."""
        self._output.abort()


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _lengths(file_io: FileIO, path: str, size: int) -> Int64s:
    """Return the framed lengths of all values, -1 for null."""
    tail = file_io.read_range(path, max(size - _TAIL, 0), min(size, _TAIL))
    if len(tail) < _TAIL or tail[4] != _VERSION:
        raise CorruptFile(path, "does not end like a BLOB file")
    (length,) = struct.unpack("<i", tail[:4])
    if not 0 <= length <= size - _TAIL:
        raise CorruptFile(path, f"has an invalid size of lengths: {length} of {size} bytes")
    coded = np.frombuffer(file_io.read_range(path, size - _TAIL - length, length) if length else b"", np.uint8)
    last = coded < 0x80
    if coded.size and not last[-1]:
        raise CorruptFile(path, "has truncated lengths")
    number = np.concatenate([[0], np.cumsum(last)[:-1]]).astype(np.int64) if coded.size else np.zeros(0, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], last[:-1]])) if coded.size else np.zeros(0, np.int64)
    byte_index = np.arange(coded.size) - starts[number]
    if (byte_index > 9).any():
        raise CorruptFile(path, "has a length of more than 64 bits")
    zigzag = np.zeros(starts.size, np.uint64)
    np.bitwise_or.at(zigzag, number, (coded & 0x7F).astype(np.uint64) << (7 * byte_index).astype(np.uint64))
    lengths: Int64s = np.cumsum((zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64))
    framed = lengths[lengths >= 0]
    if (lengths < -1).any() or (framed < _FRAME).any() or framed.sum() != size - _TAIL - length:
        raise CorruptFile(path, "has lengths that do not fit its size")
    return lengths


def _value(content: bytes, end: int, length: int, path: str) -> bytes | None:
    """Return the value whose frame ends at ``end``."""
    if length < 0:
        return None
    framed = memoryview(content)[end - length : end]
    framed_length, checksum = struct.unpack("<qI", framed[-12:])
    if framed[:4] != _MAGIC or framed_length != length or zlib.crc32(framed[:-4]) != checksum:
        raise CorruptFile(path, "has a value whose frame or checksum is wrong")
    return bytes(framed[4:-12])
