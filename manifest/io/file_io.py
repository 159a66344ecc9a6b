# Paths are strings here, as metadata spells them, and the methods of a FileIO are documented once, by the protocol.
# ruff: noqa: D102, PTH102, PTH106, PTH108, PTH110, PTH112, PTH116, PTH119, PTH120, PTH123
"""The storage that tables stand on: a small protocol, and the local file system.

A commit is safe only where ``create_exclusive`` is atomic and refuses an existing name. The local implementation uses
``link(2)`` for that; a rename would replace another process's snapshot in a race, so there is no such fallback.
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

from fileindex.base.errors import CorruptFile
from manifest.io import failpoints
from manifest.io.directories import publish_by_rename, retire_by_rename
from manifest.io.errors import FileReplaced
from manifest.io.posix import check_regular, is_still, link_new, locked, moved, sync_directory, target_of_temporary, temporary_name, turn_at
from manifest.io.storage_errors import with_storage_errors

_CLOCK_TICK_NANOS = 2 * 10**9
"""Times of files are coarse: a file that changed just now can change again within the same tick."""
_UNIQUE_NAME = re.compile(r"/(?!tag-|consumer-|writer-)[^/]*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+(?:\.[\w.]+)?$")
"""Names of ``FileNames``: written once, ever. Users choose the names of tags and consumers."""
_SIDE_FILE = ".index"
"""Paimon gives a rewritten side file the next free number, so a rollback can free a name."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A directory entry: ``size`` in bytes, ``mtime_ms`` in milliseconds since the epoch."""

    name: str
    size: int
    mtime_ms: int
    is_dir: bool
    identity: tuple[int, ...] | None = None
    """As ``FileIO.identity`` tells it, where a listing does."""


class Holder(Protocol):
    """What keeps content for the next time, within a bound: a ``FileCache``."""

    def get(self, key: Hashable) -> Any:
        """What is held for a key; None if nothing is."""

    def put(self, key: Hashable, value: object, weight: int) -> None:
        """Hold a value of ``weight`` bytes."""


class RangeReader(Protocol):
    """A file that is read here and there, as an index is."""

    def size(self) -> int:
        """Bytes of the file."""

    def read(self, offset: int, length: int) -> bytes:
        """As ``FileIO.read_range``."""


@runtime_checkable
class FileIO(Protocol):
    """What a table needs of a file system; paths are absolute, with ``/``.

    What fails is a ``StorageError`` that names the path: for a missing file also a ``FileNotFoundError``, for a full disk ``OutOfDisk``,
    which leaves nothing behind.
    Implementations travel to other processes, hence are picklable.
    """

    @property
    def lanes(self) -> int:
        """How many files are worth having under way at once because the storage is far, whatever the processors; 1 if it is near."""

    @property
    def cancels_creates(self) -> bool:
        """Whether ``cancel_creates`` works, and ``create_exclusive`` calls its guard; else a late creation may succeed at any time."""

    def read(self, path: str) -> bytes:
        """All bytes of a file."""

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        """All bytes of each file, in order; a storage that is far is asked for several at once."""

    def together(self, *jobs: Callable[[], Any]) -> list[Any]:
        """What each job gives, in order, or the first error of one; side by side where storage is far. Jobs may use this storage, not each other."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; ``CorruptFile`` if the file ends before."""

    def size(self, path: str) -> int:
        """Bytes of a file."""

    def identity(self, path: str) -> tuple[int, ...] | None:
        """What tells a file from every other that was or will be at ``path``, its later contents included; None if nothing does."""

    def exists(self, path: str) -> bool:
        """Whether a file is there; of a directory ask ``is_directory``."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""

    def list(self, path: str) -> list[FileStatus]:
        """Entries of a directory, in no order; [] if there is no such directory."""

    def mkdirs(self, path: str) -> None:
        """Create a directory and its parents, durably; existing ones are fine. Files need none of that."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        """Write a whole file: exclusively (``FileExistsError``), or with ``overwrite`` by atomic replacement."""

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:
        """Replace a file that only advises, atomically and not durably; ``guard`` and ``cancel_creates`` are as of ``create_exclusive``."""

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        """Begin to write a new file; what is returned waits until it is durable, and raises what went wrong."""

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:
        """Put if absent: the file appears whole and durable, or False because the name is taken.

        Where the storage ``cancels_creates``, ``guard`` is called when only the final step is left: if it returns False, nothing is created
        and the answer is False.
        """

    def cancel_creates(self, directory: str, chosen: Callable[[str], bool]) -> None:
        """Make every unfinished ``create_exclusive`` of a chosen name in ``directory`` fail, in any process.

        Calls that begin later go on, but their guard sees everything that was written before this call. Does nothing where the storage
        cannot do that.
        """

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        """Put ``data`` in place of ``old``, whole and durable; False, and nothing done, if something else is there, or nothing.

        Raises ``UnsafeFileIO`` where storage cannot compare and replace in one step.
        """

    def delete(self, path: str) -> bool:
        """Delete a file; False if it is known that there was none."""

    def delete_many(self, paths: Sequence[str]) -> int:
        """Delete files, together where the storage can; how many there were."""

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a directory (only if empty, unless ``recursive``); False if it stays or was not there."""

    def rename_directory(self, source: str, target: str) -> None:
        """Move a directory; ``FileExistsError`` if the target is there, ``UnsupportedOption`` where storage renames nothing."""

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:
        """Make a directory with files (whole paths): it is there at once, or where storage cannot do that, the last file comes last.

        ``FileExistsError`` if it is there, or is being made. ``through`` is a wrapper of this storage, which sees each step.
        """

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:
        """Delete a directory: it is gone at once, or where storage cannot do that, ``roots`` go first."""

    def open_output(self, path: str) -> Any:
        """A writable Arrow file, created exclusively, parents included; call ``sync`` after closing it."""

    def open_input(self, path: str, size: int | None = None) -> Any:
        """A seekable Arrow file; ``size`` is what metadata say, and need not be asked for."""

    def open_ranges(self, path: str, held: Holder | None = None) -> RangeReader:
        """A file that is read here and there, from its beginning; where storage is far ``held`` keeps the beginning of one that never changes."""

    def sync(self, path: str) -> None:
        """Make a closed file and its directory entry durable."""

    def turn(self, directory: str) -> AbstractContextManager[None]:
        """Wait, for a bounded time, while another process has its turn at ``directory``: fairness, never safety."""

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:
        """Hold the lock of ``directory`` against other processes and yield whether it is held after ``seconds`` (None: a default).

        Storage without locks yields True: nothing may rest on it there.
        """

    def local_path(self, path: str) -> str | None:
        """The path for libraries that open local files themselves; None if they cannot."""


