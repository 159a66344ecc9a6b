"""Write job of one process."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fileindex.predicate.tree import Predicate
    from lsm.bucket.dynamic import Owners


@dataclass(frozen=True, slots=True)
class WriteJob:
    """The part of a commit that one process writes."""

    commit_id: str | None = None
    """Prefix of all file names, so that an abort finds the files of a commit."""
    threads: int = 2
    """Number of buckets flushed and compacted in parallel."""
    write_only: bool | None = None
    """True: do not compact after a flush. None: as the table's option says."""
    base_snapshot_id: int | None = None
    """Snapshot to build on. All writers of one commit agree on it. 0: an empty table. None: the newest."""
    buckets: Collection[int] | None = None
    """Buckets to write. Files of others are not read. None: all."""
    overwrites: bool = False
    """Write as if the buckets were empty."""
    replaces: Predicate | None = None
    """Partitions that an overwrite replaces, besides those of its rows. No key may live in another one. None: all."""
    first_sequence: int | None = None
    """First sequence number in every bucket, for writers that share buckets. None: above the bucket's rows."""
    owners: Owners | None = None
    """Dynamic buckets that this writer may add keys to. None: all."""
    finds_keys: bool = True
    """Look up keys that cross partitions. False: the committer assigns partitions (``lsm.commit.rebucket``)."""


__all__ = ["WriteJob"]
