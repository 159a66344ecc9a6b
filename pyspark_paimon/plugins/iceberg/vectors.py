"""Deletion vectors for readers of Iceberg: blobs of Puffin files.

A blob is a record of Paimon's 64-bit format. Paimon's index files have no footer, which readers want, so the records are copied.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fileindex.rowset.roaring import deserialize
from manifest.entry.index_manifest import DELETION_VECTORS, DeletionVectorRange
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile

POSITION_DELETES: Final = 1
_MAGIC = b"PFA1"
_SIZE, _CRC = 4, 4
_MAGIC_32, _MAGIC_64 = bytes.fromhex("5e43f2d0"), bytes.fromhex("d1d33964")


@dataclass(frozen=True, slots=True)
class VectorSource:
    """Where Paimon stores the deletion vector of a data file.

    Args:
        partition: Serialised partition of the data file.
        index_file: Path of the index file.
        location: Position of the record.
    """

    partition: bytes
    index_file: str
    location: DeletionVectorRange


@dataclass(frozen=True, slots=True)
class Blob:
    """The vector of one data file in a Puffin file.

    Args:
        data_file: Path of the data file as metadata has it.
        cardinality: Number of deleted rows.
        data: The record.
    """

    data_file: str
    cardinality: int
    data: bytes


def vector_sources(store: FileStore, snapshot: Snapshot) -> dict[str, VectorSource]:
    """Return the vectors of a snapshot by the path of their data file."""
    source_by_file: dict[str, VectorSource] = {}
    for entry in store.index_entries(snapshot):
        if entry.index_type != DELETION_VECTORS:
            continue
        values = store.partition.decode(entry.partition)
        path = store.paths.index(entry.file_name, values, entry.bucket, entry.external_path)
        for location in entry.vectors or ():
            data_file = store.paths.data_file(values, entry.bucket, location.data_file)
            source_by_file[data_file] = VectorSource(entry.partition, path, location)
    return source_by_file


def read_blob(store: FileStore, source: VectorSource, data_file: str) -> Blob:
    """Read a vector as a blob of Iceberg. Raises ``CorruptFile``."""
    location, ranges = source.location, store.file_io.open_ranges(source.index_file)
    record = ranges.read(location.offset, location.length)
    if record[_SIZE : _SIZE + 4] == _MAGIC_32:  # this format's length excludes the size field and the checksum
        record = ranges.read(location.offset, location.length + _SIZE + _CRC)
    body = record[_SIZE:-_CRC]
    if int.from_bytes(record[:_SIZE], "big") != len(body) or zlib.crc32(body) != int.from_bytes(record[-_CRC:], "big"):
        raise CorruptFile(source.index_file, f"the deletion vector at byte {location.offset} is damaged")
    if body[:4] == _MAGIC_32:
        body = _MAGIC_64 + (1).to_bytes(8, "little") + bytes(4) + body[4:]  # one bitmap, of the positions with high bits 0
        record = len(body).to_bytes(_SIZE, "big") + body + zlib.crc32(body).to_bytes(_CRC, "big")
    elif body[:4] != _MAGIC_64:
        raise CorruptFile(source.index_file, f"the deletion vector at byte {location.offset} has an unknown format")
    cardinality = location.cardinality
    return Blob(data_file, len(deserialize(body[16:])[0]) if cardinality is None else cardinality, record)


def puffin_file(blobs: Sequence[Blob], snapshot_id: int) -> tuple[bytes, list[int]]:
    """Return a Puffin file and the offsets of its blobs.

    >>> data, offsets = puffin_file([Blob("a.parquet", 1, b"1234")], 7)
    >>> offsets, data[:8], data[-4:]
    ([4], b'PFA11234', b'PFA1')
    """
    data, offsets, listed = bytearray(_MAGIC), list[int](), list[dict[str, object]]()
    for blob in blobs:
        offsets.append(len(data))
        listed.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": snapshot_id,
                "sequence-number": snapshot_id,
                "offset": len(data),
                "length": len(blob.data),
                "properties": {"referenced-data-file": blob.data_file, "cardinality": str(blob.cardinality)},
            }
        )
        data += blob.data
    payload = json.dumps({"blobs": listed, "properties": {"created-by": "pyspark-paimon"}}).encode()
    data += _MAGIC + payload + len(payload).to_bytes(4, "little") + bytes(4) + _MAGIC
    return bytes(data), offsets
