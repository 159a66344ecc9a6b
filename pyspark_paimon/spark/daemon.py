"""Spark's daemon for Python tasks with this package loaded: a worker that is forked from it imports nothing.

For servers that serve Paimon tables above all: ``spark.python.daemon.module=pyspark_paimon.spark.daemon`` when they start. Workers end
after a minute without work, so that tasks pay for imports again and again. Spark takes its own daemon for what plans and commits
(``pyspark_paimon.warm`` starts those).

No thread may run when a process forks but such as see to that themselves, as jemalloc's does: nothing is loaded that starts others.
"""

from __future__ import annotations

from fileindex.base.process import environment, freeze_heap


def preload() -> None:
    """Import what tasks that read and write use, and have the collector of garbage leave it alone, so that its pages stay shared."""
    # NumPy would start threads when it is imported.
    with environment({"OPENBLAS_NUM_THREADS": "1"}):
        import pyspark.worker  # noqa: F401, PLC0415  # the daemon's own process imports it here, before it forks

        from pyspark_paimon.spark.warm import READS, WRITES, load  # noqa: PLC0415  # as above

        load((*READS, *WRITES))
    freeze_heap()


def main() -> None:
    """Load, then do as Spark's daemon does."""
    from pyspark.daemon import manager  # noqa: PLC0415  # Spark is imported when it is used

    preload()
    manager()


if __name__ == "__main__":
    main()

__all__ = ["main", "preload"]
