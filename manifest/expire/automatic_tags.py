"""Tags created by commits (``tag.automatic-creation``).

- ``process-time`` and ``watermark``: the first snapshot of a new period is tagged with the name of the period before. The search starts
  after the newest such tag.
- ``batch``: the snapshot of the newest batch write of each day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from manifest.expire.tags import delete_tag, expire_tags, replace_tag
from manifest.io.errors import SnapshotExpired, SnapshotNotFound
from manifest.options.tag_periods import (
    BATCH_NAME,
    COMPLETION,
    PROCESS_ZONE,
    RETAINED,
    TAG_EXPIRES,
    TAG_MODE,
    WATERMARK_ZONE,
    TagPeriods,
    millis_of_option,
    most_tags,
    zone_of,
)
from manifest.snapshot.snapshot import BATCH_IDENTIFIER, NO_WATERMARK, Snapshot
from manifest.store import FileStore
from paimon_base.errors import InvalidArgument
from paimon_base.lazy import cached_property

_BATCH_PREFIX = "batch-write-"


def make_tags(store: FileStore, newest: int | None) -> None:
    """Create the tags due after snapshot ``newest``; delete old ones."""
    options = store.options.raw
    mode = options.get(TAG_MODE, "none").strip().lower()
    if newest is None or mode == "none":
        return
    if mode == "batch":
        _tag_batch(store, newest)
    else:
        _AutomaticTags(store, mode == "watermark").run(newest)
    if options.get(TAG_EXPIRES, "true").strip().lower() != "false":
        expire_tags(store)


@dataclass
class _AutomaticTags:
    store: FileStore
    by_watermark: bool

    def run(self, newest: int) -> None:
        manager, periods = self.store.snapshots, self._periods
        existing = sorted((time, tag.id) for name, tag in manager.tags().items() if (time := periods.time(name)) is not None)
        following = existing[-1][0] + periods.length if existing else None
        if not self._is_due(manager.get(newest), following):  # older snapshots are not due either: their times are no later
            return
        first = max([snapshot_id for _, snapshot_id in existing], default=(manager.earliest_id() or 1) - 1) + 1
        for snapshot_id in range(max(first, manager.earliest_id() or 1), newest + 1):
            try:
                snapshot = manager.get(snapshot_id)
            except SnapshotNotFound:
                continue
            following = self._create_if_due(snapshot, following) or following

    @cached_property
    def _periods(self) -> TagPeriods:
        return TagPeriods.of(self.store.options.raw)

    def _create_if_due(self, snapshot: Snapshot, following: datetime | None) -> datetime | None:
        """Tag the snapshot if it begins a period.

        Returns the time of the next tag, None if the snapshot is not due.
        """
        options, periods = self.store.options.raw, self._periods
        time = self._time(snapshot)
        if time is None or not self._is_due(snapshot, following):
            return None
        period = periods.before(time)
        if following is not None and options.get(COMPLETION, "").strip().lower() == "true":
            period = following
        try:
            self.store.snapshots.create_tag(periods.name(period), snapshot, millis_of_option(options, RETAINED))
        except InvalidArgument:
            pass  # another commit has created it
        except SnapshotExpired:
            return None
        self._drop_oldest()
        return period + periods.length

    def _is_due(self, snapshot: Snapshot, following: datetime | None) -> bool:
        """Return whether the next tag is due at the snapshot.

        Its period must be over at the snapshot's time.
        """
        time = self._time(snapshot)
        return time is not None and (following is None or time - self._periods.delay >= following + self._periods.length)

    def _time(self, snapshot: Snapshot) -> datetime | None:
        options = self.store.options.raw
        if not self.by_watermark:
            return _wall_clock(snapshot.time_millis, zone_of(options, PROCESS_ZONE))
        if snapshot.watermark is None or snapshot.watermark == NO_WATERMARK:
            return None
        return _wall_clock(snapshot.watermark, zone_of(options, WATERMARK_ZONE) or UTC)

    def _drop_oldest(self) -> None:
        max_tags = most_tags(self.store.options.raw)
        if max_tags is not None:
            ours = sorted((time, name) for name in self.store.snapshots.tags() if (time := self._periods.time(name)) is not None)
            for _, name in ours[: max(len(ours) - max_tags, 0)]:
                delete_tag(self.store, name)


def _tag_batch(store: FileStore, newest: int) -> None:
    snapshot = store.snapshots.get(newest)
    if snapshot.commit_identifier != BATCH_IDENTIFIER:
        return
    options = store.options.raw
    day = _wall_clock(snapshot.time_millis, zone_of(options, PROCESS_ZONE))
    name = options.get(BATCH_NAME) or f"{_BATCH_PREFIX}{day:%Y-%m-%d}"
    retained, tags = millis_of_option(options, RETAINED), store.snapshots.tags()
    if name in tags:
        replace_tag(store, name, snapshot, retained)
    else:
        store.snapshots.create_tag(name, snapshot, retained)
    max_tags = most_tags(options)
    if max_tags is not None:
        oldest_first = sorted({**tags, name: snapshot}, key=lambda tag: (newest if tag == name else tags[tag].id, tag))
        for gone in oldest_first[: max(len(oldest_first) - max_tags, 0)]:
            delete_tag(store, gone)


def _wall_clock(millis: int, zone: tzinfo | None) -> datetime:
    return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=millis)).astimezone(zone).replace(tzinfo=None)
