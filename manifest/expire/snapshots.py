"""Forgetting old snapshots and deleting what only they used (Paimon's ``ExpireSnapshotsImpl``).

Physical files are compared, not entries: after an upgrade or an index rewrite two entries share one data file. The snapshot files
go first, the oldest before the others, then what only they reached: a killed expiry leaves files that nothing refers to, which are
found as orphans, and no state that is half there. Tags are looked for again once the snapshots are gone: who made one before that is
seen, who makes one after it sees that the snapshot is gone, and takes the tag back (``SnapshotManager.create_tag``).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from fileindex.base.log import logger_of
from fileindex.base.thresholds import thresholds
from manifest.entry.columns import EntryColumns
from manifest.expire.changelogs import expire_changelogs, keep_changelogs, keeps_appended
from manifest.expire.delete_files import delete_files, delete_metadata, deletes_of, entries_of
from manifest.expire.history_change import finish_pending, history_locked
from manifest.expire.reachable import near_tags, reachable
from manifest.io import failpoints
from manifest.io.errors import HistoryBusy, SnapshotNotFound
from manifest.io.paths import SNAPSHOT, numbered
from manifest.io.side_by_side import side_by_side
from manifest.options.durations import parse_duration_millis
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore

_LOG = logger_of(__name__)
_CONSUMERS = "consumer.expiration-time"
_MANY = 2**62


@dataclass(frozen=True, slots=True)
class ExpiredSnapshots:
    """How many snapshots went, and how many files with them."""

    snapshots: int = 0
    data_files: int = 0
    manifests: int = 0
    changelogs: int = 0

    def plus(self, other: ExpiredSnapshots) -> ExpiredSnapshots:
        """Return the sums of two."""
        return ExpiredSnapshots(
            self.snapshots + other.snapshots,
            self.data_files + other.data_files,
            self.manifests + other.manifests,
            self.changelogs + other.changelogs,
        )

    def is_full(self, limit: int) -> bool:
        """Whether ``limit`` may be what kept more from going."""
        return max(self.snapshots, self.changelogs) >= limit


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What an expiry looks at first: what is told of the oldest snapshot, and the first that a consumer has yet to read."""

    earliest: tuple[int | None, bool]
    consumer: int | None


