"""Facts about this package on a session's server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import SourceMissing, raise_typed_errors
from pyspark_paimon.spark.wire.names import UNIQUE_NAME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_paimon.spark.wire.server_info import ServerFacts


def server_of(spark: SparkSession) -> ServerFacts | None:
    """Return the server's facts about this package.

    None: the server does not know the data source.
    """
    question = rpc.AskServer()
    options = {"path": "/", rpc.QUESTION: question.to_text()}
    try:
        with raise_typed_errors():
            return question.answer_of(rpc.answer_of(spark.read.format(UNIQUE_NAME).options(**options).load().schema))
    except SourceMissing:
        return None


__all__ = ["server_of"]
