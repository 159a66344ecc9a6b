"""Methods of ``Table`` that read rows and changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from fileindex.predicate.tree import Predicate
from manifest.options.core_options import option_texts
from paimon_base.errors import InvalidArgument, UnknownColumn
from paimon_base.lazy import LazyModule
from paimon_base.plugins import plugin
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.jobs.incremental import MODES, Point, change_columns, exact_mode, range_of
from pyspark_paimon.request.requests import IncrementalModeName, IncrementalRange, ScanRequest, TravelRequest
from pyspark_paimon.request.scan_mode import ScanPlace, without_place
from pyspark_paimon.request.state import Start
from pyspark_paimon.request.validate import check_options, millis_of, projection, travel_of
from pyspark_paimon.table.readable import Readable
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.table.scan import Scan
from pyspark_paimon.typing import Filter, Time

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.jobs import ordering
    from pyspark_paimon.request.engine import LocalTable
    from pyspark_paimon.stream.follow import StreamBatch
    from pyspark_paimon.table import outputs as computing
    from pyspark_paimon.table.outputs import Outputs
else:
    ordering = LazyModule("pyspark_paimon.jobs.ordering")
    computing = LazyModule("pyspark_paimon.table.outputs")


def _outputs_of(columns: Sequence[str] | Mapping[str, Any] | None, schema: TableSchema) -> tuple[tuple[str, ...], Outputs | None]:
    """Return the columns that a scan reads, and what it computes from them. None: nothing."""
    if not isinstance(columns, Mapping):
        try:
            return projection(columns, schema, metadata=True), None
        except UnknownColumn:
            if columns is None or not any(set(name) & set(".[(`") for name in columns):
                raise
    bound = computing.Outputs.of(columns, schema)
    return bound.columns, bound


class TableReading(TableRole, Readable):
    """Methods that read snapshots, changes and streams.

    >>> from pyspark_paimon.example import cities
    >>> cities().scan("country = 'NO'", columns=["city"]).to_arrow().to_pylist()
    [{'city': 'Oslo'}]
    """

    def scan(
        self,
        filter: Filter = None,  # noqa: A002  # Arrow's and pandas' word
        columns: Sequence[str] | Mapping[str, Any] | None = None,
        limit: int | None = None,
        *,
        params: Mapping[str, object] | None = None,
        order_by: str | Sequence[str] | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        timestamp: Time | None = None,
        incremental: tuple[Point, Point] | None = None,
        incremental_mode: IncrementalModeName | None = None,
        options: Mapping[str, str] | None = None,
        read_optimized: bool = False,
    ) -> Scan:
        """Return a lazy read of one snapshot.

        Args:
            filter: SQL text as after WHERE (``"city = 'Oslo' AND attrs['clicks'] > 3"``), a Spark Column, or an
                expression of pyarrow or polars.
                Names mean stored columns, as in WHERE.
                Times without a zone in SQL text are of the zone of the process, of a ``time_zone`` block or of the Spark session;
                in expressions of pyarrow and polars of UTC. Column names match regardless of case if that is unambiguous. Computed conditions
                (``"lower(city) LIKE '%os%' AND amount % 2 = 0"``) follow Spark's ANSI rules: a sum that overflows is an error.
            columns: Columns to read, in this order. None: all. A list may have parts of columns: fields (``"s.a"``), entries
                (``"attrs['clicks']"``) and elements (``"a[0]"``). A dict has expressions by name (``{"day": "date(ts)"}``), as SQL
                text, a Spark Column or an expression of pyarrow. Only columns that these use are read. A list of names may have
                ``__paimon_file_path``, ``__paimon_row_index``, ``__paimon_partition`` and ``__paimon_bucket``, and with
                ``row-tracking.enabled`` ``_ROW_ID`` and ``_SEQUENCE_NUMBER``: where each row is stored.
            limit: Largest number of rows.
            params: Values of the parameters in SQL text: ``scan("city = :c AND id IN :ids", params={"c": "Oslo", "ids": array})``.
                A list may be an Arrow array, a Series or any collection, also of a million values.
            order_by: Sort order as in Spark SQL (``"price DESC NULLS LAST, id"``, or a sequence of such items): columns and parts of
                columns. A name of ``columns`` means that expression, also if a stored column has the name. Rows are sorted
                in memory. With ``limit`` only the first rows are kept. Statistics, and a range-bitmap index of the first
                column, skip files, row groups and rows that cannot be among them.
            snapshot: Snapshot id. None, with no tag and no timestamp: the newest snapshot.
            tag: Tag name.
            timestamp: Read the newest snapshot committed until this time: milliseconds, a datetime or its text.
            incremental: Two snapshot ids or tags ``(a, b)``: read the changes after ``a`` up to and including ``b``. The column
                ``_row_kind`` has the kind of each row. Overwrites are missing from ``delta`` and ``changelog``;
                ``Table.changelog()`` has them.
            incremental_mode: ``delta`` (rows that appends wrote), ``changelog`` (the changelog files) or ``diff`` (comparison
                of the two states by key). Default: ``diff`` for two tags, else ``changelog`` if the table has one, else
                ``delta``.
            options: Table options for this read only. They may give the position in Paimon's way: ``scan.mode`` with
                ``scan.snapshot-id``, ``scan.tag-name``, ``scan.timestamp``, ``scan.timestamp-millis``, ``scan.watermark`` or
                ``scan.version``, or ``incremental-between``. ``{"deletion-vectors.merge-on-read": "false"}`` ignores rows that
                wait for a compaction, as other engines do, in tables with deletion vectors or merge engine ``first-row``.
            read_optimized: Of a primary-key table, read only the result of the last full compaction of each bucket, as ``t$ro`` does.
                Nothing is merged, and newer rows are missing.

        Raises:
            InvalidFilter, UnknownColumn, InvalidArgument, UnsupportedOption: An argument is not valid.
            SnapshotNotFound, SnapshotExpired: There is no such snapshot or tag.
            FilterFailed: Raised while reading, if a filter computes something without a value.
            UnsupportedTable: Raised while reading, if rows of a merge are asked for their file or index.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.scan("id > 1", columns=["id", "__paimon_bucket", "__paimon_row_index"]).to_arrow().to_pylist()
        [{'id': 2, '__paimon_bucket': 0, '__paimon_row_index': 1}, {'id': 3, '__paimon_bucket': 0, '__paimon_row_index': 2}]
        >>> table.scan("attrs['clicks'] > 3 OR city LIKE 'R%'", columns=["id", "city"]).to_arrow().to_pylist()
        [{'id': 2, 'city': 'Lima'}, {'id': 3, 'city': 'Rome'}]
        >>> import pyarrow.compute as pc
        >>> table.scan(pc.field("country") == "NO", snapshot=1).count()
        1
        >>> table.scan(columns=["city"], order_by="id DESC", limit=2).to_arrow().to_pylist()
        [{'city': 'Rome'}, {'city': 'Lima'}]
        >>> table.scan("id = 2", columns={"name": "upper(city)", "clicks": "attrs['clicks'] + 1"}).to_arrow().to_pylist()
        [{'name': 'LIMA', 'clicks': 8}]
        """
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidArgument(f"limit must be a number of rows, not {limit!r}")
        travel = travel_of(snapshot, tag, timestamp)
        options = self._read_options(options, placed=travel != TravelRequest() or incremental is not None)
        texts = option_texts(options)
        if any(key.startswith(("scan.", "log.scan", "incremental-")) for key in texts):
            travel, incremental, incremental_mode = self._scan_position(texts, travel, incremental, incremental_mode)
            options = without_place(texts)
        if incremental is not None:
            if travel != TravelRequest() or len(incremental) != 2:
                raise InvalidArgument(
                    "an incremental scan needs two points, incremental=(from, to), and no other snapshot, tag or timestamp"
                )
            if read_optimized:
                raise InvalidArgument("read_optimized reads one snapshot and cannot be used with incremental; remove one of them")
            if isinstance(columns, Mapping):
                raise InvalidArgument("columns: a scan of changes reads whole columns; give a list, and compute expressions from its rows")
            snapshot_range = range_of(self._engine, self.table_schema, *incremental, incremental_mode)
            return self._changes(
                snapshot_range,
                bind_filter(filter, self.table_schema.column_types, params),
                filter,
                columns,
                limit,
                order_by=order_by,
                options=options,
            )
        if incremental_mode is not None:
            raise InvalidArgument("incremental_mode can only be used with incremental=(from, to)")
        pinned, schema = self._engine.ask(Start(travel=travel))
        names, outputs = _outputs_of(columns, schema)
        order, outputs = ((), outputs) if order_by is None else computing.sorted_outputs(order_by, limit, names, outputs, schema)
        if outputs is not None and outputs.order:  # the limit follows the order
            names, limit = outputs.columns, None
        request = ScanRequest.of(
            bind_filter(filter, schema.column_types, params),
            columns=names,
            snapshot=pinned,
            limit=limit,
        ).model_copy(
            update={
                "schema_id": schema.id,
                "order_by": order,
                "options": check_options(options),
                "read_optimized": read_optimized,
            }
        )
        return Scan(self._engine, request, schema, None if filter is None else str(filter), outputs)

    def _scan_position(
        self,
        options: Mapping[str, str],
        travel: TravelRequest,
        between: tuple[Point, Point] | None,
        mode: IncrementalModeName | None,
    ) -> tuple[TravelRequest, tuple[Point, Point] | None, IncrementalModeName | None]:
        """Return where a scan reads, by arguments or options."""
        scan_place = ScanPlace.of(self._engine, options)
        if scan_place is None:
            return travel, between, mode
        if travel != TravelRequest() or between is not None:
            raise InvalidArgument("the position of a scan is given twice: use arguments, or options such as scan.mode, not both")
        known_mode = next((mode_name for mode_name in MODES if mode_name == scan_place.mode), None)
        if scan_place.mode is not None and known_mode is None:
            raise InvalidArgument(f"incremental-between-scan-mode must be one of auto, {', '.join(MODES)}, not '{scan_place.mode}'")
        return scan_place.travel, scan_place.between, mode if known_mode is None else known_mode

    def changelog(
        self,
        from_snapshot: Point,
        to_snapshot: Point | None = None,
        filter: Filter = None,  # noqa: A002  # as in scan
        columns: Sequence[str] | None = None,
        *,
        params: Mapping[str, object] | None = None,
        mode: IncrementalModeName | None = None,
    ) -> Scan:
        """Return a scan of the changes between two snapshots.

        Rows have their kind in the column ``_row_kind``; the changes of a key are in order of time. By default no change is missing.
        The changelog files are read if the table has a ``changelog-producer`` and there is no overwrite in the range. Otherwise
        the two states are compared. Tables without a primary key give the appended rows. A changelog that compaction makes
        (``lookup``, ``full-compaction``) has rows only after they are compacted.

        Args:
            from_snapshot: Snapshot id, tag or time (``datetime``, ``date``) after which changes are read. 0: from the beginning.
            to_snapshot: Last snapshot id, tag or time. None: the newest.
            filter: As in ``scan``; it is applied to each changed row separately.
            columns: Columns to read. None: all.
            params: As in ``scan``.
            mode: As ``incremental_mode`` in ``scan``. None: a mode that misses no change.

        Raises:
            SnapshotExpired, SnapshotNotFound: There is no such snapshot or tag.
            InvalidArgument, InvalidFilter, UnknownColumn: An argument is not valid.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("city = 'Oslo'").snapshot_id
        2
        >>> table.changelog(1, columns=["id", "city"]).to_arrow().to_pylist()
        [{'id': 1, 'city': 'Oslo', '_row_kind': '-D'}]
        """
        schema = self.table_schema
        snapshot_range = range_of(self._engine, schema, from_snapshot, to_snapshot, mode)
        if mode is None:
            snapshot_range = snapshot_range.model_copy(
                update={"mode": exact_mode(self._engine, schema, snapshot_range), "exact": schema.kind.has_row_kinds}
            )
        options = self._read_options(None, placed=True)
        return self._changes(snapshot_range, bind_filter(filter, schema.column_types, params), filter, columns, None, options=options)

    def diff(
        self,
        before: Point,
        after: Point | None = None,
        filter: Filter = None,  # noqa: A002  # as in scan
        columns: Sequence[str] | None = None,
        *,
        params: Mapping[str, object] | None = None,
    ) -> Scan:
        """Return a scan of the rows that differ between two states of a primary-key table.

        A changed row is a pair ``-U``, ``+U`` in the column ``_row_kind``; rows of one state only are ``-D`` or ``+I``. Rows that changed
        and changed back are left out. The answer is the same for every ``changelog-producer``.

        Args:
            before: Snapshot id, tag or time of the older state. 0: the empty table.
            after: That of the newer state. None: the newest.
            filter: As in ``changelog``.
            columns: Columns to read. None: all.
            params: As in ``scan``.

        Raises:
            SnapshotExpired, SnapshotNotFound: There is no such snapshot or tag, or no snapshot at such a time.
            UnsupportedTable: The table has no primary key.
            InvalidArgument, InvalidFilter, UnknownColumn: An argument is not valid.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> _ = table.update("id = 1", values={"city": "Bergen"}), table.update("id = 1", values={"city": "Oslo"}), table.delete("id = 2")
        >>> table.diff(1, columns=["id", "city"]).to_arrow().to_pylist()
        [{'id': 2, 'city': 'Lima', '_row_kind': '-D'}]
        """
        return self.changelog(before, after, filter, columns, params=params, mode="diff")

    def follow(
        self,
        offset: str | None = None,
        filter: Filter = None,  # noqa: A002  # as in scan
        columns: Sequence[str] | None = None,
        *,
        start: str = "default",
        snapshot: int | None = None,
        timestamp: Time | None = None,
        max_rows: int | None = None,
        consumer: str | None = None,
        overwrites: bool = False,
    ) -> Iterator[StreamBatch]:
        """Yield the table's rows and then its changes in batches.

        The iteration ends at the newest snapshot. Call again with the last ``offset`` to continue. Rows of the first state have
        the kind ``+I``; then come appended rows or the table's changelog. On Spark use ``readStream``.

        Args:
            offset: Offset of the last processed batch. An offset never changes its meaning.
            filter: Applied to each row separately, as in ``changelog``.
            columns: Columns to read; ``_row_kind`` comes last. None: all, also those that are added between two batches.
            start: Start without an offset, one of Paimon's ``scan.mode``: ``latest-full`` (default), ``latest``,
                ``compacted-full``, ``from-snapshot``, ``from-snapshot-full`` (with ``snapshot``), ``from-timestamp``.
            snapshot: First snapshot whose changes are read.
            timestamp: As ``snapshot``, by time.
            max_rows: Rows of a batch. A larger file, or bucket of the first state, makes a separate batch.
            consumer: Name under which the table stores the progress. Snapshots that the consumer has yet to read do not expire.
            overwrites: Also report the rows that overwrites replace. False: overwrites are skipped.

        Raises:
            SnapshotExpired: The next snapshot of the stream has expired.
            SnapshotNotFound: A rollback, fast-forward, restore or re-creation replaced what the stream has read. Start without offset.
            SchemaMismatch: A column of ``columns`` or of the filter was dropped, renamed or retyped meanwhile.
            UnsupportedTable: The merge engine needs a ``changelog-producer`` for this.
            InvalidArgument, InvalidFilter, UnknownColumn, UnsupportedOption: An argument is not valid.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> [state] = table.follow(columns=["id"])
        >>> table.delete("id = 2").rows
        1
        >>> [batch.rows.to_pylist() for batch in table.follow(state.offset, columns=["id", "city"])]
        [[{'id': 2, 'city': 'Lima', '_row_kind': '-D'}]]
        """
        from pyspark_paimon.stream.follow import follow_options, follow_table  # noqa: PLC0415  # loads the storage engine

        if self._engine.spark is not None:
            raise InvalidArgument("follow reads in process; on Spark use spark.readStream.format('paimon').load(path)")
        schema = self.table_schema
        stream_options = follow_options(
            schema,
            start,
            snapshot=snapshot,
            millis=millis_of(timestamp),
            max_rows=max_rows,
            consumer=consumer,
            overwrites=overwrites,
        )
        named = None if columns is None else change_columns(columns, schema)
        opened = cast("LocalTable", self._engine)  # it has no session
        return follow_table(opened, stream_options, bind_filter(filter, schema.column_types), named, offset)

    def count(self) -> int:
        """Return the number of rows of the newest snapshot.

        Files that metadata or indexes can count are not read.

        >>> from pyspark_paimon.example import cities
        >>> cities().count()
        3
        """
        return self.scan().count()

    def _read(self) -> Scan:
        return self.scan()

    def _repr_html_(self) -> str:
        text: str = plugin("page", "cards").or_error(self.path, lambda: plugin("page", "table")(self._engine))
        return text

    def _changes(
        self,
        snapshot_range: IncrementalRange,
        predicate: Predicate | None,
        filter: Filter,  # noqa: A002  # as in scan
        columns: Sequence[str] | None,
        limit: int | None,
        *,
        order_by: str | Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Scan:
        schema = self.table_schema
        request = ScanRequest(
            predicate=predicate,
            columns=change_columns(columns, schema),
            snapshot_id=snapshot_range.end_id,
            limit=limit,
        ).model_copy(
            update={
                "schema_id": schema.id,
                "incremental": snapshot_range,
                "order_by": ordering.sort_columns(order_by, schema),
                "options": check_options(options),
            }
        )
        return Scan(self._engine, request, schema, None if filter is None else str(filter))
