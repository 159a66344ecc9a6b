"""Hints for paths without a table, often slightly wrong ones."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress

from fileindex.base.errors import PaimonError, did_you_mean
from manifest.io.file_io import FileIO

_NAMED = 8
_LEVELS = 3


def describe_path(file_io: FileIO, path: str) -> str:
    """Return a hint about a path without a table.

    The path may be a file, a part of a table, a directory of tables, or a misspelt table name. Otherwise "". Checks local paths only, where
    access is cheap.
    """
    if not path.startswith("/"):
        return ""
    with suppress(OSError, PaimonError):
        if file_io.exists(path) and not file_io.is_directory(path):
            return "a file is here; a table is a directory"
        above = path
        for _ in range(_LEVELS):
            above = posixpath.dirname(above)
            if _is_table(file_io, above):
                return f"this is inside the table {above}"
        if below := sorted(_tables(file_io, path)):
            return f"this is a directory of tables: {', '.join(below[:_NAMED])}"
        if near := did_you_mean(posixpath.basename(path), _tables(file_io, posixpath.dirname(path))):
            return f"there is no schema file{near}"
    return ""


def _tables(file_io: FileIO, directory: str) -> Iterator[str]:
    if file_io.is_directory(directory):
        yield from (found.name for found in file_io.list(directory) if found.is_dir and _is_table(file_io, f"{directory}/{found.name}"))


def _is_table(file_io: FileIO, path: str) -> bool:
    return file_io.exists(f"{path}/schema/schema-0")


__all__ = ["describe_path"]
