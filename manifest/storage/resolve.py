"""Resolution of a path to its storage.

All code that opens a table uses it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from manifest.io.file_io import FileIO, LocalFileIO
from manifest.storage.allowed_roots import guard_file_io
from manifest.storage.schemes import StoreFamily, object_place, scheme_of
from manifest.storage.session_options import session_options
from manifest.storage.storage_options import StorageOptions
from paimon_base.errors import InvalidArgument
from paimon_base.plugins import plugin


def file_io_for(
    path: str | os.PathLike[str], user_io: FileIO | None = None, storage_options: Mapping[str, Any] | StorageOptions | None = None
) -> tuple[FileIO, str]:
    """Return the storage of ``path`` and its absolute path.

    On object stores, that path is a whole URI. If this process allows certain directories only, the storage is restricted to them (see
    ``allowed_roots``). Raises ``UnsupportedOption`` for an unsupported scheme or an unknown option, ``InvalidArgument`` for an invalid path.

    Args:
        path: Path of a table.
        user_io: Storage to use instead.
        storage_options: Options of the store. None: the options of this process's session for the path, if it has some.

    >>> file_io_for("file:///warehouse/t")
    (LocalFileIO(), '/warehouse/t')
    >>> file_io_for("s3://bucket/warehouse/t/")
    (ObjectStoreFileIO(StorageOptions()), 's3://bucket/warehouse/t')
    >>> file_io_for("hdfs://namenode:8020/warehouse/t")
    (HdfsFileIO(StorageOptions()), 'hdfs://namenode:8020/warehouse/t')
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"a path must be text or a Path, not {path!r}")
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InvalidArgument("a table path is empty" if not text else "a table path contains a zero byte")
    options = storage_options if isinstance(storage_options, StorageOptions) else StorageOptions.of(storage_options)
    scheme = scheme_of(text)
    if scheme is None or scheme == "file":
        text = os.path.expanduser(text) if scheme is None else "/" + text.partition(":")[2].lstrip("/")  # noqa: PTH111  # paths are strings
        return guard_file_io(LocalFileIO() if user_io is None else user_io), os.path.abspath(text)  # noqa: PTH100  # paths are strings
    location = object_place(text)
    if storage_options is None:
        options = session_options(location) or options
    if user_io is not None:
        return guard_file_io(user_io), location.uri
    if location.family is StoreFamily.HDFS:
        return guard_file_io(plugin("scheme", "hdfs")(options)), location.uri
    from manifest.storage.object_store import ObjectStoreFileIO  # noqa: PLC0415  # most processes use a disk

    return guard_file_io(ObjectStoreFileIO(options)), location.uri
