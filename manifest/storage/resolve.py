"""Which store a path is on: the one door to files for everything that opens a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from fileindex.base.errors import InvalidArgument
from manifest.io.file_io import FileIO, LocalFileIO
from manifest.storage.allowed_roots import guarded
from manifest.storage.object_store import ObjectStoreFileIO
from manifest.storage.schemes import object_place, scheme_of
from manifest.storage.session_options import session_options
from manifest.storage.storage_options import StorageOptions


def file_io_for(
    path: str | os.PathLike[str], given: FileIO | None = None, storage_options: Mapping[str, Any] | StorageOptions | None = None
) -> tuple[FileIO, str]:
    """The store of ``path`` (``given`` stands in for it) and the path as that store spells it (absolute, or a whole URI).

    Without ``storage_options`` those count that the client of this process' session gave for the place, if there are any. Where this
    process allows certain directories only, the store keeps to them; see ``allowed_roots``. Raises ``UnsupportedOption``
    for a scheme without a store here, or an option that no store has, ``InvalidArgument`` for what is no path.

    >>> file_io_for("file:///warehouse/t")
    (LocalFileIO(), '/warehouse/t')
    >>> file_io_for("s3://bucket/warehouse/t/")
    (ObjectStoreFileIO(StorageOptions()), 's3://bucket/warehouse/t')
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"a path is text or a Path, not {path!r}")
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InvalidArgument("a table path is empty" if not text else "a table path holds a zero byte")
    options = storage_options if isinstance(storage_options, StorageOptions) else StorageOptions.of(storage_options)
    scheme = scheme_of(text)
    if scheme is None or scheme == "file":
        text = os.path.expanduser(text) if scheme is None else "/" + text.partition(":")[2].lstrip("/")  # noqa: PTH111  # as below
        return guarded(LocalFileIO() if given is None else given), os.path.abspath(text)  # noqa: PTH100  # paths are strings here
    place = object_place(text)
    if storage_options is None:
        options = session_options(place) or options
    return guarded(ObjectStoreFileIO(options) if given is None else given), place.uri


__all__ = ["file_io_for"]
