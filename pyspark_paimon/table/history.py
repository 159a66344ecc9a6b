"""Methods of ``Table`` for tags, branches, rollback and partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from manifest.snapshot.commit_info import check_properties
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from pyspark_paimon.request.partition_spec import spec_of
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import check_options, commit_identity, millis_of
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import Time

if TYPE_CHECKING:
    from pyspark_paimon.operations import partitions as partition_changes
    from pyspark_paimon.operations.history import branches, consumers, restore, rollback, tags
    from pyspark_paimon.results.state_results import TableChangeResult
else:
    branches = LazyModule("pyspark_paimon.operations.history.branches")
    consumers = LazyModule("pyspark_paimon.operations.history.consumers")
    partition_changes = LazyModule("pyspark_paimon.operations.partitions")
    restore = LazyModule("pyspark_paimon.operations.history.restore")
    rollback = LazyModule("pyspark_paimon.operations.history.rollback")
    tags = LazyModule("pyspark_paimon.operations.history.tags")


class TableHistory(TableRole):
    """Methods that name, branch and restore states of the table.

    >>> from pyspark_paimon.example import cities
    >>> table = cities()
    >>> table.create_tag("before").snapshot_id
    1
    >>> table.delete("id = 1").snapshot_id, table.scan().count(), table.scan(tag="before").count()
    (2, 2, 3)
    >>> table.rollback_to(tag="before").snapshots, table.scan().count()
    (1, 3)
    """

    def create_tag(
        self, name: str, snapshot: int | None = None, *, timestamp: Time | None = None, time_retained: timedelta | None = None
    ) -> TableChangeResult:
        """Create a tag for a snapshot.

        The snapshot can be read by the tag, and its files stay after it has expired.

        Args:
            name: Name of the tag.
            snapshot: Snapshot id. None: the newest.
            timestamp: Tag the oldest snapshot committed at or after this time instead. It may have expired if a tag holds it.
            time_retained: Time after which the tag may expire. None: the option ``tag.default-time-retained``, else never.

        Raises:
            TagExists: The table has a tag of that name.
            InvalidArgument: The name is not valid.
            SnapshotNotFound, SnapshotExpired: There is no such snapshot.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("v1").snapshot_id, table.scan(tag="v1").count()
        (1, 3)
        """
        if not isinstance(time_retained, timedelta | None):
            raise InvalidArgument(f"time_retained must be a timedelta, not {time_retained!r}")
        retained = None if time_retained is None else int(time_retained / timedelta(milliseconds=1))
        if snapshot is not None and timestamp is not None:
            raise InvalidArgument("create_tag takes a snapshot or a timestamp, not both")
        change = tags.CreateTag(name=name, snapshot_id=snapshot, since_millis=millis_of(timestamp), retained_ms=retained)
        return self._engine.run(change)

    def create_due_tags(self) -> TableChangeResult:
        """Create the tags that are due now.

        Commits do so, too. Call it where a table gets no commits (Paimon's ``trigger_tag_automatic_creation``).

        Raises:
            UnsupportedOption: ``tag.automatic-creation`` is not set.

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> options = {"bucket": "1", "tag.automatic-creation": "batch"}
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id INT", primary_keys=["id"], options=options)
        >>> snapshot = table.write([{"id": 1}]).snapshot_id
        >>> gone = table.delete_tag(table.tags()["tag_name"][0].as_py())
        >>> len(table.create_due_tags().tags)
        1
        """
        return self._engine.run(tags.CreateDueTags())

    def delete_tag(self, name: str, *, dry_run: bool = False) -> TableChangeResult:
        """Delete a tag and the files that only it needs.

        Args:
            name: Name of the tag.
            dry_run: Report what would be deleted, and change nothing.

        Raises:
            SnapshotNotFound: There is no such tag.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("v1").tags, table.delete_tag("v1").tags, table.tags().num_rows
        (('v1',), ('v1',), 0)
        """
        return self._engine.run(tags.DeleteTag(name=name, dry_run=dry_run))

    def replace_tag(
        self, name: str, snapshot: int | None = None, *, time_retained: timedelta | None = None, dry_run: bool = False
    ) -> TableChangeResult:
        """Point an existing tag to another snapshot.

        Readers see the old snapshot or the new one.

        Args:
            name: Name of the tag.
            snapshot: Snapshot id. None: the newest.
            time_retained: As for ``create_tag``.
            dry_run: Report what would be deleted with the old snapshot, and change nothing.

        Raises:
            SnapshotNotFound, SnapshotExpired: There is no such tag or snapshot.
            CommitConflict: Another process replaced the tag at the same time.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("daily").snapshot_id, table.delete("id = 1").snapshot_id, table.replace_tag("daily").snapshot_id
        (1, 2, 2)
        """
        retained = None if time_retained is None else int(time_retained / timedelta(milliseconds=1))
        return self._engine.run(tags.ReplaceTag(name=name, snapshot_id=snapshot, retained_ms=retained, dry_run=dry_run))

    def rename_tag(self, name: str, new_name: str) -> TableChangeResult:
        """Rename a tag.

        Raises:
            SnapshotNotFound: There is no such tag.
            InvalidArgument: The new name exists or is not valid.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("v1").tags, table.rename_tag("v1", "first").tags, table.tags()["tag_name"].to_pylist()
        (('v1',), ('first',), ['first'])
        """
        return self._engine.run(tags.RenameTag(name=name, new_name=new_name))

    def restore(
        self,
        snapshot: int | None = None,
        *,
        tag: str | None = None,
        timestamp: Time | None = None,
        commit_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> TableChangeResult:
        """Commit a snapshot with the rows of an older state.

        Unlike ``rollback_to`` it deletes nothing: the history stays, and another ``restore`` can undo it. The schema stays;
        columns that were added since are null. Partitions whose files differ are rewritten.

        Args:
            snapshot: Snapshot id.
            tag: Tag name.
            timestamp: The newest snapshot committed until this time.
            commit_id: As for ``write``.
            properties: As for ``write``.
            dry_run: Report the partitions that would be rewritten and what the newest state has in them, and change nothing.

        Raises:
            InvalidArgument: Not exactly one of snapshot, tag and timestamp is given.
            SnapshotNotFound, SnapshotExpired: There is no such state.
            CommitReplayed: As for ``write``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("id = 1").snapshot_id, table.count()
        (2, 2)
        >>> table.restore(1).snapshot_id, table.count(), table.scan(snapshot=2).count()
        (3, 3, 2)
        """
        if sum(wish is not None for wish in (snapshot, tag, timestamp)) != 1:
            raise InvalidArgument("restore needs exactly one of snapshot, tag and timestamp")
        # Deleted files must not be added again: the expiry of the deleting snapshot would remove them.
        identity, millis = commit_identity(commit_id), millis_of(timestamp)
        change = restore.Restore(
            commit_id=identity,
            snapshot_id=snapshot,
            tag=tag,
            timestamp_millis=millis,
            properties=check_properties(properties),
            dry_run=dry_run,
        )
        return self._engine.run(change)

    def reset_consumer(self, name: str, next_snapshot: int | None = None) -> TableChangeResult:
        """Set the next snapshot of a consumer, or delete it.

        A stream with a checkpoint continues from its checkpoint instead.

        Args:
            name: Name of the consumer.
            next_snapshot: Snapshot that the consumer reads next. None: delete the consumer, so that it no longer retains snapshots.

        Raises:
            InvalidArgument: There is no consumer to delete.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.reset_consumer("nightly", 1).snapshot_id, table.consumers().num_rows
        (1, 1)
        >>> table.reset_consumer("nightly").snapshot_id, table.consumers().num_rows
        (None, 0)
        """
        return self._engine.run(consumers.ResetConsumer(name=name, following=next_snapshot))

    def clear_consumers(self, including: str | None = None, excluding: str | None = None) -> TableChangeResult:
        """Delete consumers, so that they no longer retain snapshots.

        Args:
            including: Regular expression of whole names. None: all.
            excluding: Regular expression of names that stay. None: none stays.

        Raises:
            InvalidArgument: An argument is not a regular expression.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> done = [table.reset_consumer(name, 1) for name in ("nightly", "trial-1", "trial-2")]
        >>> done = table.clear_consumers("trial-.*")
        >>> table.consumers()["consumer_id"].to_pylist()
        ['nightly']
        """
        return self._engine.run(consumers.ClearConsumers(including=including, excluding=excluding))

    def expire_tags(self, older_than: Time | None = None, *, dry_run: bool = False) -> TableChangeResult:
        """Delete tags whose retention time has passed.

        Files that only these tags need are deleted, too.

        Args:
            older_than: Delete tags created before this time, too. None: only those whose retention has passed.
            dry_run: Report what would be deleted, and change nothing.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("v1").tags, table.expire_tags().tags
        (('v1',), ())
        """
        millis = millis_of(older_than)
        try:
            before = None if millis is None else datetime.fromtimestamp(millis / 1000)  # noqa: DTZ006  # tags store local times
        except (ValueError, OverflowError, OSError) as error:
            raise InvalidArgument(f"expire_tags: older_than is out of range: {older_than!r}") from error
        return self._engine.run(tags.ExpireTags(older_than=before, dry_run=dry_run))

    def rollback_to(
        self,
        snapshot: int | None = None,
        *,
        tag: str | None = None,
        timestamp: Time | None = None,
        watermark: int | None = None,
        dry_run: bool = False,
    ) -> TableChangeResult:
        """Make an older state the newest one again.

        All newer snapshots and tags are deleted for good, with the files that only they used. Writes that run at the same time may be
        lost too. The schema stays. ``restore`` deletes nothing.

        Args:
            snapshot: Snapshot id.
            tag: Tag name.
            timestamp: The newest snapshot committed until this time: milliseconds, a datetime or its text.
            watermark: The oldest snapshot with at least this watermark, in milliseconds.
            dry_run: Report what would be deleted, and change nothing.

        Raises:
            InvalidArgument: Not exactly one of the four is given.
            SnapshotNotFound: There is no such snapshot or tag.
            SnapshotExpired: The snapshot has expired.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("id = 1").snapshot_id, table.count()
        (2, 2)
        >>> table.rollback_to(timestamp=table.snapshots()["commit_time"][0].as_py()).snapshot_id, table.count()
        (1, 3)
        """
        if sum(wish is not None for wish in (snapshot, tag, timestamp, watermark)) != 1:
            raise InvalidArgument("rollback_to needs exactly one of snapshot, tag, timestamp and watermark")
        return self._engine.run(
            rollback.Rollback(snapshot_id=snapshot, tag=tag, timestamp_millis=millis_of(timestamp), watermark=watermark, dry_run=dry_run)
        )

    def create_branch(self, name: str, from_tag: str | None = None) -> None:
        """Create a branch from a tag, or an empty one.

        The branch has the schemas up to that of the tag, and a separate history. ``Table.open(path, branch=name)`` reads and writes it. Data
        files are shared, not copied.

        Args:
            name: Name of the branch.
            from_tag: Tag whose state the branch starts with. None: the branch starts empty.

        Raises:
            BranchExists: The table has a branch of that name.
            InvalidArgument: The name is a number, or cannot be a directory name.
            SnapshotNotFound: There is no such tag.

        >>> from pyspark_paimon import Table
        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> tag = table.create_tag("base")
        >>> table.create_branch("trial", "base")
        >>> trial = Table.open(table.path, branch="trial")
        >>> trial.delete("country = 'NO'").rows, trial.scan().count(), table.scan().count()
        (1, 2, 3)
        >>> table.fast_forward("trial").snapshots, table.scan().count()
        (0, 2)
        """
        self._engine.run(branches.CreateBranch(name=name, tag=from_tag))

    def delete_branch(self, name: str, *, dry_run: bool = False) -> TableChangeResult:
        """Delete a branch and the files that only it needs.

        Args:
            name: Name of the branch.
            dry_run: Report what would be deleted, and change nothing.

        Raises:
            SnapshotNotFound: There is no such branch.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_branch("trial")
        >>> table.delete_branch("trial", dry_run=True).removal
        Removal(1 file (... B))
        """
        return self._engine.run(branches.DeleteBranch(name=name, dry_run=dry_run))

    def rename_branch(self, name: str, new_name: str) -> None:
        """Rename a branch. No process may write to it meanwhile.

        Raises:
            SnapshotNotFound: There is no such branch.
            InvalidArgument: The new name exists, is a number, or cannot be a directory name.
            UnsupportedOption: The table is on an object store, which cannot rename.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_branch("trial")
        >>> table.rename_branch("trial", "next")
        >>> table.branches()["branch_name"].to_pylist()
        ['next']
        """
        self._engine.run(branches.RenameBranch(name=name, new_name=new_name))

    def fast_forward(self, branch: str, *, dry_run: bool = False) -> TableChangeResult:
        """Replace the table's history by that of a branch.

        Commits of the table since the branch was created are deleted. The branch stays.

        Args:
            branch: Name of the branch.
            dry_run: Report what would be deleted, and change nothing.

        Raises:
            SnapshotNotFound: There is no such branch, or it has no snapshot.

        >>> from pyspark_paimon import Table
        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> tag = table.create_tag("base")
        >>> table.create_branch("trial", "base")
        >>> rows = Table.open(table.path, branch="trial").delete("country = 'NO'").rows
        >>> result = table.fast_forward("trial")
        >>> table.count()
        2
        """
        return self._engine.run(branches.FastForward(name=branch, dry_run=dry_run))

    def drop_partitions(
        self,
        partitions: Sequence[Mapping[str, object]],
        *,
        commit_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> TableChangeResult:
        """Delete all rows of the given partitions.

        The deletion is a commit: older snapshots keep the rows until they expire.

        Args:
            partitions: Partitions like ``{"day": "2024-01-31"}``. A column that is left out matches all its values.
            commit_id: As for ``write``.
            properties: As for ``write``.
            dry_run: Report the partitions with their files and rows, and change nothing.

        Raises:
            InvalidArgument: No partition is given, or a value does not fit its column.

        >>> import tempfile, pyarrow as pa
        >>> from pyspark_paimon import Table
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id INT, day DATE", partition_keys=["day"])
        >>> days = pa.array([19000, 19000, 19001], pa.int32()).cast(pa.date32())
        >>> written = table.write(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "day": days}))
        >>> table.drop_partitions([{"day": "2022-01-08"}]).partitions, table.scan().count()
        (('day=2022-01-08',), 1)
        """
        schema = self._engine.ask(SchemaOf())
        specs = tuple(spec_of(spec, schema) for spec in partitions)
        if not specs:
            raise InvalidArgument("drop_partitions: no partition is given; to empty the table, delete with the filter 'TRUE'")
        return self._engine.run(
            partition_changes.DropPartitions(
                commit_id=commit_identity(commit_id), partitions=specs, properties=check_properties(properties), dry_run=dry_run
            )
        )

    def mark_partitions_done(self, partitions: Sequence[Mapping[str, object]]) -> TableChangeResult:
        """Write the file ``_SUCCESS`` into complete partitions.

        Jobs that wait for a partition look for this file. A repeated call renews its modification time.

        Args:
            partitions: Partitions like ``{"day": "2024-01-31"}``. A column that is left out matches all its values.

        Raises:
            InvalidArgument: No partition is given, or a value does not fit its column.
            UnsupportedOption: ``partition.mark-done-action`` is not ``success-file``.

        >>> import tempfile
        >>> from pyspark_paimon import Table
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id INT, day STRING", partition_keys=["day"])
        >>> snapshot = table.write([{"id": 1, "day": "mon"}, {"id": 2, "day": "tue"}]).snapshot_id
        >>> table.mark_partitions_done([{"day": "mon"}]).partitions
        ('day=mon',)
        """
        schema = self._engine.ask(SchemaOf())
        specs = tuple(spec_of(spec, schema) for spec in partitions)
        if not specs:
            raise InvalidArgument("mark_partitions_done: no partition is given")
        return self._engine.run(partition_changes.MarkPartitionsDone(partitions=specs))

    def expire_partitions(
        self,
        older_than: datetime | None = None,
        *,
        options: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> TableChangeResult:
        """Delete partitions that are older than a time.

        The option ``partition.expiration-strategy`` selects the age of a partition: the time in its values, or the time of its
        newest file. ``partition.timestamp-pattern`` and ``partition.timestamp-formatter`` parse values. Partitions whose values
        are not times never expire. Writes never expire partitions.

        Args:
            older_than: Partitions from before this local time are deleted. None: those older than ``partition.expiration-time``.
            options: Table options for this call only, such as ``partition.timestamp-formatter``.
            commit_id: As for ``write``.
            properties: As for ``write``.
            dry_run: Report what would be deleted, and change nothing.

        Raises:
            InvalidArgument, UnsupportedOption: The table has no partitions, or its options do not give a time.
            CommitConflict: Other commits won every retry.

        >>> import tempfile
        >>> from datetime import datetime
        >>> from pyspark_paimon import Table
        >>> options = {"partition.timestamp-formatter": "yyyy-MM-dd"}
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id INT, day STRING", partition_keys=["day"], options=options)
        >>> rows = table.write({"id": [1, 2], "day": ["2024-01-31", "2026-01-31"]}).rows
        >>> table.expire_partitions(datetime(2025, 1, 1)).partitions, table.count()
        (('day=2024-01-31',), 1)
        """
        if older_than is not None and older_than.tzinfo is not None:
            older_than = older_than.astimezone().replace(tzinfo=None)
        return self._engine.run(
            partition_changes.ExpirePartitions(
                commit_id=commit_identity(commit_id),
                older_than=older_than,
                options=check_options(options),
                properties=check_properties(properties),
                dry_run=dry_run,
            )
        )