@with_storage_errors
@dataclass(frozen=True, slots=True)
class LocalFileIO:
    """Files of this machine (or of a mount with POSIX hard links).

    >>> import tempfile
    >>> io, folder = LocalFileIO(), tempfile.mkdtemp()
    >>> io.create_exclusive(f"{folder}/a", b"first"), io.create_exclusive(f"{folder}/a", b"second"), io.read(f"{folder}/a")
    (True, False, b'first')
    """

    @property
    def lanes(self) -> int:
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

    def together(self, *jobs: Callable[[], Any]) -> list[Any]:
        return list(map(operator.call, jobs))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 0:
            raise CorruptFile(path, f"negative range: {length} bytes at {offset}")
        check_regular(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            if offset + length > size:
                raise CorruptFile(path, f"ends at byte {size}, but {length} bytes at {offset} are referred to")
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
        found = os.stat(path)
        if time.time_ns() - found.st_ctime_ns < _CLOCK_TICK_NANOS and not is_written_once(path):
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[FileStatus]:
        found: list[FileStatus] = []
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # deleted between the listing and the stat
                    stat = entry.stat()
                    found.append(FileStatus(entry.name, stat.st_size, stat.st_mtime_ns // 1_000_000, entry.is_dir()))
        return found

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
            if (guard is not None and not guard()) or not link_new(temporary, path, created):
                return False
        finally:
            with suppress(OSError):
                os.unlink(temporary)
        sync_directory(os.path.dirname(path))
        if not is_still(path, created):
            raise FileReplaced(errno.ESTALE, "another process replaced the file right after it was created", path)
        return True

    def cancel_creates(self, directory: str, chosen: Callable[[str], bool]) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            for name in os.listdir(directory):  # noqa: PTH208 -- as above
                target = target_of_temporary(name)
                if target is not None and chosen(target):
                    self.delete(f"{directory}/{name}")  # link(2) fails from now on: its source is gone

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        with locked(os.path.dirname(path)) as alone:  # all who replace compare under this lock; the kernel releases it if one dies
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
        moved(os.rename, source, target)
        sync_directory(os.path.dirname(target))
        sync_directory(os.path.dirname(source))

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:
        publish_by_rename(through or self, directory, contents)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:  # noqa: ARG002  # all goes at once
        retire_by_rename(through or self, directory)

    def open_output(self, path: str) -> Any:
        os.close(self._open_new(path))
        return pa.OSFile(path, mode="wb")

    def open_input(self, path: str, size: int | None = None) -> Any:  # noqa: ARG002  # asking is cheap
        check_regular(path)
        return pa.OSFile(path, mode="rb")

    def open_ranges(self, path: str, held: Holder | None = None) -> RangeReader:  # noqa: ARG002  # reading is cheap
        return FileRanges(self, path)

    def sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(os.path.dirname(path))

    def turn(self, directory: str) -> AbstractContextManager[None]:
        return turn_at(directory)

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:
        return locked(directory, seconds)

    def local_path(self, path: str) -> str | None:
        return path

    def _replace_file(self, path: str, data: bytes, *, durable: bool, guard: Callable[[], bool] = lambda: True) -> None:
        temporary = temporary_name(path)
        try:
            self._create(temporary, data, durable=durable)
            if guard():
                moved(os.replace, temporary, path)
            else:
                os.unlink(temporary)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def _create(self, path: str, data: bytes, *, durable: bool) -> None:
        """Write a new file; a failure other than "it exists" removes what was written."""
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
    """Return whether the name is given to one file, ever.

    >>> name = "data-0b5e2e3c-6f0e-4d6c-8a53-0d9c1f3a2b11-0.parquet"
    >>> is_written_once(f"/t/bucket-0/{name}"), is_written_once(f"/t/bucket-0/{name}.index"), is_written_once("/t/schema/schema-0")
    (True, False, False)
    """
    return not path.endswith(_SIDE_FILE) and _UNIQUE_NAME.search(path) is not None


@dataclass(frozen=True, slots=True)
class FileRanges:
    """A file of a storage that is near: each question goes to it."""

    file_io: FileIO
    path: str

    def size(self) -> int:
        """See ``RangeReader``."""
        return self.file_io.size(self.path)

    def read(self, offset: int, length: int) -> bytes:
        """See ``RangeReader``."""
        return self.file_io.read_range(self.path, offset, length)


__all__ = ["FileIO", "FileRanges", "FileStatus", "Holder", "LocalFileIO", "RangeReader", "is_written_once"]
