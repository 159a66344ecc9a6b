"""Commits of snapshots by a catalog server (Paimon's ``SnapshotCommit``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from manifest.snapshot.snapshot import Snapshot


class PartitionStatistics(BaseModel):
    """Change of one partition by a snapshot. Deletions are negative.

    ``spec`` has the values as text, as in directory names.
    """

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")

    spec: dict[str, str]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int
    total_buckets: int = 0


Changed = Callable[[], Sequence[PartitionStatistics]]
"""Returns the changed partitions of a snapshot, counted on demand."""


class SnapshotCommit(Protocol):
    """Catalog that knows and commits the newest snapshot.

    Snapshot files keep their usual paths.
    """

    def latest(self) -> Snapshot | None:
        """Return the newest snapshot, None before the first commit."""

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return a snapshot whose file is missing, None if unknown."""

    def commit(self, snapshot: Snapshot, changed: Changed) -> bool:
        """Make ``snapshot`` the newest. Return False if its id exists.

        Raises ``CatalogRefused`` if the snapshot surely was not committed, another ``OSError`` if that is unknown.
        """


__all__ = ["Changed", "PartitionStatistics", "SnapshotCommit"]
