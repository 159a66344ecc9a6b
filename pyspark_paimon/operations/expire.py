"""Expire snapshots, and list or delete orphan files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from manifest.expire.dry_run import run_dry
from manifest.expire.orphans import list_orphans, remove_orphans
from manifest.expire.snapshots import expire_snapshots
from manifest.io.wrapped import WrappedFileIO
from paimon_base.thresholds import thresholds
from pyspark_paimon.jobs.progress import Steps
from pyspark_paimon.operations.history.removal import removal_of
from pyspark_paimon.request.operation import OpenTable, Operation, Question
from pyspark_paimon.request.requests import OrphanFile
from pyspark_paimon.results.results import ExpireResult

if TYPE_CHECKING:
    from manifest.expire.orphans import Orphan
    from manifest.io.file_io import FileIO
    from manifest.store import FileStore
    from pyspark_paimon.request.requests import Progress


_LIMIT = "snapshot.expire.limit"


class ExpireSnapshots(Operation[ExpireResult]):
    """Delete old snapshots and the files that only they use.

    None: the table's option decides. ``dry_run``: only report what would be deleted.
    """

    stage: ClassVar[str | None] = "expire"
    retain_min: int | None = None
    retain_max: int | None = None
    older_than_ms: int | None = None
    limit: int | None = None
    dry_run: bool = False
    options: dict[str, str] = Field(default_factory=dict)

    def run(self, table: OpenTable) -> ExpireResult:
        """Expire, or report what would go."""
        store = table.store(self.options)
        policy: dict[str, int | None] = self.model_dump(exclude={"dry_run", "options"})
        if self.limit is None and _LIMIT in self.options:  # the table's own limit is for commits only
            policy["limit"] = store.options.snapshot_expire_limit
        if self.dry_run:
            would, counts = run_dry(store, lambda reporting_store: expire_snapshots(reporting_store, **policy))
            removal = removal_of(counts, snapshots=would.snapshots, manifests=would.manifests)
            return ExpireResult(snapshots=would.snapshots, data_files=would.data_files, manifests=would.manifests, removal=removal)
        with count_deletes(store, table.progress, "expire") as reporting_store:
            expired = expire_snapshots(reporting_store, **policy)
        return ExpireResult(snapshots=expired.snapshots, data_files=expired.data_files, manifests=expired.manifests)


class RemoveOrphans(Operation[list[OrphanFile]]):
    """Delete unreferenced files older than a time."""

    stage: ClassVar[str | None] = "orphans"
    older_than_ms: int

    def run(self, table: OpenTable) -> list[OrphanFile]:
        """Delete the files and return them."""
        with count_deletes(table.store(), table.progress, "orphans") as reporting_store:
            return _files(remove_orphans(reporting_store, self.older_than_ms))


class ListOrphans(Question[list[OrphanFile]]):
    """Unreferenced files older than a time."""

    older_than_ms: int

    def answer(self, table: OpenTable) -> list[OrphanFile]:
        """Compare the directory with all metadata."""
        return _files(list_orphans(table.store(), self.older_than_ms))


class _CountedDeletes(WrappedFileIO):
    def __init__(self, inner: FileIO, steps: Steps) -> None:
        super().__init__(inner)
        self._steps = steps

    def identity(self, path: str) -> tuple[int, ...] | None:
        return self.inner.identity(path)  # reads are not counted, so cached files stay valid

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        return self.inner.start_write(path, data)

    def read_many(self, paths: Any) -> Iterator[bytes]:
        return self.inner.read_many(paths)

    def delete(self, path: str) -> bool:
        gone = self.inner.delete(path)
        self._steps.advance(0, int(gone))
        return gone

    def delete_many(self, paths: Sequence[str]) -> int:
        gone, step = 0, thresholds.deleted_at_once
        for start in range(0, len(paths), step):
            gone += (now := self.inner.delete_many(paths[start : start + step]))
            self._steps.advance(0, now)
        return gone


@contextmanager
def count_deletes(store: FileStore, progress: Progress | None, stage: str) -> Iterator[FileStore]:
    """Open the table so that ``progress`` counts deleted files.

    The total is unknown.
    """
    if progress is None:
        yield store
        return
    steps = Steps(progress, stage, None, "files")
    yield store.through(_CountedDeletes(store.storage, steps))
    steps.end()


def _files(orphans: Sequence[Orphan]) -> list[OrphanFile]:
    return [OrphanFile(path=orphan.path, size=orphan.size, mtime_ms=orphan.mtime_ms) for orphan in orphans]
