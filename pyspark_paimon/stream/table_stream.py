"""Stream of a table: positions, batches, rows and consumer progress.

Spark's source and ``Table.follow`` use it. It has no state that a restart would lose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import Predicate, columns_of
from lsm.arrow.row_kind import ROW_KIND
from lsm.incremental.planner import IncrementalSplit, split_from_json
from lsm.incremental.read import read_incremental
from lsm.incremental.stream_scan import UNLIMITED, Position, StreamScan
from lsm.read.split import read_split
from lsm.scan.plan import ScanPlan
from lsm.scan.splits import DataSplit
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.consumers import LAST_READ
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon.local.open_engine import open_engine
from pyspark_paimon.local.read_errors import explained
from pyspark_paimon.request.requests import EVERY_LEVEL, ScanRequest
from pyspark_paimon.stream.options import StreamOptions, offset_of, position_of

if TYPE_CHECKING:
    from lsm.scan.splits import DataSplit
    from manifest.store import FileStore
    from pyspark_paimon.request.operation import OpenTable
    from pyspark_paimon.request.requests import ScanRequest


_NEW_ROW_KINDS = pa.array(["+I", "+U"])


def stream_rows(store: FileStore, request: ScanRequest, split: DataSplit | str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split.

    They have the columns of ``request``. Rows of a key are in order of time.
    """
    parsed = split_from_json(split) if isinstance(split, str) else split
    if not isinstance(parsed, IncrementalSplit):
        return _state_rows(store, request, parsed)
    if ROW_KIND in request.columns:
        return read_incremental(store, parsed, columns=request.columns, predicate=request.predicate)
    # Without kinds the reader could not distinguish deleted and old rows from new ones: leave them out.
    return _new_rows(store, request, parsed)


