"""Directories that appear and go as a whole: by a rename where a storage has one, else by the order of their files."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from manifest.io.posix import temporary_name

CLAIM = ".claim"
"""A file in a directory that is made in order: it says that somebody makes it, or has made it."""


class Directories(Protocol):
    """Of a ``FileIO`` what is needed here."""

    def read(self, path: str) -> bytes: ...  # noqa: D102  # as there
    def exists(self, path: str) -> bool: ...  # noqa: D102  # as there
    def is_directory(self, path: str) -> bool: ...  # noqa: D102  # as there
    def write(self, path: str, data: bytes) -> None: ...  # noqa: D102  # as there
    def create_exclusive(self, path: str, data: bytes) -> bool: ...  # noqa: D102  # as there
    def delete_many(self, paths: Sequence[str]) -> int: ...  # noqa: D102  # as there
    def delete_directory(self, path: str, *, recursive: bool = False) -> bool: ...  # noqa: D102  # as there
    def rename_directory(self, source: str, target: str) -> None: ...  # noqa: D102  # as there


def publish_by_rename(file_io: Directories, directory: str, contents: Mapping[str, bytes]) -> None:
    """Write everything beside the directory, then rename. Raises ``FileExistsError``."""
    making = temporary_name(directory)
    try:
        for path, content in contents.items():
            file_io.write(f"{making}{path.removeprefix(directory)}", content)
        file_io.rename_directory(making, directory)
    finally:
        with suppress(OSError):  # an orphan at worst, and nothing that hides the error
            file_io.delete_directory(making, recursive=True)


def publish_by_claim(file_io: Directories, directory: str, contents: Mapping[str, bytes]) -> None:
    """Claim the directory, then write the files in order. Raises ``FileExistsError``."""
    claim, ours = f"{directory}/{CLAIM}", str(uuid.uuid4()).encode()
    if file_io.is_directory(directory) or not file_io.create_exclusive(claim, ours):
        raise FileExistsError(errno.EEXIST, "it is there already, or somebody makes it, or was cut off while making it", directory)
    written: list[str] = []
    try:
        for path, content in contents.items():
            written.append(path)
            file_io.write(path, content)
    except BaseException:
        with suppress(OSError):
            retire_by_roots(file_io, directory, written[::-1])
        raise
    if not file_io.exists(claim) or file_io.read(claim) != ours:
        file_io.delete_many(written[::-1])
        raise FileNotFoundError(errno.ENOENT, "it was deleted while it was made", directory)


def retire_by_rename(file_io: Directories, directory: str) -> None:
    """Gone at once for everybody; what stays of it is an orphan."""
    doomed = temporary_name(directory)
    file_io.rename_directory(directory, doomed)
    with suppress(OSError):
        file_io.delete_directory(doomed, recursive=True)


def retire_by_roots(file_io: Directories, directory: str, roots: Sequence[str]) -> None:
    """Without its roots nobody sees it any more; then the rest goes."""
    file_io.delete_many(roots)
    file_io.delete_directory(directory, recursive=True)


__all__ = ["CLAIM", "Directories", "publish_by_claim", "publish_by_rename", "retire_by_rename", "retire_by_roots"]
