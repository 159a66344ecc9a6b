"""Plans of changes between two snapshots (Paimon's ``incremental-between``).

* ``delta``: rows of the files added by APPEND snapshots, as written
* ``changelog``: rows of the changelog files; an OVERWRITE has none
* ``diff``: the two states compared by key, whatever happened between them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from pydantic import TypeAdapter

from fileindex.predicate.projection import only_columns
from fileindex.predicate.tree import FALSE, TRUE, Predicate
from fileindex.query.metrics import IndexMetrics
from lsm.deletion_vectors.reader import DeletionFile
from lsm.levels.sorted_runs import interval_partition, key_decoder
from lsm.scan.bucket_pruner import BucketPruner
from lsm.scan.file_pruner import FilePruner, check_rows_only
from lsm.scan.plan import Report, ScanPlan
from lsm.scan.planner import ScanPlanner
from lsm.scan.splits import DataSplit, append_groups
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta, FileKind, ManifestEntry
from manifest.io.errors import SnapshotExpired, SnapshotNotFound, UnsupportedTable
from manifest.schema.table_schema import BucketMode
from manifest.snapshot.snapshot import CommitKind, Snapshot, SnapshotKey
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument

_Bucket: TypeAlias = tuple[bytes, int]


class IncrementalMode(StrEnum):
    """Method to find the rows between two snapshots."""

    DELTA = "delta"
    CHANGELOG = "changelog"
    DIFF = "diff"


class IncrementalSplit(DataSplit):
    """Files of one bucket with changes.

    In ``diff`` mode ``files`` has the newer state, and ``before`` the older one.
    """

    mode: IncrementalMode
    before: tuple[DataFileMeta, ...] = ()
    before_deletion_files: tuple[DeletionFile | None, ...] | None = None
    retracts: bool | None = None
    """Read only ``-U`` and ``-D`` rows (True), only the others (False), or all (None)."""

    @property
    def merged_row_count(self) -> int | None:
        """Number of rows of an unfiltered read, if known.

        None: only the read shows it.
        """
        return None if self.mode is IncrementalMode.DIFF or self.retracts is not None else self.row_count


def _retracts_first(store: FileStore, splits: Sequence[IncrementalSplit]) -> Sequence[IncrementalSplit]:
    """Return splits that keep the order of a key's rows."""
    if store.schema.bucket_mode is not BucketMode.KEY_DYNAMIC:
        return splits
    return [split.model_copy(update={"retracts": retracts}) for retracts in (True, False) for split in splits]


_SPLIT: TypeAdapter[IncrementalSplit | DataSplit] = TypeAdapter(IncrementalSplit | DataSplit)


def split_from_json(text: str) -> DataSplit:
    """Return the split from ``to_json`` text, of either class.

    Raises:
        pydantic.ValidationError: The text is not a split.
    """
    return _SPLIT.validate_json(text)


