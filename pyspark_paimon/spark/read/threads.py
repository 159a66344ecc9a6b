"""How many threads the libraries may use inside a Spark task."""

from __future__ import annotations

from pyspark import TaskContext

from fileindex.base.process import limit_threads


def use_task_cpus() -> int:
    """Have Arrow and polars use the processors of this task, one outside of a task, and their number; polars asks once, when it is loaded."""
    context = TaskContext.get()
    cpus = max(1, context.cpus() if context is not None else 1)
    limit_threads(cpus)
    return cpus


__all__ = ["use_task_cpus"]
