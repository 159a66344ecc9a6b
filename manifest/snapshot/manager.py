"""Finding, reading and creating snapshots and tags (Paimon's ``SnapshotManager`` and ``TagManager``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from fileindex.base.errors import CorruptFile, InvalidArgument, PaimonError, did_you_mean
from fileindex.base.thresholds import thresholds
from manifest.io import failpoints
from manifest.io.errors import SnapshotExpired, SnapshotNotFound
from manifest.io.file_cache import SHARED
from manifest.io.paths import BRANCH, SNAPSHOT, TAG, numbered, tag_name
from manifest.io.seal import sealed
from manifest.snapshot.consumers import ConsumerFiles
from manifest.snapshot.kept_changelogs import KeptChangelogs
from manifest.snapshot.pending_history import PendingHistory
from manifest.snapshot.snapshot import Snapshot, SnapshotKey
from manifest.snapshot.snapshot_commit import Changed, SnapshotCommit
from manifest.snapshot.tag import Tag

_TAG_BYTES = 4096
"""In memory, about."""
_NAMED = 20
"""Names that an error lists at most."""


@dataclass(frozen=True, slots=True)
class SnapshotManager(ConsumerFiles):
    """The snapshots of a table or branch, with its consumers. Hints are hints: one that is missing, stale, ahead or garbage costs a listing."""

    seen: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The newest snapshot that this table's user has seen, by directory: a hint as good as the file."""
    commits: SnapshotCommit | None = field(default=None, compare=False)
    """Who knows the newest snapshot and makes the next one in the place of the file system."""

    def latest_id(self) -> int | None:
        """Id of the newest snapshot; None before the first commit."""
        newest = self.latest()
        return None if newest is None else newest.id

    def earliest_told(self) -> tuple[int | None, bool]:
        """What the hint says of the oldest snapshot, and whether the very first is still there: for a look at what may expire."""
        hint, first = self.file_io.together(lambda: self._hint(self.paths.earliest_hint), lambda: self.exists(1))
        return hint, first

    def earliest_id(self, told: tuple[int | None, bool] | None = None) -> int | None:
        """Id of the oldest snapshot that is still there; ``told`` is what ``earliest_told`` has just said."""
        hint, first = told or self.earliest_told()
        if self.change_under_way() is not None:  # the hint and the files are those of before
            ids = self.ids()
            return ids[0] if ids else None
        if first:  # nothing has expired yet, so there is no hint, and a listing would grow with every commit
            return 1
        if hint and all(self.file_io.together(lambda: self.exists(hint), lambda: not self.exists(hint - 1))):
            return int(hint)
        ids = self.ids()
        return ids[0] if ids else None

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None before the first commit."""
        if self.commits is not None:
            return self.commits.latest()
        if (pending := self.change_under_way()) is not None:
            return pending.seen(pending.target.id, self.stored(pending.target.id))
        directory = self.paths.snapshots
        known = self.seen.get(directory)
        if known is None:
            hint, found = self.guess(), None
        else:
            hint, found = self.file_io.together(self.guess, partial(self._if_newest, known))
        if hint != known:  # what was seen counts as long as the file says the same: a rollback lowers it first
            found = None if hint is None else self._if_newest(hint)
        newest: Snapshot | None = found or self._listed_newest()
        if newest is not None:
            self.seen[directory] = newest.id
        return newest

    def latest_listed(self) -> Snapshot | None:
        """As ``latest``, by a look at all names: a hint may be that of a commit which has to be looked at."""
        return self._listed_newest() if self.commits is None else self.commits.latest()

    def guess(self) -> int | None:
        """What the hint says of the newest snapshot, for the next look at it."""
        hint = self._hint(self.paths.latest_hint)
        if hint is not None:
            self.seen.setdefault(self.paths.snapshots, hint)
            self.seen[self.paths.latest_hint] = hint
        return hint

    def pending_history(self) -> PendingHistory | None:
        """Return the rollback or fast-forward that was begun and not finished. Raises ``CorruptFile``."""
        path = self.paths.pending_history
        try:
            pending = PendingHistory.from_json(self.file_io.read(path), path)
        except FileNotFoundError:
            return None
        named = pending.expected.keys() | pending.doomed.keys()
        stored: dict[int, str] = {}
        for snapshot_id in self.stored_ids():
            if snapshot_id in named:
                snapshot = self.stored(snapshot_id)
                if snapshot is not None:  # else it is being deleted just now
                    stored[snapshot_id] = snapshot.delta_manifest_list
            else:
                stored[snapshot_id] = ""
        return pending if pending.is_unfinished(stored) else None

    def change_under_way(self) -> PendingHistory | None:
        """As ``pending_history``, where readers have to look for it: elsewhere a change is one commit."""
        return self.pending_history() if self.file_io.cancels_creates and self.commits is None else None

    def exists(self, snapshot_id: int) -> bool:
        """Whether a snapshot file of that id is there."""
        return self.file_io.exists(self.paths.snapshot_file(snapshot_id))

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether that very snapshot is still in the history."""
        pending = self.change_under_way()
        stored = self.stored(snapshot.id)
        return stored is not None and stored.key == snapshot.key and (pending is None or pending.keeps(snapshot))

    def still_has(self, state: Snapshot) -> bool:
        """Whether that very snapshot is in the history, or has a tag."""
        return self.holds(state) or any(tag.key == state.key for tag in self.tags().values())

    def stored_ids(self) -> list[int]:
        """Return the ids of all snapshot files, ascending."""
        return sorted(i for i in (numbered(s.name, SNAPSHOT) for s in self.file_io.list(self.paths.snapshots)) if i)

    def all_stored(self, after: int = 0) -> dict[int, Snapshot]:
        """Return the snapshots whose files are there, by id, ascending, from the id behind ``after`` on."""
        return {i: found for i in self.stored_ids() if i > after and (found := self.stored(i)) is not None}

    def ids(self) -> list[int]:
        """Return the ids of all snapshots, ascending, as they are once a rollback or fast-forward under way is done."""
        pending, stored = self.change_under_way(), self.stored_ids()
        return stored if pending is None else pending.ids_of(stored)

    def get(self, snapshot_id: int) -> Snapshot:
        """That snapshot. Raises ``SnapshotExpired``, ``SnapshotNotFound`` or ``CorruptFile``."""
        found = self.stored(snapshot_id)
        pending = self.pending_history() if found is None else self.change_under_way()
        if pending is not None:
            found = pending.seen(snapshot_id, found)
        if found is None and self.commits is not None:
            found = self.commits.snapshot(snapshot_id)
        if found is None:
            raise self._missing(snapshot_id)
        return found

    def same(self, key: SnapshotKey) -> Snapshot:
        """Return the snapshot of that identity. Raises ``SnapshotNotFound``, also if its id was given again after a rollback."""
        found = self.get(key.id)
        if found.key != key:
            raise SnapshotExpired(f"{self.paths.root}: a rollback or fast-forward has replaced snapshot {key.id}; do it again")
        return found

    def stored(self, snapshot_id: int) -> Snapshot | None:
        """Return what a snapshot's own file says; None if it is not there."""
        try:
            return self._parsed(snapshot_id, self.file_io.read(self.paths.snapshot_file(snapshot_id)))
        except FileNotFoundError:
            return None

    def _parsed(self, snapshot_id: int, content: bytes) -> Snapshot:
        path = self.paths.snapshot_file(snapshot_id)
        snapshot = Snapshot.from_json(content, path)
        if snapshot.id != snapshot_id:
            raise CorruptFile(path, f"holds snapshot {snapshot.id}")
        return snapshot

    def readable(self, snapshot_id: int, delta: str | None = None) -> Snapshot:
        """Return a snapshot for a reader, from a tag if it has expired.

        ``delta`` is its delta manifest list, None if unknown: after a rollback another snapshot may have the id. Raises as ``get`` does.
        """
        try:
            found = self.get(snapshot_id)
            if delta in {None, found.delta_manifest_list}:
                return found
            missing = SnapshotNotFound(f"{self.paths.root}: snapshot {snapshot_id} was rolled back after the scan was made; make it again")
        except SnapshotNotFound as error:  # expired, or rolled back
            missing = error
        for tag in self.tags().values():
            if tag.id == snapshot_id and delta in {None, tag.delta_manifest_list}:
                return tag.snapshot
        raise missing

    def since(self, snapshot_id: int, until: int | None = None) -> Iterator[Snapshot]:
        """Snapshots after ``snapshot_id`` up to ``until`` (default: the newest), in order; all must still be there."""
        end = self.latest_id() if until is None else until
        for following in range(snapshot_id + 1, (end or 0) + 1):
            yield self.get(following)

    def backwards(self, start: Snapshot | int | None = None) -> Iterator[Snapshot]:
        """Snapshots from ``start`` (default: the newest) down to the oldest retained one."""
        first = self.latest() if start is None else start
        if first is None:
            return
        if isinstance(first, Snapshot):
            yield first
        current = first.id - 1 if isinstance(first, Snapshot) else first
        ahead = min(self.file_io.lanes, thresholds().snapshots_ahead)
        while current > 0:
            some = range(current, max(0, current - ahead), -1)
            for snapshot in self.file_io.together(*(partial(self._if_there, snapshot_id) for snapshot_id in some)):
                if snapshot is None:
                    return
                yield snapshot
            current = some[-1] - 1

    def _if_there(self, snapshot_id: int) -> Snapshot | None:
        with suppress(SnapshotNotFound):
            return self.get(snapshot_id)
        return None

    def at_timestamp(self, millis: int) -> Snapshot:
        """The newest snapshot committed at or before ``millis`` since the epoch. Raises ``SnapshotNotFound``."""
        first, last = self.earliest_id(), self.latest_id()
        found: Snapshot | None = None
        while first is not None and last is not None and first <= last:
            middle = (first + last) // 2
            snapshot = self.get(middle)
            if snapshot.time_millis <= millis:
                found, first = snapshot, middle + 1
            else:
                last = middle - 1
        if found is None:
            oldest = self.earliest_id()
            told = "there is none" if oldest is None else f"the oldest, {oldest}, is of {_iso(self.get(oldest).time_millis)}"
            raise SnapshotNotFound(f"{self.paths.root}: no snapshot is as old as timestamp {millis} ({_iso(millis)}); {told}")
        return found

    def at_watermark(self, watermark: int) -> Snapshot:
        """The first snapshot whose watermark reached ``watermark``. Raises ``SnapshotNotFound``."""
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
        """The snapshot asked for, the newest if nothing is; ``version`` is a tag, ``watermark-<n>`` or an id.

        Raises ``InvalidArgument`` for more than one wish, ``SnapshotNotFound`` where nothing fits.
        """
        wishes: list[tuple[object, Callable[[], Snapshot]]] = [
            (snapshot_id, lambda: self.get(int(snapshot_id or 0))),
            (tag, lambda: self.tag(str(tag))),
            (timestamp_millis, lambda: self.at_timestamp(int(timestamp_millis or 0))),
            (watermark, lambda: self.at_watermark(int(watermark or 0))),
            (version, lambda: self._version(str(version))),
        ]
        wanted = [find for value, find in wishes if value is not None]
        if len(wanted) > 1:
            raise InvalidArgument("time travel takes one of snapshot id, tag, timestamp, watermark and version")
        return wanted[0]() if wanted else self.latest()

    def tag(self, name: str) -> Tag:
        """The snapshot that a tag holds. Raises ``SnapshotNotFound``."""
        path, pending = self.paths.tag(tag_name(name)), self.change_under_way()
        if pending is not None and name in pending.tags:
            return Tag.from_json(pending.tags[name], path)
        with suppress(FileNotFoundError):
            tag = Tag.from_json(self.file_io.read(path), path)
            if pending is None or pending.keeps(tag):
                return tag
        raise SnapshotNotFound(f"{self.paths.root}: there is no tag '{name}'{self._others(name)}")

    def stored_tag(self, name: str) -> Tag:
        """Return what a tag's file says. Raises ``FileNotFoundError``, ``CorruptFile``."""
        path = self.paths.tag(name)
        return Tag.from_json(self.file_io.read(path), path)

    def _others(self, name: str) -> str:
        """What there is, where a tag is not."""
        with suppress(OSError, PaimonError):
            names = sorted(s.name.removeprefix(TAG) for s in self.file_io.list(self.paths.tags) if s.name.startswith(TAG))
            return f"{did_you_mean(name, names)}; there are: {', '.join(names[:_NAMED]) or 'none'}"
        return ""

    def tags(self) -> dict[str, Tag]:
        """All tags, by name, as they are once a rollback or fast-forward under way is done; one deleted meanwhile is left out."""
        pending, found = self.change_under_way(), self.stored_tags()
        if pending is None:
            return found
        written = {name: Tag.from_json(text, self.paths.tag(name)) for name, text in pending.tags.items()}
        return {name: tag for name, tag in found.items() if pending.keeps(tag)} | written

    def stored_tags(self) -> dict[str, Tag]:
        """Return the tags whose files are there, by name; one that is still the same file is not read again."""
        found: dict[str, Tag] = {}
        for status in self.file_io.list(self.paths.tags):
            if status.name.startswith(TAG) and not status.is_dir:
                name = status.name.removeprefix(TAG)
                with suppress(SnapshotNotFound, FileNotFoundError):
                    found[name] = SHARED.load(
                        self.file_io,
                        self.paths.tag(name),
                        "tag",
                        partial(self.stored_tag, name),
                        lambda _: _TAG_BYTES,
                        listed=status.identity,
                    )
        return found

    def create_tag(self, name: str, snapshot: Snapshot, retained_ms: int | None = None) -> Tag:
        """Name ``snapshot``, so that expiry spares its files; the tag itself may be expired after ``retained_ms``.

        Raises ``InvalidArgument`` if the name is taken, ``SnapshotExpired`` if the snapshot goes meanwhile, and its files with it.
        """
        tag = Tag.of(snapshot, retained_ms)
        path = self.paths.tag(tag_name(name))
        if not self.file_io.create_exclusive(path, sealed(path, tag.to_json())):
            raise InvalidArgument(f"{self.paths.root}: tag '{name}' exists")
        if not self.holds(snapshot):  # whoever deletes it looked for tags after that, perhaps before this one was there
            self.delete_tag(name)
            raise self._missing(snapshot.id)
        return tag

    def delete_tag(self, name: str) -> bool:
        """Forget a tag, not the files that only it used."""
        path = self.paths.tag(tag_name(name))
        return self.file_io.exists(path) and self.file_io.delete(path)

    def try_create(self, snapshot: Snapshot, changed: Changed = tuple, guard: Callable[[], bool] | None = None) -> bool:
        """Commit ``snapshot``, which changes partitions by ``changed``; False if its id is taken or ``guard`` returns False.

        Raises ``UnsafeFileIO`` where that cannot be told, and what its ``SnapshotCommit`` raises.
        """
        if self.commits is not None:
            return self.commits.commit(snapshot, changed)
        path = self.paths.snapshot_file(snapshot.id)
        if not self.file_io.create_exclusive(path, sealed(path, snapshot.to_json()), guard=guard):
            return False
        failpoints.point("after-link")
        self.seen[self.paths.snapshots] = snapshot.id
        return True

    def tell_created(self, snapshot_id: int) -> None:
        """Tell readers of the snapshot that ``try_create`` made; never fails, for the commit stands, and a lost hint costs a listing."""
        if self.commits is not None:
            return
        with suppress(OSError):
            if (self.seen.pop(self.paths.latest_hint, None) or self._hint(self.paths.latest_hint) or 0) < snapshot_id:
                self._write_hint(self.paths.latest_hint, snapshot_id)
        failpoints.point("after-hint")

    def is_successor(self, snapshot_id: int, base: Snapshot | None) -> bool:
        """Whether a snapshot of that id would continue the history that ends with ``base``.

        The order of the questions matters: expiry deletes the oldest snapshots first, and a rollback writes its note before it deletes.
        """
        if self.exists(snapshot_id) or self.pending_history() is not None:
            return False
        if base is None:
            return not self.stored_ids()
        stored = self.stored(base.id)
        return stored is not None and stored.delta_manifest_list == base.delta_manifest_list

    def write_earliest_hint(self, snapshot_id: int) -> None:
        """Tell readers where the retained snapshots begin."""
        self._write_hint(self.paths.earliest_hint, snapshot_id)

    def write_latest_hint(self, snapshot_id: int) -> None:
        """Tell readers where the snapshots end, as a rollback must before it deletes the newer ones."""
        self._write_hint(self.paths.latest_hint, snapshot_id)

    @property
    def kept(self) -> KeptChangelogs:
        """The changelogs of expired snapshots."""
        return KeptChangelogs(self.file_io, self.paths)

    def branch_names(self, *, unfinished: bool = False) -> list[str]:
        """Names of the branches beside main; ``unfinished``: those too that are being made or deleted, and have no schema: they may pin files."""
        listed = (s.name.removeprefix(BRANCH) for s in self.file_io.list(self.paths.branches) if s.is_dir and s.name.startswith(BRANCH))
        return sorted(name for name in listed if unfinished or self.file_io.list(self.paths.for_branch(name).schemas))

    def _if_newest(self, snapshot_id: int) -> Snapshot | None:
        """That snapshot if it is there and the next one is not."""
        following, found = self.file_io.together(partial(self.exists, snapshot_id + 1), partial(self.stored, snapshot_id))
        return None if following else found

    def _listed_newest(self) -> Snapshot | None:
        while (pending := self.pending_history()) is None:
            ids = self.stored_ids()
            if not ids:
                return None
            if (newest := self.stored(ids[-1])) is not None:  # else a whole retention passed between the two calls
                return newest
        return pending.seen(pending.target.id, self.stored(pending.target.id))

    def _version(self, version: str) -> Snapshot:
        if self.file_io.exists(self.paths.tag(tag_name(version))):
            return self.tag(version)
        if version.startswith("watermark-") and version.removeprefix("watermark-").lstrip("-").isdecimal():
            return self.at_watermark(int(version.removeprefix("watermark-")))
        if version.isdecimal():
            return self.get(int(version))
        raise SnapshotNotFound(f"{self.paths.root}: '{version}' is neither a tag nor a snapshot id")

    def _missing(self, snapshot_id: int) -> SnapshotNotFound:
        ids = self.ids()
        if ids and snapshot_id < ids[0] and snapshot_id >= 1:
            return SnapshotExpired(
                f"{self.paths.root}: snapshot {snapshot_id} has expired, the oldest is {ids[0]}; "
                "raise 'snapshot.num-retained.min' or 'snapshot.time-retained' to keep them longer"
            )
        known = f"they run from {ids[0]} to {ids[-1]}" if ids else "the table has none"
        return SnapshotNotFound(f"{self.paths.root}: there is no snapshot {snapshot_id}; {known}")

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


def _iso(millis: int) -> str:
    try:
        return datetime.fromtimestamp(millis / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return "beyond all calendars"


__all__ = ["SnapshotManager"]
