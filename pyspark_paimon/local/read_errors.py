"""Errors of a read: files that are missing, and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from manifest.io.errors import KEEP_SNAPSHOTS, OutOfMemory, SnapshotExpired
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, PaimonError

T = TypeVar("T")


@contextmanager
def explain_read_errors(store: FileStore) -> Iterator[None]:
    """Raise typed errors for missing files and for memory.

    Raises ``SnapshotExpired`` for a missing file that no retained state has. Otherwise the file is lost, and its ``CorruptFile`` stays.
    Raises ``OutOfMemory`` for errors of memory of Python, Arrow and numpy, which name no file where several are merged.
    """
    try:
        yield
    except CorruptFile as error:
        if isinstance(error.__cause__, FileNotFoundError) and not _is_needed(store, error.path):
            raise SnapshotExpired(
                f"{store.root}: the snapshot expired, or was rolled back, while it was read: {error.path} is gone; read again; {KEEP_SNAPSHOTS}"
            ) from error
        raise
    except MemoryError as error:
        if isinstance(error, PaimonError):
            raise
        raise OutOfMemory(
            store.root, f"{str(error) or type(error).__name__}; read fewer columns or rows at once, or give the process more memory"
        ) from error


def explained(store: FileStore, values: Iterable[T]) -> Iterator[T]:
    """Yield ``values``, with the errors of ``explain_read_errors``."""
    with explain_read_errors(store):
        yield from values


def _is_needed(store: FileStore, path: str) -> bool:
    from manifest.expire.orphans import everything_reachable  # noqa: PLC0415  # only errors need it

    name = path.rpartition("/")[2]
    try:
        reachable = everything_reachable(store)
    except (PaimonError, OSError):  # the needed files are unknown
        return True
    return name in reachable.data or name in reachable.indexes
