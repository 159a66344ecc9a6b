"""Which object stores Spark's own readers reach by themselves, because whoever runs the server says so.

Hadoop's file system for S3 has an endpoint and credentials of its own, in Spark's configuration, where nobody here sees them. So a
jar is no proof that both of us would read the same bucket: the server's environment names the scheme. Only a name of a file goes to
Spark, never a credential; where a client gave a session its own, our reader reads, for Spark's would need them in options that plans show.
"""

from __future__ import annotations

import os

from fileindex.base.errors import InvalidArgument
from manifest.io.file_io import FileIO
from manifest.storage.object_store import ObjectStoreFileIO
from manifest.storage.schemes import scheme_of

SPARK_STORES = "PYSPARK_PAIMON_SPARK_STORES"
"""Of a server's environment: ``s3a`` where Spark has ``hadoop-aws`` and reaches by it what our reader reaches by the environment."""
_SCHEMES = {"s3a": frozenset({"s3", "s3a"})}


def is_of_spark(file_io: FileIO, path: str) -> bool:
    """Whether Spark opens the very file at ``path`` that ``file_io`` does: a local one, or one of a store that it reaches itself.

    Raises ``InvalidArgument`` if the server's environment names another scheme.
    """
    if file_io.local_path(path) == path:
        return True
    named = {name for name in os.environ.get(SPARK_STORES, "").replace(",", " ").split() if name}
    if named - set(_SCHEMES):
        raise InvalidArgument(f"{SPARK_STORES} of the server's environment is 's3a' or nothing")
    known = {scheme for name in named for scheme in _SCHEMES[name]}
    return isinstance(file_io, ObjectStoreFileIO) and not file_io.options.values and scheme_of(path) in known


__all__ = ["SPARK_STORES", "is_of_spark"]
