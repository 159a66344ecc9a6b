"""Streams that follow a table (Paimon's ``StreamTableScan``).

Computes the position of a stream, the end of its next batch, and the splits between them. A stream may begin with the whole state
of one snapshot. Then it returns the changes of each later snapshot: the appended rows, or the table's changelog. Its position is
between two units. Units are files of a snapshot's changes. Units of a whole state are buckets, or files if rows have no key.
A position always identifies the same rows, whatever the filter or the limits of a batch, because the files of a snapshot never change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from fileindex.predicate.tree import TRUE, Predicate
from lsm.incremental.planner import Additions, IncrementalMode, IncrementalPlanner, Piece
from lsm.scan.file_pruner import check_rows_only
from lsm.scan.plan import ScanPlan
from lsm.scan.planner import ScanPlanner, compacted_snapshot
from lsm.scan.splits import DataSplit
from manifest.entry.columns import EntryColumns
from manifest.entry.live import EntryFilter
from manifest.io.errors import KEEP_SNAPSHOTS, SnapshotExpired, SnapshotNotFound, UnsupportedTable
from manifest.snapshot.commit_info import FAST_FORWARD, OPERATION, RESTORE
from manifest.snapshot.snapshot import CommitKind, Snapshot, SnapshotKey
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import cached_property
from sparkexpr.values.arrays import Indices, Int64s


@dataclass(frozen=True)
class WholeState(ABC):
    """Live files of ``snapshot`` from ``min_level`` on.

    The order of units depends only on the snapshot.
    """

    store: FileStore
    snapshot: Snapshot
    min_level: int = 0

    @abstractmethod
    def sizes(self) -> Int64s:
        """Return files, rows and bytes of each unit."""

    def plan(self, first: int, end: int | None, predicate: Predicate | None) -> ScanPlan:
        """Return the splits of units ``first`` to ``end``.

        Only splits that may match ``predicate``. ``end`` None is the last unit.
        """
        full_plan = ScanPlanner(self.store, self.min_level).plan(predicate, snapshot=self.snapshot)
        return ScanPlan(full_plan.snapshot_id, tuple(self._choose(full_plan.splits, slice(first, end))), full_plan.report)

    @abstractmethod
    def _choose(self, splits: Iterable[DataSplit], units: slice) -> Iterator[DataSplit]:
        """Yield the parts of splits that belong to the units."""

    @cached_property
    def _entries(self) -> EntryColumns:
        live = self.store.live_entries(self.snapshot, EntryFilter(min_level=self.min_level))
        return live.select(live.bucket >= 0)  # without the postpone bucket


class BucketState(WholeState):
    """State of a primary-key table: its units are buckets."""

    def sizes(self) -> Int64s:
        """Return files, rows and bytes of each bucket."""
        counted = [np.bincount(self._bucket_of, weights=size, minlength=len(self._buckets)) for size in file_sizes(self._entries)]
        return np.stack(counted).astype(np.int64)

    def _choose(self, splits: Iterable[DataSplit], units: slice) -> Iterator[DataSplit]:
        buckets = set(self._buckets[units])
        return (split for split in splits if (split.partition, split.bucket) in buckets)

    @cached_property
    def _buckets(self) -> list[tuple[bytes, int]]:
        return sorted(set(zip(self._entries.partition, self._entries.bucket.tolist(), strict=True)))

    @property
    def _bucket_of(self) -> Indices:
        numbers = {bucket: number for number, bucket in enumerate(self._buckets)}
        return np.array([numbers[bucket] for bucket in zip(self._entries.partition, self._entries.bucket.tolist(), strict=True)], np.intp)


class FileState(WholeState):
    """State of an append table: its units are files."""

    def sizes(self) -> Int64s:
        """Return 1, rows and bytes of each file."""
        return file_sizes(self._entries)

    def _choose(self, splits: Iterable[DataSplit], units: slice) -> Iterator[DataSplit]:
        entries = self._entries.select(np.arange(len(self._entries))[units])
        names = set(zip(entries.partition, entries.bucket.tolist(), entries.file_name, strict=True))
        return (part for split in splits for part in _part(split, names))


def file_sizes(entries: EntryColumns) -> Int64s:
    """Return the sizes of files as separate units."""
    return np.stack([np.ones(len(entries), np.int64), entries.row_count, entries.file_size])


def _part(split: DataSplit, names: set[tuple[bytes, int, str]]) -> list[DataSplit]:
    """Return the split with only the files in ``names``.

    Empty if no file is left.
    """
    positions = [position for position, file in enumerate(split.files) if (split.partition, split.bucket, file.file_name) in names]
    vectors = split.deletion_files
    left = {
        "files": tuple(split.files[position] for position in positions),
        "deletion_files": vectors and tuple(vectors[position] for position in positions),
    }
    return [split.model_copy(update=left)] if positions else []


_EVERY_LEVEL = {"deletion-vectors.merge-on-read": "true"}
_NO_LIMIT = np.iinfo(np.int64).max
_ADVICE = f"a stream that has lost its place must be restarted; {KEEP_SNAPSHOTS}"
_RESTART = (
    "Start again from the whole state: call follow() without offset and delete its consumer (Table.reset_consumer(name)), "
    "or give Spark's query a new checkpoint"
)


class StartMode(StrEnum):
    """Start of a stream (Paimon's ``scan.mode``)."""

    LATEST_FULL = "latest-full"
    LATEST = "latest"
    COMPACTED_FULL = "compacted-full"
    FROM_SNAPSHOT = "from-snapshot"
    FROM_SNAPSHOT_FULL = "from-snapshot-full"
    FROM_TIMESTAMP = "from-timestamp"


@dataclass(frozen=True, slots=True)
class Position:
    """Position before a unit of a snapshot.

    Units are of the snapshot's changes, or of its whole state if ``whole``. Snapshot 0 with ``whole``: the table had no snapshot, and the stream
    begins with the state of the first one.

    Args:
        snapshot_id: Snapshot of the next unit.
        unit: Number of the next unit.
        whole: Whether units are of the whole state.
        after: Delta manifest list of the newest snapshot before the position. None: unknown, so that its replacement is not noticed.
    """

    snapshot_id: int
    unit: int = 0
    whole: bool = False
    after: str | None = field(default=None, compare=False)

    @classmethod
    def behind(cls, snapshot: Snapshot | None) -> Position:
        """Return the position after all changes of ``snapshot``.

        None: before the first snapshot.
        """
        return cls(1) if snapshot is None else cls(snapshot.id + 1, after=snapshot.delta_manifest_list)

    @property
    def newest_before(self) -> SnapshotKey | None:
        """Newest snapshot before the position, None if unknown."""
        return None if self.after is None else SnapshotKey(self.snapshot_id - (not self.unit), self.after)

    @property
    def oldest_needed(self) -> int:
        """Oldest snapshot that the stream still has to read."""
        return max(self.snapshot_id, 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one batch. None: no limit.

    A first unit that exceeds them is a batch alone.
    """

    files: int | None = None
    rows: int | None = None
    bytes: int | None = None


UNLIMITED = Limits()


@dataclass(slots=True)
class _Budget:
    """Remaining rows, files and bytes of a stream batch."""

    limits: Limits
    _used: Int64s = field(default_factory=lambda: np.zeros(3, np.int64))

    def take(self, sizes: Int64s) -> int:
        """Return how many of the next units fit.

        ``sizes`` has rows of files, rows and bytes.
        """
        configured = (self.limits.files, self.limits.rows, self.limits.bytes)
        limits = np.array([_NO_LIMIT if limit is None else limit for limit in configured])
        totals = self._used[:, None] + np.cumsum(sizes, axis=1)
        over = np.flatnonzero((totals > limits[:, None]).any(axis=0))
        units = sizes.shape[1]
        count = int(over[0]) if len(over) else units
        if not count and units and not self._used.any():
            count = 1
        if count:
            self._used = totals[:, count - 1]
        return count


@dataclass(frozen=True)
class StreamScan:
    """Stream over the snapshots of ``store``.

    Stateless: positions have the whole state. With ``overwrites`` the rows replaced by an overwrite are returned too, by key, in a
    separate batch (Paimon's ``streaming-read-overwrite``). Otherwise overwrites are skipped.

    Raises:
        UnsupportedTable: The appended rows of the table are not its rows.
        InvalidArgument: An option is not supported for the table.
    """

    store: FileStore
    overwrites: bool = False

    def __post_init__(self) -> None:
        schema, core = self.store.schema, self.store.schema.core
        check_rows_only(self.store.root, evolves=core.data_evolution_enabled)
        if schema.is_primary_key_table and core.changelog_producer == "none" and not core.engine.newest_replaces:
            raise UnsupportedTable(
                f"{self.store.root}: a stream of a table with merge-engine '{core.engine.name}' needs a changelog: "
                "set 'changelog-producer' to 'lookup' or 'full-compaction' ('input' logs the rows as written)"
            )
        if self.overwrites and (not schema.is_primary_key_table or core.changelog_producer not in {"none", "input"}):
            raise InvalidArgument("option 'streaming-read-overwrite' needs a primary-key table with changelog-producer 'none' or 'input'")

    def start(self, mode: StartMode, *, snapshot_id: int | None = None, timestamp_millis: int | None = None) -> Position:
        """Return the start position of a new stream.

        The modes with ``from`` need their argument.

        Raises:
            SnapshotExpired, SnapshotNotFound: The changes since then, or the state, are not available.
        """
        manager = self.store.snapshots
        latest = manager.latest()
        newest = 0 if latest is None else latest.id
        match mode:
            case StartMode.LATEST_FULL:
                return Position(newest, whole=True)
            case StartMode.LATEST:
                return Position.behind(latest)
            case StartMode.COMPACTED_FULL:
                compacted = compacted_snapshot(self.store)
                return Position(newest if compacted is None else compacted.id, whole=True)
            case StartMode.FROM_SNAPSHOT_FULL:
                return Position(manager.get(snapshot_id or 0).id, whole=True)
            case StartMode.FROM_SNAPSHOT:
                position = Position(snapshot_id or 0)
            case StartMode.FROM_TIMESTAMP:
                position = Position(self._first_since(timestamp_millis or 0))
        if position.snapshot_id <= newest:
            self._snapshot(position.snapshot_id)
        elif position.snapshot_id == newest + 1:
            return Position.behind(latest)
        else:
            raise SnapshotNotFound(f"{self.store.root}: there is no snapshot {position.snapshot_id} to start from; the newest is {newest}")
        return position

    def newest(self) -> int:
        """Return the id of the newest snapshot, 0 if none."""
        return self.store.snapshots.latest_id() or 0

    def advance(self, start: Position, limits: Limits = UNLIMITED, *, last: int | None = None) -> Position:
        """Return the end of the next batch.

        It is ``start`` if there is nothing new. The batch never goes past snapshot ``last``. None: the newest.

        Raises:
            SnapshotExpired: The stream has lost its place.
            SnapshotNotFound: A rollback, fast-forward, restore or re-creation of the table replaced what the stream has read.
        """
        newest = self.newest()
        if start.snapshot_id > newest + 1:
            raise self._replaced(start.snapshot_id - 1)
        self._refuse_replaced(start)
        until = newest if last is None else min(last, newest)
        budget = _Budget(limits)
        if start.whole:
            return self._advance_whole(start, budget, until)
        position = start
        while position.snapshot_id <= until:
            snapshot = self._snapshot(position.snapshot_id)
            # On object stores a rollback is a snapshot, also where the replaced ones have expired.
            if snapshot.first_replaced is not None and snapshot.first_replaced < start.snapshot_id:
                raise self._replaced(start.snapshot_id - 1)
            if self._replaces(snapshot):
                return Position.behind(snapshot) if position == start else position
            if (snapshot.properties or {}).get(OPERATION) in {RESTORE, FAST_FORWARD}:
                if position == start:
                    raise self._restored(snapshot)
                return position
            if limits != UNLIMITED:
                sizes = file_sizes(self._piece(snapshot, position.unit).entries(self.store))
                count = budget.take(sizes)
                if count < sizes.shape[1]:
                    return Position(position.snapshot_id, position.unit + count, after=snapshot.delta_manifest_list) if count else position
            position = Position.behind(snapshot)
        return position

    def plan(self, start: Position, end: Position, predicate: Predicate | None = None) -> ScanPlan:
        """Return the splits of the batch from ``start`` to ``end``.

        Both must be results of ``advance``, in any process. All changes of a key are in one split, in order. ``predicate`` is applied to each row
        separately; reading must apply it again.
        """
        if start == end:
            return ScanPlan(end.snapshot_id, (), ())
        self._refuse_replaced(start)
        self._refuse_replaced(end)
        if start.whole:
            return self._plan_whole(start, end, predicate)
        ids = range(start.snapshot_id, end.snapshot_id + (end.unit > 0))
        snapshots = [self._snapshot(snapshot_id) for snapshot_id in ids]
        if any(self._replaces(snapshot) for snapshot in snapshots):
            if len(snapshots) > 1:
                raise InvalidArgument("option 'streaming-read-overwrite' was enabled within a batch. Finish the batch without it first")
            return IncrementalPlanner(self._exact, ids[0] - 1, ids[0]).plan(IncrementalMode.DIFF, predicate)
        ends = {end.snapshot_id: end.unit}
        pieces = [self._piece(snapshot, 0, ends.get(snapshot.id)) for snapshot in snapshots]
        pieces[0] = replace(pieces[0], first=start.unit)
        return Additions(self.store, TRUE if predicate is None else predicate).plan(pieces, ids[-1])

    def _advance_whole(self, start: Position, budget: _Budget, until: int) -> Position:
        """Return the next batch's end within a whole state.

        Later changes are never in the same batch, because a key would be in two splits.
        """
        snapshot_id = start.snapshot_id or until
        if not snapshot_id:
            return start
        state = self._state(snapshot_id)
        if budget.limits == UNLIMITED:
            return Position.behind(state.snapshot)
        sizes = state.sizes()[:, start.unit :]
        count = budget.take(sizes)
        if count < sizes.shape[1]:
            return Position(snapshot_id, start.unit + count, whole=True, after=state.snapshot.delta_manifest_list)
        return Position.behind(state.snapshot)

    def _plan_whole(self, start: Position, end: Position, predicate: Predicate | None) -> ScanPlan:
        snapshot_id = end.snapshot_id if end.whole else end.snapshot_id - 1
        return self._state(snapshot_id).plan(start.unit, end.unit if end.whole else None, predicate)

    def _state(self, snapshot_id: int) -> WholeState:
        """Return the state from which later changes continue.

        For a changelog written by compactions, only compacted files.
        """
        state = BucketState if self.store.schema.is_primary_key_table else FileState
        return state(self._exact, self._snapshot(snapshot_id, full_state=True), self.store.schema.kind.logged_level)

    @cached_property
    def _exact(self) -> FileStore:
        """The table with all committed rows.

        Rows that wait for a compaction were already returned as appended.
        """
        return self.store.with_options(_EVERY_LEVEL)

    @cached_property
    def _producers(self) -> dict[int, str]:
        return {self.store.schema.id: self.store.schema.core.changelog_producer}

    def _piece(self, snapshot: Snapshot, first: int = 0, end: int | None = None) -> Piece:
        """Return the changes of a snapshot.

        Uses the changelog producer at the time of its commit.
        """
        producer = self._producers.get(snapshot.schema_id)
        if producer is None:
            producer = self._producers[snapshot.schema_id] = self.store.schemas.get(snapshot.schema_id).core.changelog_producer
        return Piece(snapshot, IncrementalMode.DELTA if producer == "none" else IncrementalMode.CHANGELOG, first, end)

    def _replaces(self, snapshot: Snapshot) -> bool:
        """Return whether the snapshot's replaced rows are returned."""
        return self.overwrites and snapshot.commit_kind is CommitKind.OVERWRITE

    def _refuse_replaced(self, position: Position) -> None:
        """Raise ``SnapshotNotFound`` if read snapshots left the history."""
        key = position.newest_before
        if key is not None and self.store.snapshots.was_replaced(key):
            raise self._replaced(key.id)

    def _replaced(self, snapshot_id: int) -> SnapshotNotFound:
        return SnapshotNotFound(
            f"{self.store.root}: the stream has read up to snapshot {snapshot_id}, which a rollback, a fast-forward or a new table of this "
            f"name has removed; the newest is now {self.newest()}. {_RESTART}"
        )

    def _restored(self, snapshot: Snapshot) -> SnapshotNotFound:
        return SnapshotNotFound(
            f"{self.store.root}: snapshot {snapshot.id} is a restore or fast-forward, and a stream does not have the rows that it changed. {_RESTART}"
        )

    def _snapshot(self, snapshot_id: int, *, full_state: bool = False) -> Snapshot:
        """Return a snapshot, or its kept changelog if expired.

        The ``full_state`` state needs the snapshot itself.
        """
        manager = self.store.snapshots
        try:
            return manager.get(snapshot_id)
        except SnapshotExpired:
            changelog = None if full_state else manager.kept.get(snapshot_id)
            if changelog is not None:
                return changelog
            raise SnapshotExpired(
                f"{self.store.root}: the stream is at snapshot {snapshot_id}, which has expired; the oldest is {manager.earliest_id()}. {_ADVICE}"
            ) from None

    def _first_since(self, millis: int) -> int:
        """Return the first snapshot committed at ``millis`` or later.

        It may be the next one.
        """
        manager = self.store.snapshots
        try:
            return manager.at_timestamp(millis - 1).id + 1
        except SnapshotNotFound:
            earliest = manager.earliest_id() or 1
            changelogs = manager.kept.all()
            if earliest == 1 or (changelogs and changelogs[0].id == 1 and changelogs[0].time_millis >= millis):
                return 1
            if changelogs and changelogs[0].time_millis < millis:
                return max(changelog.id for changelog in changelogs if changelog.time_millis < millis) + 1
            raise SnapshotExpired(
                f"{self.store.root}: snapshots since timestamp {millis} have expired; the oldest is {earliest}. {_ADVICE}"
            ) from None
