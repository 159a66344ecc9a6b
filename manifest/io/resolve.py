"""Which store a path is on: the one door to files for everything that opens a table."""

from __future__ import annotations

import os

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from manifest.io.allowed_roots import guarded
from manifest.io.file_io import FileIO, LocalFileIO


def file_io_for(path: str | os.PathLike[str], given: FileIO | None = None) -> tuple[FileIO, str]:
    """The store of ``path`` (``given`` stands in for it) and the path as that store spells it (absolute).

    Where this process allows certain directories only, the store keeps to them; see ``allowed_roots``. Raises ``UnsupportedOption``
    for a scheme without a store here, ``InvalidArgument`` for what is no path.

    >>> file_io_for("file:///warehouse/t")
    (LocalFileIO(), '/warehouse/t')
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"a path is text or a Path, not {path!r}")
    text = os.fspath(path)
    scheme, colon, rest = text.partition(":")
    if colon and scheme.isalnum() and scheme[0].isalpha() and rest.startswith("/"):
        if scheme.lower() != "file":
            raise UnsupportedOption("path", f"no file system is built in for '{scheme}:'; use a local path or 'file:'")
        text = "/" + rest.removeprefix("//").lstrip("/")
    if not text or "\0" in text:
        raise InvalidArgument("a table path is empty" if not text else "a table path holds a zero byte")
    return guarded(LocalFileIO() if given is None else given), os.path.abspath(text)  # noqa: PTH100  # paths are strings here


__all__ = ["file_io_for"]
