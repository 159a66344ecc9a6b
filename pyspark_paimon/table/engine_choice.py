"""Choice of a table's engine: local or Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manifest.storage.schemes import scheme_of
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

        path = _server_path(os.fspath(path), spark)
        if storage_options is not None:
            from pyspark_paimon.spark.wire.session_storage import send_storage_options  # noqa: PLC0415  # as above

            send_storage_options(spark, storage_options, path)
        return SparkEngine(path, spark, progress=chosen(progress))
    from pyspark_paimon.system.opened import local_engine  # noqa: PLC0415  # loads the storage engine, which Spark clients do not need

    return local_engine(path, progress=chosen(progress), storage_options=storage_options)


def _server_path(path: str, spark: SparkSession) -> str:
    """Return ``path``, absolute if this process started the server. Other servers refuse relative paths."""
    from pyspark_paimon.spark.wire.session_storage import is_connect  # noqa: PLC0415  # as above

    is_ours = not is_connect(spark) or "SPARK_LOCAL_REMOTE" in os.environ  # Spark sets it where it starts a server
    return str(Path(path).absolute()) if is_ours and path and scheme_of(path) is None else path


def check_session(spark: object) -> None:
    """Raise ``InvalidArgument`` if the value is not a Spark session."""
    if not all(hasattr(spark, name) for name in ("range", "read", "conf")):
        raise InvalidArgument(f"spark must be a Spark session, classic or Connect, not {type(spark).__name__}; see spark_session()")
