"""Writer of deletion vectors (Paimon's ``DeletionVectorIndexFileWriter``)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyroaring import BitMap

from lsm.deletion_vectors.reader import MAGIC_32, MAGIC_64, VECTOR_FILE_VERSION, VECTOR_FRAME
from manifest.entry.index_manifest import DeletionVectorRange, IndexFile
from manifest.io.paths import FileNames
from manifest.store import FileStore

_VERSION = bytes([VECTOR_FILE_VERSION])


def encode_deletion_vector(rows: BitMap, *, bits64: bool = False) -> bytes:
    """Encode a data file's deleted positions.

    A record is: size, magic, bitmap, checksum.

    >>> encode_deletion_vector(BitMap([3, 4, 5])).hex()
    '0000001a5e43f2d03a300000010000000000020010000000030004000500238d0859'
    """
    runs = rows.copy()
    runs.run_optimize()
    bitmap = runs.serialize()
    if bits64:  # one bitmap, of the positions with high bits 0
        bitmap = (1).to_bytes(8, "little") + bytes(4) + bitmap
    body = (MAGIC_64 if bits64 else MAGIC_32) + bitmap
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class DeletionVectorWriter:
    """Writer of the deletion-vector files of one bucket.

    ``target_size`` is the size in bytes that starts a new file. None: tables with buckets, which have one file per bucket.
    """

    store: FileStore
    partition: bytes
    bucket: int
    names: FileNames
    target_size: int | None = None

    def write(self, vectors: Mapping[str, BitMap]) -> list[IndexFile]:
        """Write ``vectors`` to durable index files.

        ``vectors`` maps data files to non-empty deleted positions. On failure all new files are deleted.
        """
        index_files: list[IndexFile] = []
        try:
            for data, ranges in self._pack(vectors):
                name = self.names.next()
                index_files.append(IndexFile(file_name=name, file_size=len(data), row_count=len(ranges), vectors=tuple(ranges)))
                self.store.file_io.write(self.path(name), data)
        except BaseException:
            for file in index_files:
                with suppress(OSError):  # leaves at most an orphan file; the first error is raised
                    self.store.file_io.delete(self.path(file.file_name))
            raise
        return index_files

    def path(self, name: str, external: str | None = None) -> str:
        """Return the path of an index file of the bucket."""
        return self.store.paths.index(name, self.store.partition.decode(self.partition), self.bucket, external)

    def _pack(self, vectors: Mapping[str, BitMap]) -> Iterator[tuple[bytes, list[DeletionVectorRange]]]:
        bits64 = self.store.options.deletion_vectors_bitmap64
        data, ranges = bytearray(_VERSION), list[DeletionVectorRange]()
        for name, rows in vectors.items():
            record = encode_deletion_vector(rows, bits64=bits64)
            # the length of the 64-bit format includes the size field and the checksum
            length = len(record) if bits64 else len(record) - VECTOR_FRAME
            ranges.append(DeletionVectorRange(data_file=name, offset=len(data), length=length, cardinality=len(rows)))
            data += record
            if self.target_size is not None and len(data) >= self.target_size:
                yield bytes(data), ranges
                data, ranges = bytearray(_VERSION), []
        if ranges:
            yield bytes(data), ranges
