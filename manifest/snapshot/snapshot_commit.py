"""Who makes the snapshots of a table where that is not the file system: a catalog's server (Paimon's ``SnapshotCommit``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from manifest.snapshot.snapshot import Snapshot


class PartitionStatistics(BaseModel):
    """What a snapshot adds to a partition, or takes from it where numbers are negative; ``spec`` has the texts of directory names."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    spec: dict[str, str]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int
    total_buckets: int = 0


Changed = Callable[[], Sequence[PartitionStatistics]]
"""The partitions that a snapshot changes, counted when asked for."""


class SnapshotCommit(Protocol):
    """Knows the newest snapshot and makes the next one; the files of snapshots lie where they always do."""

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None before the first commit."""

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """That snapshot, whose file is not there; None if nobody has it."""

    def commit(self, snapshot: Snapshot, changed: Changed) -> bool:
        """Make ``snapshot`` the newest: False if its id is taken by another one.

        Raises ``CatalogRefused`` if it surely does not stand, another ``OSError`` if that is not known.
        """


__all__ = ["Changed", "PartitionStatistics", "SnapshotCommit"]
