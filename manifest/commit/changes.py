"""Changes of each kind of commit, against the newest snapshot.

Every attempt computes its change again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from manifest.commit.attempt import CommitChange
from manifest.commit.conflicts import (
    BucketId,
    Conflict,
    bucket_count_conflicts,
    file_conflicts,
    first_touched,
    read_conflicts,
    row_range_conflicts,
)
from manifest.commit.index_update import IndexUpdate, changelog_of, compaction_paths
from manifest.commit.message import CommitMessage
from manifest.commit.resequence import Resequencer
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import ManifestEntry
from manifest.entry.live import EntryFilter
from manifest.io.errors import CommitConflict, SnapshotNotFound
from manifest.io.paths import POSTPONE_BUCKET
from manifest.schema.table_schema import BucketMode
from manifest.snapshot.snapshot import CommitKind, ReadState, Snapshot, SnapshotKey
from manifest.stats.table_stats import Statistics
from manifest.store import FileStore


def append_change(store: FileStore, latest: Snapshot | None, resequencer: Resequencer, read: ReadState | None) -> CommitChange:
    """ADD the new files and their index changes. Raises ``CommitConflict``.

    Their sequence numbers are above all live ones.
    """
    writing = [message for message in resequencer.messages if message.has_rows or message.index_changes]
    _refuse_changed_since(store, latest, writing, read)
    if store.schema.bucket_mode is BucketMode.KEY_DYNAMIC:
        _refuse_moved_keys(store, latest, writing)
    indexes = IndexUpdate.of(store, latest, writing, compaction=False)
    changelog = changelog_of(writing, compaction=False)
    if store.key is None and all(message.total_buckets <= 0 for message in writing) and not indexes.changes:
        added = EntryColumns.of(entry for message in writing for entry in message.added_entries())
        if any(file.first_row_id is not None for message in writing for file in message.new_files):
            _refuse(store, row_range_conflicts(_live(store, latest, writing), added))
        return CommitChange(added, changelog=changelog)
    base = _live(store, latest, writing)
    resequencer.fit(base)
    delta = EntryColumns.of(entry for message in resequencer.messages for entry in message.added_entries())
    _refuse(store, [*bucket_count_conflicts(base, delta), *file_conflicts(base, delta, store.key), *indexes.conflicts(base, delta)])
    return indexes.complete(store, CommitChange(delta, changelog=changelog))


def overwrite_change(
    store: FileStore,
    latest: Snapshot | None,
    messages: Sequence[CommitMessage],
    partitions: Collection[bytes] | None,
    *,
    copied: Snapshot | None = None,
    read: ReadState | None = None,
) -> CommitChange | None:
    """DELETE live files of ``partitions`` and ADD the new ones.

    Deletion vectors and hash indexes of these partitions are replaced too. New files without overlapping keys start at the top level.
    Returns None if nothing changes. Raises ``CommitConflict``.

    Args:
        store: The table.
        latest: Newest snapshot. None: the table is empty.
        messages: The new files.
        partitions: Partitions to replace. None: all.
        copied: Snapshot whose rows the new files copy. It is a conflict if it no longer exists.
        read: Snapshot whose rows of ``partitions`` the new files have. Any later change of these is a conflict, except a compaction.
    """
    if read is not None:
        touched = {partition for change in _rows_since(store, latest, read.snapshot) for partition in change.partition}
        if touched if partitions is None else touched.intersection(partitions):
            raise CommitConflict(f"{store.root}: rows that this change rewrites have changed since snapshot {read.snapshot.id}")
    if copied is not None and not store.snapshots.still_has(copied):
        raise CommitConflict(f"{store.root}: snapshot {copied.id} was removed while its rows were copied; nothing was changed by this call")
    if store.schema.bucket_mode is BucketMode.KEY_DYNAMIC and partitions is not None:
        _refuse_moved_keys(store, latest, messages)
    base = store.live_entries(latest, EntryFilter(partitions=partitions))
    if store.schema.bucket_mode is not BucketMode.POSTPONE_MODE:
        base = base.select(base.bucket != POSTPONE_BUCKET)
    added = EntryColumns.of(_overwrite_entries(store, messages))
    if not len(base) and not len(added):
        return None
    _refuse(store, file_conflicts(base, EntryColumns.concat([base.deleted(), added]), store.key))
    indexes = IndexUpdate.of(store, latest, messages, compaction=False).overwriting(store, latest, partitions)
    _refuse(store, indexes.conflicts(EntryColumns.of(()), added))
    return indexes.complete(store, CommitChange(EntryColumns.concat([base.deleted(), added])))


def replace_change(
    store: FileStore, latest: Snapshot | None, messages: Sequence[CommitMessage], read: ReadState | None
) -> CommitChange | None:
    """DELETE ``compact_before``, ADD ``compact_after`` and the new files.

    Returns None without messages. Raises ``CommitConflict``.
    """
    if not messages:
        return None
    _refuse_changed_since(store, latest, messages, read)
    base = _live(store, latest, messages)
    delta = EntryColumns.of(
        entry for message in messages for entries in (message.compacted_entries(), message.added_entries()) for entry in entries
    )
    _refuse(store, [*bucket_count_conflicts(base, delta), *file_conflicts(base, delta, store.key)])
    return CommitChange(delta)


def analyze_change(store: FileStore, latest: Snapshot | None, statistics: Statistics, counted: Snapshot) -> CommitChange:
    """Add a statistics file and no rows.

    Raises ``CommitConflict`` if the schema or the history changed since the rows were counted.
    """
    newest = store.schemas.latest()
    if latest is None or (newest is not None and newest.id != statistics.schema_id):
        raise CommitConflict(f"{store.root}: the schema changed while its rows were counted; analyze the table again")
    stored = store.snapshots.stored(counted.id)
    if counted.id > latest.id or (stored is not None and stored.key != counted.key):
        raise CommitConflict(f"{store.root}: snapshot {counted.id} was rolled back while its rows were counted; analyze the table again")
    return CommitChange(EntryColumns.of(()), statistics=store.statistics_files.write(statistics))


def manifests_change(store: FileStore, latest: Snapshot | None) -> CommitChange | None:
    """Merge all small manifests, and change no file.

    Returns None if at most one manifest is small or has DELETE entries.
    """
    policy = replace(store.merge_policy, full_threshold=0)
    due = [] if latest is None else [meta for meta in store.manifest_metas(latest) if policy.is_due(meta)]
    return CommitChange(EntryColumns.of(()), merges=policy) if len(due) > 1 else None


def forget_change(store: FileStore, latest: Snapshot | None) -> CommitChange | None:
    """Keep the files, and forget what else may have values of rows.

    These are deleted files, statistics, and indexes of other engines, which cannot be searched. Returns None for an empty table.
    """
    if latest is None:
        return None
    entries = store.index_entries(latest)
    index_entries = [entry for entry in entries if not entry.may_have_values]
    return IndexUpdate(index_entries, (), len(index_entries) < len(entries)).complete(
        store, CommitChange(EntryColumns.of(()), forgets=True)
    )


class Compactions:
    """The compactions of a commit.

    A bucket that loses a race is dropped. The others are committed.
    """

    def __init__(self, store: FileStore, messages: Sequence[CommitMessage]) -> None:
        self.messages = list(messages)
        self._store = store
        self._dropped: list[CommitMessage] = []
        self._kept: list[CommitMessage] = []

    @property
    def lost(self) -> tuple[BucketId, ...]:
        """Buckets whose compaction was dropped."""
        return tuple(dict.fromkeys(message.bucket_id for message in (*self._dropped, *self._kept)))

    def change(self, store: FileStore, latest: Snapshot | None) -> CommitChange | None:
        """Return the compactions that still fit ``latest``, or None."""
        while self.messages:
            base = _live(store, latest, self.messages)
            delta = EntryColumns.of(entry for message in self.messages for entry in message.compacted_entries())
            indexes = IndexUpdate.of(store, latest, self.messages, compaction=True)
            conflicts = [
                *bucket_count_conflicts(base, delta),
                *file_conflicts(base, delta, store.key),
                *(row_range_conflicts(base, delta) if store.options.data_evolution_enabled else ()),
                *read_conflicts(base, ((message.bucket_id, message.compact_read) for message in self.messages)),
                *indexes.conflicts(base, delta),
            ]
            if not conflicts and all(map(self._outputs_exist, self.messages)):
                return indexes.complete(store, CommitChange(delta, changelog=changelog_of(self.messages, compaction=True)))
            beaten = {conflict.bucket for conflict in conflicts}
            partitions = {partition for partition, bucket in beaten if bucket < 0}
            losers = [m for m in self.messages if m.bucket_id in beaten or m.partition in partitions or not self._outputs_exist(m)]
            self._dropped += losers
            self.messages = [message for message in self.messages if message not in losers]
        return None

    def drop_all(self, *, keep_files: bool) -> None:
        """Drop all compactions.

        Args:
            keep_files: Whether their files stay because the commit may have happened. They are orphans if it did not.
        """
        (self._kept if keep_files else self._dropped).extend(self.messages)
        self.messages = []

    def delete_lost_files(self) -> None:
        """Delete the output files of dropped compactions."""
        for message in self._dropped:
            for path in compaction_paths(self._store, message):
                with suppress(OSError):  # an orphan at worst
                    self._store.file_io.delete(path)

    def _outputs_exist(self, message: CommitMessage) -> bool:
        """Return whether all output files of the compaction still exist."""
        # An earlier run of the same commit may have dropped this compaction and deleted its files.
        return all(map(self._store.file_io.exists, compaction_paths(self._store, message)))


def _live(store: FileStore, latest: Snapshot | None, messages: Iterable[CommitMessage]) -> EntryColumns:
    """Return the live files of the buckets of ``messages``.

    Includes files of other buckets that were written with a different number of buckets.
    """
    changed = list(messages)
    entry_filter = EntryFilter(
        partitions={message.partition for message in changed},
        buckets={message.bucket for message in changed},
        bucket_counts={message.total_buckets for message in changed},
    )
    return store.live_entries(latest, entry_filter)


def _refuse(store: FileStore, conflicts: Sequence[Conflict]) -> None:
    if conflicts:
        (partition, bucket), reason = conflicts[0].bucket, conflicts[0].reason
        raise CommitConflict(f"{store.root}: partition {store.partition.decode(partition)}, bucket {bucket}: {reason}")


def _refuse_changed_since(store: FileStore, latest: Snapshot | None, messages: Sequence[CommitMessage], read: ReadState | None) -> None:
    """Raise ``CommitConflict`` if rows changed since snapshot ``read``.

    Counts changes of the buckets of ``messages``, or of the whole table if ``read`` says so. A rollback and a newer schema are conflicts too.
    """
    if read is None:
        return
    newer = _rows_since(store, latest, read.snapshot)
    if latest is not None and latest.schema_id > store.schema.id:
        raise CommitConflict(f"{store.root}: the schema changed since the rows were read; open the table again")
    changed = any(map(len, newer)) if read.whole_table else first_touched(newer, {message.bucket_id for message in messages}) is not None
    if changed:
        raise CommitConflict(f"{store.root}: rows that this change was computed from have changed since snapshot {read.snapshot.id}")


def _refuse_moved_keys(store: FileStore, latest: Snapshot | None, messages: Sequence[CommitMessage]) -> None:
    """Raise ``CommitConflict`` if rows were committed since keys were located."""
    # Any commit may have moved one of the keys to another partition.
    for base in {message.base for message in messages if message.new_files and message.base is not None}:
        if any(len(change) for change in _rows_since(store, latest, base)):
            raise CommitConflict(
                f"{store.root}: keys may have moved to other partitions since snapshot {base.id}, when they were looked up"
            )


def _rows_since(store: FileStore, latest: Snapshot | None, read: SnapshotKey) -> list[EntryColumns]:
    """Return row changes after a snapshot.

    Raises ``CommitConflict`` if they are unknown.
    """
    if (0 if latest is None else latest.id) < read.id:
        raise CommitConflict(f"{store.root}: the table was rolled back behind snapshot {read.id}, which the rows were read from")
    if latest is None:
        return []
    manager = store.snapshots
    if read.id and latest.key != read:
        stored = manager.stored(read.id)
        if stored is None:
            raise CommitConflict(f"{store.root}: snapshot {read.id}, which the rows were read from, has expired")
        if read.delta_manifest_list and stored.key != read:
            raise CommitConflict(f"{store.root}: a rollback or fast-forward replaced snapshot {read.id}, which the rows were read from")
    try:
        newer = list(manager.since(read.id, latest.id))
        if any(snapshot.first_replaced is not None for snapshot in newer):
            raise CommitConflict(f"{store.root}: the table was rolled back after snapshot {read.id}, which the rows were read from")
        return [store.delta_entries(snapshot) for snapshot in newer if snapshot.commit_kind is not CommitKind.COMPACT]
    except SnapshotNotFound as error:
        raise CommitConflict(f"{store.root}: snapshots after {read.id}, which the rows were read from, have expired") from error


def _overwrite_entries(store: FileStore, messages: Sequence[CommitMessage]) -> list[ManifestEntry]:
    """Return the ADD entries of an overwrite.

    With ``overwrite-upgrade``, files start at the top level where the key ranges of a bucket are disjoint. That level has deletes only with
    ``delete.time-retained``.
    """
    entries = [entry for message in messages for entry in message.added_entries()]
    key, retains = store.key, bool(store.options.delete_time_retained)
    eligible = key is not None and store.options.overwrite_upgrade and not any(m.has_compaction for m in messages)
    if not eligible or any(e.file.level or (e.file.delete_row_count and not retains) for e in entries):
        return entries
    lifted = [entry.model_copy(update={"file": entry.file.upgrade(store.options.max_level)}) for entry in entries]
    overlapping = file_conflicts(EntryColumns.of(()), EntryColumns.of(lifted), key)
    return entries if overlapping else lifted
