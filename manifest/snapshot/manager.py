"""Reading and creating snapshots and tags (Paimon's ``SnapshotManager``, ``TagManager``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from manifest.io import failpoints
from manifest.io.checksum import with_checksum
from manifest.io.errors import KEEP_SNAPSHOTS, SnapshotExpired, SnapshotNotFound, TagExists
from manifest.io.file_cache import SHARED
from manifest.io.numbers import MAX_LONG, utc_text
from manifest.io.paths import BRANCH, SNAPSHOT, TAG, parse_number, tag_name
from manifest.snapshot.consumers import LAST_READ, ConsumerFiles
from manifest.snapshot.pending_history import UNREADABLE, KeptChangelogs, PendingHistory
from manifest.snapshot.snapshot import Changed, Snapshot, SnapshotCommit, SnapshotKey, Tag
from paimon_base.errors import CorruptFile, InvalidArgument, PaimonError, did_you_mean
from paimon_base.thresholds import thresholds

_TAG_BYTES = 4096
"""Approximate size of a tag in memory."""
_NAMED = 20
"""Maximal number of names in an error."""


@dataclass(frozen=True, slots=True)
class SnapshotManager(ConsumerFiles):
    """Snapshots, tags and consumers of a table or branch.

    Hints are optional. A missing, stale, early or invalid one only costs a listing.
    """

    newest_seen: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Newest snapshot seen by this process, by directory. Used like the LATEST hint."""
    commits: SnapshotCommit | None = field(default=None, compare=False)
    """Catalog that knows the newest snapshot and commits the next one. None: the file system."""

    def latest_id(self) -> int | None:
        """Return the id of the newest snapshot.

        None before the first commit.
        """
        newest = self.latest()
        return None if newest is None else newest.id

    def read_earliest_hint(self) -> tuple[int | None, bool]:
        """Read the EARLIEST hint and whether snapshot 1 exists."""
        hint, first = self.file_io.run_parallel(lambda: self._hint(self.paths.earliest_hint), lambda: self.exists(1))
        return hint, first

    def earliest_id(self, hint_and_first: tuple[int | None, bool] | None = None) -> int | None:
        """Return the id of the oldest existing snapshot.

        ``hint_and_first`` is a recent result of ``read_earliest_hint``.
        """
        hint, first = hint_and_first or self.read_earliest_hint()
        if self.change_under_way() is not None:  # hint and files still describe the old history
            ids = self.ids()
            return ids[0] if ids else None
        if first:  # nothing has expired yet: avoid a listing, which grows with every commit
            return 1
        if hint and all(self.file_io.run_parallel(lambda: self.exists(hint), lambda: not self.exists(hint - 1))):
            return int(hint)
        ids = self.ids()
        return ids[0] if ids else None

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, None before the first commit."""
        if self.commits is not None:
            return self.commits.latest()
        if (pending := self.change_under_way()) is not None:
            return pending.seen(pending.target.id, self.stored(pending.target.id))
        return self.newest_stored()

    def newest_stored(self) -> Snapshot | None:
        """Return the newest snapshot file, ignoring a pending change of history."""
        directory = self.paths.snapshots
        last_seen = self.newest_seen.get(directory)
        if last_seen is None:
            hint, snapshot = self.guess(), None
        else:
            hint, snapshot = self.file_io.run_parallel(self.guess, partial(self._get_if_newest, last_seen))
        if hint != last_seen:  # the cached id is valid while the hint file agrees: a rollback lowers the hint first
            snapshot = None if hint is None else self._get_if_newest(hint)
        newest: Snapshot | None = snapshot or self._listed_newest()
        if hint is None or hint > (0 if newest is None else newest.id):
            self._refuse_lost(MAX_LONG if hint is None else hint, newest)
        if newest is not None:
            self.newest_seen[directory] = newest.id
        return newest

    def latest_listed(self) -> Snapshot | None:
        """Return the newest snapshot by a listing, ignoring hints.

        For verification of a commit whose own hint may be wrong.
        """
        return self._listed_newest() if self.commits is None else self.commits.latest()

    def guess(self) -> int | None:
        """Read the LATEST hint and remember it."""
        hint = self._hint(self.paths.latest_hint)
        if hint is not None:
            self.newest_seen.setdefault(self.paths.snapshots, hint)
            self.newest_seen[self.paths.latest_hint] = hint
        return hint

    def pending_history(self) -> PendingHistory | None:
        """Return the unfinished rollback or fast-forward. Raises ``CorruptFile``."""
        path = self.paths.pending_history
        try:
            pending = PendingHistory.from_json(self.file_io.read(path), path)
        except FileNotFoundError:
            return None
        named = pending.expected.keys() | pending.doomed.keys()
        stored: dict[int, str] = {}
        for snapshot_id in self.stored_ids():
            if snapshot_id in named:
                delta = self.stored_delta(snapshot_id)
                if delta is not None:  # None: being deleted right now
                    stored[snapshot_id] = delta
            else:
                stored[snapshot_id] = UNREADABLE
        return pending if pending.is_unfinished(stored) else None

    def change_under_way(self) -> PendingHistory | None:
        """Return ``pending_history`` where readers must respect it, else None."""
        # On other storage a history change is a single commit.
        return self.pending_history() if self.file_io.cancels_creates and self.commits is None else None

    def exists(self, snapshot_id: int) -> bool:
        """Return whether the snapshot file exists."""
        return self.file_io.exists(self.paths.snapshot_file(snapshot_id))

    def holds(self, snapshot: Snapshot) -> bool:
        """Return whether the history has this snapshot, not another one."""
        pending = self.change_under_way()
        stored = self.stored(snapshot.id)
        return stored is not None and stored.key == snapshot.key and (pending is None or pending.keeps(snapshot))

    def still_has(self, state: Snapshot) -> bool:
        """Return whether the history or a tag has the snapshot."""
        return self.holds(state) or any(tag.key == state.key for tag in self.tags().values())

    def stores(self, state: Snapshot) -> bool:
        """Return whether a snapshot or tag file has the state.

        Unlike ``still_has`` it includes files that a pending change of history removes.
        """
        stored = self.stored(state.id)
        return (stored is not None and stored.key == state.key) or any(tag.key == state.key for tag in self.stored_tags().values())

    def stored_ids(self) -> list[int]:
        """Return the ids of all snapshot files, ascending."""
        return sorted(i for i in (parse_number(s.name, SNAPSHOT) for s in self.file_io.list(self.paths.snapshots)) if i)

    def stored_delta(self, snapshot_id: int) -> str | None:
        """Return the delta manifest list of a snapshot file.

        None: there is no file. ``UNREADABLE``: it cannot be parsed.
        """
        try:
            snapshot = self.stored(snapshot_id)
        except CorruptFile:
            return UNREADABLE
        return None if snapshot is None else snapshot.delta_manifest_list

    def stored_deltas(self, after: int = 0) -> dict[int, str]:
        """Return ``stored_delta`` of each snapshot file after id ``after``, ascending by id."""
        return {i: delta for i in self.stored_ids() if i > after and (delta := self.stored_delta(i)) is not None}

    def all_stored(self, after: int = 0) -> dict[int, Snapshot]:
        """Return existing snapshots after id ``after``, ascending by id."""
        return {i: snapshot for i in self.stored_ids() if i > after and (snapshot := self.stored(i)) is not None}

    def ids(self) -> list[int]:
        """Return all snapshot ids, ascending.

        A pending rollback or fast-forward counts as done.
        """
        pending, stored = self.change_under_way(), self.stored_ids()
        return stored if pending is None else pending.ids_of(stored)

    def get(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot.

        Raises ``SnapshotExpired``, ``SnapshotNotFound`` or ``CorruptFile``.
        """
        snapshot = self.stored(snapshot_id)
        pending = self.pending_history() if snapshot is None else self.change_under_way()
        if pending is not None:
            snapshot = pending.seen(snapshot_id, snapshot)
        if snapshot is None and self.commits is not None:
            snapshot = self.commits.snapshot(snapshot_id)
        if snapshot is None:
            raise self._missing(snapshot_id)
        return snapshot

    def same(self, key: SnapshotKey) -> Snapshot:
        """Return the snapshot with this key.

        Raises ``SnapshotNotFound``, also if its id was reused after a rollback.
        """
        snapshot = self.get(key.id)
        if snapshot.key != key:
            raise SnapshotExpired(f"{self.paths.root}: a rollback or fast-forward has replaced snapshot {key.id}; do it again")
        return snapshot

    def was_replaced(self, key: SnapshotKey) -> bool:
        """Return whether the history has lost the snapshot with this key.

        An expired snapshot is not lost, unless its tag or its retained changelog belongs to another commit.
        """
        try:
            return self.get(key.id).key != key
        except SnapshotExpired:
            # An id can have been used again after a rollback. Its tag or changelog shows by which commit.
            copies = [tag.key for tag in self.tags().values() if tag.id == key.id]
            changelog = self.kept.get(key.id)
            copies += [] if changelog is None else [changelog.key]
            return bool(copies) and key not in copies
        except SnapshotNotFound:
            return True

    def next_for_consumers(self) -> int | None:
        """Return the smallest snapshot id that consumers hold.

        It is the next one to read, or the one before if a rollback has replaced it: it alone shows the consumer that its history is gone.
        Raises ``CorruptFile``.
        """
        states = self.consumer_states().values()
        following: int | None = min((state["nextSnapshot"] for state in states), default=None)
        if following is None:
            return None
        notes = [state.get(LAST_READ) for state in states if state["nextSnapshot"] == following]
        read = {str(note[1]) for note in notes if isinstance(note, list) and len(note) == 2 and note[0] == following - 1}
        before = self.stored_delta(following - 1) if read else None
        return following if before is None or read == {before} else following - 1

    def stored(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot in its own file, or None."""
        path = self.paths.snapshot_file(snapshot_id)
        try:
            snapshot = Snapshot.from_json(self.file_io.read(path), path)
        except FileNotFoundError:
            return None
        except CorruptFile as error:
            raise CorruptFile(
                path,
                f"{error.reason}; fsck(repair=True) writes it again if a tag has the snapshot, or roll back to an older snapshot or tag",
            ) from error
        if snapshot.id != snapshot_id:
            raise CorruptFile(path, f"holds snapshot {snapshot.id}")
        return snapshot

    def readable(self, snapshot_id: int, delta: str | None = None) -> Snapshot:
        """Return a snapshot for a reader, expired ones from tags.

        ``delta`` is its delta manifest list, None if unknown. After a rollback another snapshot may have the id. Raises as ``get`` does.
        """
        try:
            snapshot = self.get(snapshot_id)
            if delta in {None, snapshot.delta_manifest_list}:
                return snapshot
            missing: PaimonError = SnapshotNotFound(
                f"{self.paths.root}: snapshot {snapshot_id} was rolled back after the scan was made; make it again"
            )
        except (SnapshotNotFound, CorruptFile) as error:  # expired, rolled back, or damaged
            missing = error
        for tag in self.tags().values():
            if tag.id == snapshot_id and delta in {None, tag.delta_manifest_list}:
                return tag.snapshot
        raise missing

    def since(self, snapshot_id: int, until: int | None = None) -> Iterator[Snapshot]:
        """Yield snapshots after ``snapshot_id`` up to ``until``, in order.

        ``until`` defaults to the newest. Raises if one of them no longer exists.
        """
        end = self.latest_id() if until is None else until
        for following in range(snapshot_id + 1, (end or 0) + 1):
            yield self.get(following)

    def backwards(self, start: Snapshot | int | None = None) -> Iterator[Snapshot]:
        """Yield snapshots from ``start`` down to the oldest retained one.

        ``start`` defaults to the newest.
        """
        first = self.latest() if start is None else start
        if first is None:
            return
        if isinstance(first, Snapshot):
            yield first
        current = first.id - 1 if isinstance(first, Snapshot) else first
        ahead = min(self.file_io.max_concurrency, thresholds.snapshots_ahead)
        while current > 0:
            ids = range(current, max(0, current - ahead), -1)
            for snapshot in self.file_io.run_parallel(*(partial(self._get_or_none, snapshot_id) for snapshot_id in ids)):
                if snapshot is None:
                    return
                yield snapshot
            current = ids[-1] - 1

    def _get_or_none(self, snapshot_id: int) -> Snapshot | None:
        with suppress(SnapshotNotFound):
            return self.get(snapshot_id)
        return None

    def at_timestamp(self, millis: int) -> Snapshot:
        """Return the newest snapshot committed at or before ``millis``.

        ``millis`` counts from the epoch. Raises ``SnapshotNotFound``.
        """
        first, last = self.earliest_id(), self.latest_id()
        newest: Snapshot | None = None
        while first is not None and last is not None and first <= last:
            middle = (first + last) // 2
            snapshot = self.get(middle)
            if snapshot.time_millis <= millis:
                newest, first = snapshot, middle + 1
            else:
                last = middle - 1
        if newest is None:
            oldest = self.earliest_id()
            reason = (
                "the table has no snapshot"
                if oldest is None
                else f"the oldest, {oldest}, was committed at {utc_text(self.get(oldest).time_millis)}"
            )
            message = f"{self.paths.root}: no snapshot is as old as timestamp {millis} ({utc_text(millis)}); {reason}"
            raise SnapshotExpired(f"{message}; {KEEP_SNAPSHOTS}") if oldest is not None and oldest > 1 else SnapshotNotFound(message)
        return newest

    def at_watermark(self, watermark: int) -> Snapshot:
        """Return the first snapshot whose watermark reached ``watermark``.

        Raises ``SnapshotNotFound``.
        """
        for snapshot_id in self.ids():
            snapshot = self.get(snapshot_id)
            if snapshot.watermark is not None and snapshot.watermark >= watermark:
                return snapshot
        raise SnapshotNotFound(f"{self.paths.root}: no snapshot has reached watermark {watermark}")

    def travel(
        self,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp_millis: int | None = None,
        watermark: int | None = None,
        version: str | None = None,
    ) -> Snapshot | None:
        """Return the selected snapshot, or the newest one.

        ``version`` is a tag, ``watermark-<n>`` or an id. Raises ``InvalidArgument`` for more than one argument, ``SnapshotNotFound``.
        """
        selectors: list[tuple[object, Callable[[], Snapshot]]] = [
            (snapshot_id, lambda: self.get(int(snapshot_id or 0))),
            (tag, lambda: self.tag(str(tag))),
            (timestamp_millis, lambda: self.at_timestamp(int(timestamp_millis or 0))),
            (watermark, lambda: self.at_watermark(int(watermark or 0))),
            (version, lambda: self._version(str(version))),
        ]
        finders = [find for value, find in selectors if value is not None]
        if len(finders) > 1:
            raise InvalidArgument("time travel takes one of snapshot id, tag, timestamp, watermark and version")
        return finders[0]() if finders else self.latest()

    def first_since(self, millis: int) -> Snapshot:
        """Return the oldest snapshot or tag committed at or after a time.

        Raises ``SnapshotNotFound``.
        """
        ids = self.ids()
        position = bisect_left(ids, millis, key=lambda snapshot_id: self.get(snapshot_id).time_millis)
        candidates: list[Snapshot] = [self.get(snapshot_id) for snapshot_id in ids[position : position + 1]]
        candidates += [tag for tag in self.tags().values() if tag.time_millis >= millis]
        if not candidates:
            raise SnapshotNotFound(f"{self.paths.root}: no snapshot was committed at or after {millis}")
        return min(candidates, key=lambda snapshot: (snapshot.time_millis, snapshot.id))

    def tag(self, name: str) -> Tag:
        """Return a tag. Raises ``SnapshotNotFound``."""
        path, pending = self.paths.tag(tag_name(name)), self.change_under_way()
        if pending is not None and name in pending.tags:
            return Tag.from_json(pending.tags[name], path)
        with suppress(FileNotFoundError):
            tag = Tag.from_json(self.file_io.read(path), path)
            if pending is None or pending.keeps(tag):
                return tag
            raise SnapshotNotFound(
                f"{self.paths.root}: tag '{name}' is of snapshot {tag.id}, which an interrupted rollback or fast-forward to snapshot "
                f"{pending.target.id} removes; the next commit finishes it"
            )
        raise SnapshotNotFound(f"{self.paths.root}: there is no tag '{name}'{self._name_others(name)}")

    def stored_tag(self, name: str) -> Tag:
        """Parse a tag's file. Raises ``FileNotFoundError``, ``CorruptFile``."""
        path = self.paths.tag(name)
        return Tag.from_json(self.file_io.read(path), path)

    def _name_others(self, name: str) -> str:
        """Return a hint with existing tag names, for an error."""
        with suppress(OSError, PaimonError):
            names = sorted(self.tags())
            return f"{did_you_mean(name, names)}; there are: {', '.join(names[:_NAMED]) or 'none'}"
        return ""

    def tags(self) -> dict[str, Tag]:
        """Return all tags by name.

        A pending rollback or fast-forward counts as done. Skips tags that are deleted meanwhile.
        """
        pending, stored = self.change_under_way(), self.stored_tags()
        if pending is None:
            return stored
        written = {name: Tag.from_json(text, self.paths.tag(name)) for name, text in pending.tags.items()}
        return {name: tag for name, tag in stored.items() if pending.keeps(tag)} | written

    def stored_tags(self) -> dict[str, Tag]:
        """Return the tags with existing files, by name.

        Unchanged files come from the cache.
        """
        tag_by_name: dict[str, Tag] = {}
        for status in self.file_io.list(self.paths.tags):
            if status.name.startswith(TAG) and not status.is_dir:
                name = status.name.removeprefix(TAG)
                with suppress(SnapshotNotFound, FileNotFoundError):
                    tag_by_name[name] = SHARED.load(
                        self.file_io,
                        self.paths.tag(name),
                        "tag",
                        partial(self.stored_tag, name),
                        lambda _: _TAG_BYTES,
                        listed=status.identity,
                    )
        return tag_by_name

    def create_tag(self, name: str, snapshot: Snapshot, retained_ms: int | None = None) -> Tag:
        """Create a tag of ``snapshot``, which keeps its files.

        ``retained_ms`` is the time after which the tag expires. None: never.
        Raises ``TagExists`` if the name exists, ``SnapshotExpired`` if the snapshot expires meanwhile.
        """
        tag = Tag.of(snapshot, retained_ms)
        path = self.paths.tag(tag_name(name))
        if not self.file_io.create_exclusive(path, with_checksum(path, tag.to_json())):
            raise TagExists(f"{self.paths.root}: tag '{name}' exists; move it by replace_tag, or delete it first")
        # Expiry deletes a snapshot or tag, then lists the tags: it may have missed this one.
        if not self.holds(snapshot) and not any(tag.key == snapshot.key for other, tag in self.tags().items() if other != name):
            self.delete_tag(name)
            raise self._missing(snapshot.id)
        return tag

    def delete_tag(self, name: str) -> bool:
        """Delete a tag, not the files that only it used."""
        path = self.paths.tag(tag_name(name))
        return self.file_io.exists(path) and self.file_io.delete(path)

    def try_create(self, snapshot: Snapshot, changed: Changed = tuple, guard: Callable[[], bool] | None = None) -> bool:
        """Create ``snapshot`` if its id is free.

        Returns False if the id exists or ``guard`` returns False. ``changed`` returns the changed partitions, for a catalog.
        Raises ``UnsafeFileIO`` if the storage cannot guarantee that, and the errors of ``SnapshotCommit``.
        """
        if self.commits is not None:
            return self.commits.commit(snapshot, changed)
        path = self.paths.snapshot_file(snapshot.id)
        if not self.file_io.create_exclusive(path, with_checksum(path, snapshot.to_json()), guard=guard):
            return False
        failpoints.point("after-link")
        self.newest_seen[self.paths.snapshots] = snapshot.id
        return True

    def tell_created(self, snapshot_id: int) -> None:
        """Write the LATEST hint for a snapshot from ``try_create``.

        Never raises: a lost hint costs a listing.
        """
        if self.commits is not None:
            return
        with suppress(OSError):
            if (self.newest_seen.pop(self.paths.latest_hint, None) or self._hint(self.paths.latest_hint) or 0) < snapshot_id:
                self._write_hint(self.paths.latest_hint, snapshot_id)
        failpoints.point("after-hint")

    def is_successor(self, snapshot_id: int, base: Snapshot | None) -> bool:
        """Return whether ``snapshot_id`` is free and ``base`` ends the history."""
        # The order of these checks matters: expiry deletes the oldest snapshots first, and a rollback writes its pending file before it deletes.
        if self.exists(snapshot_id) or self.pending_history() is not None:
            return False
        if base is None:
            return not self.stored_ids()
        stored = self.stored(base.id)
        return stored is not None and stored.delta_manifest_list == base.delta_manifest_list

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Write the EARLIEST hint."""
        self._write_hint(self.paths.earliest_hint, snapshot_id)

    def write_latest_hint(self, snapshot_id: int) -> None:
        """Write the LATEST hint.

        A rollback must do so before it deletes newer snapshots.
        """
        self._write_hint(self.paths.latest_hint, snapshot_id)

    @property
    def kept(self) -> KeptChangelogs:
        """Changelogs of expired snapshots."""
        return KeptChangelogs(self.file_io, self.paths)

    def branch_names(self, *, unfinished: bool = False) -> list[str]:
        """Return names of branches other than main.

        ``unfinished`` includes branches under creation or deletion. They have no schema, but may need files.
        """
        listed = (s.name.removeprefix(BRANCH) for s in self.file_io.list(self.paths.branches) if s.is_dir and s.name.startswith(BRANCH))
        return sorted(name for name in listed if unfinished or self.file_io.list(self.paths.for_branch(name).schemas))

    def _get_if_newest(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot if it is the newest one."""
        following, snapshot = self.file_io.run_parallel(partial(self.exists, snapshot_id + 1), partial(self.stored, snapshot_id))
        return None if following else snapshot

    def _listed_newest(self) -> Snapshot | None:
        while (pending := self.pending_history()) is None:
            ids = self.stored_ids()
            if not ids:
                return None
            if (newest := self.stored(ids[-1])) is not None:  # None: expired between the two calls
                return newest
        return pending.seen(pending.target.id, self.stored(pending.target.id))

    def _refuse_lost(self, hint: int, newest: Snapshot | None) -> None:
        """Raise ``CorruptFile`` if a tag is of a lost snapshot up to ``hint``.

        The next commit would take the id of the lost snapshot.
        """
        if newest is None or not self.lost_tags(newest.id) or self.pending_history() is not None:
            return
        for name, tag in self.lost_tags(newest.id).items():  # again: a rollback deletes tags before it ends
            if tag.id <= hint and not self.exists(tag.id):
                raise CorruptFile(
                    self.paths.snapshot_file(tag.id),
                    f"is missing, but tag '{name}' is of snapshot {tag.id}: restore it by fsck(repair=True), or roll back to snapshot {newest.id}",
                )

    def lost_tags(self, newest_id: int) -> dict[str, Tag]:
        """Return tags of snapshots after ``newest_id``, which have no file."""
        return {name: tag for name, tag in self.stored_tags().items() if tag.id > newest_id}

    def _version(self, version: str) -> Snapshot:
        pending = self.change_under_way()
        if self.file_io.exists(self.paths.tag(tag_name(version))) or (pending is not None and version in pending.tags):
            return self.tag(version)
        if version.startswith("watermark-") and version.removeprefix("watermark-").lstrip("-").isdecimal():
            return self.at_watermark(int(version.removeprefix("watermark-")))
        if version.isdecimal():
            return self.get(int(version))
        raise SnapshotNotFound(f"{self.paths.root}: '{version}' is neither a tag nor a snapshot id")

    def _missing(self, snapshot_id: int) -> SnapshotNotFound:
        ids = self.ids()
        if ids and snapshot_id < ids[0] and snapshot_id >= 1:
            return SnapshotExpired(f"{self.paths.root}: snapshot {snapshot_id} has expired, the oldest is {ids[0]}; {KEEP_SNAPSHOTS}")
        id_range = f"they run from {ids[0]} to {ids[-1]}" if ids else "the table has none"
        return SnapshotNotFound(f"{self.paths.root}: there is no snapshot {snapshot_id}; {id_range}")

    def _hint(self, path: str) -> int | None:
        try:
            text = self.file_io.read(path).strip()
        except OSError:
            return None
        return int(text) if text.isdigit() and len(text) <= 19 and int(text) > 0 else None

    def _write_hint(self, path: str, snapshot_id: int) -> None:
        def is_true() -> bool:
            # Other engines follow a hint into nothing, so a late one must not outlive a rollback.
            pending = self.pending_history()
            return (pending is None or pending.target.id == snapshot_id) and self.exists(snapshot_id)

        self.file_io.write_hint(path, str(snapshot_id).encode(), is_true)
