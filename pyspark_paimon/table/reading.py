"""Reading a table: a snapshot, what changed between two, and what changes from now on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fileindex.base.errors import InvalidArgument
from fileindex.base.lazy import LazyModule
from fileindex.predicate.tree import Predicate
from manifest.options.core_options import option_texts
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.jobs.incremental import MODES, Point, change_columns, exact_mode, range_of
from pyspark_paimon.request.backend import IncrementalModeName, IncrementalRange, ScanRequest, TravelRequest
from pyspark_paimon.request.scan_mode import ScanPlace, without_place
from pyspark_paimon.request.state import Start
from pyspark_paimon.request.validate import checked_options, millis_of, projection, travel_of
from pyspark_paimon.table.readable import Readable
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.table.scan import Scan
from pyspark_paimon.typing import Filter, Time

if TYPE_CHECKING:
    from pyspark_paimon.jobs import ordering
    from pyspark_paimon.stream.follow import StreamBatch
else:
    ordering = LazyModule("pyspark_paimon.jobs.ordering")


class TableReading(TableRole, Readable):
    """The role that reads rows.

    >>> from pyspark_paimon.example import cities
    >>> cities().scan("country = 'NO'", columns=["city"]).to_arrow().to_pylist()
    [{'city': 'Oslo'}]
    """

    def scan(
        self,
        filter: Filter = None,  # noqa: A002  # Arrow's and pandas' word
        columns: Sequence[str] | None = None,
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
        """A lazy read of one snapshot: the newest, or that of an id, a tag, or a time (milliseconds or a datetime).

        With ``incremental=(a, b)``, snapshot ids or tags, it reads what happened after ``a`` up to and with ``b``, each row with its
        kind in the column ``_row_kind``: rows that appends wrote (``delta``), the table's changelog files (``changelog``), or the
        two states compared by key (``diff``). By default two tags are compared, else the changelog is read if there is one.
        Overwrites are in no delta and no changelog; ``changelog()`` never misses them.

        ``filter`` is SQL text as after WHERE (``"city = 'Oslo' AND attrs['clicks'] > 3"``), a Spark Column or a pyarrow
        expression; times without zone are UTC. Names of columns ignore case where that leaves no doubt. What is computed from columns
        (``"lower(city) LIKE '%os%' AND amount % 2 = 0"``) follows Spark's ANSI rules: a sum that does not fit its type is an error.
        ``params`` has the values of what SQL text names: ``scan("city = :c AND id IN :ids", params={"c": "Oslo", "ids": array})``,
        where a list may be an Arrow array, a Series, or any collection, of a million values, too.

        ``order_by`` (``"price DESC NULLS LAST, id"``, or a sequence of such items) sorts the rows as Spark SQL does, in memory; with
        ``limit`` only the first ones are kept, and files, row groups and rows that cannot be among them are not read: by minima
        and maxima, and by a range-bitmap index of the first column.

        ``options`` may name the place instead, as Paimon does: ``scan.mode`` with ``scan.snapshot-id``, ``scan.tag-name``, ``scan.timestamp``,
        ``scan.timestamp-millis``, ``scan.watermark`` or ``scan.version``, or ``incremental-between``. They are table options for this read only: ``{"deletion-vectors.merge-on-read": "false"}`` reads a table with deletion
        vectors or merge engine ``first-row`` as engines do that leave out what waits for a compaction. ``read_optimized`` reads of a table
        with primary keys only what the last full compaction of each bucket left, as ``t$ro`` does: nothing is merged, and newer rows are missing.

        Raises ``InvalidFilter``, ``UnknownColumn``, ``InvalidArgument``, ``UnsupportedOption``, ``SnapshotNotFound``, ``SnapshotExpired``;
        reading the scan raises ``FilterFailed`` where a filter computes what has no value.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.scan("attrs['clicks'] > 3 OR city LIKE 'R%'", columns=["id", "city"]).to_arrow().to_pylist()
        [{'id': 2, 'city': 'Lima'}, {'id': 3, 'city': 'Rome'}]
        >>> import pyarrow.compute as pc
        >>> table.scan(pc.field("country") == "NO", snapshot=1).count()
        1
        >>> table.scan(columns=["city"], order_by="id DESC", limit=2).to_arrow().to_pylist()
        [{'city': 'Rome'}, {'city': 'Lima'}]
        """
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidArgument(f"limit is a number of rows, not {limit!r}")
        travel = travel_of(snapshot, tag, timestamp)
        options = self._read_options(options, placed=travel != TravelRequest() or incremental is not None)
        texts = option_texts(options)
        if any(key.startswith(("scan.", "log.scan", "incremental-")) for key in texts):
            travel, incremental, incremental_mode = self._place(texts, travel, incremental, incremental_mode)
            options = without_place(texts)
        if incremental is not None:
            if travel != TravelRequest() or len(incremental) != 2:
                raise InvalidArgument("an incremental scan reads between two points, incremental=(from, to), and no other snapshot")
            if read_optimized:
                raise InvalidArgument("read_optimized reads a state; what happened between two is read with what waits for a compaction")
            wanted = range_of(self._backend, self.table_schema, *incremental, incremental_mode)
            return self._changes(
                wanted,
                bind_filter(filter, self.table_schema.column_types, params),
                filter,
                columns,
                limit,
                order_by=order_by,
                options=options,
            )
        if incremental_mode is not None:
            raise InvalidArgument("incremental_mode goes with incremental=(from, to)")
        pinned, schema = self._backend.ask(Start(travel=travel))
        request = ScanRequest.of(
            bind_filter(filter, schema.column_types, params),
            columns=projection(columns, schema),
            snapshot=pinned,
            limit=limit,
        ).model_copy(
            update={
                "schema_id": schema.id,
                "order_by": ordering.sort_columns(order_by, schema),
                "options": checked_options(options),
                "read_optimized": read_optimized,
            }
        )
        return Scan(self._backend, request, schema, None if filter is None else str(filter))

    def _place(
        self,
        options: Mapping[str, str],
        travel: TravelRequest,
        between: tuple[Point, Point] | None,
        mode: IncrementalModeName | None,
    ) -> tuple[TravelRequest, tuple[Point, Point] | None, IncrementalModeName | None]:
        """Where a scan reads, by its arguments or its options."""
        found = ScanPlace.of(self._backend, options)
        if found is None:
            return travel, between, mode
        if travel != TravelRequest() or between is not None:
            raise InvalidArgument("a scan is told where to read once: by its arguments, or by options such as scan.mode")
        told = next((known for known in MODES if known == found.mode), None)
        if found.mode is not None and told is None:
            raise InvalidArgument(f"incremental-between-scan-mode is one of auto, {', '.join(MODES)}, not '{found.mode}'")
        return found.travel, found.between, mode if told is None else told

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
        """What changed after ``from_snapshot`` (0: from the beginning) up to ``to_snapshot`` (None: the newest), ids or tags.

        Rows carry their kind in ``_row_kind``; those of a key come in the order in which they happened. By default nothing is
        missed: the changelog files are read if the table has a ``changelog-producer`` and no overwrite lies between, else the states
        are compared; of a table without primary key the appended rows are read. ``filter`` judges each changed row alone. A
        changelog that compaction makes (``lookup``, ``full-compaction``) tells of rows once they are compacted.

        Raises ``SnapshotExpired``, ``SnapshotNotFound``, ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("city = 'Oslo'").snapshot_id
        2
        >>> table.changelog(1, columns=["id", "city"]).to_arrow().to_pylist()
        [{'id': 1, 'city': 'Oslo', '_row_kind': '-D'}]
        """
        schema = self.table_schema
        wanted = range_of(self._backend, schema, from_snapshot, to_snapshot, mode)
        if mode is None:
            wanted = wanted.model_copy(update={"mode": exact_mode(self._backend, schema, wanted), "exact": schema.is_primary_key_table})
        options = self._read_options(None, placed=True)
        return self._changes(wanted, bind_filter(filter, schema.column_types, params), filter, columns, None, options=options)

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
        """The table's rows and then its changes, batch by batch, up to the newest snapshot: call again with the last ``offset`` for more.

        Rows are ``+I`` while the state is read, then what appends wrote or the table's changelog. On Spark use ``readStream``.

        Args:
            offset: that of the last batch which was dealt with; it has the same meaning for ever.
            filter: judges each row alone, as in ``changelog``.
            columns: names; ``_row_kind`` comes last.
            start: where to begin without an offset, one of Paimon's ``scan.mode``: ``latest-full`` (default), ``latest``,
                ``compacted-full``, ``from-snapshot``, ``from-snapshot-full`` (with ``snapshot``), ``from-timestamp``.
            snapshot: the first snapshot whose changes are read.
            timestamp: as ``snapshot``, by time.
            max_rows: in one batch; a larger file, or bucket of a state, goes alone.
            consumer: a name under which the table notes the progress, so that nothing expires that is still to be read.
            overwrites: tell what overwrites replaced, too; else they are passed by.

        Raises:
            SnapshotExpired: the stream has lost its place.
            SchemaMismatch: the columns have changed since the stream was opened; call again.
            UnsupportedTable: the merge engine needs a ``changelog-producer`` for that.
            InvalidArgument, InvalidFilter, UnknownColumn, UnsupportedOption: the arguments do not fit.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> [state] = table.follow(columns=["id"])
        >>> table.delete("id = 2").rows
        1
        >>> [batch.rows.to_pylist() for batch in table.follow(state.offset, columns=["id", "city"])]
        [[{'id': 2, 'city': 'Lima', '_row_kind': '-D'}]]
        """
        from pyspark_paimon.stream.follow import asked_for, followed  # noqa: PLC0415  # a client of a server needs no storage engine

        if self._backend.spark is not None:
            raise InvalidArgument("follow reads in process; on Spark use spark.readStream.format('paimon').load(path)")
        schema = self.table_schema
        asked = asked_for(
            schema,
            start,
            snapshot=snapshot,
            millis=millis_of(timestamp),
            max_rows=max_rows,
            consumer=consumer,
            overwrites=overwrites,
        )
        named = None if columns is None else change_columns(columns, schema)
        return followed(self.path, asked, bind_filter(filter, schema.column_types), named, offset)

    def count(self) -> int:
        """Number of rows of the newest snapshot; files that metadata or indexes answer for are not read."""
        return self.scan().count()

    def _read(self) -> Scan:
        return self.scan()

    def _repr_html_(self) -> str:
        from pyspark_paimon.html.card import or_error  # noqa: PLC0415  # few tables are drawn
        from pyspark_paimon.views.notebook import table_card  # noqa: PLC0415  # as above

        return or_error(self.path, lambda: table_card(self._backend))

    def _changes(
        self,
        wanted: IncrementalRange,
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
            snapshot_id=wanted.end_id,
            limit=limit,
        ).model_copy(
            update={
                "schema_id": schema.id,
                "incremental": wanted,
                "order_by": ordering.sort_columns(order_by, schema),
                "options": checked_options(options),
            }
        )
        return Scan(self._backend, request, schema, None if filter is None else str(filter))


__all__ = ["TableReading"]
