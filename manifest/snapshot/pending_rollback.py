"""The note of a rollback that is under way: what becomes the newest state, and which snapshots give way.

A rollback deletes snapshots, the newest first, as other engines do, so that each state between is whole. Cut off, it would leave one of
these. So the note is written before the first of them goes: from the moment in which the hint is lowered, whoever looks for the newest
snapshot finds a hint that is not the end, and with it the note. Readers take its target for the newest state, who commits finishes it
first. It counts only as long as all newer snapshots are those that it names: a commit of another engine makes it void.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from fileindex.base.errors import CorruptFile
from manifest.io.seal import check_seal, sealed
from manifest.snapshot.snapshot import Snapshot

_TARGET, _DOOMED, _RESTORES = "target", "doomed", "restores"


@dataclass(frozen=True, slots=True)
class PendingRollback:
    """``doomed`` has the delta manifest list of each snapshot to delete, by id: no two commits share one.

    ``restores``: the target is a tag's, whose snapshot may have expired; its file comes back before the last of the doomed goes.

    >>> content = PendingRollback(Snapshot(id=1, schema_id=0, base_manifest_list="a", delta_manifest_list="b", commit_user="u",
    ...     commit_identifier=7, commit_kind="APPEND", time_millis=0, total_record_count=5, delta_record_count=5), {2: "c"}).to_json("ROLLBACK")
    >>> PendingRollback.from_json(content, "ROLLBACK").doomed
    {2: 'c'}
    """

    target: Snapshot
    doomed: Mapping[int, str]
    restores: bool = False

    def to_json(self, path: str) -> bytes:
        """The content of the note at ``path``."""
        members = {_TARGET: self.target.to_json(), _DOOMED: {str(i): name for i, name in self.doomed.items()}, _RESTORES: self.restores}
        return sealed(path, json.dumps(members))

    @classmethod
    def from_json(cls, content: bytes, path: str) -> PendingRollback:
        """Raises ``CorruptFile``."""
        check_seal(path, content)
        try:
            found = json.loads(content)
            doomed = {int(snapshot_id): str(name) for snapshot_id, name in found[_DOOMED].items()}
            return cls(Snapshot.from_json(found[_TARGET], path), doomed, bool(found[_RESTORES]))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise CorruptFile(path, "not the note of a rollback") from error


__all__ = ["PendingRollback"]
