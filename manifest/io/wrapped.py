# The methods of a FileIO are documented once, in the protocol.
# ruff: noqa: D102
"""Base class of storage wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from manifest.io.file_io import FileIO, FileRanges, FileStatus, Holder, RangeReader
from manifest.io.storage_errors import with_storage_errors


class WrappedFileIO:
    """Delegates all methods to ``inner``.

    A logging, counting or failing store overrides some methods.

    >>> class Counting(WrappedFileIO):
    ...     reads = 0
    ...     def read(self, path):
    ...         self.reads += 1
    ...         return super().read(path)
    """

    def __init__(self, inner: FileIO) -> None:
        self.inner = inner

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        with_storage_errors(cls)

    @property
    def max_concurrency(self) -> int:
        return self.inner.max_concurrency

    @property
    def cancels_creates(self) -> bool:
        return self.inner.cancels_creates

    def read(self, path: str) -> bytes:
        """Read a file. See ``FileIO``, also for all other methods.

        Combined methods call the basic ones, so that an override affects both.
        """
        return self.inner.read(path)

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return map(self.read, paths)

    def run_parallel(self, *jobs: Callable[[], Any]) -> list[Any]:
        return self.inner.run_parallel(*jobs)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.inner.read_range(path, offset, length)

    def size(self, path: str) -> int:
        return self.inner.size(path)

    def identity(self, path: str) -> tuple[int, ...] | None:
        """Return None, which disables caching.

        So a wrapper sees all reads.
        """

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def is_directory(self, path: str) -> bool:
        return self.inner.is_directory(path)

    def list(self, path: str) -> list[FileStatus]:
        return self.inner.list(path)

    def mkdirs(self, path: str) -> None:
        self.inner.mkdirs(path)

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:
        self.inner.write(path, data, overwrite=overwrite, durable=durable)

    def write_hint(self, path: str, data: bytes, guard: Callable[[], bool]) -> None:
        if guard():
            self.write(path, data, overwrite=True, durable=False)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        self.write(path, data, durable=False)
        return partial(self.sync, path)

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:
        return self.inner.create_exclusive(path, data, guard=guard)

    def cancel_creates(self, directory: str, is_cancelled: Callable[[str], bool]) -> None:
        self.inner.cancel_creates(directory, is_cancelled)

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        return self.inner.replace(path, old, data)

    def delete(self, path: str) -> bool:
        return self.inner.delete(path)

    def delete_many(self, paths: Sequence[str]) -> int:
        return sum(map(self.delete, paths))

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:
        return self.inner.delete_directory(path, recursive=recursive)

    def rename_directory(self, source: str, target: str) -> None:
        self.inner.rename_directory(source, target)

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:
        self.inner.publish_directory(directory, contents, through=through or self)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:
        self.inner.retire_directory(directory, roots, through=through or self)

    def open_output(self, path: str) -> Any:
        return self.inner.open_output(path)

    def open_input(self, path: str, size: int | None = None) -> Any:
        return self.inner.open_input(path, size)

    def open_ranges(self, path: str, holder: Holder | None = None) -> RangeReader:  # noqa: ARG002  # a wrapper sees all reads
        return FileRanges(self, path)

    def sync(self, path: str) -> None:
        self.inner.sync(path)

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:
        return self.inner.fair_lock(directory)

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:
        return self.inner.lock(directory, seconds)

    def local_path(self, path: str) -> str | None:
        return self.inner.local_path(path)


class ThinFileIO(WrappedFileIO):
    """Wrapper that passes calls for several files, and calls that ``inner`` caches, on to ``inner``.

    The wrapper does not see the single calls that ``inner`` makes for them.
    """

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return self.inner.read_many(paths)

    def identity(self, path: str) -> tuple[int, ...] | None:
        return self.inner.identity(path)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        return self.inner.start_write(path, data)

    def delete_many(self, paths: Sequence[str]) -> int:
        return self.inner.delete_many(paths)

    def open_ranges(self, path: str, holder: Holder | None = None) -> RangeReader:
        return self.inner.open_ranges(path, holder)
