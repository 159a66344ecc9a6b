"""Dry runs: the operation itself, on storage that ignores changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from fileindex.base.log import unlogged
from manifest.entry.cache import EntryCache
from manifest.entry.live import EntryFilter
from manifest.io.dry_run import DryRunFileIO
from manifest.io.paths import BUCKET
from manifest.store import FileStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Losses:
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


def tried(store: FileStore, operation: Callable[[FileStore], T], before: FileStore | None = None) -> tuple[T, Losses]:
    """Run ``operation`` in memory only.

    Returns its result and what it would delete. Raises the errors of the operation.

    Args:
        store: The table.
        operation: Function of the store.
        before: Store of a branch to delete, whose rows count as lost. None: ``store``.
    """
    dry = DryRunFileIO(store.file_io)
    held = _files(store if before is None else before)
    seen = replace(store, file_io=dry, cache=EntryCache(), commits=None)
    with unlogged():
        answer = operation(seen)
    left = _files(seen)
    rows = sum(count for name, count in held.items() if name not in left)
    return answer, _losses(dry, rows)


def _files(store: FileStore) -> dict[str, int]:
    entries = store.live_entries(store.snapshots.latest())
    return dict(zip(entries.file_name, entries.row_count.tolist(), strict=True))


def _losses(dry: DryRunFileIO, rows: int) -> Losses:
    data = sum(f"/{BUCKET}" in path for path in dry.deleted)
    return Losses(data, len(dry.deleted), rows, sum(dry.deleted.values()))


def table_losses(store: FileStore) -> Losses:
    """Return what dropping the whole table would delete."""
    dry = DryRunFileIO(store.file_io)
    dry.delete_directory(store.root, recursive=True)
    return _losses(dry, sum(_files(store).values()))


def partition_losses(store: FileStore, partitions: Collection[bytes]) -> Losses:
    """Return what emptying these partitions removes from the newest state.

    The files themselves stay until the snapshots expire.
    """
    entries = store.live_entries(store.snapshots.latest(), EntryFilter(partitions=set(partitions)))
    files = len(entries)
    return Losses(files, files, int(entries.row_count.sum()), int(entries.file_size.sum()))


__all__ = ["Losses", "partition_losses", "table_losses", "tried"]
