"""Restriction of writes and deletions to a table's own directories.

Metadata of a table may come from anyone. Options, names in manifests, links and Iceberg files must not lead to other files. So everything that
a store writes or deletes passes ``OwnedRoots``, through the ``FileIO`` of the store. Reads are not restricted.

A user who can change links inside of the table can do so between the check and the change.
"""

# Paths are strings, as in metadata.
# ruff: noqa: PTH114
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from manifest.io.errors import PathNotOwned
from manifest.io.file_io import FileIO
from manifest.storage.allowed_roots import GuardedFileIO


@dataclass(frozen=True, slots=True)
class OwnedRoots:
    """Directories in which a table writes and deletes.

    Args:
        table: The table's directory.
        further_roots: Further directories, such as that of its Iceberg metadata in a catalog.
    """

    table: str
    further_roots: tuple[str, ...] = ()
    readable: ClassVar[None] = None
    """Tables may refer to files of others."""

    def owns(self, path: str) -> bool:
        """Return whether ``path`` is below one of the directories, with plain names and without links.

        The last name may be a link: to delete or to replace a link does not follow it.

        >>> roots = OwnedRoots("/w/t")
        >>> [roots.owns(path) for path in ("/w/t/bucket-0/a", "/w/t/../other/a", "/w/t2/a", "/w/t")]
        [True, False, False, False]
        """
        for root in (self.table, *self.further_roots):
            if path.startswith(f"{root}/"):
                names = path[len(root) + 1 :].split("/")
                if "\0" in path or not {"", ".", ".."}.isdisjoint(names):
                    return False
                return not root.startswith("/") or not _crosses_link(root, names)
        return False

    def entry(self, path: str) -> str:
        """Return the path of a file to write or delete. Raises ``PathNotOwned``."""
        if not self.owns(path):
            raise PathNotOwned(self.table, path)
        return path

    def directory(self, path: str) -> str:
        """Return a directory in which files are written or deleted. Raises ``PathNotOwned``.

        The directories themselves may be links: the user named them.
        """
        if path == self.table or path in self.further_roots:
            return path
        if path.startswith("/") and os.path.islink(path):
            raise PathNotOwned(self.table, path)
        return self.entry(path)


def _crosses_link(root: str, names: list[str]) -> bool:
    directory = root
    for name in names[:-1]:
        directory = f"{directory}/{name}"
        if os.path.islink(directory):
            return True
    return False


def restrict_to_owned(file_io: FileIO, roots: OwnedRoots) -> GuardedFileIO:
    """Return ``file_io``, which writes and deletes only in ``roots``.

    The restriction to another table is replaced.
    """
    if isinstance(file_io, GuardedFileIO) and file_io.policy == roots:
        return file_io
    return GuardedFileIO(without_owner(file_io), roots)


def without_owner(file_io: FileIO) -> FileIO:
    """Return ``file_io`` without the restriction to a table."""
    return file_io.inner if isinstance(file_io, GuardedFileIO) and isinstance(file_io.policy, OwnedRoots) else file_io
