"""Which cases of a parametrized test run in the fast tier: a few each time, and others with the next commit."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rotated(number_of_cases: int, rotation: int, limit: int) -> list[int]:
    """Choose at most ``limit`` cases, spread over all of them.

    As many rotations in a row as there are cases, divided by ``limit``, choose each case once.

    >>> [rotated(10, rotation, 4) for rotation in range(3)]
    [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    """
    stride = -(-number_of_cases // limit)
    return list(range(rotation % stride, number_of_cases, stride)) if number_of_cases else []


def cases_by_function(node_ids: Sequence[str]) -> dict[str, list[int]]:
    """Return the positions of each test function's cases.

    >>> cases_by_function(["a.py::f[1]", "a.py::g", "a.py::f[2]"])
    {'a.py::f': [0, 2], 'a.py::g': [1]}
    """
    cases: defaultdict[str, list[int]] = defaultdict(list)
    for position, node_id in enumerate(node_ids):
        cases[node_id.partition("[")[0]].append(position)
    return dict(cases)


def rotation_of_commit() -> int:
    """Count the commits before this one: 0 outside a repository, and in clones without history always the same."""
    counting = ("git", "rev-list", "--count", "HEAD")
    try:
        counted = subprocess.run(counting, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(counted.stdout)
