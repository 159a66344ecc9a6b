"""A read and a write of nothing, with the imports of real ones: they start a session's Python processes before somebody waits for them.

Spark has a process of its own for looking the source up, for its columns, for planning reads, for planning writes and for commits, and
one a core for tasks. Each starts when it is first needed, and imports then what it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.frames.spark_types import arrow_for_spark
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.names import WARM

QUESTIONS = (
    "pyspark_paimon.spark.scan_schema",
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
    """Import ``modules`` into this process."""
    for module in modules:
        import_module(module)


def warm_schema() -> st.StructType:
    """The column of the read of nothing; what answers questions is loaded."""
    load(QUESTIONS)
    return st.StructType([st.StructField(COLUMN, st.LongType(), nullable=True)])


class WarmReader(ds.DataSourceReader):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Reads no rows, in as many tasks as the option says."""

    def __init__(self, options: Mapping[str, str], schema: st.StructType) -> None:
        tasks = options[WARM]
        if not (tasks.isdecimal() and 1 <= int(tasks) <= _MOST_TASKS):
            raise InvalidArgument(f"option '{WARM}' is a number of tasks from 1 to {_MOST_TASKS}")
        self.tasks = int(tasks)
        self.schema = schema

    def partitions(self) -> list[ds.InputPartition]:
        """One a task."""
        load(PLANS)
        return [ds.InputPartition(number) for number in range(self.tasks)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # all are alike
        """Nothing."""
        load((*READS, *WRITES))
        yield pa.RecordBatch.from_pylist([], schema=arrow_for_spark(self.schema))


class WarmWriter(ds.DataSourceArrowWriter):  # type: ignore[misc]  # as above
    """Writes nothing."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Nothing."""
        load(WRITES)
        for _ in iterator:
            pass
        return ds.WriterCommitMessage()

    def commit(self, messages: Sequence[Any]) -> None:  # noqa: ARG002  # Spark's signature
        """Commit nothing."""
        load(WRITES)


def warm_reader(options: Mapping[str, str], schema: st.StructType) -> ds.DataSourceReader:
    """The reader of nothing. Raises ``InvalidArgument``."""
    with attach_error_notes():
        return WarmReader(options, schema)


def warm_writer() -> ds.DataSourceWriter:
    """The writer of nothing."""
    load(WRITES)
    return WarmWriter()


__all__ = [
    "COLUMN",
    "PLANS",
    "QUESTIONS",
    "READS",
    "WRITES",
    "WarmReader",
    "WarmWriter",
    "load",
    "warm_reader",
    "warm_schema",
    "warm_writer",
]
