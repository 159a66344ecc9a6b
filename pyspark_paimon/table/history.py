"""Tags, branches, rollback and dropped partitions of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from fileindex.base.errors import InvalidArgument
from fileindex.base.lazy import LazyModule
from pyspark_paimon.request.partition_spec import spec_of
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.request.validate import commit_identity, millis_of
from pyspark_paimon.table.role import TableRole
from pyspark_paimon.typing import Time

if TYPE_CHECKING:
    from pyspark_paimon.operations import branches, consumers, restore, rollback, tags
    from pyspark_paimon.operations import partitions as partition_changes
    from pyspark_paimon.request.state_results import TableChangeResult
else:
    branches = LazyModule("pyspark_paimon.operations.branches")
    consumers = LazyModule("pyspark_paimon.operations.consumers")
    partition_changes = LazyModule("pyspark_paimon.operations.partitions")
    restore = LazyModule("pyspark_paimon.operations.restore")
    rollback = LazyModule("pyspark_paimon.operations.rollback")
    tags = LazyModule("pyspark_paimon.operations.tags")


class TableHistory(TableRole):
    """The role that names states, branches off, and goes back.

    >>> from pyspark_paimon.example import cities
    >>> table = cities()
    >>> table.create_tag("before").snapshot_id
    1
    >>> table.delete("id = 1").snapshot_id, table.scan().count(), table.scan(tag="before").count()
    (2, 2, 3)
    >>> table.rollback_to(tag="before").snapshots, table.scan().count()
    (1, 3)
    """

    def create_tag(self, name: str, snapshot: int | None = None, *, time_retained: timedelta | None = None) -> TableChangeResult:
        """Name a snapshot (default: the newest), so that it can be read and its files stay after it has expired.

        With ``time_retained``, or by the option ``tag.default-time-retained``, the tag itself may be expired later.

        Raises ``InvalidArgument`` if the name is taken or no name, ``SnapshotNotFound``, ``SnapshotExpired``.
        """
        if not isinstance(time_retained, timedelta | None):
            raise InvalidArgument(f"time_retained is a timedelta, not {time_retained!r}")
        retained = None if time_retained is None else int(time_retained / timedelta(milliseconds=1))
        return self._backend.run(tags.CreateTag(name=name, snapshot_id=snapshot, retained_ms=retained))

    def delete_tag(self, name: str, *, dry_run: bool = False) -> TableChangeResult:
        """Forget a tag and delete the files that only it used; ``dry_run`` tells what would go. Raises ``SnapshotNotFound``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("v1").tags, table.delete_tag("v1").tags, table.tags().num_rows
        (('v1',), ('v1',), 0)
        """
        return self._backend.run(tags.DeleteTag(name=name, dry_run=dry_run))

    def replace_tag(
        self, name: str, snapshot: int | None = None, *, time_retained: timedelta | None = None, dry_run: bool = False
    ) -> TableChangeResult:
        """Have a tag that exists name another snapshot (default: the newest); readers see the old one or the new one.

        ``dry_run`` tells what would go with the old one. Raises ``SnapshotNotFound`` if there is no such tag or snapshot, ``SnapshotExpired``,
        ``CommitConflict`` if another replaces the tag at the same moment.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("daily").snapshot_id, table.delete("id = 1").snapshot_id, table.replace_tag("daily").snapshot_id
        (1, 2, 2)
        """
        retained = None if time_retained is None else int(time_retained / timedelta(milliseconds=1))
        return self._backend.run(tags.ReplaceTag(name=name, snapshot_id=snapshot, retained_ms=retained, dry_run=dry_run))

    def rename_tag(self, name: str, new_name: str) -> TableChangeResult:
        """Give a tag another name. Raises ``SnapshotNotFound``, ``InvalidArgument`` if the new name is taken or no name.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_tag("v1").tags, table.rename_tag("v1", "first").tags, table.tags()["tag_name"].to_pylist()
        (('v1',), ('first',), ['first'])
        """
        return self._backend.run(tags.RenameTag(name=name, new_name=new_name))

    def restore(
        self,
        snapshot: int | None = None,
        *,
        tag: str | None = None,
        timestamp: Time | None = None,
        commit_id: str | None = None,
        dry_run: bool = False,
    ) -> TableChangeResult:
        """Make a new snapshot whose rows are those of an older one, of a tag, or of the newest snapshot at a time.

        Unlike ``rollback_to`` it deletes nothing: the history stays, with the states in between, and ``restore`` can be undone by
        another one. Partitions whose files differ are written anew, for a file that was deleted must not come back: whoever expires the
        snapshot that deleted it, deletes it. The schema stays; columns that came since are null. ``commit_id`` is as for ``write``.
        ``dry_run`` tells which partitions would be written anew, and what the newest state has in them.

        Raises ``InvalidArgument`` unless one of the three is given, ``SnapshotNotFound``, ``SnapshotExpired``, ``CommitReplayed``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.delete("id = 1").snapshot_id, table.count()
        (2, 2)
        >>> table.restore(1).snapshot_id, table.count(), table.scan(snapshot=2).count()
        (3, 3, 2)
        """
        if sum(wish is not None for wish in (snapshot, tag, timestamp)) != 1:
            raise InvalidArgument("restore goes to a snapshot, a tag or a time: give one of them")
        identity, millis = commit_identity(commit_id), millis_of(timestamp)
        change = restore.Restore(commit_id=identity, snapshot_id=snapshot, tag=tag, timestamp_millis=millis, dry_run=dry_run)
        return self._backend.run(change)

    def reset_consumer(self, name: str, next_snapshot: int | None = None) -> TableChangeResult:
        """Have the stream that goes by ``name`` read ``next_snapshot`` next; without one forget it, so that it holds no snapshot any more.

        A stream that has a checkpoint goes on from there. Raises ``InvalidArgument`` if there is none to forget.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.reset_consumer("nightly", 1).snapshot_id, table.consumers().num_rows
        (1, 1)
        >>> table.reset_consumer("nightly").snapshot_id, table.consumers().num_rows
        (None, 0)
        """
        return self._backend.run(consumers.ResetConsumer(name=name, following=next_snapshot))

    def expire_tags(self, *, dry_run: bool = False) -> TableChangeResult:
        """Forget the tags whose time is over, and delete the files that only they used; ``dry_run`` tells what would go."""
        return self._backend.run(tags.ExpireTags(dry_run=dry_run))

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
        return self._backend.run(
            rollback.Rollback(snapshot_id=snapshot, tag=tag, timestamp_millis=millis_of(timestamp), watermark=watermark, dry_run=dry_run)
        )

    def create_branch(self, name: str, from_tag: str | None = None) -> None:
        """Start a history of its own: at the state of a tag, or without one empty, with the table's schemas.

        ``Table.open(path, branch=name)`` reads and writes it; data files are shared, so that nothing is copied.

        Raises ``InvalidArgument`` for a name that is taken, is a number, or cannot be a directory; ``SnapshotNotFound``.

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
        self._backend.run(branches.CreateBranch(name=name, tag=from_tag))

    def delete_branch(self, name: str, *, dry_run: bool = False) -> TableChangeResult:
        """Forget a branch and delete the files that only it used; ``dry_run`` tells what would go. Raises ``SnapshotNotFound``.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.create_branch("trial")
        >>> table.delete_branch("trial", dry_run=True).removal
        Removal(snapshots=0, tags=(), partitions=(), data_files=0, manifests=0, files=1, rows=0, bytes=...)
        """
        return self._backend.run(branches.DeleteBranch(name=name, dry_run=dry_run))

    def fast_forward(self, branch: str, *, dry_run: bool = False) -> TableChangeResult:
        """Make a branch's history the table's: what the table committed since they parted is deleted, the branch stays.

        ``dry_run`` tells what would go. Raises ``SnapshotNotFound`` if there is no such branch or nothing was ever committed to it.
        """
        return self._backend.run(branches.FastForward(name=branch, dry_run=dry_run))

    def drop_partitions(
        self, partitions: Sequence[Mapping[str, object]], *, commit_id: str | None = None, dry_run: bool = False
    ) -> TableChangeResult:
        """Remove all rows of partitions named like ``{"day": "2024-01-31"}``; columns left out mean all their values.

        A commit that others can read past: older snapshots keep the rows until they expire. ``dry_run`` tells which partitions would go, with their files and rows.

        >>> import tempfile, pyarrow as pa
        >>> from pyspark_paimon import Table
        >>> table = Table.create(f"{tempfile.mkdtemp()}/t", "id INT, day DATE", partition_keys=["day"])
        >>> days = pa.array([19000, 19000, 19001], pa.int32()).cast(pa.date32())
        >>> written = table.write(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "day": days}))
        >>> table.drop_partitions([{"day": "2022-01-08"}]).partitions, table.scan().count()
        (('day=2022-01-08',), 1)
        """
        schema = self._backend.ask(SchemaOf())
        specs = tuple(spec_of(spec, schema) for spec in partitions)
        if not specs:
            raise InvalidArgument("no partition is named; overwrite the table to empty it")
        return self._backend.run(partition_changes.DropPartitions(commit_id=commit_identity(commit_id), partitions=specs, dry_run=dry_run))

    def expire_partitions(
        self, older_than: datetime | None = None, *, commit_id: str | None = None, dry_run: bool = False
    ) -> TableChangeResult:
        """Remove the partitions from before ``older_than`` (local wall clock), by default those that the options call too old.

        ``partition.expiration-time`` is the age, ``partition.expiration-strategy`` whose age: that of the time in the partition's
        values (read by ``partition.timestamp-pattern`` and ``partition.timestamp-formatter``) or of its newest file. Values that
        tell no time never expire. Writes never expire partitions by themselves.
        ``dry_run`` tells which would go.

        Raises ``InvalidArgument``, ``UnsupportedOption``, ``CommitConflict``.
        """
        if older_than is not None and older_than.tzinfo is not None:
            older_than = older_than.astimezone().replace(tzinfo=None)
        return self._backend.run(
            partition_changes.ExpirePartitions(commit_id=commit_identity(commit_id), older_than=older_than, dry_run=dry_run)
        )


__all__ = ["TableHistory"]
