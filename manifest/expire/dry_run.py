# The methods of a FileIO are documented once, by the protocol.
# ruff: noqa: D102
"""Dry runs: the operation itself, on storage that ignores changes.

So a dry run is the operation itself on another storage.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from manifest.entry.cache import EntryCache
from manifest.entry.live import EntryFilter
from manifest.io.file_io import FileIO, FileStatus
from manifest.io.paths import BUCKET
from manifest.io.wrapped import WrappedFileIO
from manifest.store import FileStore
from paimon_base.log import silence_logs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemovalCounts:
    """Files and rows that an operation would delete.

    Args:
        data_files: Files in bucket directories.
        files: All files.
        rows: Rows that could no longer be read.
        bytes: Total size of ``files``.
    """

    data_files: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0


def run_dry(store: FileStore, operation: Callable[[FileStore], T], before: FileStore | None = None) -> tuple[T, RemovalCounts]:
    """Run ``operation`` in memory only.

    Returns its result and what it would delete. Raises the errors of the operation.

    Args:
        store: The table.
        operation: Function of the store.
        before: Store of a branch to delete, whose rows count as lost. None: ``store``.
    """
    dry = DryRunFileIO(store.file_io)
    rows_before = _files(store if before is None else before)
    dry_store = replace(store, file_io=dry, cache=EntryCache(), commits=None)
    with silence_logs():
        answer = operation(dry_store)
    left = _files(dry_store)
    rows = sum(count for name, count in rows_before.items() if name not in left)
    return answer, _count_removal(dry, rows)


def _files(store: FileStore) -> dict[str, int]:
    entries = store.live_entries(store.snapshots.latest())
    return dict(zip(entries.file_name, entries.row_count.tolist(), strict=True))


def _count_removal(dry: DryRunFileIO, rows: int) -> RemovalCounts:
    data = sum(f"/{BUCKET}" in path for path in dry.deleted)
    return RemovalCounts(data, len(dry.deleted), rows, sum(dry.deleted.values()))


def table_removal(store: FileStore) -> RemovalCounts:
    """Return what dropping the whole table would delete."""
    dry = DryRunFileIO(store.file_io)
    dry.delete_directory(store.root, recursive=True)
    return _count_removal(dry, sum(_files(store).values()))


def partition_removal(store: FileStore, partitions: Collection[bytes]) -> RemovalCounts:
    """Return what emptying these partitions removes from the newest state.

    The files themselves stay until the snapshots expire.
    """
    entries = store.live_entries(store.snapshots.latest(), EntryFilter(partitions=set(partitions)))
    files = len(entries)
    return RemovalCounts(files, files, int(entries.row_count.sum()), int(entries.file_size.sum()))


class DryRunFileIO(WrappedFileIO):
    """Storage that reads ``inner`` and keeps changes in memory.

    ``deleted`` has the files of ``inner`` that would be deleted, with their sizes in bytes. Data files cannot be written through it.

    >>> from manifest.io.file_io import LocalFileIO
    >>> dry = DryRunFileIO(LocalFileIO())
    >>> dry.write("/nowhere/a", b"1")
    >>> dry.read("/nowhere/a"), LocalFileIO().exists("/nowhere/a"), dry.deleted
    (b'1', False, {})
    """

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner)
        self.deleted: dict[str, int] = {}
        self._written: dict[str, bytes] = {}

    def _check_not_deleted(self, path: str) -> None:
        if path in self.deleted and path not in self._written:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def read(self, path: str) -> bytes:
        self._check_not_deleted(path)
        content = self._written.get(path)
        return self.inner.read(path) if content is None else content

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self._check_not_deleted(path)
        content = self._written.get(path)
        return self.inner.read_range(path, offset, length) if content is None else content[offset : offset + length]

    def size(self, path: str) -> int:
        self._check_not_deleted(path)
        content = self._written.get(path)
        return self.inner.size(path) if content is None else len(content)

    def exists(self, path: str) -> bool:
        return path in self._written or (path not in self.deleted and self.inner.exists(path))

    def is_directory(self, path: str) -> bool:
        return bool(self.list(path)) or (self.inner.is_directory(path) and not any(name.startswith(f"{path}/") for name in self.deleted))

    def list(self, path: str) -> list[FileStatus]:
        size_by_name = {name.rpartition("/")[2]: len(data) for name, data in self._written.items() if name.rpartition("/")[0] == path}
        below = [
            status
            for status in self.inner.list(path)
            if status.name not in size_by_name and not self._is_gone(f"{path}/{status.name}", status)
        ]
        return [*below, *(FileStatus(name, size, 0, is_dir=False) for name, size in size_by_name.items())]

    def _is_gone(self, path: str, status: FileStatus) -> bool:
        if not status.is_dir:
            return path in self.deleted
        return any(name.startswith(f"{path}/") for name in self.deleted) and not self.list(path)

    def mkdirs(self, path: str) -> None:
        pass

    def write(self, path: str, data: bytes, *, overwrite: bool = False, durable: bool = True) -> None:  # noqa: ARG002  # memory is never durable
        if not overwrite and self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._written[path] = bytes(data)
        self.deleted.pop(path, None)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        self.write(path, data)
        return lambda: None

    def create_exclusive(self, path: str, data: bytes, *, guard: Callable[[], bool] | None = None) -> bool:
        if self.exists(path) or (guard is not None and not guard()):
            return False
        self.write(path, data)
        return True

    def cancel_creates(self, directory: str, is_cancelled: Callable[[str], bool]) -> None:
        pass

    def replace(self, path: str, old: bytes, data: bytes) -> bool:
        if not self.exists(path) or self.read(path) != old:
            return False
        self._written[path] = bytes(data)
        return True

    def delete(self, path: str) -> bool:
        was_held = self._written.pop(path, None) is not None
        if path in self.deleted or not self.inner.exists(path):
            return was_held
        self.deleted[path] = self.inner.size(path)
        return True

    def delete_directory(self, path: str, *, recursive: bool = False) -> bool:
        if not recursive:
            return False
        for status in self.list(path):
            below = f"{path}/{status.name}"
            if status.is_dir:
                self.delete_directory(below, recursive=True)
            else:
                self.delete(below)
        return True

    def rename_directory(self, source: str, target: str) -> None:
        raise NotImplementedError(f"a dry run cannot move {source} to {target}")

    def publish_directory(self, directory: str, contents: Mapping[str, bytes], *, through: FileIO | None = None) -> None:  # noqa: ARG002  # writes to itself
        if self.is_directory(directory):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), directory)
        self._written.update(contents)

    def retire_directory(self, directory: str, roots: Sequence[str], *, through: FileIO | None = None) -> None:  # noqa: ARG002  # as above
        self.delete_directory(directory, recursive=True)

    def open_output(self, path: str) -> Any:
        raise NotImplementedError(f"a dry run cannot write the data file {path}")

    def sync(self, path: str) -> None:
        pass

    def fair_lock(self, directory: str) -> AbstractContextManager[None]:  # noqa: ARG002  # memory needs no lock
        return nullcontext()

    def lock(self, directory: str, seconds: float | None = None) -> AbstractContextManager[bool]:  # noqa: ARG002  # as above
        return nullcontext(enter_result=True)

    def local_path(self, path: str) -> str | None:
        return None if path in self._written or path in self.deleted else self.inner.local_path(path)
