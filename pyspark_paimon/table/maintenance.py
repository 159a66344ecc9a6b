"""What keeps a table in shape: compaction, indexes, expiry, orphans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fileindex.base.errors import InvalidArgument
from fileindex.base.lazy import LazyModule
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.request.backend import ClusterStrategyName, OrphanFile
from pyspark_paimon.request.partition_spec import spec_of
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import commit_identity, cutoff_of, millis_of
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import Filter, Time

if TYPE_CHECKING:
    from manifest.schema import change
    from pyspark_paimon.operations import alter, rewrite_file_index
    from pyspark_paimon.operations import analyze as analyze_table
    from pyspark_paimon.operations import compact as compaction
    from pyspark_paimon.operations import expire as expiry
    from pyspark_paimon.operations import maintenance as rounds
    from pyspark_paimon.operations import partitions as old_partitions
    from pyspark_paimon.operations import tags as tag_changes
    from pyspark_paimon.request.results import AnalyzeResult, CompactResult, ExpireResult, IndexRewriteResult, MaintenanceResult
else:
    change = LazyModule("manifest.schema.change")
    alter = LazyModule("pyspark_paimon.operations.alter")
    analyze_table = LazyModule("pyspark_paimon.operations.analyze")
    compaction = LazyModule("pyspark_paimon.operations.compact")
    expiry = LazyModule("pyspark_paimon.operations.expire")
    old_partitions = LazyModule("pyspark_paimon.operations.partitions")
    rewrite_file_index = LazyModule("pyspark_paimon.operations.rewrite_file_index")
    rounds = LazyModule("pyspark_paimon.operations.maintenance")
    tag_changes = LazyModule("pyspark_paimon.operations.tags")


class TableMaintenance(TableRole):
    """The role that changes how its rows are kept, not which they are.

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
    ) -> CompactResult:
        """Merge sorted runs (or, without primary key, small files): those that universal compaction picks, or with ``full`` all.

        ``partitions`` limits it to partitions named like ``{"day": "2024-01-31"}``, ``filter`` to those whose columns satisfy it. A
        compaction that loses a race against another is tried again on the new snapshot; rows that others commit meanwhile are
        never lost.

        With ``order_by`` all rows of an append table without buckets are sorted anew, so that files hold narrow ranges and filters
        skip most of them: by one column after the other (``order``), or along a curve on which several columns count alike
        (``zorder``, ``hilbert``; at most 8 columns). Memory is bounded by ``write-buffer-size``.

        Raises ``InvalidArgument``, ``InvalidFilter``, ``UnknownColumn``, ``UnsupportedOption``, ``CommitConflict``.

        >>> from pyspark_paimon.example import cities
        >>> result = cities().compact(full=True)
        >>> result.files_before, result.files_after, result.snapshot_id
        (1, 1, 2)
        """
        schema = self._backend.ask(SchemaOf())
        operation = compaction.Compact.of(
            schema,
            full=full,
            partitions=partitions,
            filter=filter,
            order_by=order_by,
            strategy=strategy,
            options=self._write_options(options),
        )
        return compaction.compact_table(self._backend, schema, operation)

    def rewrite_file_index(self, partitions: Sequence[Mapping[str, object]] | None = None) -> IndexRewriteResult:
        """Add, replace or drop indexes on files that already exist, so that they are what the table's options ask for.

        Files whose indexes are as they should be are left alone, and only what is missing is built, from the columns that it needs.
        No row changes: the files keep their names, and only a commit that removed a file keeps it from its index. ``partitions``
        limits it as in ``compact``. On Spark the files are shared out among tasks. Paimon's ``rewrite_file_index`` does the same.

        Raises ``CorruptFile`` for a data file that cannot be read.

        >>> from pyspark_paimon.example import cities
        >>> table = cities().alter_options({"file-index.bitmap.columns": "country"})
        >>> result = table.rewrite_file_index()
        >>> result.files, result.rewritten, result.snapshot_id
        (1, 1, 2)
        >>> table.rewrite_file_index().rewritten
        0
        """
        schema = self._backend.ask(SchemaOf())
        specs = None if partitions is None else tuple(spec_of(spec, schema) for spec in partitions)
        return self._backend.run(rewrite_file_index.RewriteFileIndex(commit_id=commit_identity(None), partitions=specs))

    def analyze(self, columns: Sequence[str] | None = None) -> AnalyzeResult:
        """Count the table's rows, and of ``columns`` (None: all, (): none) distinct values, extremes, nulls and lengths.

        The rows are read once, in bounded memory, and the answer is committed as a snapshot of kind ANALYZE that other engines'
        planners use too; see ``statistics``. Until the next write, ``count()`` and filters that nothing can pass are answered by it.

        Raises ``UnknownColumn``, ``CommitConflict`` if the schema changed meanwhile.

        >>> from pyspark_paimon.example import cities
        >>> result = cities().analyze()
        >>> result.rows, result.columns, result.snapshot_id
        (3, 4, 2)
        """
        types = self._backend.ask(SchemaOf()).column_types
        names = tuple(types) if columns is None else tuple(dict.fromkeys(resolve(name, types) for name in columns))
        return self._backend.run(analyze_table.Analyze(commit_id=commit_identity(None), columns=names))

    def expire_snapshots(
        self,
        *,
        retain_min: int | None = None,
        retain_max: int | None = None,
        older_than: Time | None = None,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> ExpireResult:
        """Remove old snapshots and the files that only they reach.

        Args:
            retain_min: Newest snapshots to keep at least. Default: the option ``snapshot.num-retained.min``.
            retain_max: Newest snapshots to keep at most. Default: ``snapshot.num-retained.max``.
            older_than: Snapshots that became outdated before may go. Default: ``snapshot.time-retained`` ago.
            limit: Snapshots to remove at most. Default: all that may go; ``snapshot.expire.limit`` is for commits.
            dry_run: Only report what would go.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> snapshot = table.compact(full=True).snapshot_id
        >>> table.expire_snapshots(retain_min=1, retain_max=1)
        ExpireResult(snapshots=1, data_files=0, manifests=2, removal=None)
        """
        for name, number in (("retain_min", retain_min), ("retain_max", retain_max), ("limit", limit)):
            if number is not None and number < 1:
                raise InvalidArgument(f"expire_snapshots: {name} is a number of snapshots, 1 or more, not {number}")
        if retain_min is not None and retain_max is not None and retain_max < retain_min:
            raise InvalidArgument(f"expire_snapshots: retain_max ({retain_max}) is less than retain_min ({retain_min})")
        operation = expiry.ExpireSnapshots(
            retain_min=retain_min, retain_max=retain_max, older_than_ms=millis_of(older_than), limit=limit, dry_run=dry_run
        )
        return self._backend.run(operation)

    def drop_index(self, column: str, type: str | None = None, *, dry_run: bool = False) -> IndexRewriteResult:  # noqa: A002  # as in the options' names
        """Forget the file indexes of a column, or only the one of a type (``bloom-filter``, ``bitmap``, ``bsi``, ``range-bitmap``), and take them out of the files.

        A map's entry is named as in the options, ``attrs[clicks]``. Data files stay as they are; other indexes do, too; row blocks go with their bloom filter. ``dry_run`` tells how
        many files of the newest state have such an index, and its bytes.

        Raises ``InvalidArgument`` if there is no such index.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.drop_index("city").rewritten, "file-index.bloom-filter.columns" in table.options
        (1, False)
        """
        changes = rounds.without_index(self._backend.ask(SchemaOf()), column, type)
        if dry_run:
            return rounds.indexes_of_column(self._backend, column, type)
        self._backend.run(alter.AlterSchema(changes=(change.ChangeOptions(options=changes),)))
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
        """One round of what keeps a table in shape, by its options, in the order in which each step helps the next.

        Partitions that are too old go (``partition.expiration-time``), what universal compaction picks is merged (``full``: everything),
        files get the indexes that the options ask for, tags whose time is over and snapshots beyond their retention (``snapshot.*``) go, and
        then the files that nothing refers to, last changed before ``orphans_older_than`` (default: a day ago). A step that fails is told
        in ``errors``, and the others go on: call it by cron. ``dry_run`` tells what would be deleted.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> done = table.maintenance(full=True)
        >>> done.compacted.files_after, done.expired.snapshots, done.orphans, done.errors
        (1, 0, 0, {})
        """
        cutoff = cutoff_of(orphans_older_than)  # before anything is done
        steps: dict[str, tuple[bool, Callable[[], object]]] = {
            "partitions": (partitions and self._expires_partitions(), lambda: self._old_partitions(dry_run=dry_run)),
            "compacted": (compact and not dry_run, lambda: self.compact(full)),
            "indexes": (indexes and not dry_run, self.rewrite_file_index),
            "tags": (tags, lambda: self._backend.run(tag_changes.ExpireTags(dry_run=dry_run)).tags),
            "expired": (expire, lambda: self.expire_snapshots(dry_run=dry_run)),
            "orphans": (orphans, lambda: self.remove_orphan_files(cutoff, dry_run=dry_run)),
        }
        return rounds.done_in_turn(steps, dry_run=dry_run)

    def _expires_partitions(self) -> bool:
        return "partition.expiration-time" in self._backend.ask(SchemaOf()).options

    def _old_partitions(self, *, dry_run: bool) -> tuple[str, ...]:
        return self._backend.run(old_partitions.ExpirePartitions(commit_id=commit_identity(None), dry_run=dry_run)).partitions

    def list_orphan_files(self, older_than: Time | None = None) -> list[OrphanFile]:
        """Files that no snapshot, tag or branch refers to, last changed before ``older_than`` (default: a day ago)."""
        return self._backend.ask(expiry.ListOrphans(older_than_ms=cutoff_of(older_than)))

    def remove_orphan_files(self, older_than: Time | None = None, *, dry_run: bool = False) -> list[OrphanFile]:
        """Delete those files; returns them. A time younger than the longest running write would delete its files."""
        cutoff = cutoff_of(older_than)
        if dry_run:
            return self._backend.ask(expiry.ListOrphans(older_than_ms=cutoff))
        return self._backend.run(expiry.RemoveOrphans(older_than_ms=cutoff))


__all__ = ["TableMaintenance"]
