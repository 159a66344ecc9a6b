"""Number of tasks of a Spark job."""

from __future__ import annotations

from fileindex.base.thresholds import thresholds

_MOST_PER_CORE = 4
"""More tasks would not balance better; each needs a buffer and writes separate files."""


def task_count(size: int, cores: int) -> int:
    """Return the number of tasks for ``size`` bytes.

    The result is at least 1. Small jobs use one core for each few megabytes. Large jobs have several tasks per core, so that
    all cores end at about the same time.

    >>> [task_count(size << 20, 8) for size in (0, 1, 20, 200, 1000, 1 << 20)]
    [1, 1, 3, 8, 16, 32]
    """
    cores = max(1, cores)
    return max(
        1, min(cores, -(-size // thresholds().idle_core_bytes)), min(cores * _MOST_PER_CORE, -(-size // thresholds().busy_core_bytes))
    )


__all__ = ["task_count"]
