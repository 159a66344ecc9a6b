"""``spark.readStream``: the driver walks through the table's snapshots, tasks read what they changed.

A query begins by the options' start and goes on from its checkpoint, whatever the options say then. Spark keeps the positions;
what lies between two of them is planned anew, so that a repeated batch has the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from lsm.follow import UNLIMITED, Follower, Position
from lsm.row_kinds import ROW_KIND
from manifest.errors import InvalidArgument, SchemaMismatch, UnknownColumn
from manifest.option_support import check_readable
from manifest.schema import TableSchema
from manifest.store import FileStore
from pyspark_paimon.engine import EVERY_LEVEL, ScanRequest
from pyspark_paimon.filters import bind_filter
from pyspark_paimon.incremental import scan_fields
from pyspark_paimon.local import LocalBackend
from pyspark_paimon.spark_errors import SparkUnavailable, errors_noted
from pyspark_paimon.spark_options import COLUMNS, FILTER, columns, read_options, table_options, table_path
from pyspark_paimon.spark_reader import SplitPartition
from pyspark_paimon.spark_rpc import SCAN
from pyspark_paimon.spark_tasks import tasks_of
from pyspark_paimon.spark_types import arrow_for_spark, cast_for_spark, spark_schema
from pyspark_paimon.stream_options import StreamOptions, offset_of, position_of, without_stream
from pyspark_paimon.stream_rows import stream_rows

try:
    from pyspark.sql.streaming import datasource as limits
except ImportError as error:
    raise SparkUnavailable("a stream is read with PySpark 4.2 or newer; the server's is older") from error

_POSITION = "streamPosition"


class PaimonStreamReader(ds.DataSourceStreamReader, limits.SupportsTriggerAvailableNow):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Reads the stream of the table at ``path``, in Spark's ``schema``, as ``request`` (JSON) and ``asked`` say.

    Lives in one process on the driver as long as the query runs; copies of it read in tasks.
    """

    def __init__(self, path: str, request: str, schema: StructType, asked: StreamOptions, every: tuple[str, ...] | None) -> None:
        self.path = path
        self.request = request
        self.schema = schema
        self.asked = asked
        self.every = every
        self.last: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Where a new query begins: where its consumer stands, else where the options say."""
        with errors_noted():
            follower = self._follower()
            position = self._progress(follower) or follower.start(
                self.asked.mode, snapshot_id=self.asked.snapshot_id, timestamp_millis=self.asked.timestamp_millis
            )
            self._record(follower, position)
            return offset_of(position)

    def getDefaultReadLimit(self) -> limits.ReadLimit:  # noqa: N802  # as above
        """One of the limits; Spark takes one, and hands it back to ``latestOffset`` where limits are to be kept."""
        asked = self.asked
        if asked.max_files is not None:
            return limits.ReadMaxFiles(asked.max_files)
        if asked.max_rows is not None:
            return limits.ReadMaxRows(asked.max_rows)
        return limits.ReadAllAvailable() if asked.max_bytes is None else limits.ReadMaxBytes(asked.max_bytes)

    def latestOffset(self, start: dict[str, Any], limit: limits.ReadLimit) -> dict[str, Any]:  # noqa: N802  # as above
        """The end of the next batch, by all limits of the options at once."""
        with errors_noted():
            most = UNLIMITED if isinstance(limit, limits.ReadAllAvailable) else self.asked.limits
            return offset_of(self._follower().advance(position_of(start), most, last=self.last))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # as above
        """What is there now is all that the query reads."""
        with errors_noted():
            self.last = self._follower().newest()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802  # as above
        """Where a query that had read everything would stand."""
        with errors_noted():
            return offset_of(Position(self._follower().newest() + 1))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ds.InputPartition]:
        """The splits of the batch, small ones together."""
        with errors_noted():
            request = ScanRequest.model_validate_json(self.request)
            follower = self._follower()
            plan = follower.plan(position_of(start), position_of(end), request.tree)
            return [SplitPartition(tuple(task)) for task in tasks_of(plan, follower.store.schema, ordered=False)]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        with errors_noted():
            context = TaskContext.get()
            pa.set_cpu_count(max(1, context.cpus() if context is not None else 1))
            request = ScanRequest.model_validate_json(self.request)
            store = LocalBackend(self.path).store(request.options, request.schema_id)
            wanted = arrow_for_spark(self.schema)
            for split in partition.splits if isinstance(partition, SplitPartition) else ():
                for batch in stream_rows(store, request, split):
                    yield cast_for_spark(batch, wanted)

    def commit(self, end: dict[str, Any]) -> None:
        """What comes before ``end`` is done with: the consumer need not hold it any more."""
        with errors_noted():
            self._record(self._follower(), position_of(end))

    def stop(self) -> None:
        """Nothing is held. The consumer stays, so that the query can go on later."""

    def _follower(self) -> Follower:
        """The table as it is now. Raises ``SchemaMismatch`` if the columns that are read have changed under the stream."""
        request = ScanRequest.model_validate_json(self.request)
        newest = LocalBackend(self.path).store(request.options)
        if newest.schema.id != request.schema_id:
            self._check_columns(newest.schema, newest.schemas.get(request.schema_id or 0))
        return Follower(newest, self.asked.overwrites)

    def _check_columns(self, now: TableSchema, then: TableSchema) -> None:
        names = [name for name in self.schema.names if name != ROW_KIND or name in then.names]
        fields = [{field.name: (field.id, field.type) for field in schema.fields} for schema in (then, now)]
        changed = [name for name in names if fields[0][name] != fields[1].get(name)]
        added = [name for name in now.names if self.every is not None and name not in self.every]
        if changed or added:
            raise SchemaMismatch(
                f"{self.path}: the table's columns have changed under the stream ({', '.join(changed + added)}): start the query again, "
                "with the same checkpoint; it goes on with the new columns"
            )

    def _progress(self, follower: Follower) -> Position | None:
        """Where the consumer stands; None without one, or if its progress is to be ignored."""
        if self.asked.consumer is None or self.asked.ignore_progress:
            return None
        found = follower.store.snapshots.consumer(self.asked.consumer)
        if found is None:
            return None
        position = position_of(found[_POSITION]) if isinstance(found.get(_POSITION), dict) else None
        if position is not None and self._held(position) == found["nextSnapshot"]:  # else another engine has moved it
            return position
        return Position(found["nextSnapshot"])

    def _record(self, follower: Follower, position: Position) -> None:
        if self.asked.consumer is not None:
            follower.store.snapshots.record_consumer(self.asked.consumer, self._held(position), **{_POSITION: offset_of(position)})

    def _held(self, position: Position) -> int:
        """The oldest snapshot to keep: an overwrite is compared with the one before it."""
        return max(position.oldest_needed - int(self.asked.overwrites), 1)


def stream_schema(options: Mapping[str, str]) -> StructType:
    """The columns of a stream, when ``DataSource.schema`` is asked for them."""
    given = read_options(without_stream(options))
    table = LocalBackend(table_path(given)).schema()
    asked = StreamOptions.of(options, table.options)
    names = columns(given) or table.names
    _check_names(table, names, asked)
    if asked.kinds and ROW_KIND not in names:
        names = (*names, ROW_KIND)
    return spark_schema(scan_fields(table, names))


def stream_reader(options: Mapping[str, str], schema: StructType) -> PaimonStreamReader:
    """The reader of a stream with the columns of ``schema``."""
    with errors_noted():
        own = {key: value for key, value in options.items() if key != SCAN}  # a scan that schema() pinned: it cannot know of the stream
        given = read_options(without_stream(own), schema)
        path = table_path(given)
        table = LocalBackend(path).schema()
        asked = StreamOptions.of(own, table.options)
        names = tuple(schema.names)
        _check_names(table, names, asked)
        expected = {field.name: field.dataType for field in spark_schema(scan_fields(table, names)).fields}
        for field in schema.fields:
            if field.dataType != expected[field.name]:
                raise SchemaMismatch(
                    f"{path}: column '{field.name}' is {expected[field.name].simpleString()} in the table, not {field.dataType.simpleString()}"
                )
        settings = {**table_options(given), **(EVERY_LEVEL if table.is_primary_key_table else {})}
        request = ScanRequest.of(bind_filter(given.get(FILTER), table.column_types), columns=names, snapshot_id=None)
        request = request.model_copy(update={"schema_id": table.id, "options": settings})
        every = None if COLUMNS in given or not set(names) >= set(table.names) else table.names
        reader = PaimonStreamReader(path, request.model_dump_json(), schema, asked, every)
        _check_table(LocalBackend(path).store(settings), asked)
        return reader


def _check_names(table: TableSchema, names: tuple[str, ...], asked: StreamOptions) -> None:
    if ROW_KIND in table.names and (asked.kinds or ROW_KIND in names):
        raise InvalidArgument(f"the table has a column '{ROW_KIND}' of its own, so that changes cannot carry their kinds in it")
    for name in names:
        if name not in table.names and name != ROW_KIND:
            raise UnknownColumn(name, tuple(table.names))


def _check_table(store: FileStore, asked: StreamOptions) -> None:
    """Raise ``UnsupportedTable`` or ``InvalidArgument`` for a table that cannot be followed so."""
    check_readable(store.options, has_primary_key=store.schema.is_primary_key_table, table=store.root)
    Follower(store, asked.overwrites)


__all__ = ["PaimonStreamReader", "stream_reader", "stream_schema"]
