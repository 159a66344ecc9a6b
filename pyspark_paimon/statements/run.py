"""``pyspark_paimon.sql(spark, text)``: statements about Paimon tables are done here, all others by Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fileindex.base.errors import InvalidArgument
from fileindex.base.public import public
from fileindex.base.time_zone import time_zone
from pyspark_paimon.statements.alter import alter_table
from pyspark_paimon.statements.change import delete, truncate, update
from pyspark_paimon.statements.create import create_table, drop_table, replace_table
from pyspark_paimon.statements.definition import show_columns, show_create_table
from pyspark_paimon.statements.insert import insert
from pyspark_paimon.statements.listings import create_database, drop_database, show_databases, show_tables, use
from pyspark_paimon.statements.merge_into import merge_into
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.procedures import call_procedure
from pyspark_paimon.statements.queries import queried
from pyspark_paimon.statements.settings import set_value
from pyspark_paimon.statements.show import analyze, describe, describe_history, show_partitions, show_properties
from pyspark_paimon.statements.view import create_view
from pyspark_paimon.statements.ways import WAYS, other_way
from pyspark_paimon.statements.words import Words
from pyspark_paimon.table.catalog_base import AnyCatalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


__all__ = ["STATEMENTS", "sql"]
