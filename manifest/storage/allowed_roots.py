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
from dataclasses import dataclass, replace
from typing import Any, Protocol

from manifest.io.errors import PathNotAllowed
from manifest.io.file_io import FileIO
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

    Each function returns the path to use, or raises a ``PaimonError``.
    """

    @property
    def readable(self) -> Callable[[str], str] | None:
        """Function of a path to read. None: all files may be read."""

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
        if policy.readable is None:  # reads go straight to the storage
            for name in (*_READABLE, "read_many", "run_parallel"):
                setattr(self, name, getattr(inner, name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardedFileIO) and (other.inner, other.policy) == (self.inner, self.policy)

    def __hash__(self) -> int:
        return hash((self.inner, self.policy))

    def __reduce__(self) -> tuple[Callable[..., FileIO], tuple[FileIO, PathPolicy]]:
        return _restore_guarded, (self.inner, self.policy)

    def rename_directory(self, source: str, target: str) -> None:  # noqa: D102  # see FileIO
        self.inner.rename_directory(self.policy.entry(source), self.policy.entry(target))

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:  # noqa: D102  # as above
        assert self.policy.readable is not None
        return self.inner.read_many(list(map(self.policy.readable, paths)))

    def delete_many(self, paths: Sequence[str]) -> int:  # noqa: D102  # as above
        return self.inner.delete_many([self.policy.entry(path) for path in paths])

    def publish_directory(  # noqa: D102  # as above
        self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None
    ) -> None:
        self.policy.entry(directory)
        super().publish_directory(directory, contents, through=through)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:  # noqa: D102  # as above
        self.policy.entry(directory)
        super().retire_directory(directory, roots, through=through)


def _guarded(name: str, judge: str) -> Callable[..., Any]:
    """Return a method that gives the path which the policy allows to the method ``name`` of the inner storage."""

    def operation(self: GuardedFileIO, path: str, *arguments: Any, **options: Any) -> Any:
        return getattr(self.inner, name)(getattr(self.policy, judge)(path), *arguments, **options)

    operation.__name__ = name
    operation.__qualname__ = f"GuardedFileIO.{name}"
    return operation


_READABLE = (
    "exists",
    "fair_lock",
    "identity",
    "is_directory",
    "list",
    "local_path",
    "lock",
    "open_input",
    "open_ranges",
    "read",
    "read_range",
    "size",
    "sync",
)
_ENTRIES = ("create_exclusive", "delete", "delete_directory", "open_output", "replace", "start_write", "write", "write_hint")
_DIRECTORIES = ("cancel_creates", "mkdirs")
"""Methods of ``FileIO`` by what their path must be."""
for _names, _judge in ((_READABLE, "readable"), (_ENTRIES, "entry"), (_DIRECTORIES, "directory")):
    for _name in _names:
        setattr(GuardedFileIO, _name, _guarded(_name, _judge))


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
