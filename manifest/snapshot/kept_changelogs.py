"""Changelogs that outlive their snapshots (Paimon's ``ChangelogManager``).

A kept changelog is a copy of an expired snapshot, whose manifests still list its changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fileindex.base.errors import CorruptFile
from manifest.io.file_io import FileIO
from manifest.io.paths import CHANGELOG, EARLIEST, LATEST, TablePaths, numbered
from manifest.io.seal import sealed
from manifest.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class KeptChangelogs:
    """Kept changelogs of a table or branch, by snapshot id.

    Hints are written for other engines. This package lists the directory.
    """

    file_io: FileIO
    paths: TablePaths

    def ids(self) -> list[int]:
        """Return all ids, ascending."""
        return sorted(i for i in (numbered(s.name, CHANGELOG) for s in self.file_io.list(self.paths.changelogs)) if i)

    def get(self, snapshot_id: int) -> Snapshot | None:
        """Return the expired snapshot, None without one. Raises ``CorruptFile``."""
        path = self.paths.changelog_file(snapshot_id)
        try:
            found = Snapshot.from_json(self.file_io.read(path), path)
        except FileNotFoundError:
            return None
        if found.id != snapshot_id:
            raise CorruptFile(path, f"holds snapshot {found.id}")
        return found

    def all(self) -> list[Snapshot]:
        """Return all kept changelogs, oldest first.

        Skips changelogs that expire meanwhile.
        """
        return [found for found in map(self.get, self.ids()) if found is not None]

    def keep(self, snapshots: Sequence[Snapshot]) -> None:
        """Keep the changelogs of snapshots that are about to expire.

        ``snapshots`` are ordered, oldest first.
        """
        for snapshot in snapshots:
            path = self.paths.changelog_file(snapshot.id)
            if not self.file_io.exists(path):  # a snapshot restored from its tag lacks the changelog of the kept copy
                self.file_io.write(path, sealed(path, snapshot.to_json()), overwrite=True)
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


__all__ = ["KeptChangelogs"]
