"""Forgetting old snapshots and deleting what only they used (Paimon's ``ExpireSnapshotsImpl``).

Physical files are compared, not entries: after an upgrade or an index rewrite two entries share one data file. The snapshot files
go first, the oldest before the others, then what only they reached: a killed expiry leaves files that nothing refers to, which are
found as orphans, and no state that is half there. Tags are looked for again once the snapshots are gone: who made one before that is
seen, who makes one after it sees that the snapshot is gone, and takes the tag back (``SnapshotManager.create_tag``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from manifest.entry.manifest_entry import FileKind, ManifestEntry
from manifest.expire.delete_files import delete_files, delete_metadata, entries_of
from manifest.expire.reachable import Reachable, reachable
from manifest.io import failpoints
from manifest.io.errors import SnapshotNotFound, UnsupportedTable
from manifest.io.side_by_side import side_by_side
from manifest.options.durations import parse_duration_millis
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

_CHANGELOG_OPTIONS = ("changelog.num-retained.min", "changelog.num-retained.max", "changelog.time-retained")
_CONSUMERS = "consumer.expiration-time"


@dataclass(frozen=True, slots=True)
class ExpiredSnapshots:
    """How many snapshots went, and how many files with them."""

    snapshots: int = 0
    data_files: int = 0
    manifests: int = 0


def expire_snapshots(
    store: FileStore,
    *,
    retain_min: int | None = None,
    retain_max: int | None = None,
    older_than_ms: int | None = None,
    limit: int | None = None,
) -> ExpiredSnapshots:
    """Expire snapshots by the table's options, each of which an argument may replace.

    Kept are the newest ``retain_min``, those that became outdated after ``older_than_ms`` (milliseconds since the epoch), and
    those that a consumer has yet to read, unless ``consumer.expiration-time`` forgets it first; never more than ``retain_max``. At most ``limit`` go in one call. Raises
    ``UnsupportedTable`` for tables that keep changelogs longer than snapshots.
    """
    for option in _CHANGELOG_OPTIONS:
        if option in store.options.raw:
            raise UnsupportedTable(f"{store.root}: snapshots cannot be expired with option '{option}': changelogs would be lost")
    try:
        latest, earliest = store.file_io.together(store.snapshots.latest_id, store.snapshots.earliest_id)
        if latest is None or earliest is None:
            return ExpiredSnapshots()
        end = _end(store, (earliest, latest), retain_min, retain_max, older_than_ms, limit)
        if earliest >= end:
            return ExpiredSnapshots()
        return _expire(store, earliest, end)
    except SnapshotNotFound:  # another process is expiring the same snapshots
        return ExpiredSnapshots()


def _end(  # noqa: PLR0917  # as the options of a call
    store: FileStore, there: tuple[int, int], retain_min: int | None, retain_max: int | None, older_than_ms: int | None, limit: int | None
) -> int:
    """The first snapshot to keep, of those that are ``there``: from the earliest to the latest."""
    options, manager = store.options, store.snapshots
    earliest, latest = there
    keep_least = max(options.snapshot_num_retained_min if retain_min is None else retain_min, 1)
    keep_most = max(options.snapshot_num_retained_max if retain_max is None else retain_max, keep_least)
    most = options.snapshot_expire_limit if limit is None else limit
    cut = time.time_ns() // 1_000_000 - options.snapshot_time_retained if older_than_ms is None else older_than_ms
    end = min(latest - keep_least + 1, earliest + most)
    idle = options.raw.get(_CONSUMERS)
    if idle is not None:
        manager.expire_consumers(time.time_ns() // 1_000_000 - parse_duration_millis(idle, _CONSUMERS))
    consumer = manager.next_for_consumers()
    end = end if consumer is None else min(end, consumer)
    first, ahead = max(latest - keep_most + 1, earliest), 1  # mostly the first is too young
    while first < end:
        some = range(first, min(first + ahead, end))
        for candidate, following in zip(some, _snapshots(store, range(some[0] + 1, some[-1] + 2)), strict=True):
            if following.time_millis >= cut:
                return candidate
        first, ahead = some[-1] + 1, store.file_io.lanes
    return end


def _snapshots(store: FileStore, ids: Sequence[int]) -> list[Snapshot]:
    return list(side_by_side(store.file_io, [partial(store.snapshots.get, snapshot_id) for snapshot_id in ids]))


def _expire(store: FileStore, earliest: int, end: int) -> ExpiredSnapshots:
    manager = store.snapshots
    newest, (*expired, first_kept) = store.file_io.together(manager.latest, partial(_snapshots, store, range(earliest, end + 1)))
    tagged = {tag.id for tag in manager.tags().values()}
    kept = reachable(
        store, [first_kept] if newest is None or newest.id == end else [first_kept, newest]
    )  # before anything goes: it may fail

    for snapshot in expired:
        store.file_io.delete(store.paths.snapshot_file(snapshot.id))
    with suppress(OSError):  # until then, and without the hint, readers list the directory
        manager.write_earliest_hint(end)
    for tag in manager.tags().values():
        if tag.id not in tagged:
            kept.add_state(store, tag)
    data = _delete_data(store, [*expired, first_kept], kept) + _delete_changelogs(store, expired, kept)
    failpoints.point("inside-expiry")
    manifests = delete_metadata(store, expired, kept)
    return ExpiredSnapshots(len(expired), data, manifests)


def _delete_data(store: FileStore, snapshots: Sequence[Snapshot], kept: Reachable) -> int:
    """Files that a snapshot after the first deleted, unless something kept reaches them."""
    dead: list[ManifestEntry] = []
    for changes in side_by_side(store.file_io, [partial(entries_of, store, snapshot.delta_manifest_list) for snapshot in snapshots[1:]]):
        dead += changes.select(changes.kind == FileKind.DELETE).entries()
    return delete_files(store, dead, kept)


def _delete_changelogs(store: FileStore, snapshots: Iterable[Snapshot], kept: Reachable) -> int:
    lists = [snapshot.changelog_manifest_list for snapshot in snapshots if snapshot.changelog_manifest_list]
    changes = side_by_side(store.file_io, [partial(entries_of, store, name) for name in lists])
    return delete_files(store, [entry for some in changes for entry in some.entries()], kept)


__all__ = ["ExpiredSnapshots", "expire_snapshots"]
