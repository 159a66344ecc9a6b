"""Empty reads and writes that start a session's Python processes.

Spark has Python processes for discovery, schemas, planning reads, planning writes and commits, and one for each core of tasks. Each starts
at first use and then imports its modules. These reads and writes make the same imports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from paimon_base.errors import InvalidArgument
from pyspark_paimon.frames.spark_types import arrow_for_spark
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.names import WARM

QUESTIONS = (
    "pyspark_paimon.spark.driver.scan_options",
    "pyspark_paimon.request.scan_questions",
    "pyspark_paimon.request.state",
    "pyspark_paimon.operations.tasks",
    "pyspark_paimon.spark.driver.outcome",
)
PLANS = ("pyspark_paimon.spark.read.reader", "pyspark_paimon.local.plan")
READS = ("pyspark_paimon.spark.read.reader", "pyspark_paimon.local.read", "lsm.parquet.reader")
WRITES = ("pyspark_paimon.spark.write.writer", "lsm.write.table_write", "lsm.parquet.write.writer")
COLUMN = "warm"
_MOST_TASKS = 1024


def load(modules: Sequence[str]) -> None:
    """Import modules by name."""
    for module in modules:
        import_module(module)


def warm_schema() -> st.StructType:
    """Import modules of questions and return the empty read's schema."""
    load(QUESTIONS)
    return st.StructType([st.StructField(COLUMN, st.LongType(), nullable=True)])


class WarmReader(ds.DataSourceReader):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Reader of no rows. The option ``WARM`` gives the number of tasks."""

    def __init__(self, options: Mapping[str, str], schema: st.StructType) -> None:
        tasks = options[WARM]
        if not (tasks.isdecimal() and 1 <= int(tasks) <= _MOST_TASKS):
            raise InvalidArgument(f"option '{WARM}' must be a number of tasks from 1 to {_MOST_TASKS}, not '{tasks}'")
        self.tasks = int(tasks)
        self.schema = schema

    def partitions(self) -> list[ds.InputPartition]:
        """Return a partition for each task."""
        load(PLANS)
        return [ds.InputPartition(number) for number in range(self.tasks)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # Spark's signature
        """Yield an empty batch."""
        load((*READS, *WRITES))
        yield pa.RecordBatch.from_pylist([], schema=arrow_for_spark(self.schema))


class WarmWriter(ds.DataSourceArrowWriter):  # type: ignore[misc]  # as above
    """Writer of nothing."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Read and ignore the rows."""
        load(WRITES)
        for _ in iterator:
            pass
        return ds.WriterCommitMessage()

    def commit(self, messages: Sequence[Any]) -> None:  # noqa: ARG002  # Spark's signature
        """Commit nothing."""
        load(WRITES)


def warm_reader(options: Mapping[str, str], schema: st.StructType) -> ds.DataSourceReader:
    """Return the empty reader. Raises ``InvalidArgument``."""
    with attach_error_notes():
        return WarmReader(options, schema)


def warm_writer() -> ds.DataSourceWriter:
    """Return the empty writer."""
    load(WRITES)
    return WarmWriter()
