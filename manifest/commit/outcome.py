"""How an attempt at a commit ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Committed:
    """The snapshot exists."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class NothingToCommit:
    """The change is empty on the newest snapshot."""


@dataclass(frozen=True, slots=True)
class LostRace:
    """Another commit was faster; surely nothing was committed."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The storage or the catalog refused; surely nothing was committed, and the call fails with ``error``."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Unknown:
    """The storage did not answer: the snapshot may exist, or come to exist."""


AttemptOutcome = Committed | NothingToCommit | LostRace | Refused | Unknown


__all__ = ["AttemptOutcome", "Committed", "LostRace", "NothingToCommit", "Refused", "Unknown"]
