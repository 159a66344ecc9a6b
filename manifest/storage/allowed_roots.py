"""Restriction of tables to the directories that a server allows.

The environment of a process may name them. ``PYSPARK_PAIMON_ROOTS`` has directories separated as in ``PATH``,
``PYSPARK_PAIMON_ROOTS_FILE`` is a file with one directory per line. ``s3://bucket/prefix`` is a directory of an object store. A client cannot
change either.

If one of them is set, every path of a table's files is resolved first, including symbolic links and ``..``. It is refused unless it is in one of
the directories, and the resolved path is opened. That covers tables, branches, external data paths and orphans, which are all accessed
through a ``FileIO``. Spark opens a stream's checkpoint itself. Set the variables on every machine that runs tasks: each checks for itself.

This limits what options can reach. It is not a sandbox: a client that may run Python on a server can open files there directly. A
user who can change links inside of a root can do so between the check and the opening.
"""

# Paths are strings, as in metadata.
# ruff: noqa: PTH100, PTH117, PTH118, PTH119, PTH120, PTH123
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from manifest.io.errors import PathNotAllowed
from manifest.io.file_io import FileIO, FileStatus, Holder, RangeReader
from manifest.io.wrapped import WrappedFileIO
from manifest.storage.schemes import FAMILIES, ObjectPlace, object_place, scheme_of
from paimon_base.errors import InvalidArgument

ROOTS = "PYSPARK_PAIMON_ROOTS"
ROOTS_FILE = "PYSPARK_PAIMON_ROOTS_FILE"
_BETWEEN = re.compile(rf"{os.pathsep}(?!//|\d+(?:/|{os.pathsep}|$))")
"""Separator of directories: no colon of a scheme or a port."""
_SAME = {"s3a": "s3", "abfs": "abfss"}
"""Canonical schemes of synonyms."""


@dataclass(frozen=True, slots=True)
class AllowedRoots:
    """Resolved directories and URI prefixes. Other paths are refused."""

    directories: tuple[str, ...]

    def resolve(self, path: str, *, follow: bool = True) -> str:
        """Return the real path of ``path``. Raises ``PathNotAllowed``.

        ``follow``: whether to resolve the last component too.

        >>> AllowedRoots(("/warehouse",)).resolve("/warehouse/a/../t")
        '/warehouse/t'
        """
        if "\0" in path:
            raise PathNotAllowed(path)
        if scheme_of(path) is not None:
            location = object_place(path)
            self._check(path, _comparable(location))
            return location.uri
        absolute = os.path.abspath(path)
        real = (
            os.path.realpath(absolute) if follow else os.path.join(os.path.realpath(os.path.dirname(absolute)), os.path.basename(absolute))
        )
        self._check(path, real)
        return real

    def readable(self, path: str) -> str:
        """Return the real path of a file to read. Raises ``PathNotAllowed``."""
        return self.resolve(path)

    def entry(self, path: str) -> str:
        """Return the path of an entry to create, replace or remove: a link is not followed. Raises ``PathNotAllowed``."""
        return self.resolve(path, follow=False)

    def directory(self, path: str) -> str:
        """Return the real path of a directory in which files change. Raises ``PathNotAllowed``."""
        return self.resolve(path)

    def _check(self, path: str, real: str) -> None:
        if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.directories):
            raise PathNotAllowed(path)


def allowed_roots() -> AllowedRoots | None:
    """Return the directories in this process's environment, or None.

    An empty variable counts as unset. A file without directories allows nothing. Raises ``InvalidArgument`` for a name that is not an
    absolute directory, and for an unreadable file: a mistake there must not allow everything.
    """
    text, file = os.environ.get(ROOTS, ""), os.environ.get(ROOTS_FILE, "")
    if not text and not file:
        return None
    names = [(ROOTS, name) for name in _BETWEEN.split(text) if name.strip()]
    if file:
        try:
            with open(file, encoding="utf-8") as lines:
                names += [(ROOTS_FILE, line.strip()) for line in lines if line.strip() and not line.lstrip().startswith("#")]
        except OSError as error:
            raise InvalidArgument(f"{ROOTS_FILE}: the file of allowed directories cannot be read ({error.strerror})") from error
    return AllowedRoots(tuple(_directory(source, name.strip()) for source, name in names))


def _directory(source: str, name: str) -> str:
    if scheme_of(name) in FAMILIES:
        return _comparable(object_place(name))
    path = "/" + name.removeprefix("file:").lstrip("/") if name.startswith("file:/") else name
    if not os.path.isabs(path):
        raise InvalidArgument(f"{source}: '{name}' is not an absolute directory path of this machine")
    return os.path.realpath(path)


def _comparable(location: ObjectPlace) -> str:
    return replace(location, scheme=_SAME.get(location.scheme, location.scheme)).uri


class PathPolicy(Protocol):
    """Decides which paths a ``GuardedFileIO`` may use.

    Each method returns the path to use, or raises a ``PaimonError``.
    """

    def readable(self, path: str) -> str:
        """Return a path to read."""

    def entry(self, path: str) -> str:
        """Return the path of an entry to create, replace or remove."""

    def directory(self, path: str) -> str:
        """Return a directory in which files change."""


