"""``pyspark_paimon.sql(spark, text)``: statements about Paimon tables are done here, all others by Spark."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fileindex.base.errors import InvalidArgument
from fileindex.base.public import public
from fileindex.base.time_zone import time_zone
from pyspark_paimon.spark.wire.session_settings import SETTINGS_PREFIX, check_setting
from pyspark_paimon.statements.alter import alter_table
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.change import delete, truncate, update
from pyspark_paimon.statements.create import create_table, drop_table, replace_table
from pyspark_paimon.statements.definition import show_columns, show_create_table
from pyspark_paimon.statements.insert import insert
from pyspark_paimon.statements.listings import create_database, drop_database, show_databases, show_tables, use
from pyspark_paimon.statements.merge_into import merge_into
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.procedures import call_procedure
from pyspark_paimon.statements.queries import placed, queried
from pyspark_paimon.statements.show import analyze, describe, describe_history, show_partitions, show_properties
from pyspark_paimon.statements.words import Words
from pyspark_paimon.table.catalog_base import AnyCatalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


WAYS = {
    "OPTIMIZE": "CALL sys.compact(table => '{name}')",
    "VACUUM": "CALL sys.expire_snapshots(table => '{name}', retain_max => 10), then CALL sys.remove_orphan_files(table => '{name}')",
    "RESTORE TABLE": "CALL sys.restore(table => '{name}', version => '3')",
    "RESTORE": "CALL sys.restore(table => '{name}', version => '3')",
    "DESCRIBE DETAIL": "DESCRIBE EXTENDED {name}, or SELECT * FROM {name}$files",
}
"""By first words: a statement of ours."""


def other_way(names: KnownTables, words: Words) -> None:
    """None for what is no table of ours, which Spark is asked about. Raises ``InvalidArgument`` with the way."""
    first = words.text[words.tokens[0].start : words.tokens[words.at - 1].end + 1].upper()
    name = words.name()
    if names.find(name) is not None:
        way = WAYS[" ".join(first.split())].format(name=".".join(name))
        raise InvalidArgument(f"{first} is no statement for Paimon tables; write {way}")


_SETTING = re.compile(rf"`?({re.escape(SETTINGS_PREFIX)}[^\s=`]+)`?\s*=\s*(.*)", re.DOTALL)


def set_value(names: KnownTables, words: Words) -> None:  # noqa: ARG001  # as all statements
    """``SET key = value``, which is Spark's. Raises ``UnsupportedOption`` for an option that no read or write could have."""
    match = _SETTING.fullmatch(words.rest().strip())
    if match is not None:
        check_setting(match[1], match[2].strip().strip("'\"`"))


VIEWS = ("", "TEMP ", "TEMPORARY ", "OR REPLACE ", "OR REPLACE TEMP ", "OR REPLACE TEMPORARY ")
DATABASES = ("DATABASE", "SCHEMA", "NAMESPACE")
STATEMENTS: dict[str, Callable[[KnownTables, Words], Any]] = {
    "MERGE INTO": merge_into,
    "UPDATE": update,
    "DELETE FROM": delete,
    "TRUNCATE TABLE": truncate,
    "INSERT": insert,
    "CREATE TABLE": create_table,
    "CREATE OR REPLACE TABLE": replace_table,
    "REPLACE TABLE": replace_table,
    "DROP TABLE": drop_table,
    **{f"CREATE {kind}VIEW": create_view for kind in VIEWS},
    "ALTER TABLE": alter_table,
    "CALL": call_procedure,
    "SHOW PARTITIONS": show_partitions,
    "SHOW TABLES": show_tables,
    "SHOW CREATE TABLE": show_create_table,
    "SHOW COLUMNS": show_columns,
    **{f"SHOW {kind}S": show_databases for kind in DATABASES},
    **{f"CREATE {kind}": create_database for kind in DATABASES},
    **{f"DROP {kind}": drop_database for kind in DATABASES},
    "USE": use,
    "SHOW TBLPROPERTIES": show_properties,
    "SET": set_value,
    **dict.fromkeys(WAYS, other_way),
    "DESCRIBE HISTORY": describe_history,
    "DESC HISTORY": describe_history,
    "DESCRIBE": describe,
    "DESC": describe,
    "ANALYZE TABLE": analyze,
}
"""What does a statement, by its first words; it answers None where the statement is about nothing of ours."""

AFTER_QUERIES = ("INSERT", "MERGE INTO")
"""Statements that WITH and its queries may stand before."""


@public
def sql(spark: SparkSession, text: str, *, catalog: AnyCatalog | None = None) -> DataFrame:
    """Run a statement, as ``spark.sql`` does, with all that Spark does not hand to a Python source; a DataFrame of what it answers.

    Tables are a path, paimon.`/warehouse/db.db/t`, a table of ``catalog`` (``db.t``), or a name of Spark's for a Paimon table. MERGE INTO,
    UPDATE, DELETE, TRUNCATE, INSERT, CREATE TABLE (with keys, or AS a query), ALTER, DROP, CALL sys.compact(...) and Paimon's other
    procedures, SHOW PARTITIONS, DESCRIBE HISTORY and ANALYZE, and what lists or makes databases, are done by ``Table`` and ``Catalog``. In queries tables may stand as of a
    version or a time, and system tables (t$files). Every other text is Spark's.

    Raises ``InvalidArgument`` with the place of a word that is wrong, ``TableNotFound``, what the methods of ``Table`` raise, and what
    ``spark.sql`` raises.

    >>> sql(spark, "CALL sys.create_tag(table => 'sales.orders', tag => 'v1')", catalog=Catalog("/warehouse")).show()  # doctest: +SKIP
    """
    try:
        words = Words(text)
    except InvalidArgument:  # Spark says better what is wrong with it
        return spark.sql(text)
    common = _common(words)
    names = KnownTables(spark, catalog, common)
    for first, run in STATEMENTS.items():
        if (not common or first in AFTER_QUERIES) and words.take(*first.split()):
            with time_zone(lambda: str(spark.conf.get("spark.sql.session.timeZone"))):
                done = run(names, words)
            return queried(KnownTables(spark, catalog), text) if done is None else done
    return queried(KnownTables(spark, catalog), text)


def _common(words: Words) -> str:
    """The ``WITH a AS (query), ...`` before a statement, which is passed."""
    if words.word() != "WITH":
        return ""
    words.until({"SELECT", "FROM", "VALUES", "TABLE", *(first.split()[0] for first in AFTER_QUERIES)})
    return words.text[: words.here]


__all__ = ["STATEMENTS", "WAYS", "create_view", "other_way", "set_value", "sql"]
