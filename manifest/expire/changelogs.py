"""Changelogs that outlive their snapshots (Paimon's ``ExpireChangelogImpl``).

They are kept when their snapshots expire and deleted later. With a changelog producer, the changelog files are kept.
Without one, the appended files are the changelog. Expiring snapshots then keeps these files and all data manifests,
and expiring the changelog deletes them.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from manifest.entry.columns import EntryColumns
from manifest.expire.delete_files import delete_files, delete_metadata, deletes_of, entries_of
from manifest.expire.orphans import Reachable, near_tags, reachable
from manifest.io import failpoints
from manifest.io.errors import SnapshotNotFound
from manifest.io.threads import run_parallel
from manifest.options.core_options import CoreOptions
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.log import logger_of

_LOG = logger_of(__name__)
_FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ExpiredChangelogs:
    """Numbers of expired changelogs and of deleted files."""

    changelogs: int = 0
    data_files: int = 0
    manifests: int = 0


def keeps_appended(options: CoreOptions) -> bool:
    """Return whether appended files outlive their snapshot as its changelog.

    Data manifests stay with them.
    """
    return options.changelogs_outlive_snapshots and options.changelog_producer == "none"


def keep_changelogs(store: FileStore, expiring: Sequence[Snapshot], still_needed: Reachable) -> None:
    """Keep the changelogs of snapshots that are about to expire.

    Writes copies of the snapshots and adds the files they need to ``still_needed``.
    """
    for snapshot in expiring:
        if keeps_appended(store.options):
            still_needed.add_lists(store, [name for name, _ in snapshot.manifest_lists])
        if snapshot.changelog_manifest_list:
            still_needed.add_lists(store, [snapshot.changelog_manifest_list])
    store.snapshots.kept.keep(expiring)
    failpoints.point("changelogs-kept")


def expire_changelogs(store: FileStore, limit: int) -> ExpiredChangelogs:
    """Expire at most ``limit`` kept changelogs by the table's options.

    Snapshot options are the default for changelog options. The newest changelog always stays.
    Raises ``CorruptFile`` if the used files cannot be determined. Nothing is deleted then.
    """
    manager = store.snapshots
    newest, ids = store.file_io.run_parallel(manager.latest, manager.kept.ids)
    expired = ids[: bisect_left(ids, _end(store, newest.id, ids, limit))] if newest is not None and ids else []
    earliest = manager.earliest_id() if expired else None
    if not expired or newest is None or earliest is None:
        return ExpiredChangelogs()
    with suppress(SnapshotNotFound):  # another process expires the same ones
        return _expire(store, expired, ids[len(expired)], manager.get(earliest), newest)
    return ExpiredChangelogs()


def _end(store: FileStore, latest: int, ids: Sequence[int], limit: int) -> int:
    """Return the first id to keep."""
    options, manager = store.options, store.snapshots
    min_retained, max_retained, retained = options.changelog_retention
    end = min(latest - min_retained + 1, manager.next_for_consumers() or _FOREVER, ids[min(limit, len(ids) - 1)])
    cut = time.time_ns() // 1_000_000 - retained
    for snapshot_id in ids[bisect_left(ids, latest - max_retained + 1) : bisect_left(ids, end)]:
        changelog = manager.kept.get(snapshot_id)
        if changelog is not None and changelog.time_millis >= cut:
            return snapshot_id
    return end


def _expire(store: FileStore, ids: Sequence[int], first_kept: int, earliest: Snapshot, newest: Snapshot) -> ExpiredChangelogs:
    files = store.snapshots.kept
    expired = [changelog for changelog in map(files.get, ids) if changelog is not None]
    tagged = {tag.id: tag for tag in store.snapshots.tags().values()}
    states = {state.id: state for state in (*near_tags(store, tagged, ids[0], first_kept), earliest, newest)}
    dead = _unneeded_files(store, expired)
    still_needed = reachable(store, states.values(), dead)  # before any deletion: it may fail
    following = files.get(first_kept)
    if following is not None:
        still_needed.add_lists(store, [name for name, _ in following.manifest_lists])
    files.forget(ids, first_kept)
    data = delete_files(store, dead.entries(), still_needed)
    manifests = delete_metadata(store, expired, still_needed)
    _LOG.info("%s: expired changelogs %d to %d, deleted %d data files and %d manifests", store.root, ids[0], ids[-1], data, manifests)
    return ExpiredChangelogs(len(expired), data, manifests)


def _unneeded_files(store: FileStore, expired: Sequence[Snapshot]) -> EntryColumns:
    """Return entries of files that only expired changelogs may need."""
    jobs: list[Callable[[], EntryColumns]] = []
    # Without changelog files: the files that a snapshot deleted. The older changelogs that appended them have expired.
    for changelog in expired:
        files = changelog.changelog_manifest_list
        jobs.append(partial(entries_of, store, files) if files else partial(deletes_of, store, changelog.delta_manifest_list))
    return EntryColumns.concat(list(run_parallel(store.file_io, jobs)))
