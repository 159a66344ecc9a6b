"""Reads of two branches as one table (Paimon's fallback branch).

A partition is read from one branch; the other branch is used if the partition is missing there.
``scan.fallback-branch`` names a branch for partitions missing in the table. ``scan.primary-branch`` names one whose partitions win.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from lsm.scan.plan import Report, ScanPlan
from manifest.entry.cache import EntryCache
from manifest.io.errors import SnapshotNotFound, TableNotFound, UnsupportedTable
from manifest.io.paths import with_branch
from manifest.options.core_options import FALLBACK_BRANCH, PRIMARY_BRANCH
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.log import logger_of

_LOG = logger_of(__name__)
_OPTIONS = (FALLBACK_BRANCH, PRIMARY_BRANCH)

PlanBranch = Callable[[FileStore, Snapshot | None, Collection[bytes] | None], ScanPlan]
"""Plans one branch at a snapshot, in the given partitions. None: all partitions."""


def other_branch(store: FileStore) -> str | None:
    """Return the branch to read together with the table's branch.

    None: read only the table's branch.
    """
    for option in _OPTIONS:
        name = store.options.raw.get(option, "").strip()
        if name and name != store.branch:
            return name
    return None


def branch_of(store: FileStore, name: str) -> FileStore:
    """Return a branch of the table, opened once per store.

    The branch has its newest schema. Its options for another branch are ignored.

    Raises:
        TableNotFound: The branch does not exist.
    """
    if name not in store.branches:
        cache = EntryCache(store.cache.files)  # schema and snapshot ids are not shared between branches
        branch_store = FileStore.open(with_branch(store.root, name), store.file_io, cache=cache)
        options = {option: value for option, value in branch_store.schema.options.items() if option not in _OPTIONS}
        store.branches[name] = branch_store.with_schema(branch_store.schema.model_copy(update={"options": options})).with_listener(
            store.listener
        )
    return store.branches[name]


def plan_both(store: FileStore, name: str, snapshot: Snapshot | None, partitions: Collection[bytes] | None, plan: PlanBranch) -> ScanPlan:
    """Plan the table's branch together with branch ``name``.

    Each partition is read from one branch. A missing branch is logged as a warning. With an older snapshot of the table,
    the other branch is read as of that time.

    Raises:
        UnsupportedTable: The branches have different columns.
    """
    try:
        other = branch_of(store, name)
    except TableNotFound:
        _LOG.warning(
            "%s: branch '%s' of option 'scan.fallback-branch' or 'scan.primary-branch' does not exist; reading without it", store.root, name
        )
        return plan(store, snapshot, partitions)
    _check_columns(store, other)
    at_other = _snapshot_of_other(store, snapshot, other)
    comes_first = not store.options.raw.get(FALLBACK_BRANCH, "").strip()
    report = Report()
    with report.stage("other branch") as stage:
        own_partitions, others_partitions = set(store.live_partitions(snapshot)), set(other.live_partitions(at_other))
        first, second = (others_partitions, own_partitions) if comes_first else (own_partitions, others_partitions)
        candidates = second if partitions is None else second.intersection(partitions)
        left = candidates - first
        stage.count(len(left), len(candidates) - len(left))
        stage.note = f"partitions of {'the table' if comes_first else name} missing in {name if comes_first else 'the table'}"
    table_plan = plan(store, snapshot, left if comes_first else partitions)
    branch_plan = plan(other, at_other, partitions if comes_first else left)
    marked = tuple(split.model_copy(update={"branch": name}) for split in branch_plan.splits)
    return ScanPlan(table_plan.snapshot_id, (*table_plan.splits, *marked), (*table_plan.report, *report.stages))


def _snapshot_of_other(store: FileStore, snapshot: Snapshot | None, other: FileStore) -> Snapshot | None:
    latest = store.snapshots.latest()
    if snapshot is None or latest is None or snapshot.id >= latest.id:
        return other.snapshots.latest()
    try:
        return other.snapshots.at_timestamp(snapshot.time_millis)
    except SnapshotNotFound:
        earliest = other.snapshots.earliest_id()
        return None if earliest is None else other.snapshots.get(earliest)


def _check_columns(store: FileStore, other: FileStore) -> None:
    ours, theirs = (
        [(field.name, field.type.with_nullable(nullable=True)) for field in branch_store.schema.fields] for branch_store in (store, other)
    )
    if ours != theirs:
        raise UnsupportedTable(
            f"{store.root}: branch '{other.branch}' of option '{FALLBACK_BRANCH}' or '{PRIMARY_BRANCH}' has other columns than the table"
        )
