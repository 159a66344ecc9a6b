"""Methods of ``Table`` for compaction, indexes, expiry and orphan files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from manifest.snapshot.commit_info import check_properties
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.request.partition_spec import partition_filter, spec_of
from pyspark_paimon.request.requests import ClusterStrategyName, OrphanFile
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import check_options, commit_identity, cutoff_of, millis_of
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import Filter, Time

if TYPE_CHECKING:
    from manifest.schema import change
    from pyspark_paimon.operations import alter, manifests, rewrite_file_index
    from pyspark_paimon.operations import analyze as analyze_table
    from pyspark_paimon.operations import compact as compaction
    from pyspark_paimon.operations import expire as expiry
    from pyspark_paimon.operations import maintenance as rounds
    from pyspark_paimon.operations import partitions as old_partitions
    from pyspark_paimon.operations import rescale as rescaling
    from pyspark_paimon.operations.history import tags as tag_changes
    from pyspark_paimon.results.results import AnalyzeResult, CompactResult, ExpireResult, IndexRewriteResult, MaintenanceResult
    from pyspark_paimon.results.state_results import TableChangeResult
else:
    change = LazyModule("manifest.schema.change")
    alter = LazyModule("pyspark_paimon.operations.alter")
    analyze_table = LazyModule("pyspark_paimon.operations.analyze")
    compaction = LazyModule("pyspark_paimon.operations.compact")
    expiry = LazyModule("pyspark_paimon.operations.expire")
    manifests = LazyModule("pyspark_paimon.operations.manifests")
    old_partitions = LazyModule("pyspark_paimon.operations.partitions")
    rescaling = LazyModule("pyspark_paimon.operations.rescale")
    rewrite_file_index = LazyModule("pyspark_paimon.operations.rewrite_file_index")
    rounds = LazyModule("pyspark_paimon.operations.maintenance")
    tag_changes = LazyModule("pyspark_paimon.operations.history.tags")


class TableMaintenance(TableRole):
    """Methods that reorganize files without changing rows.

    >>> from pyspark_paimon.example import cities
    >>> cities().list_orphan_files()
    []
    """

    def compact(
        self,
        full: bool = False,
        partitions: Sequence[Mapping[str, object]] | None = None,
        *,
        filter: Filter = None,  # noqa: A002  # as in scan
        order_by: Sequence[str] | str | None = None,
        strategy: ClusterStrategyName = "order",
        options: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CompactResult:
        """Compact sorted runs, or small files of an append table.

        A compaction that loses a race against another is retried on the new snapshot. Rows of concurrent commits are never lost.

        Args:
            full: Merge all files. False: those that universal compaction picks.
            partitions: Partitions to compact, like ``{"day": "2024-01-31"}``. None: all.
            filter: Compact only partitions whose columns satisfy this filter.
            order_by: Columns to sort all rows of an append table without buckets by. Files then have narrow value ranges, and
                filters skip most of them. Memory is limited by ``write-buffer-size``.
            strategy: ``order`` sorts by one column after the other. ``zorder`` and ``hilbert`` sort along a curve that treats
                up to 8 columns equally.
            options: Table options for this call only.
            properties: As for ``write``.

        Raises:
            InvalidArgument, InvalidFilter, UnknownColumn, UnsupportedOption: An argument is not valid.
            CommitConflict: Other commits won every retry.

        >>> from pyspark_paimon.example import cities
        >>> result = cities().compact(full=True)
        >>> result.files_before, result.files_after, result.snapshot_id
        (1, 1, 2)
        """
        schema = self._engine.ask(SchemaOf())
        operation = compaction.Compact.of(
            schema,
            full=full,
            partitions=partitions,
            filter=filter,
            order_by=order_by,
            strategy=strategy,
            options=self._write_options(options),
            properties=properties,
        )
        return compaction.compact_table(self._engine, schema, operation)

    def rescale(
        self,
        buckets: int | None = None,
        partitions: Sequence[Mapping[str, object]] | None = None,
        *,
        filter: Filter = None,  # noqa: A002  # as in scan
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> TableChangeResult:
        """Change the number of buckets, and move stored rows into them.

        The option ``bucket`` is set first, then each partition is rewritten by one commit. Rows that arrive meanwhile are kept. Until
        its partition is rewritten, a write to it is refused; reads go on. If the call is interrupted, call ``rescale()`` to finish it.

        Args:
            buckets: New number of buckets. None: that of the option ``bucket``.
            partitions: Partitions to rewrite, like ``{"day": "2024-01-31"}``. None: all that have another number.
            filter: Rewrite only partitions whose columns satisfy this filter.
            properties: As for ``write``.
            dry_run: Report the partitions with their files and rows, and change nothing.

        Raises:
            UnsupportedTable: The table has no fixed number of buckets.
            InvalidArgument: An argument is not valid.
            CommitConflict: Other commits changed a partition in every round. Partitions before it are done.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> done = table.rescale(4)
        >>> table.options["bucket"], table.count(), len(set(table.files()["bucket"].to_pylist()))
        ('4', 3, 3)
        """
        schema = self._engine.ask(SchemaOf())
        if partitions is not None and filter is not None:
            raise InvalidArgument("a rescale is limited by partitions or by a filter, not by both")
        return self._engine.run(
            rescaling.Rescale(
                commit_id=commit_identity(None),
                buckets=buckets,
                partitions=None if partitions is None else tuple(spec_of(spec, schema) for spec in partitions),
                predicate=partition_filter(filter, schema, "a rescale"),
                properties=check_properties(properties),
                dry_run=dry_run,
            )
        )

    def compact_manifests(self) -> TableChangeResult:
        """Merge small manifests into few. No data file changes.

        Commits merge manifests, too, from ``manifest.merge-min-count`` on. This merges all below the target size, so that plans of a
        table with many commits read less.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("id = 1").snapshot_id, table.compact_manifests().snapshot_id, table.compact_manifests().snapshot_id
        (2, 3, None)
        """
        return self._engine.run(manifests.CompactManifests(commit_id=commit_identity(None)))

    def rewrite_file_index(
        self,
        partitions: Sequence[Mapping[str, object]] | None = None,
        *,
        filter: Filter = None,  # noqa: A002  # as in scan
    ) -> IndexRewriteResult:
        """Build or drop file indexes of existing files.

        The files get the indexes that the table's options require.
        Only missing indexes are built, from the columns they need. No row changes and the files keep their names. If a
        concurrent commit removes a file, its index is dropped. On Spark the files are divided among tasks. Paimon's
        ``rewrite_file_index`` does the same.

        Args:
            partitions: As for ``compact``.
            filter: As for ``compact``.

        Raises:
            InvalidArgument, InvalidFilter, UnknownColumn: An argument is not valid.
            CorruptFile: A data file cannot be read.

        >>> from pyspark_paimon.example import cities
        >>> table = cities().alter_options({"file-index.bitmap.columns": "country"})
        >>> result = table.rewrite_file_index()
        >>> result.files, result.rewritten, result.snapshot_id
        (1, 1, 2)
        >>> table.rewrite_file_index().rewritten
        0
        """
        if partitions is not None and filter is not None:
            raise InvalidArgument("rewrite_file_index is limited by partitions or by a filter, not by both")
        schema = self._engine.ask(SchemaOf())
        specs = None if partitions is None else tuple(spec_of(spec, schema) for spec in partitions)
        predicate = partition_filter(filter, schema, "rewrite_file_index")
        return self._engine.run(rewrite_file_index.RewriteFileIndex(commit_id=commit_identity(None), partitions=specs, predicate=predicate))

    def analyze(self, columns: Sequence[str] | None = None) -> AnalyzeResult:
        """Compute statistics of the table and its columns.

        The rows are counted, and of each column the distinct values, minimum, maximum, nulls and lengths. The rows are read once in
        bounded memory. The result is committed as a snapshot of kind ANALYZE, which planners of other engines use too; see
        ``statistics``. Until the next write, it answers ``count()`` and filters that no row can pass.

        Args:
            columns: Columns to analyze. None: all. Empty: only count the rows.

        Raises:
            UnknownColumn: There is no such column.
            CommitConflict: The schema was changed at the same time.

        >>> from pyspark_paimon.example import cities
        >>> result = cities().analyze()
        >>> result.rows, result.columns, result.snapshot_id
        (3, 4, 2)
        """
        types = self._engine.ask(SchemaOf()).column_types
        names = tuple(types) if columns is None else tuple(dict.fromkeys(resolve(name, types) for name in columns))
        return self._engine.run(analyze_table.Analyze(commit_id=commit_identity(None), columns=names))

    def expire_snapshots(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: Time | None = None,
        limit: int | None = None,
        options: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> ExpireResult:
        """Delete old snapshots and the files that only they need.

        Args:
            retain_min: Smallest number of newest snapshots to keep. Default: the option ``snapshot.num-retained.min``.
            retain_max: Largest number of newest snapshots to keep. Default: ``snapshot.num-retained.max``.
            older_than: Snapshots that were replaced before this time may be deleted. Default: ``snapshot.time-retained`` ago.
            limit: Largest number of snapshots to delete. Default: no limit; ``snapshot.expire.limit`` of the table applies to commits only.
            options: Table options for this call only, such as ``snapshot.expire.limit``.
            dry_run: Report what would be deleted, and change nothing.

        Raises:
            InvalidArgument: A number is less than 1, or ``retain_max`` is less than ``retain_min``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> snapshot = table.compact(full=True).snapshot_id
        >>> table.expire_snapshots(retain_min=1, retain_max=1)
        ExpireResult(1 snapshot expired: 0 data files and 2 manifests deleted)
        """
        for name, number in (("retain_min", retain_min), ("retain_max", retain_max), ("limit", limit)):
            if number is not None and number < 1:
                raise InvalidArgument(f"expire_snapshots: {name} must be a number of snapshots, 1 or more, not {number}")
        if retain_min is not None and retain_max is not None and retain_max < retain_min:
            raise InvalidArgument(f"expire_snapshots: retain_max ({retain_max}) is less than retain_min ({retain_min})")
        operation = expiry.ExpireSnapshots(
            retain_min=retain_min,
            retain_max=retain_max,
            older_than_ms=millis_of(older_than),
            limit=limit,
            options=check_options(options),
            dry_run=dry_run,
        )
        return self._engine.run(operation)

    def drop_index(self, column: str, type: str | None = None, *, dry_run: bool = False) -> IndexRewriteResult:  # noqa: A002  # as in the options' names
        """Drop file indexes of a column from options and files.

        Data files and other indexes stay. Row blocks are dropped with their bloom filter.

        Args:
            column: Column of the index. An entry of a map is named as in the options: ``attrs[clicks]``.
            type: ``bloom-filter``, ``bitmap``, ``bsi`` or ``range-bitmap``. None: all types.
            dry_run: Report the number of files that have such an index, and its bytes, and change nothing.

        Raises:
            InvalidArgument: There is no such index.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.drop_index("city").rewritten, "file-index.bloom-filter.columns" in table.options
        (1, False)
        """
        changes = rounds.without_index(self._engine.ask(SchemaOf()), column, type)
        if dry_run:
            return rounds.indexes_of_column(self._engine, column, type)
        self._engine.run(alter.AlterSchema(changes=(change.ChangeOptions(options=changes),)))
        return self.rewrite_file_index()

    def maintenance(
        self,
        *,
        compact: bool = True,
        full: bool = False,
        partitions: bool = True,
        indexes: bool = True,
        tags: bool = True,
        expire: bool = True,
        orphans: bool = True,
        orphans_older_than: Time | None = None,
        dry_run: bool = False,
    ) -> MaintenanceResult:
        """Run all maintenance steps that the options require.

        The steps run in this order:

        1. Delete partitions older than ``partition.expiration-time``.
        2. Compact what universal compaction picks.
        3. Build missing file indexes.
        4. Delete expired tags.
        5. Expire snapshots (``snapshot.*``).
        6. Delete orphan files.
        7. Of a primary-key table with ``metadata.iceberg.storage``, say how old the rows are that Iceberg readers see.

        A failed step is reported in ``errors``, and the others continue. Call this method periodically, for example by cron.

        Args:
            compact: Whether to run step 2.
            full: Whether step 2 merges all files.
            partitions: Whether to run step 1.
            indexes: Whether to run step 3.
            tags: Whether to run step 4.
            expire: Whether to run step 5.
            orphans: Whether to run step 6.
            orphans_older_than: Delete only orphan files last changed before this time. None: a day ago.
            dry_run: Report what would be deleted, and change nothing. Steps 2 and 3 do not run.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> done = table.maintenance(full=True)
        >>> done.compacted.files_after, done.expired.snapshots, done.orphans, done.errors
        (1, 0, 0, {})
        """
        cutoff = cutoff_of(orphans_older_than)  # the steps must not move the default, a day ago
        steps: dict[str, tuple[bool, Callable[[], object]]] = {
            "partitions": (partitions and self._expires_partitions(), lambda: self._old_partitions(dry_run=dry_run)),
            "compacted": (compact and not dry_run, lambda: self.compact(full)),
            "indexes": (indexes and not dry_run, self.rewrite_file_index),
            "tags": (tags, lambda: self._engine.run(tag_changes.ExpireTags(dry_run=dry_run)).tags),
            "expired": (expire, lambda: self.expire_snapshots(dry_run=dry_run)),
            "orphans": (orphans, lambda: self.remove_orphan_files(cutoff, dry_run=dry_run)),
        }
        steps["iceberg"] = rounds.iceberg_step(self._engine)
        return rounds.run_steps(steps, dry_run=dry_run)

    def _expires_partitions(self) -> bool:
        return "partition.expiration-time" in self._engine.ask(SchemaOf()).options

    def _old_partitions(self, *, dry_run: bool) -> tuple[str, ...]:
        return self._engine.run(old_partitions.ExpirePartitions(commit_id=commit_identity(None), dry_run=dry_run)).partitions

    def list_orphan_files(self, older_than: Time | None = None) -> list[OrphanFile]:
        """Return files that no snapshot, tag or branch refers to.

        Args:
            older_than: Only files last changed before this time. None: a day ago.

        >>> from pyspark_paimon.example import cities
        >>> cities().list_orphan_files()
        []
        """
        return self._engine.ask(expiry.ListOrphans(older_than_ms=cutoff_of(older_than)))

    def remove_orphan_files(self, older_than: Time | None = None, *, dry_run: bool = False) -> list[OrphanFile]:
        """Delete orphan files and return them.

        Args:
            older_than: Only files last changed before this time. None: a day ago. The time must lie before the start of every running
                write, else the files of that write are deleted.
            dry_run: Return the files, and delete nothing.

        >>> from pyspark_paimon.example import cities
        >>> cities().remove_orphan_files(dry_run=True)
        []
        """
        cutoff = cutoff_of(older_than)
        if dry_run:
            return self._engine.ask(expiry.ListOrphans(older_than_ms=cutoff))
        return self._engine.run(expiry.RemoveOrphans(older_than_ms=cutoff))
