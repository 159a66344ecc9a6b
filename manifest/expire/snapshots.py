"""Expiry of snapshots and of their unshared files (Paimon's ``ExpireSnapshotsImpl``).

Physical files are compared, not entries: after an upgrade or an index rewrite two entries share one data file.

Snapshot files are deleted first, oldest first, then the files that only they reached. A killed expiry leaves orphans, never a partial
state. Tags are listed again after the snapshots are deleted, which finds tags created before. A later ``SnapshotManager.create_tag``
finds its snapshot missing and deletes the tag.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from manifest.entry.columns import EntryColumns
from manifest.expire.changelogs import expire_changelogs, keep_changelogs, keeps_appended
from manifest.expire.delete_files import delete_files, delete_metadata, deletes_of, entries_of
from manifest.expire.history_change import finish_pending, lock_history
from manifest.expire.orphans import near_tags, reachable
from manifest.io import failpoints
from manifest.io.errors import HistoryBusy, SnapshotNotFound
from manifest.io.paths import SNAPSHOT, parse_number
from manifest.io.threads import run_parallel
from manifest.options.durations import parse_duration_millis
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from paimon_base.log import logger_of
from paimon_base.thresholds import thresholds

_LOG = logger_of(__name__)
_CONSUMERS = "consumer.expiration-time"
_MANY = 2**62


@dataclass(frozen=True, slots=True)
class ExpiredSnapshots:
    """Numbers of expired snapshots and of deleted files."""

    snapshots: int = 0
    data_files: int = 0
    manifests: int = 0
    changelogs: int = 0

    def plus(self, other: ExpiredSnapshots) -> ExpiredSnapshots:
        """Return the sum of both."""
        return ExpiredSnapshots(
            self.snapshots + other.snapshots,
            self.data_files + other.data_files,
            self.manifests + other.manifests,
            self.changelogs + other.changelogs,
        )

    def is_full(self, limit: int) -> bool:
        """Return whether ``limit`` may have stopped the expiry."""
        return max(self.snapshots, self.changelogs) >= limit


@dataclass(frozen=True, slots=True)
class ExpiryInputs:
    """EARLIEST hint and smallest consumer position."""

    earliest: tuple[int | None, bool]
    consumer: int | None


def read_expiry_inputs(store: FileStore) -> ExpiryInputs:
    """Read the inputs of ``expire_snapshots``.

    A commit reads them in parallel with other requests. They may be outdated: the expiry checks each snapshot again.
    """
    return ExpiryInputs(*store.file_io.run_parallel(store.snapshots.read_earliest_hint, partial(_smallest_consumer_position, store)))


def expire_snapshots(
    store: FileStore,
    *,
    retain_min: int | None = None,
    retain_max: int | None = None,
    older_than_ms: int | None = None,
    limit: int | None = None,
) -> ExpiredSnapshots:
    """Expire snapshots by the table's options and these arguments.

    Keeps snapshots that a consumer has yet to read, unless ``consumer.expiration-time`` removes the consumer first. Where changelogs
    outlive their snapshots, keeps the changelogs and expires old ones by the table's options. Arguments replace options.

    Args:
        store: The table.
        retain_min: Snapshots to keep at least.
        retain_max: Snapshots to keep at most.
        older_than_ms: Expire only snapshots outdated before this time, in milliseconds since the epoch.
        limit: Snapshots and changelogs to expire at most. None: no limit. Option ``snapshot.expire.limit`` applies to commits only.
    """
    total, left = ExpiredSnapshots(), _MANY if limit is None else limit
    with lock_history(store, "the expiry of snapshots"):
        finish_pending(store)
        while left > 0:
            at_once = min(left, thresholds.expired_at_once)
            expired = _expire_by(store, _Retention(retain_min, retain_max, older_than_ms, at_once))
            total, left = total.plus(expired), left - at_once
            if not expired.is_full(at_once):
                break
    return total


def expire_after_commit(store: FileStore, newest: int | None, inputs: ExpiryInputs | None) -> ExpiredSnapshots:
    """Expire snapshots by the table's options, after a commit.

    Args:
        store: The table.
        newest: Id of the new snapshot. None: read the newest one.
        inputs: Inputs read during the commit. None: read them.
    """
    with suppress(HistoryBusy), lock_history(store, "the expiry of snapshots", 0):
        if store.snapshots.change_under_way() is None:
            return _expire_by(store, _Retention(), newest, inputs)
    return ExpiredSnapshots()  # the next commit retries


def _expire_by(store: FileStore, policy: _Retention, newest: int | None = None, inputs: ExpiryInputs | None = None) -> ExpiredSnapshots:
    expired = _expire_snapshots(store, policy, newest, inputs)
    if not store.options.changelogs_outlive_snapshots:
        return expired
    changelogs = expire_changelogs(store, policy.at_once(store))
    return expired.plus(ExpiredSnapshots(0, changelogs.data_files, changelogs.manifests, changelogs.changelogs))


def _expire_snapshots(store: FileStore, policy: _Retention, newest: int | None, inputs: ExpiryInputs | None) -> ExpiredSnapshots:
    manager = store.snapshots
    keep_least = policy.keep_least(store)
    if newest is None or inputs is None:
        newest, inputs = store.file_io.run_parallel(manager.latest_id, partial(read_expiry_inputs, store))
    first = 0 if newest is None else _hinted_earliest(inputs.earliest, newest)
    if newest is None or newest - keep_least < first:
        return ExpiredSnapshots()
    policy = replace(policy, consumer=inputs.consumer)
    earliest, following = store.file_io.run_parallel(partial(manager.earliest_id, inputs.earliest), partial(_get_or_none, store, first + 1))
    if earliest is None:
        return ExpiredSnapshots()
    with suppress(SnapshotNotFound):
        return _expire(store, range(earliest, newest + 1), replace(policy, following=following))
    existing = [snapshot_id for snapshot_id in manager.ids() if snapshot_id <= newest]
    after_gaps = [snapshot_id for before, snapshot_id in pairwise(existing) if snapshot_id != before + 1]
    if after_gaps:  # without gaps, another process expires the same ones
        with suppress(SnapshotNotFound):
            return _expire(store, existing, policy, after_gaps)
    return ExpiredSnapshots()


@dataclass(frozen=True, slots=True)
class _Retention:
    """Arguments of ``expire_snapshots`` and snapshots already read.

    Args:
        retain_min: Snapshots to keep at least. None: table option.
        retain_max: Snapshots to keep at most. None: table option.
        older_than_ms: Time before which outdated snapshots expire. None: table option.
        limit: Snapshots to expire at most. None: table option.
        consumer: Smallest snapshot that a consumer has yet to read.
        following: Second oldest snapshot, if it has been read.
    """

    retain_min: int | None = None
    retain_max: int | None = None
    older_than_ms: int | None = None
    limit: int | None = None
    consumer: int | None = None
    following: Snapshot | None = None

    def keep_least(self, store: FileStore) -> int:
        """Return the number of newest snapshots that always stay."""
        return max(store.options.snapshot_num_retained_min if self.retain_min is None else self.retain_min, 1)

    def at_once(self, store: FileStore) -> int:
        """Return the maximal number of snapshots to expire."""
        return store.options.snapshot_expire_limit if self.limit is None else self.limit

    def end(self, store: FileStore, ids: Sequence[int]) -> int:
        """Return the position of the first id to keep."""
        options, keep_least = store.options, self.keep_least(store)
        keep_most = max(options.snapshot_num_retained_max if self.retain_max is None else self.retain_max, keep_least)
        at_once = self.at_once(store)
        cut = time.time_ns() // 1_000_000 - options.snapshot_time_retained if self.older_than_ms is None else self.older_than_ms
        end = min(len(ids) - keep_least, at_once)
        end = end if self.consumer is None else min(end, bisect_left(ids, self.consumer))
        details = (store.root, keep_least, keep_most, len(ids), at_once, cut, self.consumer)
        _LOG.debug("%s: keeping %d to %d of %d snapshots, expiring at most %d, outdated before %d, before consumer position %s", *details)
        first, ahead = max(len(ids) - keep_most, 0), 1  # usually the first one is too young: read one, then more in parallel
        while first < end:
            last = min(first + ahead, end)
            follower_ids, cached = ids[first + 1 : last + 1], self.following
            followers = [cached] if cached is not None and list(follower_ids) == [cached.id] else _snapshots(store, follower_ids)
            for candidate, following in enumerate(followers, first):
                # A state is outdated when the next one replaced it, not when it was committed.
                if following.time_millis >= cut:
                    return candidate
            first, ahead = last, store.file_io.max_concurrency
        return end


def _hinted_earliest(hint_and_first: tuple[int | None, bool], latest: int) -> int:
    """Return a lower bound of the oldest snapshot. 0: unknown."""
    # No snapshot before the hint exists: a hint not above the latest was once true, and expiry only moves forward.
    hint, first = hint_and_first
    if first:
        return 1
    return hint if hint is not None and hint <= latest else 0


def _smallest_consumer_position(store: FileStore) -> int | None:
    """Expire idle consumers and return the smallest consumer position."""
    idle = store.options.raw.get(_CONSUMERS)
    if idle is not None:
        store.snapshots.expire_consumers(time.time_ns() // 1_000_000 - parse_duration_millis(idle, _CONSUMERS))
    return store.snapshots.next_for_consumers()


def _get_or_none(store: FileStore, snapshot_id: int) -> Snapshot | None:
    with suppress(SnapshotNotFound):
        return store.snapshots.get(snapshot_id)
    return None


def _snapshots(store: FileStore, ids: Sequence[int]) -> list[Snapshot]:
    return list(run_parallel(store.file_io, [partial(store.snapshots.get, snapshot_id) for snapshot_id in ids]))


def _expire(store: FileStore, ids: Sequence[int], policy: _Retention, after_gaps: Sequence[int] = ()) -> ExpiredSnapshots:
    """Expire the first of ``ids``.

    The ids are consecutive except at ``after_gaps``. Raises ``SnapshotNotFound`` if one of them does not exist, before anything is deleted.
    """
    manager, end = store.snapshots, policy.end(store, ids)
    if end <= 0:
        return ExpiredSnapshots()
    newest, (*expired, first_kept) = store.file_io.run_parallel(manager.latest, partial(_snapshots, store, ids[: end + 1]))
    tagged = {tag.id: tag for tag in manager.tags().values()}
    apart = _snapshots(store, [snapshot_id for snapshot_id in after_gaps if snapshot_id > first_kept.id])
    states = {
        state.id: state for state in (*near_tags(store, tagged, expired[0].id, first_kept.id), first_kept, *apart, newest or first_kept)
    }
    dead = _unneeded_files(store, expired, first_kept)
    still_needed = reachable(store, states.values(), dead)  # before any deletion: it may fail

    if store.options.changelogs_outlive_snapshots:
        keep_changelogs(store, expired, still_needed)
    # A delayed commit of one of these ids must not find its name free again.
    store.file_io.cancel_creates(store.paths.snapshots, lambda name: (parse_number(name, SNAPSHOT) or expired[-1].id + 1) <= expired[-1].id)
    for snapshot in expired:
        store.file_io.delete(store.paths.snapshot_file(snapshot.id))
    with suppress(OSError):  # without the hint, readers list the directory
        manager.write_earliest_hint(first_kept.id)
    # Tags created before their snapshot was deleted: see the module's docstring.
    for tag in manager.tags().values():
        if tag.id not in tagged:
            still_needed.add_state(store, tag)
    data = delete_files(store, dead.entries(), still_needed)
    failpoints.point("inside-expiry")
    manifests = delete_metadata(store, expired, still_needed)
    details = (store.root, expired[0].id, expired[-1].id, data, manifests)
    _LOG.info("%s: expired snapshots %d to %d, deleted %d data files and %d manifests", *details)
    return ExpiredSnapshots(len(expired), data, manifests)


def _unneeded_files(store: FileStore, expired: Sequence[Snapshot], first_kept: Snapshot) -> EntryColumns:
    """Return files that only ``expired`` snapshots may need."""
    # Files that they and the next snapshot deleted, and their changelogs unless these are kept.
    deltas = [partial(deletes_of, store, following.delta_manifest_list) for following in (*expired[1:], first_kept)]
    without_appended = keeps_appended(store.options)
    dead = [gone.select(~gone.is_appended) if without_appended else gone for gone in run_parallel(store.file_io, deltas)]
    lists = [snapshot.changelog_manifest_list for snapshot in expired if snapshot.changelog_manifest_list]
    if not store.options.changelogs_outlive_snapshots:
        dead += run_parallel(store.file_io, [partial(entries_of, store, name) for name in lists])
    return EntryColumns.concat(dead)
