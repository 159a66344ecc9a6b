"""Spark's daemon for Python tasks, with this package loaded.

Set ``spark.python.daemon.module=pyspark_paimon.spark.daemon`` when the server starts. Workers forked from the daemon import nothing.
Spark's own daemon would repeat all imports, because it ends workers after a minute without work. Planning and commits use other
processes, which ``pyspark_paimon.warm`` starts.
"""

from __future__ import annotations

from paimon_base.process import environment, freeze_heap, freeze_survivors


def preload() -> None:
    """Import the modules of tasks that read and write."""
    # No thread may run when a process forks: its locks would stay locked. NumPy and Arrow's jemalloc would start threads.
    with environment({"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}):
        import pyspark.worker  # noqa: F401, PLC0415  # the daemon's own process imports it here, before it forks

        from pyspark_paimon.spark.warm import READS, WRITES, load  # noqa: PLC0415  # as above

        load((*READS, *WRITES))
    # The garbage collector would write to shared pages, which copies them for each worker.
    freeze_heap()
    freeze_survivors()


def main() -> None:
    """Preload, then run Spark's daemon."""
    from pyspark.daemon import manager  # noqa: PLC0415  # Spark is imported when it is used

    preload()
    manager()


if __name__ == "__main__":
    main()
