"""Methods of ``Table`` that report schema, options, snapshots and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, cast

import pyarrow as pa

from manifest.schema.option_effects import effect_in
from paimon_base.errors import CorruptFile, InvalidArgument
from paimon_base.lazy import LazyModule
from paimon_base.plugins import plugin
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.request.requests import IndexView, TravelRequest
from pyspark_paimon.request.state import Pin, Snapshots
from pyspark_paimon.request.validate import cutoff_of
from pyspark_paimon.results.fsck_depth import Depth
from pyspark_paimon.table.role import TableRole

if TYPE_CHECKING:
    from pyspark_paimon.operations import analyze, index_advice, listings
    from pyspark_paimon.results.state_results import FsckResult
    from pyspark_paimon.typing import Filter
else:
    analyze = LazyModule("pyspark_paimon.operations.analyze")
    index_advice = LazyModule("pyspark_paimon.operations.index_advice")
    listings = LazyModule("pyspark_paimon.operations.listings")

_EFFECTS = pa.schema([(name, pa.string()) for name in ("option", "value", "effect", "note")])


class TableInspection(TableRole):
    """Methods that inspect the table and change nothing.

    >>> from pyspark_paimon.example import cities
    >>> cities().primary_keys
    ('id',)
    """

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table as an Arrow schema.

        >>> from pyspark_paimon.example import cities
        >>> cities().schema.names
        ['id', 'city', 'country', 'attrs']
        """
        return self.table_schema.arrow

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Primary-key columns; () for an append table.

        >>> from pyspark_paimon.example import cities
        >>> cities().primary_keys
        ('id',)
        """
        return self.table_schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Partition columns; () for a table without partitions.

        >>> from pyspark_paimon.example import cities
        >>> cities().partition_keys
        ()
        """
        return self.table_schema.partition_keys

    @property
    def options(self) -> dict[str, str]:
        """Stored options of the table.

        >>> from pyspark_paimon.example import cities
        >>> cities().options["bucket"]
        '1'
        """
        return dict(self.table_schema.options)

    def snapshots(self) -> pa.Table:
        """Return one row for each snapshot, oldest first.

        The first columns are as for ``history``. ``commit_kind`` is Paimon's word for the change of files. ``total_record_count``
        counts the records in all files, several for a key that was updated; ``count()`` counts rows.

        >>> from pyspark_paimon.example import cities
        >>> cities().snapshots().select(["snapshot_id", "operation", "commit_kind", "total_record_count"]).to_pylist()
        [{'snapshot_id': 1, 'operation': 'upsert', 'commit_kind': 'APPEND', 'total_record_count': 3}]
        """
        from pyspark_paimon.views.table_views import snapshots_table  # noqa: PLC0415  # see test_imports

        retained = self._engine.ask(Snapshots())
        return snapshots_table(retained)

    def history(self, limit: int | None = None) -> pa.Table:
        """Return what each commit did, newest first, of snapshots that have not expired.

        The metadata ``retention`` of the table's schema says how long snapshots are kept.

        - ``operation``: ``append``, ``upsert``, ``overwrite``, ``delete``, ``update``, ``merge``, ``compact``, ``restore`` or another
          method. Null for a commit of another engine.
        - ``metrics``: Numbers of rows, files and bytes.
        - ``properties``: The texts that the caller gave as ``properties``.

        Args:
            limit: Largest number of commits. None: all snapshots that have not expired.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("id = 1", properties={"ticket": "DATA-7"}).rows
        1
        >>> newest = table.history(1).to_pylist()[0]
        >>> newest["operation"], dict(newest["metrics"])["rows"], newest["properties"]
        ('delete', 1, [('ticket', 'DATA-7')])
        """
        from pyspark_paimon.views.table_views import HISTORY  # noqa: PLC0415  # see test_imports

        if limit is not None and limit < 0:
            raise InvalidArgument(f"history: limit must be 0 or more, not {limit}")
        newest_first = self.snapshots().select(HISTORY).sort_by([("snapshot_id", "descending")])
        newest_first = newest_first.replace_schema_metadata({"retention": self.table_schema.core.retention_text})
        return newest_first if limit is None else newest_first.slice(0, min(limit, newest_first.num_rows))

    def statistics(self, snapshot: int | None = None) -> pa.Table:
        """Return the statistics of a snapshot.

        There is one row for each column that ``analyze`` counted, and none if the table was never analyzed. Minima and maxima
        are texts. ``distinct_count`` is an estimate above 65,536. The column ``snapshot_id`` is the snapshot that was analyzed:
        later snapshots keep its statistics until the schema changes.

        Args:
            snapshot: Snapshot id. None: the newest.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.statistics().num_rows
        0
        >>> table.analyze(["city"]).snapshot_id
        2
        >>> table.statistics().select(["column", "record_count", "distinct_count", "min", "max", "null_count"]).to_pylist()
        [{'column': 'city', 'record_count': 3, 'distinct_count': 3, 'min': 'Lima', 'max': 'Rome', 'null_count': 0}]
        """
        from pyspark_paimon.views.table_views import statistics_table  # noqa: PLC0415  # loads the planner and the commit

        return statistics_table(self._engine.ask(analyze.ReadStatistics(snapshot_id=self._pinned_id(snapshot))))

    def files(self, snapshot: int | None = None) -> pa.Table:
        """Return one row for each data file of a snapshot.

        The columns have bucket, level, rows, bytes, keys and index.

        Args:
            snapshot: Snapshot id. None: the newest.

        >>> from pyspark_paimon.example import cities
        >>> cities().files().select(["bucket", "level", "row_count", "min_key", "max_key", "file_index"]).to_pylist()
        [{'bucket': 0, 'level': 0, 'row_count': 3, 'min_key': '1', 'max_key': '3', 'file_index': 'embedded'}]
        """
        return self._engine.ask(listings.ListFiles(snapshot_id=self._pinned_id(snapshot)))

    def clustering_information(self, columns: Sequence[str] | str | None = None, snapshot: int | None = None) -> pa.Table:
        """Return how well each column clusters the files.

        The result has a row for each partition and column, from the value ranges in the metadata:

        - ``average_overlaps``: Number of other files that have values in the range of a file.
        - ``average_depth``, ``max_depth``: Number of files that share a value, at the deepest value of each file. 1 is perfect.
        - ``constant_file_count``: Files with a single value.
        - ``unknown_file_count``: Files without a known range. They are not part of the other figures.

        Args:
            columns: Columns to report. None: the option ``clustering.columns``.
            snapshot: Snapshot id. None: the newest.

        Raises:
            UnknownColumn: There is no such column.
            InvalidArgument: No column is given, and ``clustering.columns`` is not set.

        >>> from pyspark_paimon.example import cities
        >>> cities().clustering_information("id").select(["file_count", "average_overlaps", "average_depth"]).to_pylist()
        [{'file_count': 1, 'average_overlaps': 0.0, 'average_depth': 1.0}]
        """
        from pyspark_paimon.views.table_views import clustering_information  # noqa: PLC0415  # see test_imports

        return clustering_information(self._engine, columns, snapshot)

    def file_indexes(self, snapshot: int | None = None) -> pa.Table:
        """Return one row for each file index of a snapshot.

        The columns are the same as in Paimon's ``$file_indexes``. Only headers are read.

        Args:
            snapshot: Snapshot id. None: the newest.

        Raises:
            CorruptFile: The header of an index container cannot be read.

        >>> from pyspark_paimon.example import cities
        >>> cities().file_indexes().select(["column_name", "index_type", "storage_type", "is_empty"]).to_pylist()
        [{'column_name': 'city', 'index_type': 'bloom-filter', 'storage_type': 'EMBEDDED', 'is_empty': False}]
        """
        return self._index_view("file_indexes", snapshot)

    def index_health(self, snapshot: int | None = None) -> pa.Table:
        """Return how well each file index works.

        The columns have the sizes of index and column, the distinct values, bits per row, the false positive rate and a note.
        The index payloads and the footers of data files are read. Damage is reported in ``note`` and raises nothing.

        Args:
            snapshot: Snapshot id. None: the newest.

        >>> from pyspark_paimon.example import cities
        >>> cities().index_health().select(["column_name", "index_size_in_bytes", "distinct_values", "note"]).to_pylist()
        [{'column_name': 'city', 'index_size_in_bytes': 6, 'distinct_values': 3, 'note': ''}]
        """
        return self._index_view("index_health", snapshot)

    def index_advice(self, filters: Filter | Sequence[Filter], *, most_bytes: int = 64 << 20, snapshot: int | None = None) -> pa.Table:
        """Measure which file indexes would serve filters.

        Every index type that a filter's columns can have is built in memory for a sample of the files, and is asked alone. Nothing is written.
        Each row is an index for a filter, the one that skips most rows first. Indexes that skip nothing are left out, unless the table
        declares them. A filter that no index serves has one row without an index.

        The columns are the filter, the column, the index type, whether it is declared, and the shares of rows, pages of 10,000 rows
        and files that it skips. ``is_exact`` indexes answer ``count()`` alone. The bytes are per row, and an estimate for the whole table.
        ``option`` is the option that declares such an index.

        Args:
            filters: Filters as for ``scan``.
            most_bytes: Bytes of data files to read. At least one file for each filter is read.
            snapshot: Snapshot id. None: the newest.

        Raises:
            InvalidArgument: There is no filter, or ``most_bytes`` is negative.
            InvalidFilter: A filter is not supported.

        >>> from pyspark_paimon.example import cities
        >>> cities().index_advice("country = 'IT'").select(["column_name", "index_type", "rows_skipped", "is_exact"]).to_pylist()[0]
        {'column_name': 'country', 'index_type': 'bitmap', 'rows_skipped': 0.6666666666666666, 'is_exact': True}
        """
        filter_list: Sequence[Filter] = filters if isinstance(filters, list | tuple) else [cast("Filter", filters)]
        if not filter_list:
            raise InvalidArgument("index_advice: there is no filter; give one, or a list of filters as for scan()")
        if most_bytes < 0:
            raise InvalidArgument(f"index_advice: most_bytes is {most_bytes}; give 0 or more")
        bound = [(written_filter, bind_filter(written_filter, self.table_schema.column_types)) for written_filter in filter_list]
        bound_filters = tuple(
            index_advice.GivenFilter(text=written_filter if isinstance(written_filter, str) else str(predicate), predicate=predicate)
            for written_filter, predicate in bound
            if predicate is not None
        )
        question = index_advice.AdviseIndexes(filters=bound_filters, snapshot_id=self._pinned_id(snapshot), most_bytes=most_bytes)
        return self._engine.ask(question)

    def _pinned_id(self, snapshot: int | None) -> int | None:
        """Return the id of the requested snapshot.

        None: the table is empty.
        """
        pinned = self._engine.ask(Pin(travel=TravelRequest(snapshot_id=snapshot)))
        return None if pinned is None else pinned.id

    def _index_view(self, view: IndexView, snapshot: int | None) -> pa.Table:
        return self._engine.ask(listings.ListIndexes(view=view, snapshot_id=self._pinned_id(snapshot)))

    def fsck(
        self,
        depth: Depth | Literal["quick", "footers", "deep"] = Depth.FOOTERS,
        *,
        limit: int = 1000,
        repair: bool = False,
        dry_run: bool = False,
    ) -> FsckResult:
        """Check the integrity of the table.

        The check covers every branch, snapshot, tag and retained changelog, and every file that they need. Problems are reported, not
        raised, with advice. Other jobs may write and expire during the check: a file that expires is not a problem.
        On Spark the files are divided among tasks by size.

        A repair never loses rows. It

        - completes an interrupted rollback,
        - removes the oldest snapshots that lack files which later ones do not need, after an interrupted expiry,
        - corrects hint files,
        - removes unreferenced index files older than a day,
        - recomputes statistics files,
        - rewrites data files with wrong statistics, and compacts files waiting on level 0.

        Other problems are reported with advice. Every file is copied below ``_repair`` in the table's directory before it is
        changed or removed.

        Args:
            depth: ``quick`` checks metadata (manifests decode and are consistent, levels do not overlap, no snapshot is missing), and
                that files exist with their sizes. ``footers`` also checks footers, row counts, index containers, deletion vectors and
                hash indexes. ``deep`` also checks all rows: sorted and unique keys, key ranges, sequence numbers, deleted rows,
                buckets and partitions. It compares them with statistics, page checksums and indexes.
            limit: Largest number of reported problems. Others are counted.
            repair: Repair what can be repaired, then check again.
            dry_run: With ``repair``, report what would be repaired, and change nothing.

        Raises:
            InvalidArgument: The depth is unknown, or ``dry_run`` is given without ``repair``.

        >>> from pyspark_paimon.example import cities
        >>> result = cities().fsck("deep")
        >>> result.clean, result.counts["data files"], result.counts["rows"]
        (True, 1, 3)
        >>> cities().fsck(repair=True).repairs
        ()
        """
        if dry_run and not repair:
            raise InvalidArgument("fsck without repair changes nothing: dry_run can only be used with repair=True")
        if depth not in tuple(Depth) or limit < 0:
            raise InvalidArgument(f"fsck: depth must be one of {', '.join(Depth)}, not {depth!r}, and limit 0 or more, not {limit!r}")
        from pyspark_paimon.results.fsck_problem import Problem, ProblemKind  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.results.state_results import FsckResult  # noqa: PLC0415  # as above

        result: FsckResult
        check = plugin("request", "check")(depth=Depth(depth), limit=limit)
        if not repair:
            try:
                result = self._engine.ask(check)
            except CorruptFile as error:
                # The table cannot be opened: its newest schema or the marker of a rollback is damaged.
                problem = Problem(kind=ProblemKind.SNAPSHOT, path=error.path, message=error.reason)
                return FsckResult(depth=check.depth, problems=(problem,), problem_count=1)
            return result
        result = plugin("request", "repair")(self._engine, check, cutoff_of(None), dry_run=dry_run)
        return result

    def tags(self) -> pa.Table:
        """Return one row for each tag, ordered by name.

        The columns have the snapshot, and the retention time if the tag has one.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> made = table.create_tag("v1")
        >>> table.tags().select(["tag_name", "snapshot_id", "record_count", "time_retained"]).to_pylist()
        [{'tag_name': 'v1', 'snapshot_id': 1, 'record_count': 3, 'time_retained': None}]
        """
        return self._engine.ask(listings.ListHistory(view="tags"))

    def option_effects(self) -> pa.Table:
        """Return one row for each option, with its effect here.

        The column ``effect`` is ``honoured``, ``by call`` (a method applies it), ``none`` or ``unknown``. Options without
        effect are kept for other engines that share the table. Some options have an effect only on a kind of table, such as one with a
        primary key. The column ``note`` has the reason, or the method.

        >>> from pyspark_paimon.example import cities
        >>> table = cities().alter_options({"sink.parallelism": "8"})
        >>> [row["option"] for row in table.option_effects().to_pylist() if row["effect"] == "none"]
        ['sink.parallelism']
        """
        effects = [(key, value, *effect_in(self.table_schema, key, value)) for key, value in sorted(self.options.items())]
        return pa.Table.from_pylist(
            [dict(zip(_EFFECTS.names, row, strict=True)) for row in effects],
            schema=_EFFECTS,
        )

    def branches(self) -> pa.Table:
        """Return one row for each branch except main.

        The columns have its creation time, newest schema and snapshots.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_branch("trial")
        >>> table.branches().select(["branch_name", "schema_id", "latest_snapshot_id"]).to_pylist()
        [{'branch_name': 'trial', 'schema_id': 0, 'latest_snapshot_id': None}]
        """
        return self._engine.ask(listings.ListHistory(view="branches"))

    def schemas(self) -> pa.Table:
        """Return one row for each schema version, oldest first.

        The column ``fields`` has Paimon's JSON.

        >>> from pyspark_paimon.example import cities
        >>> cities().set_comment("where people live").schemas().select(["schema_id", "primary_keys", "comment"]).to_pylist()
        [{'schema_id': 0, 'primary_keys': ['id'], 'comment': None}, {'schema_id': 1, 'primary_keys': ['id'], 'comment': 'where people live'}]
        """
        return self._engine.ask(listings.ListHistory(view="schemas"))

    def partitions(self) -> pa.Table:
        """Return one row for each partition with files.

        The columns have physical rows, files, bytes, and the creation time of the newest file by the writer's clock.

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id INT, day STRING", partition_keys=["day"])
        >>> written = table.write(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "day": ["mon", "mon", "tue"]}))
        >>> table.partitions().select(["partition", "row_count", "file_count"]).to_pylist()
        [{'partition': 'day=mon', 'row_count': 2, 'file_count': 1}, {'partition': 'day=tue', 'row_count': 1, 'file_count': 1}]
        """
        return self._engine.ask(listings.ListHistory(view="partitions"))

    def consumers(self) -> pa.Table:
        """Return one row for each consumer of the table's stream.

        The column ``next_snapshot_id`` is the snapshot it reads next. That snapshot and later ones do not expire.

        >>> from pyspark_paimon.example import cities
        >>> cities().consumers().num_rows
        0
        """
        return self._engine.ask(listings.ListHistory(view="consumers"))
