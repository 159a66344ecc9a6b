"""Choice of a table's engine: local or Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from paimon_base.errors import InvalidArgument
from pyspark_paimon.jobs.progress import chosen
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.requests import Progress
from pyspark_paimon.typing import SparkSession


def engine_for(
    path: str | os.PathLike[str],
    spark: SparkSession | None,
    progress: Progress | bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Engine:
    """Return the engine for a path.

    spark: Session whose server does the work. None: this process.
    Raises ``InvalidArgument`` for ``storage_options`` that cannot be passed to the session's server.
    """
    if spark is not None:
        check_session(spark)
        from pyspark_paimon.spark.client.engine import SparkEngine  # noqa: PLC0415  # needs pyspark

        if storage_options is not None:
            from pyspark_paimon.spark.wire.session_storage import send_storage_options  # noqa: PLC0415  # as above

            send_storage_options(spark, storage_options, os.fspath(path))

        return SparkEngine(os.fspath(path), spark, progress=chosen(progress))
    from pyspark_paimon.system.opened import local_engine  # noqa: PLC0415  # loads the storage engine, which Spark clients do not need

    return local_engine(path, progress=chosen(progress), storage_options=storage_options)


def check_session(spark: object) -> None:
    """Raise ``InvalidArgument`` if the value is not a Spark session."""
    if not all(hasattr(spark, name) for name in ("range", "read", "conf")):
        raise InvalidArgument(f"spark must be a Spark session, classic or Connect, not {type(spark).__name__}; see spark_session()")
