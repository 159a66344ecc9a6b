"""CREATE TEMPORARY VIEW of a query with Paimon tables."""

from __future__ import annotations

from typing import Any

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.queries import placed
from pyspark_paimon.statements.words import Words


def create_view(names: KnownTables, words: Words) -> Any:
    """``VIEW v AS query``, behind the words that say of which kind; it reads the snapshots that are the newest now. None for all others."""
    said = words.text[: words.here].upper()
    exists = words.take("IF", "NOT", "EXISTS")
    name = words.name()
    if exists or not words.take("AS"):
        return None
    query, frames = placed(names, words.rest())
    if not frames:
        return None
    if "TEMP" not in said or len(name) > 1:
        raise InvalidArgument(
            f"CREATE VIEW {'.'.join(name)}: Spark keeps no view of Paimon tables; CREATE TEMPORARY VIEW is one of the session"
        )
    frame = names.spark.sql(query, **frames)
    (frame.createOrReplaceTempView if "REPLACE" in said else frame.createTempView)(name[0])
    return frame_of_result(names.spark, None)


__all__ = ["create_view"]
