"""Assignment of pieces of work to tasks, balanced by bytes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from fileindex.base.thresholds import thresholds


def balanced(sizes: Sequence[int], tasks: int) -> list[int]:
    """Return the task of each piece.

    Tasks are numbered from 0. The largest piece comes first, and each goes to the task with the fewest bytes. No task gets more
    than 4/3 of the optimum (Graham's bound).

    >>> balanced([700 << 20, 100 << 20, 400 << 20, 300 << 20], 2)
    [0, 0, 1, 1]
    """
    heap = [(0, task) for task in range(tasks)]
    assigned = [0] * len(sizes)
    for piece in sorted(range(len(sizes)), key=lambda at: -sizes[at]):
        load, task = heap[0]
        assigned[piece] = task
        heapq.heapreplace(heap, (load + max(sizes[piece], thresholds().piece_cost_bytes), task))
    return assigned


__all__ = ["balanced"]
