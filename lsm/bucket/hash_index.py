"""HASH index files of dynamic buckets: the hashes of the keys that live in a bucket (Paimon's ``HashIndexFile``).

Other engines take every four bytes of such a file for a hash, so that nothing else can stand in it; but one wrong hash sends a key to a
second bucket, and its rows are there twice. So the names that we give end with a checksum of the content, ``-crc32-2cf0ce4b``: a name is
only ever taken from the index manifest, which has a checksum itself. Of other engines' files the length is all that can be checked.
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
_SEALED = re.compile(r"-crc32-([0-9a-f]{8})\Z")


def read_hashes(store: FileStore, entry: IndexManifestEntry) -> Int32s:
    """The hashes of an index file, in no order: big-endian int32, nothing else.

    Raises:
        CorruptFile: The file is missing, not as long as the index manifest says, or not what its name has a checksum of.
    """
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    try:
        data = store.file_io.read(path)
    except FileNotFoundError:
        raise CorruptFile(path, "is missing, but the index manifest names it") from None
    if len(data) != entry.file_size or len(data) != entry.row_count * _ON_DISK.itemsize:
        raise CorruptFile(path, f"has {len(data)} bytes for {entry.row_count} hashes; the index manifest says {entry.file_size}")
    said = _SEALED.search(entry.file_name)
    if said is not None and int(said[1], 16) != zlib.crc32(data):
        raise CorruptFile(path, "its content is not what was written: the checksum in its name is another")
    hashes: Int32s = np.frombuffer(data, _ON_DISK).astype(np.int32)
    return hashes


def write_hashes(store: FileStore, names: FileNames, partition: bytes, bucket: int, hashes: Int32s) -> IndexFile:
    """A new index file with all hashes of a bucket.

    The hashes of Paimon's keys 0 to 4 take 20 bytes:

    >>> np.array([-300363099, 1465514398], _ON_DISK).tobytes().hex(" ", 4)
    'ee18d2a5 5759f99e'
    """
    data = hashes.astype(_ON_DISK).tobytes()
    name = f"{names.next()}-crc32-{zlib.crc32(data):08x}"
    store.file_io.write(store.paths.index(name, store.partition.decode(partition), bucket), data)
    return IndexFile(file_name=name, file_size=len(data), row_count=len(hashes))


__all__ = ["read_hashes", "write_hashes"]
