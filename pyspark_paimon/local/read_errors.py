"""Missing files of a read: an expired snapshot, or damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from fileindex.base.errors import CorruptFile, PaimonError
from manifest.io.errors import SnapshotExpired
from manifest.store import FileStore

T = TypeVar("T")


@contextmanager
def explain_missing_files(store: FileStore) -> Iterator[None]:
    """Raise ``SnapshotExpired`` for a missing file that no retained state has.

    Otherwise the file is lost, and its ``CorruptFile`` stays.
    """
    try:
        yield
    except CorruptFile as error:
        if isinstance(error.__cause__, FileNotFoundError) and not _is_needed(store, error.path):
            raise SnapshotExpired(
                f"{store.root}: the snapshot expired, or was rolled back, while it was read: {error.path} is gone; read again, or increase "
                "'snapshot.num-retained.min' or 'snapshot.time-retained' to keep snapshots longer"
            ) from error
        raise


def explained(store: FileStore, values: Iterable[T]) -> Iterator[T]:
    """Yield ``values``, with the errors of ``explain_missing_files``."""
    with explain_missing_files(store):
        yield from values


def _is_needed(store: FileStore, path: str) -> bool:
    from manifest.expire.orphans import everything_reachable  # noqa: PLC0415  # only errors need it

    name = path.rpartition("/")[2]
    try:
        reachable = everything_reachable(store)
    except (PaimonError, OSError):  # the needed files are unknown
        return True
    return name in reachable.data or name in reachable.indexes


__all__ = ["explain_missing_files", "explained"]
