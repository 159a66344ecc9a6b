"""Repairs of metadata problems that lose no rows.

Repairs snapshot files, hints and unreferenced index files. Before a file is changed or removed, it is copied to ``_repair/<time>/`` in
the table, under its own path there. Other engines and orphan removal ignore that folder: it is neither a partition (``key=value``) nor a
bucket (``bucket-n``), and Spark and Hive hide names that begin with ``_``. Nothing deletes it automatically.

Of snapshots only their own files are removed, roots first. Orphan removal deletes the rest later, so for at least a day
a restored copy is the complete state again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from manifest.entry.live import live
from manifest.expire.history_change import finish_change, lock_history
from manifest.expire.orphans import branches_of, list_orphans
from manifest.io.checksum import with_checksum
from manifest.io.errors import SnapshotNotFound, UnsupportedTable
from manifest.snapshot.pending_history import UNREADABLE
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.errors import CorruptFile, InvalidArgument
from paimon_base.log import logger_of
from pyspark_paimon.plugins.fsck.history import CheckedHistory
from pyspark_paimon.plugins.fsck.walk import branch_store
from pyspark_paimon.results.fsck_problem import Findings, Problem, ProblemKind, Repair, RepairKind

_LOG = logger_of(__name__)
_MISSING = frozenset({ProblemKind.MISSING_FILE, ProblemKind.MANIFEST_LIST, ProblemKind.MANIFEST, ProblemKind.INDEX_MANIFEST})


@dataclass
class Repairs:
    """Repairs of a table, with copies of the changed files.

    A ``dry_run`` changes nothing and returns the same repairs.

    Args:
        store: The table, of any branch.
        dry_run: Whether to change nothing.
    """

    store: FileStore
    dry_run: bool
    records: list[Repair] = field(default_factory=list)
    _name: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}")

    @property
    def folder(self) -> str:
        """Folder with the copies of these repairs."""
        return f"{self.store.paths.repairs}/{self._name}"

    def mend(self, kind: RepairKind, path: str, message: str, work: Callable[[], object], *, changes: Sequence[str] = ()) -> None:
        """Copy the files of ``changes``, then run and record ``work``.

        ``changes`` are the files that ``work`` changes or removes. Missing ones are skipped.
        """
        copies = () if self.dry_run else tuple(copy for file in changes if (copy := self._copy(file)))
        if not self.dry_run:
            work()
            _LOG.info("%s: repaired %s: %s", self.store.root, path, message)
        self.records.append(Repair(kind=kind, path=path, message=message, copies=copies))

    def _copy(self, path: str) -> str | None:
        file_io, root = self.store.file_io, f"{self.store.root}/"
        target = f"{self.folder}/{path.removeprefix(root) if path.startswith(root) else path.replace(':', '').strip('/')}"
        try:
            file_io.create_exclusive(target, file_io.read(path))  # a file changed twice keeps the first copy
        except FileNotFoundError:
            return None
        return target


def repair_metadata(repairs: Repairs, problems: Sequence[Problem], older_than_ms: int) -> None:
    """Repair metadata of every branch.

    Repairs ``problems``, finishes interrupted rollbacks and removes unreferenced index files. Skips unreadable metadata, because the used
    files are unknown then. The next check reports it.

    Args:
        repairs: Collects the repairs.
        problems: Problems of a check.
        older_than_ms: Younger index files stay, since a running write may own them. Milliseconds since the epoch.
    """
    store = repairs.store
    if store.commits is None:  # a catalog's server would keep the snapshots
        for manager in branches_of(store):
            with _ignore_unreadable(store):
                branch = branch_store(store, manager.paths.branch)
                # No commit of this process runs in between, and no other process deletes snapshots.
                with store.file_io.fair_lock(branch.paths.snapshots), lock_history(branch, "the repair"):
                    _finish_rollback(repairs, branch)
                    _restore_from_tags(repairs, branch)
                    _forget_dangling(repairs, branch, problems)
                    _write_hints(repairs, branch)
    with _ignore_unreadable(store):
        _remove_index_files(repairs, older_than_ms)


@contextmanager
def _ignore_unreadable(store: FileStore) -> Iterator[None]:
    """Log unreadable metadata and go on."""
    try:
        yield
    except (CorruptFile, FileNotFoundError) as error:
        _LOG.warning("%s: some problems cannot be repaired: %s", store.root, error)


def _finish_rollback(repairs: Repairs, branch: FileStore) -> None:
    """Finish an interrupted rollback, as the next commit would.

    Readers already use its pending file.
    """
    pending, paths = branch.snapshots.pending_history(), branch.paths
    if pending is None:
        return
    target = pending.target.id
    newer = [i for i in branch.snapshots.stored_ids() if i > target or i in pending.doomed]
    tags = [paths.tag(name) for name, tag in branch.snapshots.stored_tags().items() if not pending.keeps(tag)]
    changelogs = [paths.changelog_file(changelog.id) for changelog in branch.snapshots.kept.all() if not pending.keeps(changelog)]
    repairs.mend(
        RepairKind.FINISH_ROLLBACK,
        paths.pending_history,
        f"the rollback to snapshot {target} was interrupted; removes snapshots {', '.join(map(str, newer))} and {len(tags)} newer tags",
        lambda: finish_change(branch, pending),
        changes=[paths.pending_history, paths.latest_hint, paths.earliest_hint, *map(paths.snapshot_file, newer), *tags, *changelogs],
    )


def _restore_from_tags(repairs: Repairs, branch: FileStore) -> None:
    """Write snapshots that are damaged or lost, and that a tag has."""
    manager = branch.snapshots
    stored = manager.stored_deltas()
    for name, tag in sorted(manager.stored_tags().items(), key=lambda named: named[1].id):
        is_lost = bool(stored) and tag.id > max(stored) and not manager.exists(tag.id)
        if not is_lost and stored.get(tag.id) != UNREADABLE:
            continue
        path = branch.paths.snapshot_file(tag.id)
        changelog = tag.changelog_manifest_list
        has_changelog = changelog is not None and branch.file_io.exists(branch.paths.manifest(changelog))
        content = with_checksum(path, (tag.snapshot if has_changelog else tag.state).to_json())
        stored[tag.id] = tag.delta_manifest_list  # another tag may be of the same snapshot
        repairs.mend(
            RepairKind.RESTORE_SNAPSHOT,
            path,
            f"{'is missing' if is_lost else 'cannot be read'}; it is written again from tag '{name}'",
            partial(branch.file_io.write, path, content, overwrite=True),
            changes=[path],
        )


def _forget_dangling(repairs: Repairs, branch: FileStore, problems: Sequence[Problem]) -> None:
    """Remove the oldest snapshots that lack files.

    An interrupted expiry leaves them. None of them can be read.
    """
    # Only those before a complete snapshot, and only if no tag or consumer needs one: its owner may have a backup.
    manager, paths = branch.snapshots, branch.paths
    origins = (problem.origin for problem in problems if problem.kind in _MISSING)
    suspects = {origin.snapshot for origin in origins if origin.branch == branch.branch and origin.snapshot is not None}
    ids = manager.ids()
    broken: list[int] = []
    for snapshot_id in ids if suspects else ():
        if snapshot_id > max(suspects) or not _lacks_files(branch, manager.get(snapshot_id)):
            break
        broken.append(snapshot_id)
    tagged_ids = {tag.id for tag in manager.tags().values()} if broken else set()
    following = manager.next_for_consumers() if broken else None
    if not broken or len(broken) == len(ids) or tagged_ids.intersection(broken) or (following is not None and following <= broken[-1]):
        return
    if _lacks_files(branch, manager.get(ids[len(broken)])):
        return
    files = [paths.snapshot_file(snapshot_id) for snapshot_id in broken]

    def forget() -> None:
        for file in files:
            branch.file_io.delete(file)
        manager.write_earliest_hint(ids[len(broken)])

    message = (
        f"snapshots {broken[0]} to {broken[-1]} lack files that later ones do not need, as after an interrupted expiry; they are removed"
    )
    repairs.mend(RepairKind.FORGET_SNAPSHOTS, files[-1], message, forget, changes=[*files, paths.earliest_hint])


def forget_before_gap(repairs: Repairs, first: int) -> int:
    """Remove the snapshots before a gap, so that ``first`` is the oldest.

    Returns the id of the oldest snapshot before the repair. Tags and the newest snapshot stay.

    Raises:
        InvalidArgument: ``first`` does not follow a gap, a later snapshot is missing too, or a consumer has yet to read an older one.
        UnsupportedTable: A catalog's server keeps the snapshots.
    """
    store, manager = repairs.store, repairs.store.snapshots
    if store.commits is not None:
        raise UnsupportedTable(f"{store.root}: the server of the catalog keeps the snapshots; repair the table there")
    with store.file_io.fair_lock(store.paths.snapshots), lock_history(store, "the repair"):
        ids = manager.ids()
        if first not in ids:
            range_text = f"they run from {ids[0]} to {ids[-1]}" if ids else "the table has none"
            raise InvalidArgument(f"{store.root}: snapshot {first} does not exist, {range_text}; nothing was changed")
        newer, older = [i for i in ids if i >= first], [i for i in ids if i < first]
        absent = sorted(set(range(first, ids[-1])).difference(newer))
        if absent:
            raise InvalidArgument(f"{store.root}: snapshot {absent[0]} is missing after snapshot {first}; name one behind the last gap")
        if not older:
            return first
        if older[-1] == first - 1:
            raise InvalidArgument(
                f"{store.root}: snapshot {first} follows no gap: snapshot {first - 1} exists. Expire snapshots by expire_snapshots"
            )
        following = manager.next_for_consumers()
        if following is not None and following < first:
            raise InvalidArgument(
                f"{store.root}: a consumer has yet to read snapshot {following}; call reset_consumer or clear_consumers first, "
                "nothing was changed"
            )
        files = [store.paths.snapshot_file(snapshot_id) for snapshot_id in older]

        def forget() -> None:
            for file in files:  # oldest first, as an expiry
                store.file_io.delete(file)
            manager.write_earliest_hint(first)

        message = f"snapshots {older[0]} to {older[-1]} lie before a gap; they are removed, and the oldest is {first}"
        repairs.mend(RepairKind.FORGET_SNAPSHOTS, files[-1], message, forget, changes=[*files, store.paths.earliest_hint])
    return older[0]


def _lacks_files(branch: FileStore, snapshot: Snapshot) -> bool:
    """Return whether a file that the state needs is missing.

    Raises ``CorruptFile`` if one is corrupt, which is another problem.
    """
    try:
        metas = [meta for name, size in snapshot.manifest_lists for meta in branch.manifest_lists.read(name, size)]
        entries = live(branch.manifests.read_metas(metas)).entries()
        indexes = branch.index_manifests.read(snapshot.index_manifest)
    except FileNotFoundError:
        return True
    files = (path for entry in entries for path in branch.physical_files(entry.partition, entry.bucket, entry.file))
    vectors = (
        branch.paths.index(entry.file_name, branch.partition.decode(entry.partition), entry.bucket, entry.external_path)
        for entry in indexes
    )
    return not all(map(branch.file_io.exists, (*files, *vectors)))


def _write_hints(repairs: Repairs, branch: FileStore) -> None:
    """Correct hints that lead readers to missing snapshots."""
    paths, manager, findings = branch.paths, branch.snapshots, Findings()
    CheckedHistory(branch, findings).check_hints()
    for problem in findings.problems:
        if problem.kind is not ProblemKind.HINT:  # lost snapshots, which only the user can replace
            continue
        ids = manager.ids()
        newest = problem.path == paths.latest_hint
        named = None if not ids else ids[-1] if newest else ids[0]

        def write(named: int | None = named, *, newest: bool = newest, path: str = problem.path) -> None:
            if named is None:
                branch.file_io.delete(path)
            else:
                (manager.write_latest_hint if newest else manager.write_earliest_hint)(named)

        message = f"{problem.message}; {'it is deleted' if named is None else f'it names snapshot {named} now'}"
        repairs.mend(RepairKind.WRITE_HINT, problem.path, message, write, changes=[problem.path])


def _remove_index_files(repairs: Repairs, older_than_ms: int) -> None:
    """Remove index files that no state names.

    Killed writers leave side files of indexes, deletion vectors and hash indexes.
    """
    file_io = repairs.store.file_io
    for orphan in list_orphans(repairs.store, older_than_ms):
        name = orphan.path.rpartition("/")[2]
        if name.endswith(".index") or name.startswith("index-"):
            message = f"no snapshot, tag or branch names it; {orphan.size:,} bytes"
            remove = partial(file_io.delete, orphan.path)
            repairs.mend(RepairKind.REMOVE_INDEX_FILE, orphan.path, message, remove, changes=[orphan.path])


def states_of(store: FileStore, name: str) -> Iterator[Snapshot]:
    """Yield snapshots with the statistics file ``name``, oldest first."""
    for snapshot_id in store.snapshots.ids():
        with suppress(SnapshotNotFound):
            snapshot = store.snapshots.get(snapshot_id)
            if snapshot.statistics == name:
                yield snapshot
