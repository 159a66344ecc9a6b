# Paths are strings, as in metadata. The methods of a FileIO are documented once, in the protocol.
# ruff: noqa: D102, PTH102, PTH106, PTH108, PTH110, PTH112, PTH116, PTH119, PTH120, PTH123
"""The ``FileIO`` protocol, and the local file system.

A commit is safe only if ``create_exclusive`` is atomic and refuses an existing name. The local implementation uses
``link(2)``. A rename would replace another process's snapshot in a race, so there is no such fallback.
"""

from __future__ import annotations

import errno
import operator
import os
import re
import shutil
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from manifest.io import failpoints
from manifest.io.directories import publish_by_rename, retire_by_rename
from manifest.io.errors import FileReplaced
from manifest.io.posix import (
    check_regular,
    is_same_file,
    link_new,
    lock_directory,
    move,
    sync_directory,
    target_of_temporary,
    temporary_name,
    turn_at,
)
from manifest.io.storage_errors import with_storage_errors
from paimon_base.errors import CorruptFile

_CLOCK_TICK_NANOS = 2 * 10**9
"""File times are coarse: a file that changed just now can change again within the same tick."""
_UNIQUE_NAME = re.compile(r"/(?!tag-|consumer-|writer-)[^/]*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+(?:\.[\w.]+)?$")
"""Names from ``FileNames``, which are never reused. Excludes tags and consumers, whose names users choose."""
_SIDE_FILE = ".index"
"""Suffix of side files. A rewrite takes the next free number, so a rollback can free a name."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A directory entry.

    ``size`` is in bytes, ``mtime_ms`` in milliseconds since the epoch.
    """

    name: str
    size: int
    mtime_ms: int
    is_dir: bool
    identity: tuple[int, ...] | None = None
    """Result of ``FileIO.identity``, if the listing has it."""


class Holder(Protocol):
    """Bounded cache of file content, such as ``FileCache``."""

    def get(self, key: Hashable) -> Any:
        """Return the cached value, or None."""

    def put(self, key: Hashable, value: object, weight: int) -> None:
        """Cache a value of ``weight`` bytes."""


class RangeReader(Protocol):
    """A file for random reads, as of an index."""

    def size(self) -> int:
        """Return the bytes of the file."""

    def read(self, offset: int, length: int) -> bytes:
        """Read as ``FileIO.read_range``."""


