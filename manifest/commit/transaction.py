"""The one loop of optimistic commits: evaluate, publish, undo after a conflict.

``Work`` is what a round makes and publishes: commit messages, or the staged jobs of a Spark client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from manifest.io.errors import CommitConflict

if TYPE_CHECKING:
    from manifest.commit.conflicts import BucketId

EVALUATIONS = 20
"""How often an operation is evaluated before it gives up."""
Work = TypeVar("Work")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Round(Generic[Work]):
    """One evaluation of an operation."""

    number: int
    """Counted from 1."""
    buckets: frozenset[BucketId] | None = None
    """Buckets whose compaction lost the round before. None: all."""
    work: list[Work] = field(default_factory=list)
    """Filled by the evaluation. It is undone if the round fails."""


def _ignore(_: object) -> None:
    """Nothing is to be undone."""


class Transaction(Generic[Work]):
    """One operation, in rounds until no other commit interferes."""

    def __init__(self, undo: Callable[[Sequence[Work]], object] = _ignore) -> None:
        """``undo`` deletes work that surely is not visible, such as ``FileStoreCommit.abort``."""
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
        """Return what the last ``publish`` returned. An error undoes the round and is raised.

        Args:
            evaluate: Adds messages, computed from the newest state, to ``Round.work``.
            publish: Commits them. After a ``CommitConflict`` there is another round.
            rework: Makes new messages from the files of those that lost. None: these are undone, then ``evaluate`` runs again.
            lost: Messages to rework in the first round. None: the first round evaluates.
            redo: Returns the buckets of a result whose compaction lost; another round does these again. Lost races show up there alone, so a
                conflict is an error.
            evaluations: Most rounds. The last one's conflict is raised, and its result returned whatever it lost.
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


__all__ = ["EVALUATIONS", "Round", "Transaction"]
