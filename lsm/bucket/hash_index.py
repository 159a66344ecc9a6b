"""HASH index files of dynamic buckets (Paimon's ``HashIndexFile``).

A file has the hashes of the keys in a bucket. Other engines read every four bytes as a hash, so the file cannot have a checksum
inside. But one wrong hash sends a key to a second bucket and duplicates its rows. So the names of our files end with a checksum of
the content, ``-crc32-2cf0ce4b``. Names are always read from the index manifest, which has a checksum itself. For files of other
engines only the length is checked.
"""

from __future__ import annotations

import re
import zlib

import numpy as np

from fileindex.base.arrays import Int32s
from fileindex.base.errors import CorruptFile
from manifest.entry.index_manifest import IndexFile, IndexManifestEntry
from manifest.io.paths import FileNames
from manifest.store import FileStore

_ON_DISK = np.dtype(">i4")
_CHECKSUM = re.compile(r"-crc32-([0-9a-f]{8})\Z")


def read_hashes(store: FileStore, entry: IndexManifestEntry) -> Int32s:
    """Read the unordered hashes of an index file.

    The file has big-endian int32 values only.

    Raises:
        CorruptFile: The file is missing, or its length or checksum does not match.
    """
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    try:
        data = store.file_io.read(path)
    except FileNotFoundError:
        raise CorruptFile(path, "is missing, but the index manifest names it") from None
    if len(data) != entry.file_size or len(data) != entry.row_count * _ON_DISK.itemsize:
        raise CorruptFile(path, f"has {len(data)} bytes for {entry.row_count} hashes; the index manifest says {entry.file_size}")
    checksum = _CHECKSUM.search(entry.file_name)
    if checksum is not None and int(checksum[1], 16) != zlib.crc32(data):
        raise CorruptFile(path, "the checksum of its content does not match the one in its name")
    hashes: Int32s = np.frombuffer(data, _ON_DISK).astype(np.int32)
    return hashes


def write_hashes(store: FileStore, names: FileNames, partition: bytes, bucket: int, hashes: Int32s) -> IndexFile:
    """Write a new index file with a bucket's hashes.

    >>> np.array([-300363099, 1465514398], _ON_DISK).tobytes().hex(" ", 4)
    'ee18d2a5 5759f99e'
    """
    data = hashes.astype(_ON_DISK).tobytes()
    name = f"{names.next()}-crc32-{zlib.crc32(data):08x}"
    store.file_io.write(store.paths.index(name, store.partition.decode(partition), bucket), data)
    return IndexFile(file_name=name, file_size=len(data), row_count=len(hashes))


__all__ = ["read_hashes", "write_hashes"]