@runtime_checkable
class FileIO(Protocol):
    """File system operations that a table needs.

    Paths are absolute, with ``/``. Failures are a ``StorageError`` that names the path: also a ``FileNotFoundError`` for a missing file,
    ``OutOfDisk`` for a full disk. ``OutOfDisk`` leaves no partial file. Implementations are picklable, to be sent to other processes.
    """

    @property
    def max_concurrency(self) -> int:
        """Useful number of concurrent requests. 1 for near storage.

        Independent of the number of processors.
        """

    @property
    def cancels_creates(self) -> bool:
        """Whether ``cancel_creates`` works and ``create_exclusive`` calls its guard.

        Otherwise a late creation may succeed at any time.
        """

    def read(self, path: str) -> bytes:
        """Return all bytes of a file."""

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        """Yield all bytes of each file, in order.

        Far storage gets several requests at once.
        """

    def run_parallel(self, *jobs: Callable[[], Any]) -> list[Any]:
        """Run jobs and return their results in order.

        Raises the first error. Far storage runs jobs in parallel. Jobs may use this storage, but must not depend on each other.
        """

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from ``offset``.

        Raises ``CorruptFile`` if the file is shorter.
        """

    def size(self, path: str) -> int:
        """Return the bytes of a file."""

    def identity(self, path: str) -> tuple[int, ...] | None:
        """Return an identity of the file and its content.

        Differs from that of any other file or content at ``path``. None: unknown.
        """

    def exists(self, path: str) -> bool:
        """Return whether a file exists. Directories: see ``is_directory``."""

    def is_directory(self, path: str) -> bool:
        """Return whether a directory exists."""

    def list(self, path: str) -> list[FileStatus]:
        """Return the entries of a directory, unordered.

        [] if the directory does not exist.
        """

    def mkdirs(self, path: str) -> None:
        """Create a directory and its parents, durably.

        Existing ones are no error. Writing files creates directories itself.
        """

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        """Write a whole file.

        Raises ``FileExistsError`` unless ``overwrite``, which replaces atomically.
        """

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:
        """Replace an optional file, atomically but not durably.

        ``guard`` and ``cancel_creates`` work as for ``create_exclusive``.
        """

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        """Start to write a new file.

        Returns a function that waits until the file is durable and raises its error.
        """

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:
        """Create a whole, durable file if its name is free.

        Returns False if the name exists. Where the storage ``cancels_creates``, it calls ``guard`` before the final step. If that returns False,
        nothing is created and the result is False.
        """

    def cancel_creates(self, directory: str, is_cancelled: Callable[[str], bool]) -> None:
        """Fail unfinished ``create_exclusive`` calls in ``directory``.

        Applies to names accepted by ``is_cancelled``, in any process. Later calls are not affected, but their guard sees everything that was written
        before this call. Does nothing on storage that cannot cancel.
        """

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        """Replace content ``old`` by ``data``, atomically and durably.

        Returns False and changes nothing if the file has other content or does not exist. Raises ``UnsafeFileIO`` if the storage cannot compare
        and replace in one step.
        """

    def delete(self, path: str) -> bool:
        """Delete a file.

        Returns False if it surely did not exist.
        """

    def delete_many(self, paths: Sequence[str]) -> int:
        """Delete files and return how many existed."""

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a directory, only if empty unless ``recursive``.

        Returns False if it stays or did not exist.
        """

    def rename_directory(self, source: str, target: str) -> None:
        """Move a directory.

        Raises ``FileExistsError`` if the target exists, ``UnsupportedOption`` on storage without renames.
        """

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:
        """Create a directory with files, given by whole paths.

        The directory appears at once, or file by file in order where the storage has no rename. Raises ``FileExistsError`` if it exists or is
        being created. ``through`` is a wrapper of this storage that handles each step.
        """

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:
        """Delete a directory.

        It disappears at once, or its ``roots`` are deleted first where the storage has no rename.
        """

    def open_output(self, path: str) -> Any:
        """Create a file exclusively and return a writable Arrow file.

        Creates parents. Call ``sync`` after closing it.
        """

    def open_input(self, path: str, size: int | None = None) -> Any:
        """Return a seekable Arrow file.

        ``size`` is the size known from metadata, which saves a request.
        """

    def open_ranges(self, path: str, holder: Holder | None = None) -> RangeReader:
        """Return a file for random reads.

        For far storage, ``holder`` caches the beginning of immutable files.
        """

    def sync(self, path: str) -> None:
        """Make a closed file and its directory entry durable."""

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:
        """Wait a bounded time for other processes at ``directory``.

        A fair lock. Safety must not depend on it.
        """

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:
        """Lock ``directory`` against other processes.

        Yields whether the lock is held after ``seconds`` (None: a default). Storage without locks always yields True, so safety must not
        depend on it there.
        """

    def local_path(self, path: str) -> str | None:
        """Return the path for libraries that open local files.

        None if the files are not local.
        """


