"""Creates and deletes directories as a whole.

By a rename where the storage has one, else by the order of their files.
"""

from __future__ import annotations

import errno
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from manifest.io.posix import temporary_name

CLAIM = ".claim"
"""First file of a directory created file by file. It marks the directory as claimed."""


class Directories(Protocol):
    """Methods of ``FileIO`` that this module needs."""

    def read(self, path: str) -> bytes: ...  # noqa: D102  # see FileIO
    def exists(self, path: str) -> bool: ...  # noqa: D102  # see FileIO
    def is_directory(self, path: str) -> bool: ...  # noqa: D102  # see FileIO
    def write(self, path: str, data: bytes) -> None: ...  # noqa: D102  # see FileIO
    def create_exclusive(self, path: str, data: bytes) -> bool: ...  # noqa: D102  # see FileIO
    def delete_many(self, paths: Sequence[str]) -> int: ...  # noqa: D102  # see FileIO
    def delete_directory(self, path: str, *, recursive: bool = False) -> bool: ...  # noqa: D102  # see FileIO
    def rename_directory(self, source: str, target: str) -> None: ...  # noqa: D102  # see FileIO


def publish_by_rename(file_io: Directories, directory: str, contents: Mapping[str, bytes]) -> None:
    """Write all files to a temporary directory, then rename it.

    Raises ``FileExistsError``.
    """
    temporary = temporary_name(directory)
    try:
        for path, content in contents.items():
            file_io.write(f"{temporary}{path.removeprefix(directory)}", content)
        file_io.rename_directory(temporary, directory)
    finally:
        with suppress(OSError):  # an orphan at worst; never hide the original error
            file_io.delete_directory(temporary, recursive=True)


def publish_by_claim(file_io: Directories, directory: str, contents: Mapping[str, bytes]) -> None:
    """Claim the directory, then write the files in order.

    Raises ``FileExistsError``.
    """
    claim, ours = f"{directory}/{CLAIM}", str(uuid.uuid4()).encode()
    if file_io.is_directory(directory) or not file_io.create_exclusive(claim, ours):
        raise FileExistsError(errno.EEXIST, "the directory exists, is being created, or its creation was interrupted", directory)
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
        raise FileNotFoundError(errno.ENOENT, "the directory was deleted while it was created", directory)


def retire_by_rename(file_io: Directories, directory: str) -> None:
    """Rename the directory, then delete it.

    The rename makes it disappear for all readers at once. Remaining files are orphans.
    """
    doomed = temporary_name(directory)
    file_io.rename_directory(directory, doomed)
    with suppress(OSError):
        file_io.delete_directory(doomed, recursive=True)


def retire_by_roots(file_io: Directories, directory: str, roots: Sequence[str]) -> None:
    """Delete the ``roots`` of a directory, then the rest.

    Readers ignore a directory without its roots.
    """
    file_io.delete_many(roots)
    file_io.delete_directory(directory, recursive=True)
