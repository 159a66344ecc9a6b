"""Two branches read as one table (Paimon's fallback branch): of each partition the rows of one branch, the other's where it has none.

``scan.fallback-branch`` names a branch for partitions that the table has not, ``scan.primary-branch`` one whose partitions come first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from fileindex.base.log import logger_of
from lsm.scan.plan import Report, ScanPlan
from manifest.entry.cache import EntryCache
from manifest.entry.live import live
from manifest.io.errors import SnapshotNotFound, TableNotFound, UnsupportedTable
from manifest.io.paths import with_branch
from manifest.options.own_branch import FALLBACK_BRANCH, PRIMARY_BRANCH
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

_LOG = logger_of(__name__)
_OPTIONS = (FALLBACK_BRANCH, PRIMARY_BRANCH)

PlanBranch = Callable[[FileStore, Snapshot | None, Collection[bytes] | None], ScanPlan]
"""Plans one branch at a snapshot, in these partitions (None: all)."""


def other_branch(store: FileStore) -> str | None:
    """The branch that is read beside the table's own; None if there is none."""
    for option in _OPTIONS:
        name = store.options.raw.get(option, "").strip()
        if name and name != store.branch:
            return name
    return None


def branch_of(store: FileStore, name: str) -> FileStore:
    """A branch of the table, to be read as it is, by its own newest schema; opened once by a store. Raises ``TableNotFound``."""
    if name not in store.branches:
        cache = EntryCache(store.cache.files)  # ids of schemas and snapshots mean something else on another branch
        found = FileStore.open(with_branch(store.root, name), store.file_io, cache=cache)
        options = {option: value for option, value in found.schema.options.items() if option not in _OPTIONS}
        store.branches[name] = found.with_schema(found.schema.model_copy(update={"options": options})).metered(store.meter)
    return store.branches[name]


def plan_both(store: FileStore, name: str, snapshot: Snapshot | None, partitions: Collection[bytes] | None, plan: PlanBranch) -> ScanPlan:
    """The splits of the table's own branch and of branch ``name``, each partition once; a branch that is not there is told in the log.

    An older snapshot of the table is read with what the other branch was then. Raises ``UnsupportedTable`` where the columns differ.
    """
    try:
        other = branch_of(store, name)
    except TableNotFound:
        _LOG.warning("%s: the branch '%s' to be read beside it is not there", store.root, name)
        return plan(store, snapshot, partitions)
    _check_columns(store, other)
    beside = _beside(store, snapshot, other)
    comes_first = not store.options.raw.get(FALLBACK_BRANCH, "").strip()
    report = Report()
    with report.stage("other branch") as tally:
        first = _partitions(other, beside) if comes_first else _partitions(store, snapshot)
        second = _partitions(store, snapshot) if comes_first else _partitions(other, beside)
        asked = second if partitions is None else second.intersection(partitions)
        left = asked - first
        tally.count(len(left), len(asked) - len(left))
        tally.note = f"partitions of {'the table' if comes_first else name} that {name if comes_first else 'the table'} has not"
    own = plan(store, snapshot, left if comes_first else partitions)
    others = plan(other, beside, partitions if comes_first else left)
    marked = tuple(split.model_copy(update={"branch": name}) for split in others.splits)
    return ScanPlan(own.snapshot_id, (*own.splits, *marked), (*own.report, *report.stages))


def _partitions(store: FileStore, snapshot: Snapshot | None) -> set[bytes]:
    if snapshot is None:
        return set()
    with store.reading(snapshot):
        entries = live(store.manifests.read_metas(store.manifest_metas(snapshot)))
    return set(entries.partition_codes[1])


def _beside(store: FileStore, snapshot: Snapshot | None, other: FileStore) -> Snapshot | None:
    latest = store.snapshots.latest()
    if snapshot is None or latest is None or snapshot.id >= latest.id:
        return other.snapshots.latest()
    try:
        return other.snapshots.at_timestamp(snapshot.time_millis)
    except SnapshotNotFound:
        earliest = other.snapshots.earliest_id()
        return None if earliest is None else other.snapshots.get(earliest)


def _check_columns(store: FileStore, other: FileStore) -> None:
    ours, theirs = ([(field.name, field.type.with_nullable(nullable=True)) for field in one.schema.fields] for one in (store, other))
    if ours != theirs:
        raise UnsupportedTable(f"{store.root}: branch '{other.branch}', which is to be read beside the table, has other columns")


__all__ = ["branch_of", "other_branch", "plan_both"]
