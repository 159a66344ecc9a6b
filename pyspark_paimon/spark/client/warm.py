"""``warm``: start the server's Python processes before the first question."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from fileindex.base.public import public
from pyspark_paimon.spark.client.estimate import cores
from pyspark_paimon.spark.wire.errors import raise_typed_errors
from pyspark_paimon.spark.wire.names import UNIQUE_NAME, WARM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@public
def warm(spark: SparkSession) -> float:
    """Start the session's Python processes; return the seconds used.

    Starts the processes that plan, read, write and commit, and one process per core for tasks.
    Each session has separate processes: one session per client is cheaper than many.
    Task processes end after a minute without work, unless the server preloads them (``spark.python.daemon.module``). The others stay.

    Raises ``SourceMissing`` if the server lacks the package.

    >>> pyspark_paimon.warm(spark)  # doctest: +SKIP
    4.2
    """
    started = time.perf_counter()
    tasks = cores(spark)
    options = {"path": "/", WARM: str(tasks)}

    def read(session: Any) -> None:
        session.read.format(UNIQUE_NAME).options(**options).load().collect()

    def write(session: Any) -> None:
        session.range(0, tasks, 1, tasks).write.format(UNIQUE_NAME).mode("append").options(**options).save()

    with raise_typed_errors(), ThreadPoolExecutor(2) as both:
        for job in [both.submit(work, spark) for work in (read, write)]:
            job.result()
    return round(time.perf_counter() - started, 3)


__all__ = ["warm"]
