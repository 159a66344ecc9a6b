"""``spark.readStream``: the driver plans changes of snapshots, and tasks read them.

A new query starts where the options say. A restarted query continues from its checkpoint and ignores that option. Spark stores start
and end position of each batch, and the driver plans between them, so a repeated batch has the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from lsm.incremental.stream_scan import Position
from manifest.io.errors import SchemaMismatch, UnsupportedTable
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark, spark_schema
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.local.open_engine import is_catalog_location, open_engine
from pyspark_paimon.scheduling.task_packing import pack_tasks
from pyspark_paimon.spark.driver.options import COLUMNS, FILTER, columns, read_options, table_options, table_path
from pyspark_paimon.spark.read.reader import SplitPartition
from pyspark_paimon.spark.read.threads import use_task_cpus
from pyspark_paimon.spark.wire.errors import SparkUnavailable, attach_error_notes
from pyspark_paimon.spark.wire.rpc import SCAN
from pyspark_paimon.spark.wire.session_settings import refuse_task_settings
from pyspark_paimon.stream.options import StreamOptions, offset_of, position_of, without_stream
from pyspark_paimon.stream.table_stream import TableStream, stream_columns

try:
    from pyspark.sql.streaming import datasource as limits
except ImportError as error:
    raise SparkUnavailable("readStream needs PySpark 4.2 or newer on the server: upgrade it") from error


class PaimonStreamReader(ds.DataSourceStreamReader, limits.SupportsTriggerAvailableNow):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Reader of ``stream`` in Spark's ``schema``."""

    # One instance stays in a process of the driver while the query runs; tasks use copies.

    def __init__(self, stream: TableStream, schema: StructType) -> None:
        self.stream = stream
        self.schema = schema
        self.last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Return the start of a new query."""
        with attach_error_notes():
            return offset_of(self.stream.start())

    def getDefaultReadLimit(self) -> limits.ReadLimit:  # noqa: N802  # as above
        """Return one limit of a batch: files, rows or bytes."""
        # Spark accepts one limit and passes it to latestOffset if limits apply. latestOffset then applies all of them.
        stream_options = self.stream.stream_options
        if stream_options.max_files is not None:
            return limits.ReadMaxFiles(stream_options.max_files)
        if stream_options.max_rows is not None:
            return limits.ReadMaxRows(stream_options.max_rows)
        return limits.ReadAllAvailable() if stream_options.max_bytes is None else limits.ReadMaxBytes(stream_options.max_bytes)

    def latestOffset(self, start: dict[str, Any], limit: limits.ReadLimit) -> dict[str, Any]:  # noqa: N802  # as above
        """Return the end of the next batch."""
        with attach_error_notes():
            limited = not isinstance(limit, limits.ReadAllAvailable)
            return offset_of(self.stream.advance(position_of(start), limited=limited, last=self.last))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # as above
        """Limit the query to the snapshots that exist now."""
        with attach_error_notes():
            self.last = self.stream.newest()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  # as above
        """Return the position after the newest snapshot."""
        with attach_error_notes():
            return offset_of(Position(self.stream.newest() + 1))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ds.InputPartition]:
        """Return the splits of the batch. Small splits share a partition."""
        with attach_error_notes():
            plan, schema = self.stream.plan(position_of(start), position_of(end))
            return [SplitPartition(tuple(task)) for task in pack_tasks(plan, schema, ordered=False)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        with attach_error_notes():
            refuse_task_settings(self.stream.path, self.stream.request.options)
            use_task_cpus()
            arrow_schema = arrow_for_spark(self.schema)
            for split in partition.splits if isinstance(partition, SplitPartition) else ():
                for batch in self.stream.rows(split):
                    yield cast_for_spark(batch, arrow_schema)

    def commit(self, end: dict[str, Any]) -> None:
        """Record that the query has processed everything before ``end``."""
        with attach_error_notes():
            self.stream.done(position_of(end))

    def stop(self) -> None:
        """Do nothing."""
        # The table's consumer must stay, so that expiry keeps the snapshots of a query that restarts later.


NO_CATALOG_STREAMS = (
    "Spark's streams run without the files of their session, which have the options of its REST catalogs; read the changes by "
    "Table.follow in process, and write from foreachBatch with catalog.table(name, df.sparkSession).write(df, ...)"
)
"""Why a stream cannot have a table of a REST catalog, and what to do."""


class RefusedStreamReader(ds.DataSourceStreamReader):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Reader of a stream that cannot run: the first call raises ``UnsupportedTable`` with ``reason``.

    Spark replaces an error of the reader's creation by one of its own.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def initialOffset(self) -> NoReturn:  # noqa: N802  # Spark's name
        """Raise ``UnsupportedTable``."""
        with attach_error_notes():
            raise UnsupportedTable(self.reason)

    def latestOffset(self, *_: object) -> NoReturn:  # noqa: N802  # as above
        """Raise ``UnsupportedTable``."""
        self.initialOffset()

    def partitions(self, *_: object) -> NoReturn:
        """Raise ``UnsupportedTable``."""
        self.initialOffset()

    def read(self, *_: object) -> NoReturn:
        """Raise ``UnsupportedTable``."""
        self.initialOffset()


def stream_schema(options: Mapping[str, str]) -> StructType:
    """Return the Spark schema of a stream."""
    reader_options = read_options(without_stream(options))
    table = open_engine(table_path(reader_options)).schema()
    names = stream_columns(table, columns(reader_options), StreamOptions.of(options, table.options))
    return spark_schema(scan_fields(table, names))


def stream_reader(options: Mapping[str, str], schema: StructType) -> PaimonStreamReader | RefusedStreamReader:
    """Return the reader of a stream with the columns of ``schema``."""
    with attach_error_notes():
        stream_settings = {key: value for key, value in options.items() if key != SCAN}  # schema() may have pinned a batch scan
        reader_options = read_options(without_stream(stream_settings), schema)
        path = table_path(reader_options)
        if is_catalog_location(path):
            return RefusedStreamReader(f"{path}: {NO_CATALOG_STREAMS}")
        table = open_engine(path).schema()
        stream_options = StreamOptions.of(stream_settings, table.options).model_copy(
            update={"kinds": False}
        )  # the schema already has the column
        every = COLUMNS not in reader_options
        if every and (added := [name for name in table.names if name not in schema.names]):
            raise SchemaMismatch(
                f"{path}: column '{added[0]}' was added after this DataFrame was made, so the stream would drop its values for good: make the "
                f"DataFrame again by load, or name the columns that you want in option '{COLUMNS}'"
            )
        predicate = bind_filter(reader_options.get(FILTER), table.column_types)
        stream = TableStream.of(path, stream_options, predicate, tuple(schema.names), table_options(reader_options))
        expected = {field.name: field.dataType for field in spark_schema(scan_fields(table, stream.request.columns)).fields}
        for field in schema.fields:
            if field.dataType != expected[field.name]:
                raise SchemaMismatch(
                    f"{path}: column '{field.name}' is {expected[field.name].simpleString()} in the table, not {field.dataType.simpleString()}"
                )
        return PaimonStreamReader(replace(stream, every=table.names) if every else stream, schema)