class GuardedFileIO(WrappedFileIO):
    """Storage that uses only the paths that ``policy`` allows.

    It keeps the restriction when it is sent to other processes.
    """

    def __init__(self, inner: FileIO, policy: PathPolicy) -> None:
        super().__init__(inner)
        self.policy = policy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardedFileIO) and (other.inner, other.policy) == (self.inner, self.policy)

    def __hash__(self) -> int:
        return hash((self.inner, self.policy))

    def __reduce__(self) -> tuple[Callable[..., FileIO], tuple[FileIO, PathPolicy]]:
        return _restore_guarded, (self.inner, self.policy)

    def _in(self, path: str) -> str:
        return self.policy.readable(path)

    def _entry(self, path: str) -> str:
        return self.policy.entry(path)

    def read(self, path: str) -> bytes:
        """Read a file. See ``FileIO``, also for all other methods.

        Each method raises ``PathNotAllowed``.
        """
        return self.inner.read(self._in(path))

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:  # noqa: D102  # as above
        return self.inner.read_many([self._in(path) for path in paths])

    def read_range(self, path: str, offset: int, length: int) -> bytes:  # noqa: D102  # as above
        return self.inner.read_range(self._in(path), offset, length)

    def size(self, path: str) -> int:  # noqa: D102  # as above
        return self.inner.size(self._in(path))

    def identity(self, path: str) -> tuple[int, ...] | None:  # noqa: D102  # as above
        return self.inner.identity(self._in(path))

    def exists(self, path: str) -> bool:  # noqa: D102  # as above
        return self.inner.exists(self._in(path))

    def is_directory(self, path: str) -> bool:  # noqa: D102  # as above
        return self.inner.is_directory(self._in(path))

    def list(self, path: str) -> list[FileStatus]:  # noqa: D102  # as above
        return self.inner.list(self._in(path))

    def mkdirs(self, path: str) -> None:  # noqa: D102  # as above
        self.inner.mkdirs(self.policy.directory(path))

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:  # noqa: D102  # as above
        self.inner.write(self._entry(path), data, overwrite=overwrite, durable=durable)

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:  # noqa: D102  # as above
        self.inner.write_hint(self._entry(path), data, guard)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:  # noqa: D102  # as above
        return self.inner.start_write(self._entry(path), data)

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:  # noqa: D102  # as above
        return self.inner.create_exclusive(self._entry(path), data, guard=guard)

    def cancel_creates(self, directory: str, is_cancelled: Callable[[str], bool]) -> None:  # noqa: D102  # as above
        self.inner.cancel_creates(self.policy.directory(directory), is_cancelled)

    def replace(self, path: str, old: bytes, data: bytes) -> bool:  # noqa: D102  # as above
        return self.inner.replace(self._entry(path), old, data)

    def delete(self, path: str) -> bool:  # noqa: D102  # as above
        return self.inner.delete(self._entry(path))

    def delete_many(self, paths: Sequence[str]) -> int:  # noqa: D102  # as above
        return self.inner.delete_many([self._entry(path) for path in paths])

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:  # noqa: D102  # as above
        return self.inner.delete_directory(self._entry(path), recursive=recursive)

    def rename_directory(self, source: str, target: str) -> None:  # noqa: D102  # as above
        self.inner.rename_directory(self._entry(source), self._entry(target))

    def publish_directory(  # noqa: D102  # as above
        self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None
    ) -> None:
        self._entry(directory)
        super().publish_directory(directory, contents, through=through)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:  # noqa: D102  # as above
        self._entry(directory)
        super().retire_directory(directory, roots, through=through)

    def open_output(self, path: str) -> Any:  # noqa: D102  # as above
        return self.inner.open_output(self._entry(path))

    def open_input(self, path: str, size: int | None = None) -> Any:  # noqa: D102  # as above
        return self.inner.open_input(self._in(path), size)

    def open_ranges(self, path: str, holder: Holder | None = None) -> RangeReader:  # noqa: D102  # as above
        return self.inner.open_ranges(self._in(path), holder)

    def sync(self, path: str) -> None:  # noqa: D102  # as above
        self.inner.sync(self._in(path))

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:  # noqa: D102  # as above
        return self.inner.fair_lock(self._in(directory))

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:  # noqa: D102  # as above
        return self.inner.lock(self._in(directory), seconds)

    def local_path(self, path: str) -> str | None:  # noqa: D102  # as above
        return self.inner.local_path(self._in(path))


def guard_file_io(file_io: FileIO) -> FileIO:
    """Return ``file_io``, restricted to the allowed directories.

    Unchanged if this process allows all directories.
    """
    roots = allowed_roots()
    return file_io if roots is None or _has_policy(file_io, roots) else GuardedFileIO(file_io, roots)


def _has_policy(file_io: FileIO, policy: PathPolicy) -> bool:
    return isinstance(file_io, GuardedFileIO) and (file_io.policy == policy or _has_policy(file_io.inner, policy))


def _restore_guarded(inner: FileIO, policy: PathPolicy) -> FileIO:
    if isinstance(policy, AllowedRoots):
        return guard_file_io(GuardedFileIO(inner, policy))
    return GuardedFileIO(guard_file_io(inner), policy)  # the allowed directories resolve links, and other policies must not see that
