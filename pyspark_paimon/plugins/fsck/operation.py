"""Check of metadata and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_base.lazy import LazyModule
from pyspark_paimon.request.fsck_depth import Depth
from pyspark_paimon.request.operation import OpenTable, Question
from pyspark_paimon.request.state_results import FsckResult

if TYPE_CHECKING:
    from pyspark_paimon.plugins.fsck import jobs as fsck
else:  # the client of a server asks this question and needs no storage engine
    fsck = LazyModule("pyspark_paimon.plugins.fsck.jobs")


class Fsck(Question[FsckResult]):
    """Check the table.

    ``limit``: maximum number of reported problems. Further problems are only counted.
    """

    depth: Depth = Depth.FOOTERS
    limit: int = 1000

    def answer(self, table: OpenTable) -> FsckResult:
        """Check in threads of this process."""
        store = table.without_cache()
        threads = max(table.threads, store.file_io.max_concurrency)
        return fsck.check_table(store, self.depth, limit=self.limit, threads=threads, progress=table.progress)