@dataclass(frozen=True)
class IncrementalPlanner:
    """Planner of the changes after snapshot ``start`` up to ``end``.

    ``end`` is included. ``start`` 0 is the beginning, ``end`` 0 a table without snapshots. A tag replaces a snapshot that may have expired.
    ``last`` is the snapshot of ``end`` that the caller resolved: a rollback may give its id to another one.
    """

    store: FileStore
    start: int
    end: int
    start_tag: str | None = None
    end_tag: str | None = None
    last: SnapshotKey | None = None

    def plan(self, mode: IncrementalMode, predicate: Predicate | None = None, *, exact: bool = False) -> ScanPlan:
        """Return the splits with all changes that match ``predicate``.

        Reading must apply ``predicate`` again. With ``exact`` an expired snapshot is an error if its kept changelog does not have all its changes,
        for example after an overwrite.

        Raises:
            InvalidArgument: ``end`` is older than ``start``.
            SnapshotExpired: A snapshot between them has expired.
            SnapshotNotFound: A rollback, fast-forward or re-creation of the table replaced ``last``.
            UnsupportedTable: The mode does not support the table; the message says why.
        """
        check_rows_only(self.store.root, evolves=self.store.options.data_evolution_enabled)
        if self.end < self.start:
            raise InvalidArgument(f"{self.store.root}: changes are read forward in time, not from snapshot {self.start} back to {self.end}")
        # A change of history replaces all snapshots from one on, and the last one shows it.
        if self.last is not None and self.store.snapshots.was_replaced(self.last):
            raise SnapshotNotFound(
                f"{self.store.root}: snapshot {self.last.id} of this scan was replaced by a rollback, a fast-forward or a new table of this name; scan again"
            )
        condition = TRUE if predicate is None else predicate
        if mode is IncrementalMode.DIFF:
            return _Difference(self.store, condition).plan(self._state(self.start, self.start_tag), self._state(self.end, self.end_tag))
        ids = range(self.start + 1, self.end + 1)
        pieces = [Piece(snapshot, mode) for snapshot in self._snapshots(ids, mode, exact)]
        return Additions(self.store, condition).plan(pieces, self.end)

    def _snapshots(self, ids: range, mode: IncrementalMode, exact: bool) -> Iterator[Snapshot]:
        """Yield the snapshots.

        An expired one is replaced by its kept changelog, if possible.
        """
        manager = self.store.snapshots
        for snapshot_id in ids:
            try:
                yield manager.get(snapshot_id)
            except SnapshotExpired:
                changelog = manager.kept.get(snapshot_id)
                if changelog is None or (mode is IncrementalMode.DELTA and changelog.changelog_manifest_list is not None):
                    raise
                if exact and not self._has_all_changes(changelog):
                    raise SnapshotExpired(
                        f"{self.store.root}: snapshot {snapshot_id} has expired, and its kept changelog does not include the replaced rows. "
                        "Use mode='changelog' to skip it"
                    ) from None
                yield changelog

    def _has_all_changes(self, changelog: Snapshot) -> bool:
        producer = self.store.schemas.get(changelog.schema_id).core.changelog_producer
        return changelog.commit_kind is not CommitKind.OVERWRITE and producer == self.store.options.changelog_producer

    def _state(self, snapshot_id: int, tag: str | None) -> Snapshot | None:
        manager = self.store.snapshots
        if tag is None:
            return manager.get(snapshot_id) if snapshot_id else None
        tagged = manager.tag(tag)
        if tagged.id != snapshot_id:
            raise SnapshotNotFound(f"{self.store.root}: tag '{tag}' has moved from snapshot {snapshot_id} to {tagged.id}; scan again")
        return tagged


