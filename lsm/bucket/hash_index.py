"""HASH index files of dynamic buckets: the hashes of the keys that live in a bucket (Paimon's ``HashIndexFile``)."""

from __future__ import annotations

import numpy as np

from fileindex.base.arrays import Int32s
from fileindex.base.errors import CorruptFile
from manifest.entry.index_manifest import IndexFile, IndexManifestEntry
from manifest.io.paths import FileNames
from manifest.store import FileStore

_ON_DISK = np.dtype(">i4")


def read_hashes(store: FileStore, entry: IndexManifestEntry) -> Int32s:
    """The hashes of an index file, in no order: big-endian int32, nothing else.

    Raises:
        CorruptFile: The file is missing or not as long as the index manifest says.
    """
    path = store.paths.index(entry.file_name, store.partition.decode(entry.partition), entry.bucket, entry.external_path)
    try:
        data = store.file_io.read(path)
    except FileNotFoundError:
        raise CorruptFile(path, "is missing, but the index manifest names it") from None
    if len(data) != entry.file_size or len(data) != entry.row_count * _ON_DISK.itemsize:
        raise CorruptFile(path, f"has {len(data)} bytes for {entry.row_count} hashes; the index manifest says {entry.file_size}")
    hashes: Int32s = np.frombuffer(data, _ON_DISK).astype(np.int32)
    return hashes


def write_hashes(store: FileStore, names: FileNames, partition: bytes, bucket: int, hashes: Int32s) -> IndexFile:
    """A new index file with all hashes of a bucket.

    The hashes of Paimon's keys 0 to 4 take 20 bytes:

    >>> np.array([-300363099, 1465514398], _ON_DISK).tobytes().hex(" ", 4)
    'ee18d2a5 5759f99e'
    """
    data = hashes.astype(_ON_DISK).tobytes()
    name = names.next()
    store.file_io.write(store.paths.index(name, store.partition.decode(partition), bucket), data)
    return IndexFile(file_name=name, file_size=len(data), row_count=len(hashes))


__all__ = ["read_hashes", "write_hashes"]
