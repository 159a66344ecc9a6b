"""``Table.fsck`` on Spark: the driver checks metadata, tasks check files.

Files are divided among tasks by bytes. Each task returns one row with its findings as JSON. The first row includes the driver's
findings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pydantic import TypeAdapter
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from manifest.io.threads import map_in_threads
from paimon_base.thresholds import thresholds
from pyspark_paimon.frames.spark_types import arrow_for_spark
from pyspark_paimon.local.open_engine import open_engine
from pyspark_paimon.plugins.fsck.check_file import FileCheck
from pyspark_paimon.plugins.fsck.check_keys import check_key_partitions
from pyspark_paimon.plugins.fsck.jobs import findings_from_json, findings_to_json
from pyspark_paimon.plugins.fsck.unit import Unit
from pyspark_paimon.plugins.fsck.walk import count_orphans, walk
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.results.fsck_problem import Findings
from pyspark_paimon.scheduling.task_packing import assign_by_size
from pyspark_paimon.spark.wire.errors import attach_error_notes

_LEAST_TASKS = 8
_MOST_TASKS = 256
_FOOTER_BYTES = 64 << 10
"""Cost of reading a footer and an index, as bytes of reading data."""

_UNITS: TypeAdapter[list[Unit]] = TypeAdapter(list[Unit])


@dataclass
class FsckPartition(ds.InputPartition):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Files that one task checks."""

    units: str
    """List of ``Unit`` as JSON."""
    findings: str | None = None
    """Findings of the driver as JSON, in the first partition."""


class FsckReader(ds.DataSourceReader):  # type: ignore[misc]  # as above
    """Reader that checks the table at ``path``.

    Returns a row of JSON for each task.
    """

    def __init__(self, path: str, depth: Depth, limit: int, schema: st.StructType) -> None:
        self.path = path
        self.depth = depth
        self.limit = limit
        self.schema = schema

    def partitions(self) -> list[ds.InputPartition]:
        """Check metadata and return the partitions of the files."""
        with attach_error_notes():
            started_ms = int(time.time() * 1000)
            store = open_engine(self.path).without_cache()
            driver_findings = Findings(self.limit)
            units = list(walk(store, driver_findings))
            if self.depth is not Depth.QUICK and not driver_findings.total:
                count_orphans(store, started_ms, driver_findings)
            shares = divide_units(units, self.depth)
            texts = [_UNITS.dump_json(share).decode() for share in shares] or ["[]"]
            first, *rest = texts
            return [FsckPartition(first, findings_to_json(driver_findings)), *(FsckPartition(text) for text in rest)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Check the files of a partition."""
        if not isinstance(partition, FsckPartition):
            return
        with attach_error_notes():
            partition_findings = Findings(self.limit) if partition.findings is None else findings_from_json(partition.findings)
            store = open_engine(self.path).without_cache()
            files = FileCheck(store, self.depth)
            if partition.findings is not None and self.depth is Depth.DEEP:
                check_key_partitions(store, partition_findings)
            for findings in map_in_threads(partial(files.check, limit=self.limit), _UNITS.validate_json(partition.units), 1):
                partition_findings.merge(findings)
            yield pa.record_batch([pa.array([findings_to_json(partition_findings)])], schema=arrow_for_spark(self.schema))


def divide_units(units: Sequence[Unit], depth: Depth) -> list[list[Unit]]:
    """Divide files among tasks by bytes to read."""
    sizes = [unit.size if depth is Depth.DEEP else _FOOTER_BYTES for unit in units]
    tasks = min(max(_LEAST_TASKS, sum(sizes) // thresholds.check_task_bytes), _MOST_TASKS, max(1, len(units)))
    shares: list[list[Unit]] = [[] for _ in range(tasks)]
    for unit, task in zip(units, assign_by_size(sizes, tasks), strict=True):
        shares[task].append(unit)
    return [share for share in shares if share]
