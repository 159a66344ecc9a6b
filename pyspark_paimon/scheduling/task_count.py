"""How many tasks a job of Spark is worth: by the bytes that it works on, bounded by the cores that there are."""

from __future__ import annotations

_IDLE_BYTES = 8 << 20
"""What a task should have to do while cores are idle: about what it sorts and encodes in the time that Spark needs to start one."""
_BUSY_BYTES = 64 << 20
"""What a task should have to do where all cores are busy."""
_MOST_PER_CORE = 4
"""More even out no better, and each holds a buffer and leaves files of its own."""


def task_count(size: int, cores: int) -> int:
    """Tasks for ``size`` bytes, at least one: first a core for each few megabytes, then several tasks a core, that they end together.

    >>> [task_count(size << 20, 8) for size in (0, 1, 20, 200, 1000, 1 << 20)]
    [1, 1, 3, 8, 16, 32]
    """
    cores = max(1, cores)
    return max(1, min(cores, -(-size // _IDLE_BYTES)), min(cores * _MOST_PER_CORE, -(-size // _BUSY_BYTES)))


__all__ = ["task_count"]
