"""What a table is and holds: schema, options, snapshots, files. Nothing here changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from fileindex.base.errors import CorruptFile, InvalidArgument
from fileindex.base.lazy import LazyModule
from manifest.fsck.depth import Depth
from manifest.options.support import effect_of
from pyspark_paimon.request.backend import IndexView, TravelRequest
from pyspark_paimon.request.state import Pin, Snapshots
from pyspark_paimon.request.validate import cutoff_of
from pyspark_paimon.table.role import TableRole

if TYPE_CHECKING:
    from pyspark_paimon.operations import analyze, listings
    from pyspark_paimon.request.state_results import FsckResult
else:
    analyze = LazyModule("pyspark_paimon.operations.analyze")
    listings = LazyModule("pyspark_paimon.operations.listings")

_EFFECTS = pa.schema([(name, pa.string()) for name in ("option", "value", "effect", "note")])


class TableInspection(TableRole):
    """The role that only looks.

    >>> from pyspark_paimon.example import cities
    >>> cities().primary_keys
    ('id',)
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow has them in memory."""
        return self.table_schema.arrow

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Primary-key columns; () for an append table."""
        return self.table_schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Partition columns."""
        return self.table_schema.partition_keys

    @property
    def options(self) -> dict[str, str]:
        """The table's options, as they are stored."""
        return dict(self.table_schema.options)

    def snapshots(self) -> pa.Table:
        """One row for every retained snapshot, oldest first: id, kind, user, time, record counts.

        >>> from pyspark_paimon.example import cities
        >>> cities().snapshots().select(["snapshot_id", "commit_kind", "total_record_count"]).to_pylist()
        [{'snapshot_id': 1, 'commit_kind': 'APPEND', 'total_record_count': 3}]
        """
        from pyspark_paimon.views.table_views import snapshots_table  # noqa: PLC0415  # see test_imports

        retained = self._backend.ask(Snapshots())
        return snapshots_table(retained)

    def statistics(self, snapshot: int | None = None) -> pa.Table:
        """The statistics that a snapshot (default: the newest) carries: one row for every column that ``analyze`` counted.

        ``snapshot_id`` is the snapshot that was counted; later ones carry its statistics on until the schema changes. Minima and
        maxima are texts; ``distinct_count`` is an estimate above 65,536. No row if the table was never analyzed.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.statistics().num_rows
        0
        >>> table.analyze(["city"]).snapshot_id
        2
        >>> table.statistics().select(["column", "record_count", "distinct_count", "min", "max", "null_count"]).to_pylist()
        [{'column': 'city', 'record_count': 3, 'distinct_count': 3, 'min': 'Lima', 'max': 'Rome', 'null_count': 0}]
        """
        from pyspark_paimon.views.statistics_view import statistics_table  # noqa: PLC0415  # loads the planner and the commit

        return statistics_table(self._backend.ask(analyze.ReadStatistics(snapshot_id=self._pinned_id(snapshot))))

    def files(self, snapshot: int | None = None) -> pa.Table:
        """One row for every live data file of a snapshot (default: the newest): bucket, level, rows, bytes, keys, index.

        >>> from pyspark_paimon.example import cities
        >>> cities().files().select(["bucket", "level", "row_count", "min_key", "max_key", "file_index"]).to_pylist()
        [{'bucket': 0, 'level': 0, 'row_count': 3, 'min_key': '1', 'max_key': '3', 'file_index': 'embedded'}]
        """
        return self._backend.ask(listings.ListFiles(snapshot_id=self._pinned_id(snapshot)))

    def clustering_information(self, columns: Sequence[str] | str | None = None, snapshot: int | None = None) -> pa.Table:
        """How well the files of each partition are clustered by each column (default: ``clustering.columns``), by their ranges in metadata.

        ``average_overlaps``: how many other files have values in a file's range; ``average_depth`` and ``max_depth``: how many files share a
        value, at the deepest value of each file. A depth of 1 is perfect: no value lies in two files. ``constant_file_count`` files hold one
        value, ``unknown_file_count`` files tell no range and are not counted otherwise.

        Raises ``UnknownColumn``, and ``InvalidArgument`` where no column is named.

        >>> from pyspark_paimon.example import cities
        >>> cities().clustering_information("id").select(["file_count", "average_overlaps", "average_depth"]).to_pylist()
        [{'file_count': 1, 'average_overlaps': 0.0, 'average_depth': 1.0}]
        """
        from pyspark_paimon.views.clustering_view import clustering_information  # noqa: PLC0415  # see test_imports

        return clustering_information(self._backend, columns, snapshot)

    def file_indexes(self, snapshot: int | None = None) -> pa.Table:
        """One row for every index of every live data file of a snapshot, in the columns of Paimon's ``$file_indexes``.

        Only headers are read. Raises ``CorruptFile`` that names a container whose header cannot be.

        >>> from pyspark_paimon.example import cities
        >>> cities().file_indexes().select(["column_name", "index_type", "storage_type", "is_empty"]).to_pylist()
        [{'column_name': 'city', 'index_type': 'bloom-filter', 'storage_type': 'EMBEDDED', 'is_empty': False}]
        """
        return self._index_view("file_indexes", snapshot)

    def index_health(self, snapshot: int | None = None) -> pa.Table:
        """How well each of these indexes serves: its size beside its column's, distinct values, bits a row, false positive rate, a note.

        Payloads and the footers of data files are read; what is broken is told in ``note``, nothing is raised.

        >>> from pyspark_paimon.example import cities
        >>> cities().index_health().select(["column_name", "index_size_in_bytes", "distinct_values", "note"]).to_pylist()
        [{'column_name': 'city', 'index_size_in_bytes': 64, 'distinct_values': 3, 'note': 'larger than the column (64 of 62 bytes)'}]
        """
        return self._index_view("index_health", snapshot)

    def _pinned_id(self, snapshot: int | None) -> int | None:
        """Return the id of the snapshot asked for. None: the table is empty."""
        pinned = self._backend.ask(Pin(travel=TravelRequest(snapshot_id=snapshot)))
        return None if pinned is None else pinned.id

    def _index_view(self, view: IndexView, snapshot: int | None) -> pa.Table:
        return self._backend.ask(listings.ListIndexes(view=view, snapshot_id=self._pinned_id(snapshot)))

    def fsck(
        self,
        depth: Depth | Literal["quick", "footers", "deep"] = Depth.FOOTERS,
        *,
        limit: int = 1000,
        repair: bool = False,
        dry_run: bool = False,
    ) -> FsckResult:
        """Check that the table is whole: every branch, snapshot, tag and kept changelog, and every file that one of them needs.

        Nothing is changed unless ``repair`` is set, and nothing is raised for what is wrong: it is told, with what to do. Other jobs may
        write and expire meanwhile; what is expired while it is looked at is no problem.

        Args:
            depth: ``quick`` looks at metadata (manifests decode and tell one consistent story, levels do not overlap, no snapshot is
                missing) and whether files are there with their sizes; ``footers`` also at footers, row counts, index containers,
                deletion vectors and hash indexes; ``deep`` at all rows: keys sorted and unique, key ranges, sequence numbers,
                deleted rows, statistics, page checksums, buckets and partitions, and whether indexes tell the truth.
            limit: problems to tell at most; the others are counted.
            repair: mend what can be without losing a row, then check again. A rollback that was cut off is finished; the oldest snapshots
                that lack files which later ones do not need (an expiry was cut off) go; hints name what is there; index files that nothing
                names and that are older than a day go; statistics files are counted again; data files whose statistics are wrong are written
                anew, and what waits on level 0 is compacted, by commits. What may lose rows stays a problem that says what to do.
                Every file is copied below ``_repair`` in the table's directory before it is changed or removed.
            dry_run: with ``repair``, tell what would be mended, and change nothing.

        On Spark the files are shared out among tasks, balanced by bytes. Raises ``InvalidArgument`` for another depth.

        >>> from pyspark_paimon.example import cities
        >>> result = cities().fsck("deep")
        >>> result.clean, result.counts["data files"], result.counts["rows"]
        (True, 1, 3)
        >>> cities().fsck(repair=True).repairs
        ()
        """
        if dry_run and not repair:
            raise InvalidArgument("fsck changes nothing by itself: dry_run goes with repair=True")
        if depth not in tuple(Depth) or limit < 0:
            raise InvalidArgument(f"fsck goes as deep as {', '.join(Depth)}, not {depth!r}, and tells of 0 problems or more")
        from manifest.fsck.problem import Problem, ProblemKind  # noqa: PLC0415  # see test_imports
        from pyspark_paimon.operations.fsck import Fsck  # noqa: PLC0415  # as above
        from pyspark_paimon.request.state_results import FsckResult  # noqa: PLC0415  # as above

        check = Fsck(depth=Depth(depth), limit=limit)
        if not repair:
            try:
                return self._backend.ask(check)
            except CorruptFile as error:
                # The table cannot be opened: its newest schema or the note of a rollback is damaged.
                problem = Problem(kind=ProblemKind.SNAPSHOT, path=error.path, message=error.reason)
                return FsckResult(depth=check.depth, problems=(problem,), problem_count=1)
        from pyspark_paimon.operations.repair import repair_table  # noqa: PLC0415  # loads what changes tables

        return repair_table(self._backend, check, cutoff_of(None), dry_run=dry_run)

    def tags(self) -> pa.Table:
        """One row for every tag, by name: its snapshot, and how long it stays if it was made for a while.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> made = table.create_tag("v1")
        >>> table.tags().select(["tag_name", "snapshot_id", "record_count", "time_retained"]).to_pylist()
        [{'tag_name': 'v1', 'snapshot_id': 1, 'record_count': 3, 'time_retained': None}]
        """
        return self._backend.ask(listings.ListHistory(view="tags"))

    def option_effects(self) -> pa.Table:
        """One row for every option of the table: whether it is ``honoured`` here, ``by call``, has no effect (``none``), or is ``unknown``.

        Those without effect are kept for the other engines that share the table; ``note`` says why, or which call goes by them.

        >>> from pyspark_paimon.example import cities
        >>> table = cities().alter_options({"sink.parallelism": "8"})
        >>> [row["option"] for row in table.option_effects().to_pylist() if row["effect"] == "none"]
        ['sink.parallelism']
        """
        found = [(key, value, *effect_of(key, value)) for key, value in sorted(self.options.items())]
        return pa.Table.from_pylist(
            [dict(zip(_EFFECTS.names, row, strict=True)) for row in found],
            schema=_EFFECTS,
        )

    def branches(self) -> pa.Table:
        """One row for every branch beside main: when it was made, its newest schema, its snapshots.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_branch("trial")
        >>> table.branches().select(["branch_name", "schema_id", "latest_snapshot_id"]).to_pylist()
        [{'branch_name': 'trial', 'schema_id': 0, 'latest_snapshot_id': None}]
        """
        return self._backend.ask(listings.ListHistory(view="branches"))

    def schemas(self) -> pa.Table:
        """One row for every version of the schema, oldest first; ``fields`` is Paimon's JSON.

        >>> from pyspark_paimon.example import cities
        >>> cities().set_comment("where people live").schemas().select(["schema_id", "primary_keys", "comment"]).to_pylist()
        [{'schema_id': 0, 'primary_keys': ['id'], 'comment': None}, {'schema_id': 1, 'primary_keys': ['id'], 'comment': 'where people live'}]
        """
        return self._backend.ask(listings.ListHistory(view="schemas"))

    def partitions(self) -> pa.Table:
        """One row for every partition with files: physical rows, files, bytes, when it got its newest file (the writer's clock).

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id INT, day STRING", partition_keys=["day"])
        >>> written = table.write(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "day": ["mon", "mon", "tue"]}))
        >>> table.partitions().select(["partition", "row_count", "file_count"]).to_pylist()
        [{'partition': 'day=mon', 'row_count': 2, 'file_count': 1}, {'partition': 'day=tue', 'row_count': 1, 'file_count': 1}]
        """
        return self._backend.ask(listings.ListHistory(view="partitions"))

    def consumers(self) -> pa.Table:
        """One row for every registered reader of the table's stream: the snapshot it reads next, which expiry spares.

        >>> from pyspark_paimon.example import cities
        >>> cities().consumers().num_rows
        0
        """
        return self._backend.ask(listings.ListHistory(view="consumers"))


__all__ = ["TableInspection"]
