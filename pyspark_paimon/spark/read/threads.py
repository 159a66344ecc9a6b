"""Thread limits of libraries inside a Spark task."""

from __future__ import annotations

from pyspark import TaskContext

from paimon_base.process import limit_threads


def use_task_cpus() -> int:
    """Limit Arrow and polars to this task's CPUs, and return their number.

    Outside a task the limit is 1.
    polars reads the limit only once, when it is imported.
    """
    context = TaskContext.get()
    cpus = max(1, context.cpus() if context is not None else 1)
    limit_threads(cpus)
    return cpus
