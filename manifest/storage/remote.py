# The methods of a FileIO are documented once, in the protocol.
# ruff: noqa: D102
"""What the ``FileIO`` of all remote stores shares: reads by ranges, writes by parts, no locks and nothing to sync."""

from __future__ import annotations

import errno
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from manifest.io.errors import FileMissing
from manifest.io.file_io import FileStatus, Holder
from manifest.io.storage_errors import with_storage_errors
from manifest.storage import parallel
from manifest.storage.ranges import ObjectInput, ObjectRanges, PartSource
from manifest.storage.schemes import ObjectPlace, object_place
from manifest.storage.storage_options import StorageOptions

_UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Names with a UUID are never reused."""


class RemoteStore(PartSource, Protocol):
    """An open store: ``Bucket``, ``HdfsCluster``."""

    def get(self, key: str) -> bytes:
        """Return a whole file."""


Store = TypeVar("Store", bound=RemoteStore)


@with_storage_errors
class RemoteFileIO(ABC, Generic[Store]):
    """Files of any remote store accessible with ``options`` and environment. Paths are whole URIs."""

    max_concurrency = parallel.MAX_CONCURRENCY
    cancels_creates = False

    def __init__(self, options: StorageOptions) -> None:
        self.options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteFileIO) and type(other) is type(self) and other.options == self.options

    def __hash__(self) -> int:
        return hash(self.options)

    @abstractmethod
    def _open(self, location: ObjectPlace) -> Store:
        """Return the store of a place, opened once per process."""

    @abstractmethod
    def _find(self, store: Store, key: str) -> FileStatus | None:
        """Return the status of a file, None if there is none. The name may be missing."""

    def _at(self, path: str) -> tuple[Store, str]:
        location = object_place(path)
        return self._open(location), location.key

    def _status(self, path: str) -> FileStatus:
        status = self._find(*self._at(path))
        if status is None:
            raise FileMissing(errno.ENOENT, "there is no such file", path)
        return status

    def read(self, path: str) -> bytes:
        store, key = self._at(path)
        return store.get(key)

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return parallel.spread(self.read, paths)

    def run_parallel(self, *jobs: Callable[[], Any]) -> list[Any]:
        return parallel.run_parallel(jobs)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return ObjectRanges(*self._at(path), tail=False).once(offset, length)

    def size(self, path: str) -> int:
        return self._status(path).size

    def identity(self, path: str) -> tuple[int, ...] | None:
        if _is_unique(path):
            return (self._at(path)[0].fingerprint,)
        return self._status(path).identity

    def exists(self, path: str) -> bool:
        status = self._find(*self._at(path))
        return status is not None and not status.is_dir

    @abstractmethod
    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None: ...

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:  # noqa: ARG002  # ids never decrease here
        self.write(path, data, overwrite=True)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        return parallel.start(self.write, path, data).result

    def cancel_creates(self, directory: str, is_cancelled: Callable[[str], bool]) -> None:
        """Do nothing: a running request cannot be cancelled."""

    def open_input(self, path: str, size: int | None = None) -> Any:
        return ObjectInput(ObjectRanges(*self._at(path), size, tail=True))

    def open_ranges(self, path: str, holder: Holder | None = None) -> ObjectRanges:
        return ObjectRanges(*self._at(path), tail=False, holder=holder if _is_unique(path) else None)

    def sync(self, path: str) -> None:
        """Do nothing: a file is durable when its write is answered."""

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:  # noqa: ARG002  # no lock
        return nullcontext()

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:  # noqa: ARG002  # no lock
        return nullcontext(enter_result=True)

    def local_path(self, path: str) -> str | None:  # noqa: ARG002  # not on this machine
        return None


class PartWriter(ABC):
    """Python file interface that Arrow uses. Sends a file in parts while it is written."""

    def __init__(self, part_bytes: int) -> None:
        self._part_bytes = part_bytes
        self._pending: list[bytes] = []
        self._held = self._written = 0
        self.closed = False

    @abstractmethod
    def _send(self, part: bytes) -> None:
        """Send a part that is not the last one."""

    @abstractmethod
    def _finish(self, part: bytes) -> None:
        """Send the last part, which may be empty, and complete the file."""

    @abstractmethod
    def _cancel(self) -> None:
        """Delete what was sent."""

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("the file is closed")
        rest = memoryview(data).cast("B")
        written = len(rest)
        self._written += written
        while self._held + len(rest) > self._part_bytes:
            room = self._part_bytes - self._held
            self._take(rest[:room])
            rest = rest[room:]
            self._send(self._join_pending())
        self._take(rest)
        return written

    def _take(self, data: memoryview) -> None:
        self._pending.append(bytes(data))
        self._held += len(data)

    def _join_pending(self) -> bytes:
        part = b"".join(self._pending)
        self._pending.clear()
        self._held = 0
        return part

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:  # noqa: B027  # only whole parts are sent
        pass

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._finish(self._join_pending())

    def abort(self) -> None:
        """Delete the file instead of completing it."""
        if not self.closed:
            self.closed = True
            self._pending.clear()
            self._cancel()


class RemoteOutput(pa.PythonFile):  # type: ignore[misc]  # pyarrow ships no types
    """A new remote file as a writable Arrow file.

    It exists once it is closed, and never if it is aborted.
    """

    _writer: PartWriter

    def __new__(cls, writer: PartWriter) -> Self:
        """Create the object with its file, which Arrow requires here."""
        created: Self = super().__new__(cls, writer, mode="w")
        created._writer = writer
        return created

    def __init__(self, writer: PartWriter) -> None:  # noqa: ARG002  # __new__ has it
        super().__init__()

    def abort(self) -> None:
        """Delete the file instead of completing it."""
        self._writer.abort()


def _is_unique(path: str) -> bool:
    return _UNIQUE.search(path.rpartition("/")[2]) is not None
