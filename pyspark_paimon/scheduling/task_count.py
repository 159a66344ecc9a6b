"""How many tasks a job of Spark is worth: by the bytes that it works on, bounded by the cores that there are."""

from __future__ import annotations

from fileindex.base.thresholds import thresholds

_MOST_PER_CORE = 4
"""More even out no better, and each holds a buffer and leaves files of its own."""


def task_count(size: int, cores: int) -> int:
    """Tasks for ``size`` bytes, at least one: first a core for each few megabytes, then several tasks a core, that they end together.

    >>> [task_count(size << 20, 8) for size in (0, 1, 20, 200, 1000, 1 << 20)]
    [1, 1, 3, 8, 16, 32]
    """
    cores = max(1, cores)
    return max(
        1, min(cores, -(-size // thresholds().idle_core_bytes)), min(cores * _MOST_PER_CORE, -(-size // thresholds().busy_core_bytes))
    )


__all__ = ["task_count"]