def _state_rows(store: FileStore, request: ScanRequest, split: DataSplit) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a whole state, as inserted rows."""
    values = tuple(name for name in request.columns if name != ROW_KIND)
    for batch in read_split(store, split, columns=values, predicate=request.predicate):
        if ROW_KIND in request.columns:
            kinds = pa.repeat(pa.scalar("+I"), batch.num_rows)
            with_kinds = batch.append_column(pa.field(ROW_KIND, pa.string(), nullable=False), kinds)
            yield with_kinds.select(list(request.columns))
        else:
            yield batch


def _new_rows(store: FileStore, request: ScanRequest, split: IncrementalSplit) -> Iterator[pa.RecordBatch]:
    for batch in read_incremental(store, split, columns=(*request.columns, ROW_KIND), predicate=request.predicate):
        new_rows = batch.filter(pc.is_in(batch.column(ROW_KIND), value_set=_NEW_ROW_KINDS))
        if new_rows.num_rows:
            yield new_rows.select(list(request.columns))


_POSITION = "streamPosition"


@dataclass(frozen=True)
class TableStream:
    """Stream of the table at ``path``.

    The object can be sent between processes.

    request: Columns, filter and schema id of the rows.
    every: All columns of that schema, if the stream reads all columns. None: it reads some.
    opened: The table, if this process has opened it, for example by a catalog. None: it is opened by its path.
    """

    path: str
    request: ScanRequest
    stream_options: StreamOptions
    every: tuple[str, ...] | None
    opened: OpenTable | None = None

    @classmethod
    def of(
        cls,
        table: str | OpenTable,
        stream_options: StreamOptions,
        predicate: Predicate | None,
        columns: tuple[str, ...] | None,
        options: Mapping[str, str] | None = None,
    ) -> TableStream:
        """Return the stream of a table.

        table: The table, or its path.
        columns: Columns to read, with ``_row_kind`` for the kinds of changes. None: all.
        Raises ``UnknownColumn``, ``InvalidArgument``, and ``UnsupportedTable`` for a table that cannot be streamed with these
        options.
        """
        opened = None if isinstance(table, str) else table
        engine = open_engine(table) if isinstance(table, str) else table
        schema = engine.schema()
        names = stream_columns(schema, columns, stream_options)
        settings = {**(options or {}), **EVERY_LEVEL}
        request = ScanRequest.of(predicate, columns=names, snapshot=None)
        store = engine.store(settings)
        store.check_streamable()
        StreamScan(store, stream_options.overwrites)
        every = schema.names if columns is None else None
        stream_request = request.model_copy(update={"schema_id": schema.id, "options": settings})
        return cls(engine.path if opened is not None else str(table), stream_request, stream_options, every, opened)

    def _engine(self) -> OpenTable:
        return open_engine(self.path) if self.opened is None else self.opened

    def start(self) -> Position:
        """Return the start of a new stream.

        It is the progress of the consumer if there is one, else the start of the options.
        """
        scan = self._stream_scan()
        stream_options = self.stream_options
        position = self._progress(scan)
        if position is not None:
            self.done(position)  # renew the consumer's file, so that it does not expire
            return position
        position = scan.start(stream_options.mode, snapshot_id=stream_options.snapshot_id, timestamp_millis=stream_options.timestamp_millis)
        if stream_options.consumer is not None:
            scan.store.snapshots.record_consumer(stream_options.consumer, self._held(position), **_notes(position))
        return position

    def newest(self) -> int:
        """Return the id of the newest snapshot, or 0."""
        return self._stream_scan().newest()

    def advance(self, start: Position, *, limited: bool = True, last: int | None = None) -> Position:
        """Return the end of the next batch.

        limited: Whether the limits of the options apply.
        """
        return self._stream_scan().advance(start, self.stream_options.limits if limited else UNLIMITED, last=last)

    def plan(self, start: Position, end: Position) -> tuple[ScanPlan, TableSchema]:
        """Return the splits of a batch, and their schema."""
        scan = self._stream_scan()
        return scan.plan(start, end, self.request.predicate), scan.store.schema

    def rows(self, split: DataSplit | str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split of ``plan``."""
        store = self._engine().store(self.request.options, self.request.schema_id)
        return explained(store, stream_rows(store, self.request, split))

    def done(self, end: Position) -> None:
        """Record that everything before ``end`` has been processed.

        The consumer then no longer retains earlier snapshots. The progress never moves back if another run is ahead.
        """
        if self.stream_options.consumer is not None:
            self._stream_scan().store.snapshots.advance_consumer(
                self.stream_options.consumer, self._held(end), lambda recorded: self._is_ahead(recorded, end), **_notes(end)
            )

    def _stream_scan(self) -> StreamScan:
        """Return a scan of the current table.

        Raises ``SchemaMismatch`` if columns of the stream have changed.
        """
        newest = self._engine().store(self.request.options)
        if newest.schema.id != self.request.schema_id:
            then = newest.schemas.get(self.request.schema_id or 0)
            self._check_columns(self.request.columns, newest.schema, then)
            self._check_added(newest.schema)
        return StreamScan(newest, self.stream_options.overwrites)

    def _check_columns(self, columns: Iterable[str], now: TableSchema, then: TableSchema) -> None:
        names = [name for name in columns if name in then.names]
        fields = [{field.name: (field.id, field.type) for field in schema.fields} for schema in (then, now)]
        changed = [name for name in names if fields[0][name] != fields[1].get(name)]
        if changed:
            raise SchemaMismatch(
                f"{_quote_columns(changed)} dropped, renamed or retyped in {self.path} while the stream was running: start the query "
                "again with the same checkpoint, or call follow() with the last offset, and name columns that the table has"
            )

    def _check_added(self, now: TableSchema) -> None:
        added = [name for name in now.names if self.every is not None and name not in self.every]
        if added:
            raise SchemaMismatch(
                f"{_quote_columns(added)} added to {self.path} while the stream was running: start the query again with the same "
                "checkpoint to read the new columns, with the option 'mergeSchema' of the sink; with the option 'columns' a query never stops"
            )

    def refreshed(self) -> TableStream:
        """Return the stream with all columns of the newest schema.

        Raises ``SchemaMismatch`` if columns of its filter have changed.
        """
        newest = self._engine().store(self.request.options)
        if newest.schema.id == self.request.schema_id:
            return self
        used = () if self.request.predicate is None else columns_of(self.request.predicate)
        self._check_columns(used, newest.schema, newest.schemas.get(self.request.schema_id or 0))
        names = stream_columns(newest.schema, None, self.stream_options)
        return replace(self, request=self.request.model_copy(update={"columns": names, "schema_id": newest.schema.id}))

    def _progress(self, scan: StreamScan) -> Position | None:
        """Return the progress of the consumer.

        None: there is no consumer, or its progress is ignored.
        """
        if self.stream_options.consumer is None or self.stream_options.ignore_progress:
            return None
        consumer = scan.store.snapshots.consumer(self.stream_options.consumer)
        if consumer is None:
            return None
        return self._record(consumer)

    def _record(self, consumer: Mapping[str, Any]) -> Position:
        position = position_of(consumer[_POSITION]) if isinstance(consumer.get(_POSITION), dict) else None
        if position is not None and self._held(position) == consumer["nextSnapshot"]:  # otherwise another engine has changed the consumer
            return position
        return Position(consumer["nextSnapshot"])

    def _is_ahead(self, consumer: Mapping[str, Any], end: Position) -> bool:
        """Return whether another run of the stream has advanced farther.

        Units of the same snapshot are compared only if both count them in the same way.
        """
        recorded = self._record(consumer)
        if recorded.snapshot_id != end.snapshot_id:
            return recorded.snapshot_id > end.snapshot_id
        return recorded.whole == end.whole and recorded.unit > end.unit

    def _held(self, position: Position) -> int:
        """Return the oldest snapshot to retain."""
        # An overwrite is compared with the snapshot before it.
        return max(position.oldest_needed - int(self.stream_options.overwrites), 1)


def _notes(position: Position) -> dict[str, Any]:
    """Return the position and the last read snapshot, for the file of a consumer."""
    read = position.newest_before
    return {_POSITION: offset_of(position), **({} if read is None else {LAST_READ: list(read)})}


def stream_columns(table: TableSchema, columns: tuple[str, ...] | None, stream_options: StreamOptions) -> tuple[str, ...]:
    """Return the columns of a stream.

    The row kind comes last unless ``columns`` contains it. Raises ``UnknownColumn`` and ``InvalidArgument``.
    """
    names = table.names if columns is None else columns
    if ROW_KIND in table.names and (stream_options.kinds or ROW_KIND in names):
        raise InvalidArgument(f"the table has a column '{ROW_KIND}', so that changes cannot have their kinds in it; rename the column")
    for name in names:
        if name not in table.names and name != ROW_KIND:
            raise UnknownColumn(name, tuple(table.names))
    return (*names, ROW_KIND) if stream_options.kinds and ROW_KIND not in names else names


def _quote_columns(names: Sequence[str]) -> str:
    """Return the start of a sentence about columns.

    >>> _quote_columns(["a"]), _quote_columns(["a", "b"])
    ("column 'a' was", "columns 'a', 'b' were")
    """
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"columns {quoted} were" if len(names) > 1 else f"column {quoted} was"
