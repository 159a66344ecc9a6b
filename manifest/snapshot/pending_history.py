"""Pending file of an unfinished rollback or fast-forward.

It has the new history and the snapshots to remove, and is written before anything else changes. Then the LATEST hint is lowered or deleted.
Readers of the newest snapshot then find that the hint is not the end, and read the pending file: its target is the newest state.
The next commit or expiry finishes the change first. The file is valid only while it names every snapshot in question. A later
commit makes it void.

Kept changelogs outlive their snapshots (Paimon's ``ChangelogManager``). Each is a copy of an expired snapshot, whose manifests still list its changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from manifest.io.checksum import verify_checksum, with_checksum
from manifest.io.file_io import FileIO
from manifest.io.paths import CHANGELOG, EARLIEST, LATEST, TablePaths, parse_number
from manifest.snapshot.snapshot import Snapshot, Tag
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property

UNREADABLE = ""
"""In place of the delta manifest list of a snapshot file that cannot be parsed."""
_TARGET, _DOOMED, _RESTORES = "target", "doomed", "restores"
_CONTENTS, _SCHEMAS, _TAGS, _SOURCE = "contents", "schemas", "tags", "source"


@dataclass(frozen=True)
class PendingHistory:
    """A change of a branch's history.

    Args:
        target: The newest snapshot afterwards.
        doomed: Delta manifest list of each snapshot to remove, by id. No two commits share one.
        restores: Whether the target's file must be written, because its snapshot expired or belongs to another branch.
        contents: Files of further snapshots to write, by id (fast-forward).
        schemas: Schema files to write, by id (fast-forward).
        tags: Tag files to write, by name (fast-forward).
        source: Branch that the contents come from.

    >>> content = PendingHistory(Snapshot(id=1, schema_id=0, base_manifest_list="a", delta_manifest_list="b", commit_user="u",
    ...     commit_identifier=7, commit_kind="APPEND", time_millis=0, total_record_count=5, delta_record_count=5), {2: "c"}).to_json("ROLLBACK")
    >>> PendingHistory.from_json(content, "ROLLBACK").doomed
    {2: 'c'}
    """

    target: Snapshot
    doomed: Mapping[int, str]
    restores: bool = False
    contents: Mapping[int, str] = field(default_factory=dict)
    schemas: Mapping[int, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    source: str | None = None

    def to_json(self, path: str) -> bytes:
        """Return the content of the pending file at ``path``."""
        members: dict[str, object] = {
            _TARGET: self.target.to_json(),
            _DOOMED: {str(i): name for i, name in self.doomed.items()},
            _RESTORES: self.restores,
        }
        if self.source is not None:
            members |= {_CONTENTS: _texts(self.contents), _SCHEMAS: _texts(self.schemas), _TAGS: dict(self.tags), _SOURCE: self.source}
        return with_checksum(path, json.dumps(members))

    @classmethod
    def from_json(cls, content: bytes, path: str) -> PendingHistory:
        """Parse a pending file. Raises ``CorruptFile``."""
        verify_checksum(path, content)
        try:
            members = json.loads(content)
            return cls(
                Snapshot.from_json(members[_TARGET], path),
                _by_id(members[_DOOMED]),
                bool(members[_RESTORES]),
                _by_id(members.get(_CONTENTS, {})),
                _by_id(members.get(_SCHEMAS, {})),
                {str(name): str(text) for name, text in members.get(_TAGS, {}).items()},
                members.get(_SOURCE),
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptFile(path, "not a valid pending rollback or fast-forward") from error

    @cached_property
    def snapshots(self) -> dict[int, Snapshot]:
        """Snapshots of the new history, ascending by id.

        Only those that the file contains.
        """
        parsed = {i: Snapshot.from_json(text, f"snapshot-{i}") for i, text in self.contents.items()}
        return dict(sorted({**parsed, self.target.id: self.target}.items()))

    @property
    def states(self) -> list[Snapshot]:
        """Snapshots and tags that the file contains."""
        return [*self.snapshots.values(), *(Tag.from_json(text, f"tag-{name}") for name, text in self.tags.items())]

    @cached_property
    def expected(self) -> dict[int, str]:
        """Delta manifest list of each of ``snapshots``."""
        return {i: snapshot.delta_manifest_list for i, snapshot in self.snapshots.items()}

    def is_unfinished(self, stored: Mapping[int, str]) -> bool:
        """Return whether the change is started and not finished.

        ``stored`` has the delta manifest list of each snapshot file, by id.
        """
        present: set[int] = set()
        waiting = False
        for snapshot_id, delta in stored.items():
            if self.expected.get(snapshot_id) == delta:
                present.add(snapshot_id)
            elif self.doomed.get(snapshot_id) == delta or (snapshot_id in self.expected and delta == UNREADABLE):
                waiting = True
            # An unknown snapshot newer than the target is a later commit: the file is void.
            elif snapshot_id > self.target.id or snapshot_id in self.expected:
                return False
        if self.target.id not in present:
            return self.restores
        # Expiry removes the oldest snapshots, so a missing one still has to be written only if an older one exists.
        oldest = min(stored)
        return waiting or any(oldest < snapshot_id and snapshot_id not in present for snapshot_id in self.expected)

    def removes(self, snapshot_id: int) -> bool:
        """Return whether the new history lacks that id."""
        return snapshot_id not in self.expected and (snapshot_id > self.target.id or snapshot_id in self.doomed)

    def seen(self, snapshot_id: int, stored: Snapshot | None) -> Snapshot | None:
        """Return the snapshot of that id in the new history.

        ``stored`` is the content of its file. Returns None if the new history lacks the id.
        """
        coming = self.snapshots.get(snapshot_id)
        if coming is None:
            return None if self.removes(snapshot_id) else stored
        # An equal file stays as it is: it may name a changelog that the content of a tag lacks.
        return stored if stored is not None and stored.key == coming.key else coming

    def ids_of(self, stored: Iterable[int]) -> list[int]:
        """Return the ids of the new history, ascending.

        ``stored`` are the ids of all snapshot files.
        """
        return sorted({*(i for i in stored if not self.removes(i)), *(self.expected if self.restores else ())})

    def keeps(self, snapshot: Snapshot) -> bool:
        """Return whether the new history has the state of ``snapshot``."""
        return snapshot.id < min(self.expected) or snapshot.delta_manifest_list in self.expected.values()


def _texts(files: Mapping[int, str]) -> dict[str, str]:
    return {str(i): text for i, text in files.items()}


def _by_id(members: Mapping[str, str]) -> dict[int, str]:
    return {int(i): str(text) for i, text in members.items()}


@dataclass(frozen=True, slots=True)
class KeptChangelogs:
    """Kept changelogs of a table or branch, by snapshot id.

    Hints are written for other engines. This package lists the directory.
    """

    file_io: FileIO
    paths: TablePaths

    def ids(self) -> list[int]:
        """Return all ids, ascending."""
        return sorted(i for i in (parse_number(s.name, CHANGELOG) for s in self.file_io.list(self.paths.changelogs)) if i)

    def get(self, snapshot_id: int) -> Snapshot | None:
        """Return the expired snapshot, None without one. Raises ``CorruptFile``."""
        path = self.paths.changelog_file(snapshot_id)
        try:
            snapshot = Snapshot.from_json(self.file_io.read(path), path)
        except FileNotFoundError:
            return None
        if snapshot.id != snapshot_id:
            raise CorruptFile(path, f"holds snapshot {snapshot.id}")
        return snapshot

    def all(self) -> list[Snapshot]:
        """Return all kept changelogs, oldest first.

        Skips changelogs that expire meanwhile.
        """
        return [snapshot for snapshot in map(self.get, self.ids()) if snapshot is not None]

    def keep(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep the changelogs of snapshots that are about to expire.

        ``snapshots`` are ordered, oldest first.
        """
        for snapshot in snapshots:
            path = self.paths.changelog_file(snapshot.id)
            if not self.file_io.exists(path):  # a snapshot restored from its tag lacks the changelog of the kept copy
                self.file_io.write(path, with_checksum(path, snapshot.to_json()), overwrite=True)
        if snapshots:
            self._hint(LATEST, snapshots[-1].id)

    def forget(self, ids: Sequence[int], first_kept: int) -> None:
        """Delete the oldest changelogs. ``first_kept`` is the next one."""
        for snapshot_id in ids:
            self.file_io.delete(self.paths.changelog_file(snapshot_id))
        self._hint(EARLIEST, first_kept)

    def forget_unless(self, keeps: Callable[[Snapshot], bool]) -> list[Snapshot]:
        """Delete changelogs that ``keeps`` rejects, newest first.

        Also deletes the LATEST hint. Returns the changelogs, oldest first.
        """
        rejected = [changelog for changelog in self.all() if not keeps(changelog)]
        if rejected:
            self.file_io.delete(f"{self.paths.changelogs}/{LATEST}")
        for changelog in reversed(rejected):
            self.file_io.delete(self.paths.changelog_file(changelog.id))
        return rejected

    def _hint(self, name: str, snapshot_id: int) -> None:
        with suppress(OSError):  # a missing or stale hint costs a listing
            self.file_io.write(f"{self.paths.changelogs}/{name}", str(snapshot_id).encode(), overwrite=True, durable=False)