@with_storage_errors
@dataclass(frozen=True, slots=True)
class LocalFileIO:
    """Local files, or a mount with POSIX hard links.

    >>> import tempfile
    >>> io, folder = LocalFileIO(), tempfile.mkdtemp()
    >>> io.create_exclusive(f"{folder}/a", b"first"), io.create_exclusive(f"{folder}/a", b"second"), io.read(f"{folder}/a")
    (True, False, b'first')
    """

    @property
    def max_concurrency(self) -> int:
        return 1

    @property
    def cancels_creates(self) -> bool:
        return True

    def read(self, path: str) -> bytes:
        check_regular(path)
        with open(path, "rb") as file:
            return file.read()

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def run_parallel(self, *jobs: Callable[[], Any]) -> list[Any]:
        return list(map(operator.call, jobs))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise CorruptFile(path, f"negative range: {length} bytes at {offset}")
        check_regular(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            if offset + length > size:
                raise CorruptFile(path, f"ends at byte {size}, but {length} bytes at {offset} are requested")
            data = os.pread(descriptor, length, offset)
            while len(data) < length:
                more = os.pread(descriptor, length - len(data), offset + len(data))
                if not more:
                    raise CorruptFile(path, "was truncated while it was read")
                data += more
            return data
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def identity(self, path: str) -> tuple[int, ...] | None:
        status = os.stat(path)
        # Within a tick of the clock another change keeps the time, and perhaps the size.
        if time.time_ns() - status.st_ctime_ns < _CLOCK_TICK_NANOS and not is_written_once(path):
            return None
        return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[FileStatus]:
        statuses: list[FileStatus] = []
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # deleted between the listing and the stat
                    stat = entry.stat()
                    statuses.append(FileStatus(entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000, entry.is_dir()))
        return statuses

    def mkdirs(self, path: str) -> None:
        missing = []
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for directory in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(directory)
            sync_directory(os.path.dirname(directory))

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        if overwrite:
            self._replace_file(path, data, durable=durable)
        else:
            self._create(path, data, durable=durable)
        if durable:
            sync_directory(os.path.dirname(path))

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:
        self._replace_file(path, data, durable=False, guard=guard)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        self.write(path, data, durable=False)
        return partial(self.sync, path)

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:
        if os.path.exists(path):
            return False
        temporary = temporary_name(path)
        try:
            self._create(temporary, data, durable=True)
            failpoints.point(f"after-temp-{os.path.basename(path).rpartition('-')[0]}")
            created = os.stat(temporary)
            if (guard is not None and not guard()) or not link_new(temporary, path, created, data):
                return False
        finally:
            with suppress(OSError):
                os.unlink(temporary)
        sync_directory(os.path.dirname(path))
        if not is_same_file(path, created):
            raise FileReplaced(errno.ESTALE, "another process replaced the file right after it was created", path)
        return True

    def cancel_creates(self, directory: str, is_cancelled: Callable[[str], bool]) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            for name in os.listdir(directory):  # noqa: PTH208 -- as above
                target = target_of_temporary(name)
                if target is not None and is_cancelled(target):
                    self.delete(f"{directory}/{name}")  # link(2) fails from now on: its source is gone

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        # Every replacement compares under this lock. The kernel releases it if the process dies.
        with lock_directory(os.path.dirname(path)) as alone:
            if not alone or not os.path.exists(path) or self.read(path) != old:
                return False
            self.write(path, data, overwrite=True)
            return True

    def delete(self, path: str) -> bool:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        return True

    def delete_many(self, paths: Sequence[str]) -> int:
        return sum(map(self.delete, paths))

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:
        try:
            shutil.rmtree(path) if recursive else os.rmdir(path)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST}:
                return False
            raise
        return True

    def rename_directory(self, source: str, target: str) -> None:
        if os.path.exists(target):
            raise FileExistsError(errno.EEXIST, "the target exists", target)
        self.mkdirs(os.path.dirname(target))
        move(os.rename, source, target)
        sync_directory(os.path.dirname(target))
        sync_directory(os.path.dirname(source))

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:
        publish_by_rename(through or self, directory, contents)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:  # noqa: ARG002  # one rename
        retire_by_rename(through or self, directory)

    def open_output(self, path: str) -> Any:
        os.close(self._open_new(path))
        return pa.OSFile(path, mode="wb")

    def open_input(self, path: str, size: int | None = None) -> Any:  # noqa: ARG002  # stat is cheap
        check_regular(path)
        return pa.OSFile(path, mode="rb")

    def open_ranges(self, path: str, holder: Holder | None = None) -> RangeReader:  # noqa: ARG002  # reading is cheap
        return FileRanges(self, path)

    def sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(os.path.dirname(path))

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:
        return turn_at(directory)

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:
        return lock_directory(directory, seconds)

    def local_path(self, path: str) -> str | None:
        return path

    def _replace_file(self, path: str, data: bytes, *, durable: bool, guard: Callable[[], bool] = lambda: True) -> None:
        temporary = temporary_name(path)
        try:
            self._create(temporary, data, durable=durable)
            if guard():
                move(os.replace, temporary, path)
            else:
                os.unlink(temporary)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def _create(self, path: str, data: bytes, *, durable: bool) -> None:
        """Write a new file. Delete partial files after errors."""
        descriptor = self._open_new(path)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)
            raise
        finally:
            os.close(descriptor)

    def _open_new(self, path: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o666)
        except FileNotFoundError:
            self.mkdirs(os.path.dirname(path))
            return os.open(path, flags, 0o666)


def is_written_once(path: str) -> bool:
    """Return whether the name is never reused for another file.

    >>> name = "data-0b5e2e3c-6f0e-4d6c-8a53-0d9c1f3a2b11-0.parquet"
    >>> is_written_once(f"/t/bucket-0/{name}"), is_written_once(f"/t/bucket-0/{name}.index"), is_written_once("/t/schema/schema-0")
    (True, False, False)
    """
    return not path.endswith(_SIDE_FILE) and _UNIQUE_NAME.search(path) is not None


@dataclass(frozen=True, slots=True)
class FileRanges:
    """Random reads of a file of near storage, without caching."""

    file_io: FileIO
    path: str

    def size(self) -> int:
        """See ``RangeReader``."""
        return self.file_io.size(self.path)

    def read(self, offset: int, length: int) -> bytes:
        """See ``RangeReader``."""
        return self.file_io.read_range(self.path, offset, length)
