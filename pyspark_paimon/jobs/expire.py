"""Expiry and orphans in this process, and telling of the files that they delete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fileindex.base.thresholds import thresholds
from manifest.expire.orphans import list_orphans, remove_orphans
from manifest.expire.snapshots import expire_snapshots
from manifest.expire.would_go import tried
from manifest.io.wrapped import WrappedFileIO
from pyspark_paimon.jobs.progress_steps import Steps
from pyspark_paimon.request.backend import OrphanFile
from pyspark_paimon.request.results import ExpireResult
from pyspark_paimon.request.table_changes import removal_of

if TYPE_CHECKING:
    from manifest.io.file_io import FileIO
    from manifest.store import FileStore
    from pyspark_paimon.request.backend import ExpireRequest, Progress


class _ToldDeletes(WrappedFileIO):
    def __init__(self, inner: FileIO, steps: Steps) -> None:
        super().__init__(inner)
        self._steps = steps

    def identity(self, path: str) -> tuple[int, ...] | None:
        return self.inner.identity(path)  # reads are not watched, so what was read before still holds

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        return self.inner.start_write(path, data)

    def read_many(self, paths: Any) -> Iterator[bytes]:
        return self.inner.read_many(paths)

    def delete(self, path: str) -> bool:
        gone = self.inner.delete(path)
        self._steps.moved(0, int(gone))
        return gone

    def delete_many(self, paths: Sequence[str]) -> int:
        gone, step = 0, thresholds().deleted_at_once
        for start in range(0, len(paths), step):
            gone += (now := self.inner.delete_many(paths[start : start + step]))
            self._steps.moved(0, now)
        return gone


@contextmanager
def _deleting(store: FileStore, progress: Progress | None, stage: str) -> Iterator[FileStore]:
    """The table to delete files of, so that ``progress`` hears of them; how many there will be nobody knows before."""
    if progress is None:
        yield store
        return
    steps = Steps(progress, stage, None, "files")
    yield store.through(_ToldDeletes(store.file_io, steps))
    steps.end()


def expire(store: FileStore, request: ExpireRequest, progress: Progress | None) -> ExpireResult:
    """Expire snapshots and delete what only they reach, or tell what would go."""
    policy: dict[str, int | None] = request.model_dump(exclude={"dry_run"})
    if request.dry_run:
        would, losses = tried(store, lambda seen: expire_snapshots(seen, **policy))
        removal = removal_of(losses, snapshots=would.snapshots, manifests=would.manifests)
        return ExpireResult(snapshots=would.snapshots, data_files=would.data_files, manifests=would.manifests, removal=removal)
    with _deleting(store, progress, "expire") as seen:
        done = expire_snapshots(seen, **policy)
    return ExpireResult(snapshots=done.snapshots, data_files=done.data_files, manifests=done.manifests)


def orphans(store: FileStore, older_than_ms: int, progress: Progress | None, *, remove: bool) -> list[OrphanFile]:
    """Files that nothing refers to; deleted if ``remove``."""
    if remove:
        with _deleting(store, progress, "orphans") as seen:
            found = remove_orphans(seen, older_than_ms)
    else:
        found = list_orphans(store, older_than_ms)
    return [OrphanFile(path=orphan.path, size=orphan.size, mtime_ms=orphan.mtime_ms) for orphan in found]


__all__ = ["expire", "orphans"]
