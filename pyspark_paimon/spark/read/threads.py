"""How many threads the libraries may use inside a Spark task."""

from __future__ import annotations

import os

import pyarrow as pa
from pyspark import TaskContext


def use_task_cpus() -> int:
    """Have Arrow and polars use the processors of this task, one outside of a task, and their number; polars asks once, when it is loaded."""
    context = TaskContext.get()
    cpus = max(1, context.cpus() if context is not None else 1)
    pa.set_cpu_count(cpus)
    os.environ["POLARS_MAX_THREADS"] = str(cpus)
    return cpus


__all__ = ["use_task_cpus"]
