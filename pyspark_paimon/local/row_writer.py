"""A writer of consecutive commits in this process.

Compaction runs in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsm.commit.background import BackgroundCompaction
from pyspark_paimon.local.open_write import OpenWrite
from pyspark_paimon.request.inputs import split_kinds
from pyspark_paimon.request.requests import Rows, WriteRequest
from pyspark_paimon.results.results import WriteResult

if TYPE_CHECKING:
    from pyspark_paimon.request.operation import OpenTable


class LocalWriter:
    """A single-threaded writer of consecutive commits."""

    def __init__(self, table: OpenTable, commit_id: str) -> None:
        self._table = table
        self._compaction = BackgroundCompaction(f"{commit_id}-compact", threads=table.threads)
        self._write: OpenWrite | None = None
        self._crowded = False

    @property
    def is_open(self) -> bool:
        """See ``RowWriter``, also for the other methods."""
        return self._write is not None

    def take(self, request: WriteRequest, rows: Rows) -> None:
        """Add rows.

        An error discards all rows since the last commit.
        """
        if self._write is None:
            self._write = self._start(request)
        try:
            for batch in rows.reader:
                self._write.take(*(split_kinds(batch) if request.row_kinds else (batch, None)))
        except BaseException:
            self.discard()
            raise

    def commit(self, request: WriteRequest) -> WriteResult:
        """Commit the added rows and start the due compaction."""
        if self._write is None:
            self._write = self._start(request)
        if self._crowded:
            self._compaction.wait()
        write, self._write = self._write, None
        with write:
            result = write.commit(request)
        store = write.store
        if not (write.compacts or store.options.write_only):
            due = write.pending_compaction
            self._compaction.begin(store, due)
            self._crowded = any(due.values())
        return result

    def discard(self) -> None:
        """Delete the files of uncommitted rows."""
        write, self._write = self._write, None
        if write is not None:
            write.discard()

    def close(self) -> None:
        """Discard uncommitted rows and wait for the compaction."""
        try:
            self.discard()
        finally:
            self._compaction.close()

    def _start(self, request: WriteRequest) -> OpenWrite:
        return OpenWrite(self._table, request, waits=False)
