"""The directories that a server lets tables be in, and a store that keeps to them.

Whoever starts a process may name them: ``PYSPARK_PAIMON_ROOTS`` holds directories separated as in ``PATH``, and
``PYSPARK_PAIMON_ROOTS_FILE`` a file with one of them on each line; ``s3://bucket/prefix`` names one of an object store. Nothing that a client sends can change either. Where one of them
is set, every path that a table's files are reached by is resolved first, symbolic links and ``..`` included, and refused unless it is
in one of the directories; the resolved path is what is opened then. That covers tables and branches, external data paths and
orphans, for all of them are reached by a ``FileIO``; a stream's checkpoint is Spark's own to open. Set it on every machine that runs
tasks: each checks for itself.

It bounds what options can reach. It is no sandbox: a client that may run Python on a server can open files there by itself, and
one who can change links inside of a root can do so between the check and the opening.
"""

# Paths are strings here, as metadata spells them.
# ruff: noqa: PTH100, PTH117, PTH118, PTH119, PTH120, PTH123
from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from fileindex.base.errors import InvalidArgument
from manifest.io.errors import PathNotAllowed
from manifest.io.file_io import FileIO, FileStatus, Holder, RangeReader
from manifest.io.wrapped import WrappedFileIO
from manifest.storage.schemes import FAMILIES, ObjectPlace, object_place, scheme_of

ROOTS = "PYSPARK_PAIMON_ROOTS"
ROOTS_FILE = "PYSPARK_PAIMON_ROOTS_FILE"
_BETWEEN = re.compile(rf"{os.pathsep}(?!//)")
_SAME = {"s3a": "s3", "abfs": "abfss"}
"""Schemes that are other spellings."""


@dataclass(frozen=True, slots=True)
class AllowedRoots:
    """Resolved directories and prefixes of URIs; what is in none of them is refused."""

    directories: tuple[str, ...]

    def resolved(self, path: str, *, follow: bool = True) -> str:
        """The real path of ``path``, the last step of it only if ``follow``. Raises ``PathNotAllowed``.

        >>> AllowedRoots(("/warehouse",)).resolved("/warehouse/a/../t")
        '/warehouse/t'
        """
        if "\0" in path:
            raise PathNotAllowed(path)
        if scheme_of(path) is not None:
            place = object_place(path)
            self._check(path, _comparable(place))
            return place.uri
        whole = os.path.abspath(path)
        real = os.path.realpath(whole) if follow else os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
        self._check(path, real)
        return real

    def _check(self, path: str, real: str) -> None:
        if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.directories):
            raise PathNotAllowed(path)


def allowed_roots() -> AllowedRoots | None:
    """The directories that this process' environment names, None where it names none.

    An empty variable is as none; a file that names no directory allows nothing. Raises ``InvalidArgument`` for what is no absolute
    directory name and for a file that cannot be read: a mistake there must not open everything.
    """
    given, file = os.environ.get(ROOTS, ""), os.environ.get(ROOTS_FILE, "")
    if not given and not file:
        return None
    names = [(ROOTS, name) for name in _BETWEEN.split(given) if name.strip()]
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
        raise InvalidArgument(f"{source}: '{name}' is no absolute directory name of this machine")
    return os.path.realpath(path)


def _comparable(place: ObjectPlace) -> str:
    return replace(place, scheme=_SAME.get(place.scheme, place.scheme)).uri


class GuardedFileIO(WrappedFileIO):
    """A store that opens what lies in ``roots`` and nothing else; it stays so in the processes that it travels to."""

    def __init__(self, inner: FileIO, roots: AllowedRoots) -> None:
        super().__init__(inner)
        self.roots = roots

    def __reduce__(self) -> tuple[Callable[..., FileIO], tuple[FileIO, AllowedRoots]]:
        return _guarded_again, (self.inner, self.roots)

    def _in(self, path: str) -> str:
        return self.roots.resolved(path)

    def _entry(self, path: str) -> str:
        """The path of a directory entry that is made, replaced or removed, and not followed if it is a link."""
        return self.roots.resolved(path, follow=False)

    def read(self, path: str) -> bytes:
        """See ``FileIO``; so for every other method. Each raises ``PathNotAllowed``."""
        return self.inner.read(self._in(path))

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:  # noqa: D102  # as above
        return self.inner.read_many([self._in(path) for path in paths])

    def read_range(self, path: str, offset: int, length: int) -> bytes:  # noqa: D102  # as the protocol says
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
        self.inner.mkdirs(self._in(path))

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:  # noqa: D102  # as above
        self.inner.write(self._entry(path), data, overwrite=overwrite, durable=durable)

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:  # noqa: D102  # as above
        self.inner.write_hint(self._entry(path), data, guard)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:  # noqa: D102  # as above
        return self.inner.start_write(self._entry(path), data)

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:  # noqa: D102  # as above
        return self.inner.create_exclusive(self._entry(path), data, guard=guard)

    def cancel_creates(self, directory: str, chosen: Callable[[str], bool]) -> None:  # noqa: D102  # as above
        self.inner.cancel_creates(self._in(directory), chosen)

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

    def open_ranges(self, path: str, held: Holder | None = None) -> RangeReader:  # noqa: D102  # as above
        return self.inner.open_ranges(self._in(path), held)

    def sync(self, path: str) -> None:  # noqa: D102  # as above
        self.inner.sync(self._in(path))

    def turn(self, directory: str) -> AbstractContextManager[None]:  # noqa: D102  # as above
        return self.inner.turn(self._in(directory))

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:  # noqa: D102  # as above
        return self.inner.lock(self._in(directory), seconds)

    def local_path(self, path: str) -> str | None:  # noqa: D102  # as above
        return self.inner.local_path(self._in(path))


def guarded(file_io: FileIO) -> FileIO:
    """``file_io``, kept to the directories that this process allows, if it names any."""
    roots = allowed_roots()
    if roots is None or (isinstance(file_io, GuardedFileIO) and file_io.roots == roots):
        return file_io
    return GuardedFileIO(file_io, roots)


def _guarded_again(inner: FileIO, roots: AllowedRoots) -> FileIO:
    return guarded(GuardedFileIO(inner, roots))


__all__ = ["ROOTS", "ROOTS_FILE", "AllowedRoots", "GuardedFileIO", "allowed_roots", "guarded"]