@dataclass(frozen=True, slots=True)
class Piece:
    """Files of one snapshot's changes in a mode.

    Files from number ``first`` up to ``end`` (None: all), in the order of its manifests.
    """

    snapshot: Snapshot
    mode: IncrementalMode
    first: int = 0
    end: int | None = None

    @property
    def has_changes(self) -> bool:
        """Whether the snapshot has changes in this mode.

        In ``delta`` mode an append, in ``changelog`` mode any snapshot with a changelog except an overwrite.
        """
        if self.mode is IncrementalMode.DELTA:
            return self.snapshot.commit_kind is CommitKind.APPEND
        return self.snapshot.commit_kind is not CommitKind.OVERWRITE and self.snapshot.changelog_manifest_list is not None

    def entries(self, store: FileStore) -> EntryColumns:
        """Return the files as ADD entries.

        Their numbers never change, because a snapshot's manifests never change.
        """
        if not self.has_changes:
            return EntryColumns.of(())
        entries = self._listed(store)
        return entries.select(np.flatnonzero(entries.kind == FileKind.ADD)[self.first : self.end])

    def _listed(self, store: FileStore) -> EntryColumns:
        snapshot = self.snapshot
        if self.mode is IncrementalMode.DELTA or snapshot.changelog_manifest_list is None:
            return store.delta_entries(snapshot)
        with store.reading(snapshot):
            metas = store.manifest_lists.read(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
            return EntryColumns.concat([store.manifests.read_meta(meta) for meta in metas])


class Additions:
    """Plan of files added by snapshots.

    Every row is independent, so any condition may drop a file.
    """

    def __init__(self, store: FileStore, predicate: Predicate) -> None:
        self._store = store
        self._predicate = predicate
        self._pruner = FilePruner(store, predicate, IndexMetrics())
        self._report = Report()

    def plan(self, pieces: Sequence[Piece], snapshot_id: int) -> ScanPlan:
        """Return the splits of ``pieces``.

        They must be in snapshot order. ``snapshot_id`` is the newest one.
        """
        with self._report.stage("snapshots") as tally:
            changed = [piece for piece in pieces if piece.has_changes]
            tally.count(len(changed), len(pieces) - len(changed))
            tally.note = f"{pieces[0].snapshot.id} to {pieces[-1].snapshot.id}" if pieces else "none"
        entries = self._prune(EntryColumns.concat([piece.entries(self._store) for piece in changed]))
        files = self._prune_by_value(entries)
        modes = {piece.mode for piece in changed} or {IncrementalMode.DELTA}
        mode = IncrementalMode.DELTA if IncrementalMode.DELTA in modes else IncrementalMode.CHANGELOG
        with self._report.stage("splits") as tally:
            splits = tuple(
                split
                for group in self._ordered_groups(files, changed)
                for split in _retracts_first(self._store, list(self._splits(group.entries(), snapshot_id, mode)))
            )
            tally.count(len(splits), 0, sum(split.file_size for split in splits))
        return ScanPlan(snapshot_id, splits, tuple(self._report.stages))

    def _ordered_groups(self, files: EntryColumns, pieces: Sequence[Piece]) -> Iterator[EntryColumns]:
        """Yield files in groups that keep the order of changes.

        Splits of one group may be read in any order.
        """
        if self._store.schema.bucket_mode is not BucketMode.KEY_DYNAMIC:
            yield files
            return
        for piece in pieces:
            names = set(piece.entries(self._store).file_name)
            yield files.select(np.array([name in names for name in files.file_name], np.bool_))

    def _prune(self, entries: EntryColumns) -> EntryColumns:
        with self._report.stage("partition") as tally:
            codes, partitions = entries.partition_codes
            may_match = [self._pruner.residual(partition) != FALSE for partition in partitions]
            partition_entries = entries.select(np.array(may_match, np.bool_)[codes]) if partitions else entries
            tally.count(len(partition_entries), len(entries) - len(partition_entries))
        with self._report.stage("bucket") as tally:
            pruner = BucketPruner(self._store, self._pruner.residual)
            bucket_entries = partition_entries.select(pruner.may_match(partition_entries))
            tally.count(len(bucket_entries), len(partition_entries) - len(bucket_entries))
            tally.note = pruner.note
        return bucket_entries

    def _prune_by_value(self, entries: EntryColumns) -> EntryColumns:
        with self._report.stage("value stats") as tally:
            matching = entries if self._predicate == TRUE else entries.select(self._pruner.value_mask(entries))
            tally.count(len(matching), len(entries) - len(matching))
        return matching

    def _splits(self, entries: Iterable[ManifestEntry], snapshot_id: int, mode: IncrementalMode) -> Iterator[IncrementalSplit]:
        """Yield one split per bucket, with changes in snapshot order.

        Append tables have no order; their splits have the target size.
        """
        options = self._store.options
        for (partition, bucket), members in _by_bucket(entries).items():
            files = [entry.file for entry in members]
            groups = [files]
            if not self._store.schema.is_primary_key_table:
                target, cost = options.source_split_target_size, options.source_split_open_file_cost
                groups = [list(group.files) for group in append_groups(files, target, cost)]
            for group in groups:
                yield IncrementalSplit(
                    partition=partition,
                    bucket=bucket,
                    total_buckets=members[0].total_buckets,
                    files=tuple(group),
                    raw_convertible=True,
                    snapshot_id=snapshot_id,
                    mode=mode,
                )


def _by_bucket(entries: Iterable[ManifestEntry]) -> dict[_Bucket, list[ManifestEntry]]:
    entries_by_bucket: dict[_Bucket, list[ManifestEntry]] = {}
    for entry in entries:
        entries_by_bucket.setdefault((entry.partition, entry.bucket), []).append(entry)
    return entries_by_bucket


@dataclass
class _State:
    """Visible files of a bucket at one snapshot.

    Includes their deletion vectors.
    """

    total_buckets: int
    files: dict[str, tuple[DataFileMeta, DeletionFile | None]] = field(default_factory=dict)


class _Difference:
    """Plan of the difference of two states, by bucket.

    Key sections with the same files in both states are skipped.
    """

    def __init__(self, store: FileStore, predicate: Predicate) -> None:
        schema = store.schema
        if not schema.is_primary_key_table:
            raise UnsupportedTable(f"{store.root}: mode 'diff' compares rows by key, and the table has no primary key. Use mode 'delta'")
        self._store = store
        names = {*schema.primary_keys, *schema.partition_keys}
        self._keys_only = only_columns(predicate, names).inclusive  # the two rows of a change agree only on these columns
        self._key_of = key_decoder(schema.key_types)
        self._report = Report()

    def plan(self, start: Snapshot | None, end: Snapshot | None) -> ScanPlan:
        with self._report.stage("states") as tally:
            before, after = self._state(start), self._state(end)
            tally.count(sum(len(state.files) for side in (before, after) for state in side.values()), 0)
            snapshot_id = 0 if end is None else end.id
            tally.note = f"of snapshots {0 if start is None else start.id} and {snapshot_id}"
        with self._report.stage("sections") as tally:
            self._refuse_rescaled([*before.items(), *after.items()])
            buckets = sorted({*before, *after})
            differing_splits = [s for bucket in buckets for s in self._splits(bucket, before.get(bucket), after.get(bucket), snapshot_id)]
            file_count = sum(len(split.files) + len(split.before) for split in differing_splits)
            splits = tuple(_retracts_first(self._store, differing_splits))
            tally.count(file_count, self._report.stages[0].kept - file_count)
            tally.note = "files of both states are in sections without a change" if self._report.stages[0].kept > file_count else ""
        return ScanPlan(snapshot_id, splits, tuple(self._report.stages))

    def _state(self, snapshot: Snapshot | None) -> dict[_Bucket, _State]:
        states: dict[_Bucket, _State] = {}
        for split in ScanPlanner(self._store).plan(self._keys_only, snapshot=snapshot).splits:
            state = states.setdefault((split.partition, split.bucket), _State(split.total_buckets))
            vectors = split.deletion_files or (None,) * len(split.files)
            state.files.update({file.file_name: (file, vector) for file, vector in zip(split.files, vectors, strict=True)})
        return states

    def _refuse_rescaled(self, states: Iterable[tuple[_Bucket, _State]]) -> None:
        counts: dict[bytes, int] = {}
        for (partition, _), state in states:
            if counts.setdefault(partition, state.total_buckets) != state.total_buckets:
                values = self._store.partition.decode(partition)
                raise UnsupportedTable(
                    f"{self._store.root}: the number of buckets of partition {values} has changed, so its keys have moved between buckets"
                )

    def _splits(self, bucket: _Bucket, before: _State | None, after: _State | None, snapshot_id: int) -> Iterator[IncrementalSplit]:
        """Yield a split per key section that differs."""
        old, new = ({} if state is None else state.files for state in (before, after))
        states = [state for state in (before, after) if state is not None]
        every = [file for file, _ in {**old, **new}.values()]
        for section in interval_partition(every, self._key_of):
            names = [file.file_name for run in section for file in run.files]
            sides = [[side[name] for name in names if name in side] for side in (old, new)]
            if _same(*sides):
                continue
            (files_before, vectors_before), (files, vectors) = (_unzip(side) for side in sides)
            yield IncrementalSplit(
                partition=bucket[0],
                bucket=bucket[1],
                total_buckets=states[0].total_buckets,
                files=files,
                raw_convertible=False,
                deletion_files=vectors,
                snapshot_id=snapshot_id,
                mode=IncrementalMode.DIFF,
                before=files_before,
                before_deletion_files=vectors_before,
            )


_Side: TypeAlias = list[tuple[DataFileMeta, DeletionFile | None]]


def _same(old: _Side, new: _Side) -> bool:
    """Return whether both sides have the same rows.

    That means the same files with the same deleted rows.

    Levels are ignored.
    """
    return [(file.file_name, vector) for file, vector in old] == [(file.file_name, vector) for file, vector in new]


def _unzip(side: _Side) -> tuple[tuple[DataFileMeta, ...], tuple[DeletionFile | None, ...] | None]:
    vectors = tuple(vector for _, vector in side)
    return tuple(file for file, _ in side), vectors if any(vectors) else None
