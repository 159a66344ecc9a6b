"""Check of metadata and files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from paimon_base.lazy import LazyModule
from pyspark_paimon.request.operation import OpenTable, Question, SharedQuestion
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.fsck_problem import Findings, Origin
from pyspark_paimon.results.state_results import FsckResult

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from pyspark_paimon.plugins.fsck import jobs, spark_reader, walk
else:  # the client of a server asks these questions and needs no storage engine
    jobs = LazyModule("pyspark_paimon.plugins.fsck.jobs")
    spark_reader = LazyModule("pyspark_paimon.plugins.fsck.spark_reader")
    walk = LazyModule("pyspark_paimon.plugins.fsck.walk")


class Fsck(SharedQuestion[FsckResult]):
    """Check the table.

    ``limit``: maximum number of reported problems. Further problems are only counted.
    """

    stage: ClassVar[str] = "fsck"
    depth: Depth = Depth.FOOTERS
    limit: int = 1000

    def answer(self, table: OpenTable) -> FsckResult:
        """Check in threads of this process."""
        store = table.without_cache()
        threads = max(table.threads, store.file_io.max_concurrency)
        return jobs.check_table(store, self.depth, limit=self.limit, threads=threads, progress=table.progress)

    def reader(self, path: str, schema: StructType) -> DataSourceReader:
        """Return a reader whose tasks check files. They are balanced by bytes, and the driver checks metadata."""
        return spark_reader.FsckReader(path, self.depth, self.limit, schema)

    def combine(self, parts: Iterable[str], ask: Callable[[Question[Any]], Any]) -> FsckResult:
        """Merge the findings of tasks."""
        started, findings = time.perf_counter(), Findings(self.limit)
        for part in parts:
            findings.merge(jobs.findings_from_json(part))
        findings = jobs.without_expired(findings, lambda origins: ask(FindExpired(origins=tuple(origins))))
        return jobs.result_of(findings, self.depth, started)


class FindExpired(Question[list[bool]]):
    """Whether each state has expired since a check read it."""

    origins: tuple[Origin, ...]

    def answer(self, table: OpenTable) -> list[bool]:
        """Look each state up."""
        return walk.gone(table.store(), self.origins)
