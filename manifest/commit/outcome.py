"""Outcomes of an attempt at a commit."""

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
    """Another commit was faster. Nothing was committed."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The storage or the catalog refused.

    Nothing was committed. The call fails with ``error``.
    """

    error: Exception


@dataclass(frozen=True, slots=True)
class Unknown:
    """The storage did not answer.

    The snapshot may exist or appear later.
    """


AttemptOutcome = Committed | NothingToCommit | LostRace | Refused | Unknown


__all__ = ["AttemptOutcome", "Committed", "LostRace", "NothingToCommit", "Refused", "Unknown"]
