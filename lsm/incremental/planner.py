"""Planning what happened between two snapshots: Paimon's ``incremental-between`` in its three modes.

* ``delta``: rows of the files that APPEND snapshots added, as they were written
* ``changelog``: rows of the changelog files; an OVERWRITE has none
* ``diff``: the two states compared key by key, whatever lies between
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from pydantic import TypeAdapter

from fileindex.base.errors import InvalidArgument
from fileindex.predicate.tree import FALSE, TRUE, Predicate
from fileindex.query.metrics import IndexMetrics
from lsm.deletion_vectors.reader import DeletionFile
from lsm.levels.sorted_runs import interval_partition, key_decoder
from lsm.scan.bucket_pruner import BucketPruner
from lsm.scan.file_pruner import FilePruner
from lsm.scan.plan import Report, ScanPlan
from lsm.scan.planner import ScanPlanner
from lsm.scan.predicates import only_columns
from lsm.scan.row_ranges import check_rows_only
from lsm.scan.splits import DataSplit, append_groups
from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta
from manifest.entry.manifest_entry import FileKind, ManifestEntry
from manifest.io.errors import SnapshotExpired, SnapshotNotFound, UnsupportedTable
from manifest.schema.bucket_mode import BucketMode
from manifest.snapshot.snapshot import CommitKind, Snapshot
from manifest.store import FileStore

_Bucket: TypeAlias = tuple[bytes, int]


class IncrementalMode(StrEnum):
    """How the rows between two snapshots are found."""

    DELTA = "delta"
    CHANGELOG = "changelog"
    DIFF = "diff"


class IncrementalSplit(DataSplit):
    """Files of one bucket that tell what changed; in ``diff`` mode ``files`` hold the newer state, ``before`` the older one."""

    mode: IncrementalMode
    before: tuple[DataFileMeta, ...] = ()
    before_deletion_files: tuple[DeletionFile | None, ...] | None = None
    retracts: bool | None = None
    """Read only ``-U`` and ``-D`` rows (True), only the others (False), or all (None)."""

    @property
    def merged_row_count(self) -> int | None:
        """Number of rows of an unfiltered read. None: only a read tells."""
        return None if self.mode is IncrementalMode.DIFF or self.retracts is not None else self.row_count


def _retracts_first(store: FileStore, splits: Sequence[IncrementalSplit]) -> Sequence[IncrementalSplit]:
    """Return splits whose rows of a key come in order, whatever its partition.

    A key that moves to another partition leaves a retract in one split and a new row in another.
    """
    if store.schema.bucket_mode is not BucketMode.KEY_DYNAMIC:
        return splits
    return [split.model_copy(update={"retracts": retracts}) for retracts in (True, False) for split in splits]


_SPLIT: TypeAdapter[IncrementalSplit | DataSplit] = TypeAdapter(IncrementalSplit | DataSplit)


def split_from_json(text: str) -> DataSplit:
    """The split of either kind that ``to_json`` wrote. Raises ``pydantic.ValidationError``."""
    return _SPLIT.validate_json(text)


@dataclass(frozen=True)
class IncrementalPlanner:
    """Plans reads of what happened after snapshot ``start`` (0: since the beginning) up to and with ``end`` (0: the table has none).

    A tag stands in for a snapshot that may have expired.
    """

    store: FileStore
    start: int
    end: int
    start_tag: str | None = None
    end_tag: str | None = None

    def plan(self, mode: IncrementalMode, predicate: Predicate | None = None, *, exact: bool = False) -> ScanPlan:
        """The splits that hold every change for which ``predicate`` is true; reading must apply it again.

        ``exact``: an expired snapshot whose changes its kept changelog does not tell, such as an overwrite, is an error.

        Raises:
            InvalidArgument: ``end`` is older than ``start``.
            SnapshotExpired: a snapshot between them has expired.
            UnsupportedTable: the mode cannot tell, and why.
        """
        check_rows_only(self.store.root, evolves=self.store.options.data_evolution_enabled)
        if self.end < self.start:
            raise InvalidArgument(f"{self.store.root}: changes are read forward in time, not from snapshot {self.start} back to {self.end}")
        wanted = TRUE if predicate is None else predicate
        if mode is IncrementalMode.DIFF:
            return _Difference(self.store, wanted).plan(self._state(self.start, self.start_tag), self._state(self.end, self.end_tag))
        ids = range(self.start + 1, self.end + 1)
        pieces = [Piece(snapshot, mode) for snapshot in self._snapshots(ids, mode, exact)]
        return Additions(self.store, wanted).plan(pieces, self.end)

    def _snapshots(self, ids: range, mode: IncrementalMode, exact: bool) -> Iterator[Snapshot]:
        """Those snapshots; of one that has expired its changelog may have been kept."""
        manager = self.store.snapshots
        for snapshot_id in ids:
            try:
                yield manager.get(snapshot_id)
            except SnapshotExpired:
                kept = manager.kept.get(snapshot_id)
                if kept is None or (mode is IncrementalMode.DELTA and kept.changelog_manifest_list is not None):
                    raise
                if exact and not self._tells_all(kept):
                    raise SnapshotExpired(
                        f"{self.store.root}: snapshot {snapshot_id} has expired, and its kept changelog does not tell what it replaced; "
                        "mode='changelog' passes it by"
                    ) from None
                yield kept

    def _tells_all(self, changelog: Snapshot) -> bool:
        producer = self.store.schemas.get(changelog.schema_id).core.changelog_producer
        return changelog.commit_kind is not CommitKind.OVERWRITE and producer == self.store.options.changelog_producer

    def _state(self, snapshot_id: int, tag: str | None) -> Snapshot | None:
        manager = self.store.snapshots
        if tag is None:
            return manager.get(snapshot_id) if snapshot_id else None
        found = manager.tag(tag)
        if found.id != snapshot_id:
            raise SnapshotNotFound(f"{self.store.root}: tag '{tag}' has moved from snapshot {snapshot_id} to {found.id}; scan again")
        return found


@dataclass(frozen=True, slots=True)
class Piece:
    """What one snapshot tells in a mode: its files from number ``first`` up to ``end`` (None: all), in the order of its manifests."""

    snapshot: Snapshot
    mode: IncrementalMode
    first: int = 0
    end: int | None = None

    @property
    def tells(self) -> bool:
        """Whether the snapshot has anything to tell: an append its rows, any but an overwrite its changelog."""
        if self.mode is IncrementalMode.DELTA:
            return self.snapshot.commit_kind is CommitKind.APPEND
        return self.snapshot.commit_kind is not CommitKind.OVERWRITE and self.snapshot.changelog_manifest_list is not None

    def entries(self, store: FileStore) -> EntryColumns:
        """The files, as ADD entries. Numbers hold for ever: a snapshot's own manifests never change."""
        if not self.tells:
            return EntryColumns.of(())
        found = self._listed(store)
        return found.select(np.flatnonzero(found.kind == FileKind.ADD)[self.first : self.end])

    def _listed(self, store: FileStore) -> EntryColumns:
        snapshot = self.snapshot
        if self.mode is IncrementalMode.DELTA or snapshot.changelog_manifest_list is None:
            return store.delta_entries(snapshot)
        with store.reading(snapshot):
            metas = store.manifest_lists.read(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
            return EntryColumns.concat([store.manifests.read_meta(meta) for meta in metas])


class Additions:
    """Files that snapshots added; every row of them stands for itself, so that any condition may drop a file."""

    def __init__(self, store: FileStore, predicate: Predicate) -> None:
        self._store = store
        self._predicate = predicate
        self._pruner = FilePruner(store, predicate, IndexMetrics())
        self._report = Report()

    def plan(self, pieces: Sequence[Piece], snapshot_id: int) -> ScanPlan:
        """The splits of ``pieces``, which are in the order of their snapshots; ``snapshot_id`` is the newest one's."""
        with self._report.stage("snapshots") as tally:
            told = [piece for piece in pieces if piece.tells]
            tally.count(len(told), len(pieces) - len(told))
            tally.note = f"{pieces[0].snapshot.id} to {pieces[-1].snapshot.id}" if pieces else "none"
        entries = self._wanted(EntryColumns.concat([piece.entries(self._store) for piece in told]))
        files = self._matching(entries)
        modes = {piece.mode for piece in told} or {IncrementalMode.DELTA}
        mode = IncrementalMode.DELTA if IncrementalMode.DELTA in modes else IncrementalMode.CHANGELOG
        with self._report.stage("splits") as tally:
            splits = tuple(
                split
                for group in self._ordered_groups(files, told)
                for split in _retracts_first(self._store, list(self._splits(group.entries(), snapshot_id, mode)))
            )
            tally.count(len(splits), 0, sum(split.file_size for split in splits))
        return ScanPlan(snapshot_id, splits, tuple(self._report.stages))

    def _ordered_groups(self, files: EntryColumns, pieces: Sequence[Piece]) -> Iterator[EntryColumns]:
        """Yield the files whose splits may be read in any order."""
        if self._store.schema.bucket_mode is not BucketMode.KEY_DYNAMIC:
            yield files
            return
        for piece in pieces:
            names = set(piece.entries(self._store).file_name)
            yield files.select(np.array([name in names for name in files.file_name], np.bool_))

    def _wanted(self, entries: EntryColumns) -> EntryColumns:
        with self._report.stage("partition") as tally:
            codes, known = entries.partition_codes
            wanted = [self._pruner.residual(partition) != FALSE for partition in known]
            kept = entries.select(np.array(wanted, np.bool_)[codes]) if known else entries
            tally.count(len(kept), len(entries) - len(kept))
        with self._report.stage("bucket") as tally:
            pruner = BucketPruner(self._store, self._pruner.residual)
            found = kept.select(pruner.wanted(kept))
            tally.count(len(found), len(kept) - len(found))
            tally.note = pruner.note
        return found

    def _matching(self, entries: EntryColumns) -> EntryColumns:
        with self._report.stage("value stats") as tally:
            kept = entries if self._predicate == TRUE else entries.select(self._pruner.value_mask(entries))
            tally.count(len(kept), len(entries) - len(kept))
        return kept

    def _splits(self, entries: Iterable[ManifestEntry], snapshot_id: int, mode: IncrementalMode) -> Iterator[IncrementalSplit]:
        """One split a bucket with the changes in the order of their snapshots; of append tables, which have no order, of target size."""
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
    found: dict[_Bucket, list[ManifestEntry]] = {}
    for entry in entries:
        found.setdefault((entry.partition, entry.bucket), []).append(entry)
    return found


@dataclass
class _State:
    """The visible files of a bucket at one snapshot, with their deletion vectors."""

    total_buckets: int
    files: dict[str, tuple[DataFileMeta, DeletionFile | None]] = field(default_factory=dict)


class _Difference:
    """Two states, bucket by bucket; key sections that have the same files on both sides are left out."""

    def __init__(self, store: FileStore, predicate: Predicate) -> None:
        schema = store.schema
        if not schema.is_primary_key_table:
            raise UnsupportedTable(
                f"{store.root}: rows of two states are compared by key, and the table has no primary key; use mode 'delta'"
            )
        self._store = store
        names = {*schema.primary_keys, *schema.partition_keys}
        self._keys_only = only_columns(predicate, names)  # the two rows of a change agree on these columns, and on these alone
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
            found = [s for bucket in buckets for s in self._splits(bucket, before.get(bucket), after.get(bucket), snapshot_id)]
            kept = sum(len(split.files) + len(split.before) for split in found)
            splits = tuple(_retracts_first(self._store, found))
            tally.count(kept, self._report.stages[0].kept - kept)
            tally.note = "files of both states lie in sections without a change" if self._report.stages[0].kept > kept else ""
        return ScanPlan(snapshot_id, splits, tuple(self._report.stages))

    def _state(self, snapshot: Snapshot | None) -> dict[_Bucket, _State]:
        found: dict[_Bucket, _State] = {}
        for split in ScanPlanner(self._store).plan(self._keys_only, snapshot=snapshot).splits:
            state = found.setdefault((split.partition, split.bucket), _State(split.total_buckets))
            vectors = split.deletion_files or (None,) * len(split.files)
            state.files.update({file.file_name: (file, vector) for file, vector in zip(split.files, vectors, strict=True)})
        return found

    def _refuse_rescaled(self, states: Iterable[tuple[_Bucket, _State]]) -> None:
        counts: dict[bytes, int] = {}
        for (partition, _), state in states:
            if counts.setdefault(partition, state.total_buckets) != state.total_buckets:
                values = self._store.partition.decode(partition)
                raise UnsupportedTable(
                    f"{self._store.root}: partition {values} has another number of buckets since, so that its keys have moved between them"
                )

    def _splits(self, bucket: _Bucket, before: _State | None, after: _State | None, snapshot_id: int) -> Iterator[IncrementalSplit]:
        """A split per section of the files of both states in which the states differ."""
        old, new = ({} if state is None else state.files for state in (before, after))
        known = [state for state in (before, after) if state is not None]
        every = [file for file, _ in {**old, **new}.values()]
        for section in interval_partition(every, self._key_of):
            names = [file.file_name for run in section for file in run.files]
            sides = [[side[name] for name in names if name in side] for side in (old, new)]
            if _same(*sides):
                continue
            (files_before, vectors_before), (files, vectors) = (_unzipped(side) for side in sides)
            yield IncrementalSplit(
                partition=bucket[0],
                bucket=bucket[1],
                total_buckets=known[0].total_buckets,
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
    """Whether both sides hold the same rows: the same physical files, on whatever level, with the same rows deleted."""
    return [(file.file_name, vector) for file, vector in old] == [(file.file_name, vector) for file, vector in new]


def _unzipped(side: _Side) -> tuple[tuple[DataFileMeta, ...], tuple[DeletionFile | None, ...] | None]:
    vectors = tuple(vector for _, vector in side)
    return tuple(file for file, _ in side), vectors if any(vectors) else None


__all__ = ["Additions", "IncrementalMode", "IncrementalPlanner", "IncrementalSplit", "Piece", "split_from_json"]
