"""Which cases of a test are tried in the quick run, where there are many."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet


def sample(cases: Sequence[AbstractSet[Hashable]], each: int) -> list[int]:
    """Return the numbers of one case in ``each``, given what each case has.

    Each n-th case, or a later one with more that no chosen case has.

    >>> sample([{"a"}, {"b"}, {"c"}, {"d"}, {"e"}], 2)
    [0, 2, 4]
    >>> sample([{"a", 1}, {"a", 2}, {"b", 1}, {"b", 2}], 2)
    [0, 3]
    """
    chosen: list[int] = []
    seen: set[Hashable] = set()
    for at in range(0, len(cases), each):
        waiting = [number for number in (*range(at, len(cases)), *range(at)) if number not in chosen]
        best = max(waiting, key=lambda number: len(cases[number] - seen))
        chosen.append(best)
        seen |= cases[best]
    return chosen


__all__ = ["sample"]