def first_look(store: FileStore) -> FirstLook:
    """For ``expire_snapshots``; whoever commits takes it while he waits for something else. It may be old: what goes is looked at again."""
    return FirstLook(*store.file_io.together(store.snapshots.earliest_told, partial(_next_for_consumers, store)))


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
    those that a consumer has yet to read, unless ``consumer.expiration-time`` forgets it first; never more than ``retain_max``. Where
    changelogs outlive their snapshots, they are kept, and those whose own time has passed go, by the table's options.

    Args:
        store: The table.
        retain_min: Snapshots to keep at least.
        retain_max: Snapshots to keep at most.
        older_than_ms: Snapshots outdated before may go.
        limit: Snapshots and changelogs to expire at most. None: no limit; ``snapshot.expire.limit`` is for commits.
    """
    total, left = ExpiredSnapshots(), _MANY if limit is None else limit
    with history_locked(store, "the expiry of snapshots"):
        finish_pending(store)
        while left > 0:
            at_once = min(left, thresholds().expired_at_once)
            done = _expire_by(store, _Retention(retain_min, retain_max, older_than_ms, at_once))
            total, left = total.plus(done), left - at_once
            if not done.is_full(at_once):
                break
    return total


def expire_after_commit(store: FileStore, newest: int | None, look: FirstLook | None) -> ExpiredSnapshots:
    """As ``expire_snapshots``, by the options alone, once ``newest`` was committed (None: no matter what); ``look`` was taken meanwhile, if any."""
    with suppress(HistoryBusy), history_locked(store, "the expiry of snapshots", 0):
        if store.snapshots.change_under_way() is None:
            return _expire_by(store, _Retention(), newest, look)
    return ExpiredSnapshots()  # the next commit will do it


def _expire_by(store: FileStore, policy: _Retention, newest: int | None = None, look: FirstLook | None = None) -> ExpiredSnapshots:
    done = _expire_snapshots(store, policy, newest, look)
    if not store.options.changelogs_outlive_snapshots:
        return done
    told = expire_changelogs(store, policy.at_once(store))
    return done.plus(ExpiredSnapshots(0, told.data_files, told.manifests, told.changelogs))


def _expire_snapshots(store: FileStore, policy: _Retention, newest: int | None, look: FirstLook | None) -> ExpiredSnapshots:
    manager = store.snapshots
    keep_least = policy.keep_least(store)
    if newest is None or look is None:
        newest, look = store.file_io.together(manager.latest_id, partial(first_look, store))
    begins = 0 if newest is None else _earliest_as_told(look.earliest, newest)
    if newest is None or newest - keep_least < begins:
        return ExpiredSnapshots()
    policy = replace(policy, consumer=look.consumer)
    earliest, following = store.file_io.together(partial(manager.earliest_id, look.earliest), partial(_if_there, store, begins + 1))
    if earliest is None:
        return ExpiredSnapshots()
    with suppress(SnapshotNotFound):
        return _expire(store, range(earliest, newest + 1), replace(policy, following=following))
    there = [snapshot_id for snapshot_id in manager.ids() if snapshot_id <= newest]
    after_gaps = [snapshot_id for before, snapshot_id in pairwise(there) if snapshot_id != before + 1]
    if after_gaps:  # else another process expires the same ones
        with suppress(SnapshotNotFound):
            return _expire(store, there, policy, after_gaps)
    return ExpiredSnapshots()


@dataclass(frozen=True, slots=True)
class _Retention:
    """The arguments of ``expire_snapshots``, the first snapshot that a ``consumer`` has yet to read, and one that is at hand, ``following``."""

    least: int | None = None
    most: int | None = None
    older_than_ms: int | None = None
    limit: int | None = None
    consumer: int | None = None
    following: Snapshot | None = None

    def keep_least(self, store: FileStore) -> int:
        """How many of the newest snapshots are kept in any case."""
        return max(store.options.snapshot_num_retained_min if self.least is None else self.least, 1)

    def at_once(self, store: FileStore) -> int:
        """How many may go."""
        return store.options.snapshot_expire_limit if self.limit is None else self.limit

    def end(self, store: FileStore, ids: Sequence[int]) -> int:
        """The position of the first snapshot to keep among ``ids``, all that are there."""
        options, keep_least = store.options, self.keep_least(store)
        keep_most = max(options.snapshot_num_retained_max if self.most is None else self.most, keep_least)
        at_once = self.at_once(store)
        cut = time.time_ns() // 1_000_000 - options.snapshot_time_retained if self.older_than_ms is None else self.older_than_ms
        end = min(len(ids) - keep_least, at_once)
        end = end if self.consumer is None else min(end, bisect_left(ids, self.consumer))
        said = (store.root, len(ids), keep_least, keep_most, at_once, cut, self.consumer)
        _LOG.debug("%s: of %d snapshots %d to %d stay, at most %d go, those outdated before %d, none from consumer's %s on", *said)
        first, ahead = max(len(ids) - keep_most, 0), 1  # mostly the first is too young
        while first < end:
            last = min(first + ahead, end)
            wanted, held = ids[first + 1 : last + 1], self.following
            some = [held] if held is not None and list(wanted) == [held.id] else _snapshots(store, wanted)
            for candidate, following in enumerate(some, first):
                if following.time_millis >= cut:
                    return candidate
            first, ahead = last, store.file_io.lanes
        return end


def _earliest_as_told(told: tuple[int | None, bool], latest: int) -> int:
    """The oldest snapshot, as far as the hint tells, 0 if it does not: none before it is there, for one behind the latest was true once."""
    hint, first = told
    if first:
        return 1
    return hint if hint is not None and hint <= latest else 0


def _next_for_consumers(store: FileStore) -> int | None:
    """The first snapshot that a consumer has yet to read, once those are forgotten that were idle for too long."""
    idle = store.options.raw.get(_CONSUMERS)
    if idle is not None:
        store.snapshots.expire_consumers(time.time_ns() // 1_000_000 - parse_duration_millis(idle, _CONSUMERS))
    return store.snapshots.next_for_consumers()


def _if_there(store: FileStore, snapshot_id: int) -> Snapshot | None:
    with suppress(SnapshotNotFound):
        return store.snapshots.get(snapshot_id)
    return None


def _snapshots(store: FileStore, ids: Sequence[int]) -> list[Snapshot]:
    return list(side_by_side(store.file_io, [partial(store.snapshots.get, snapshot_id) for snapshot_id in ids]))


def _expire(store: FileStore, ids: Sequence[int], policy: _Retention, after_gaps: Sequence[int] = ()) -> ExpiredSnapshots:
    """Expire the first of ``ids``, which follow one another but for those ``after_gaps``.

    Raises ``SnapshotNotFound`` if one of them is not there, before anything goes.
    """
    manager, end = store.snapshots, policy.end(store, ids)
    if end <= 0:
        return ExpiredSnapshots()
    newest, (*expired, first_kept) = store.file_io.together(manager.latest, partial(_snapshots, store, ids[: end + 1]))
    tagged = {tag.id: tag for tag in manager.tags().values()}
    apart = _snapshots(store, [snapshot_id for snapshot_id in after_gaps if snapshot_id > first_kept.id])
    states = {
        state.id: state for state in (*near_tags(store, tagged, expired[0].id, first_kept.id), first_kept, *apart, newest or first_kept)
    }
    dead = _dead(store, expired, first_kept)
    kept = reachable(store, states.values(), dead)  # before anything goes: it may fail

    if store.options.changelogs_outlive_snapshots:
        keep_changelogs(store, expired, kept)
    # A commit that has been on its way since before these snapshots must not find its name free again.
    store.file_io.cancel_creates(store.paths.snapshots, lambda name: (numbered(name, SNAPSHOT) or expired[-1].id + 1) <= expired[-1].id)
    for snapshot in expired:
        store.file_io.delete(store.paths.snapshot_file(snapshot.id))
    with suppress(OSError):  # until then, and without the hint, readers list the directory
        manager.write_earliest_hint(first_kept.id)
    for tag in manager.tags().values():
        if tag.id not in tagged:
            kept.add_state(store, tag)
    data = delete_files(store, dead.entries(), kept)
    failpoints.point("inside-expiry")
    manifests = delete_metadata(store, expired, kept)
    said = (store.root, expired[0].id, expired[-1].id, data, manifests)
    _LOG.info("%s: expired snapshots %d to %d, and with them %d data files and %d manifests", *said)
    return ExpiredSnapshots(len(expired), data, manifests)


def _dead(store: FileStore, expired: Sequence[Snapshot], first_kept: Snapshot) -> EntryColumns:
    """What only ``expired`` snapshots may need: files that they and the next one deleted, and their changelogs if these go with them."""
    deltas = [partial(deletes_of, store, one.delta_manifest_list) for one in (*expired[1:], first_kept)]
    settled = keeps_appended(store.options)
    dead = [gone.select(~gone.is_appended) if settled else gone for gone in side_by_side(store.file_io, deltas)]
    lists = [snapshot.changelog_manifest_list for snapshot in expired if snapshot.changelog_manifest_list]
    if not store.options.changelogs_outlive_snapshots:
        dead += side_by_side(store.file_io, [partial(entries_of, store, name) for name in lists])
    return EntryColumns.concat(dead)


__all__ = ["ExpiredSnapshots", "FirstLook", "expire_after_commit", "expire_snapshots", "first_look"]
