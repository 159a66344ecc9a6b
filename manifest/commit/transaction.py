"""The retry loop of optimistic operations: evaluate, publish, undo.

``Work`` is what a round produces and publishes: commit messages, or the staged jobs of a Spark client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from manifest.io.errors import CommitConflict

if TYPE_CHECKING:
    from manifest.commit.conflicts import BucketId


EVALUATIONS = 20
"""Maximal rounds of an operation."""
Work = TypeVar("Work")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Round(Generic[Work]):
    """One evaluation of an operation."""

    number: int
    """Counted from 1."""
    buckets: frozenset[BucketId] | None = None
    """Buckets whose compaction was lost in the previous round. None: all."""
    work: list[Work] = field(default_factory=list)
    """Filled by the evaluation. Undone if the round fails."""


def _ignore(_: object) -> None:
    """Default of ``undo``: nothing to delete."""


class Transaction(Generic[Work]):
    """One operation, repeated until no other commit interferes."""

    def __init__(self, undo: Callable[[Sequence[Work]], object] = _ignore) -> None:
        """``undo`` deletes unpublished work, as ``FileStoreCommit.abort`` does."""
        self._undo = undo
        self.rounds = 0
        """Evaluations so far."""
        self.work: Sequence[Work] = ()
        """Work of the last round."""

    def run(
        self,
        evaluate: Callable[[Round[Work]], object],
        publish: Callable[[list[Work]], Result],
        *,
        rework: Callable[[Sequence[Work]], Sequence[Work]] | None = None,
        lost: Sequence[Work] | None = None,
        redo: Callable[[Result], Collection[BucketId]] | None = None,
        evaluations: int = EVALUATIONS,
    ) -> Result:
        """Return the result of the last ``publish``.

        An error undoes the round and is raised.

        Args:
            evaluate: Adds work to ``Round.work``, computed from the newest state.
            publish: Commits the work. A ``CommitConflict`` starts another round.
            rework: Makes new messages from the files of lost ones. None: undo these and run ``evaluate`` again.
            lost: Messages to rework in the first round. None: the first round evaluates.
            redo: Returns the buckets of a result whose compaction was lost. Another round repeats these. A conflict is then an error.
            evaluations: Maximal rounds. The last one's conflict is raised, and its result returned even with lost compactions.
        """
        buckets: frozenset[BucketId] | None = None
        while True:
            self.rounds += 1
            last = self.rounds >= evaluations
            current: Round[Work] = Round(self.rounds, buckets)
            self.work = current.work
            try:
                if rework is not None and lost is not None:
                    current.work.extend(rework(lost))
                    self._undo(lost)  # only now: ``rework`` reads their files
                    lost = None
                else:
                    evaluate(current)
                try:
                    result = publish(current.work)
                except CommitConflict:
                    if last or redo is not None:
                        raise
                    if rework is None:
                        self._undo(current.work)
                    else:
                        lost = current.work
                    continue
            except BaseException:
                self._undo([*(lost or ()), *current.work])
                raise
            buckets = frozenset() if redo is None else frozenset(redo(result))
            if last or not buckets:
                return result


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
