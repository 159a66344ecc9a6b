"""A writer of many commits in this process: rows to the files of the next commit, compaction beside them."""

from __future__ import annotations

from collections.abc import Callable

from lsm.commit.background import BackgroundCompaction
from lsm.commit.post_commit import is_awaited
from manifest.store import FileStore
from pyspark_paimon.local.open_write import OpenWrite
from pyspark_paimon.request.backend import Progress, Rows, WriteRequest
from pyspark_paimon.request.inputs import collected, split_kinds
from pyspark_paimon.request.results import WriteResult


class LocalWriter:
    """One writer, for one thread; ``opened`` gives the table by options and version of its schema."""

    def __init__(
        self, opened: Callable[[dict[str, str], int | None], FileStore], commit_id: str, *, threads: int, progress: Progress | None
    ) -> None:
        self._opened, self._threads, self._progress = opened, threads, progress
        self._compaction = BackgroundCompaction(f"{commit_id}-compact", threads=threads)
        self._write: OpenWrite | None = None
        self._store: FileStore | None = None
        self._crowded = False

    @property
    def is_open(self) -> bool:
        """See ``RowWriter``; so for every other method."""
        return self._write is not None

    def take(self, request: WriteRequest, rows: Rows) -> None:
        """Take rows; on an error those of the call and all before it, since the last commit, are forgotten."""
        if self._write is None:
            self._write = self._start(request)
        try:
            for batch in collected(rows).reader:
                self._write.take(*(split_kinds(batch) if request.row_kinds else (batch, None)))
        except BaseException:
            self.discard()
            raise

    def commit(self, request: WriteRequest) -> WriteResult:
        """Commit what was taken, and compact what is due beside the next rows."""
        if self._write is None:
            self._write = self._start(request)
        if self._crowded:
            self._compaction.wait()
        write, store, self._write = self._write, self._write.store, None
        with write:
            result = write.commit(request)
        if not (write.compacts or store.options.write_only):
            due = write.runs_due
            self._compaction.begin(store, due)
            self._crowded = max(due.values(), default=0) >= store.options.stop_trigger
        return result

    def discard(self) -> None:
        """Delete the files of what was taken."""
        write, self._write = self._write, None
        if write is not None:
            write.discard()

    def close(self) -> None:
        """Forget, and wait."""
        try:
            self.discard()
        finally:
            self._compaction.close()

    def _start(self, request: WriteRequest) -> OpenWrite:
        store = self._opened(request.options, request.schema_id)
        store.check_writable()
        return OpenWrite(store, request, threads=self._threads, progress=self._progress, compacts=is_awaited(store))


__all__ = ["LocalWriter"]
