"""Compactions and index rewrites as Spark jobs, seen from the client: staged, run, and run again for what lost a race."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from manifest.io.errors import CommitConflict, CommitGaveUp
from pyspark_paimon.spark.client.staging import Staged
from pyspark_paimon.spark.wire.rpc import Outcome

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs jobs on the table at ``path``: ``run`` gives a job's outcome or raises, ``outcome`` asks for that of a commit id."""

    path: str
    run: Callable[[Staged, str], Outcome | None]
    outcome: Callable[[str], Outcome | None]

    def until_nothing_is_lost(self, commit_id: str, stage: Callable[[str], Staged | None]) -> tuple[list[Outcome], int]:
        """The outcomes of all runs that committed something, and the number of runs.

        ``stage`` makes the job of a commit id, None if there is nothing to do. Raises ``CommitGaveUp``.
        """
        outcomes: list[Outcome] = []
        for attempt in range(1, _ATTEMPTS + 1):
            this = commit_id if attempt == 1 else str(uuid.uuid4())
            job = stage(this)
            lost: CommitConflict | None = None
            try:
                done = None if job is None else self.run(job, this)
            except CommitConflict as error:
                lost, done = error, self.outcome(this)
            outcomes += [done] if done is not None else []
            if lost is None:
                return outcomes, attempt
        raise CommitGaveUp(f"{self.path}: {_ATTEMPTS} jobs in a row lost to other commits; try again later") from lost


__all__ = ["Runner"]
