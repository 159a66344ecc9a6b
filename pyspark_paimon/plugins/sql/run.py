"""Dispatch of SQL statements: ``pyspark_paimon.sql(spark, text)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from paimon_base.errors import InvalidArgument
from paimon_base.public import public
from pyspark_paimon.catalog.catalog_base import AnyCatalog
from pyspark_paimon.plugins.sql.alter import alter_table, comment, delete, truncate, update
from pyspark_paimon.plugins.sql.copy_into import copy_into
from pyspark_paimon.plugins.sql.create import create_table, drop_table, replace_table
from pyspark_paimon.plugins.sql.insert import insert
from pyspark_paimon.plugins.sql.merge_into import merge_into
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.new_table import show_columns, show_create_table
from pyspark_paimon.plugins.sql.procedures import call_procedure
from pyspark_paimon.plugins.sql.queries import run_query
from pyspark_paimon.plugins.sql.show import (
    analyze,
    create_database,
    describe,
    describe_history,
    drop_database,
    refresh,
    show_databases,
    show_partitions,
    show_procedures,
    show_properties,
    show_table_extended,
    show_tables,
    use,
)
from pyspark_paimon.plugins.sql.table_functions import replace_max_pt
from pyspark_paimon.plugins.sql.tags import show_tags
from pyspark_paimon.plugins.sql.text.parameters import Parameters, with_parameters
from pyspark_paimon.plugins.sql.text.words import TokenCursor, WrittenValue
from pyspark_paimon.plugins.sql.views import alter_view, cache_table, create_view, drop_view, show_views
from pyspark_paimon.spark.wire.session_settings import SETTINGS_PREFIX, check_setting
from sparkexpr.values.time_zone import time_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


UNSUPPORTED_STATEMENTS = {
    "OPTIMIZE": "CALL sys.compact(table => '{name}')",
    "VACUUM": "CALL sys.expire_snapshots(table => '{name}', retain_max => 10), then CALL sys.remove_orphan_files(table => '{name}')",
    "RESTORE TABLE": "CALL sys.restore(table => '{name}', version => '3')",
    "RESTORE": "CALL sys.restore(table => '{name}', version => '3')",
    "DESCRIBE DETAIL": "DESCRIBE EXTENDED {name}, or SELECT * FROM {name}$files",
}
"""The statement to write instead, by the first words of statements of other formats."""


def raise_unsupported(names: KnownTables, words: TokenCursor) -> None:
    """Raise ``InvalidArgument`` with the statement to write instead.

    None for a table that is not Paimon's: Spark runs the statement.
    """
    first = words.text[words.tokens[0].start : words.tokens[words.at - 1].end + 1].upper()
    name = words.name()
    if names.find(name) is not None:
        instead = UNSUPPORTED_STATEMENTS[" ".join(first.split())].format(name=".".join(name))
        raise InvalidArgument(f"{first} is not supported for Paimon tables; write {instead}")


_SETTING = re.compile(rf"`?({re.escape(SETTINGS_PREFIX)}[^\s=`]+)`?\s*=\s*(.*)", re.DOTALL)


def set_value(names: KnownTables, words: TokenCursor) -> Any:
    """Check the value of a Paimon setting in SET.

    Spark runs ``SET `key` = value``; here the key needs no quotes.

    Raises ``UnsupportedOption`` for an option that neither reads nor writes accept.
    """
    match = _SETTING.fullmatch(words.rest().strip())
    if match is None:
        return None
    value = match[2].strip().strip("'\"`")
    check_setting(match[1], value)
    return names.spark.sql(f"SET `{match[1]}`={value}")


def reset_value(names: KnownTables, words: TokenCursor) -> Any:
    """Run RESET for a Paimon setting, whose key needs no quotes; None for others."""
    key = words.rest().strip().strip("`")
    return names.spark.sql(f"RESET `{key}`") if key.startswith(SETTINGS_PREFIX) else None


def execute_immediate(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``EXECUTE IMMEDIATE 'statement' [USING value [AS name], ...]``.

    None if it has variables of the session, which only Spark knows.
    """
    if words.done or words.tokens[words.at].kind is not TokenType.STRING:
        return None
    statement = str(words.literal())
    values, named = list[WrittenValue](), dict[str, WrittenValue]()
    if words.take("USING"):
        is_list = words.take("(")
        while True:
            if words.at < len(words.tokens) and words.tokens[words.at].kind in {TokenType.VAR, TokenType.IDENTIFIER}:
                return None
            value = words.literal()
            if words.take("AS"):
                named[words.part()] = value
            else:
                values.append(value)
            if not words.take(","):
                break
        if is_list:
            words.expect(")")
    if words.at < len(words.tokens) or (named and values):
        return None
    return sql(names.spark, statement, named or values or None, catalog=names.catalog)


VIEWS = ("", "TEMP ", "TEMPORARY ", "OR REPLACE ", "OR REPLACE TEMP ", "OR REPLACE TEMPORARY ")
DATABASES = ("DATABASE", "SCHEMA", "NAMESPACE")
STATEMENTS: dict[str, Callable[[KnownTables, TokenCursor], Any]] = {
    "MERGE INTO": merge_into,
    "MERGE WITH SCHEMA EVOLUTION INTO": partial(merge_into, schema_mode="merge"),
    "UPDATE": update,
    "DELETE FROM": delete,
    "TRUNCATE TABLE": truncate,
    "INSERT": insert,
    "CREATE TABLE": create_table,
    "CREATE OR REPLACE TABLE": replace_table,
    "REPLACE TABLE": replace_table,
    "DROP TABLE": drop_table,
    **{f"CREATE {kind}VIEW": create_view for kind in VIEWS},
    "DROP VIEW": drop_view,
    "ALTER VIEW": alter_view,
    "SHOW VIEWS": show_views,
    "ALTER TABLE": alter_table,
    "CALL": call_procedure,
    "COPY INTO": copy_into,
    "COMMENT ON": comment,
    "SHOW PARTITIONS": show_partitions,
    "SHOW TAGS": show_tags,
    "SHOW PROCEDURES": show_procedures,
    "CACHE": cache_table,
    "EXECUTE IMMEDIATE": execute_immediate,
    "SHOW TABLES": show_tables,
    "SHOW TABLE EXTENDED": show_table_extended,
    "REFRESH TABLE": refresh,
    "SHOW CREATE TABLE": show_create_table,
    "SHOW COLUMNS": show_columns,
    **{f"SHOW {kind}S": show_databases for kind in DATABASES},
    **{f"CREATE {kind}": create_database for kind in DATABASES},
    **{f"DROP {kind}": drop_database for kind in DATABASES},
    "USE": use,
    "SHOW TBLPROPERTIES": show_properties,
    "SET": set_value,
    "RESET": reset_value,
    **dict.fromkeys(UNSUPPORTED_STATEMENTS, raise_unsupported),
    "DESCRIBE HISTORY": describe_history,
    "DESC HISTORY": describe_history,
    "DESCRIBE": describe,
    "DESC": describe,
    "ANALYZE TABLE": analyze,
}
"""Handlers by the first words of a statement. A handler returns None to leave the statement to Spark."""

_RAW_TEXTS = "spark.sql.parser.escapedStringLiterals"
"""Setting of Spark that makes backslashes plain characters."""
AFTER_QUERIES = ("INSERT", "MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO")
"""Statements that may follow a WITH clause."""


@public
def sql(spark: SparkSession, text: str, args: Parameters | None = None, *, catalog: AnyCatalog | None = None) -> DataFrame:
    """Run a SQL statement on Paimon tables.

    A table is a path (paimon.`/warehouse/db.db/t`), a table of ``catalog`` (``db.t``), or a name of Spark's catalog for a
    Paimon table.

    This function runs the statements that Spark does not pass to Python data sources:

    - MERGE [WITH SCHEMA EVOLUTION] INTO, UPDATE, DELETE, TRUNCATE, INSERT
    - CREATE TABLE (with keys, or AS a query), ALTER TABLE, DROP TABLE, and the statements on databases
    - CREATE VIEW, ALTER VIEW, DROP VIEW and SHOW VIEWS, in a catalog that has views
    - CALL sys.compact(...) and Paimon's other procedures
    - SHOW PARTITIONS, DESCRIBE HISTORY, ANALYZE TABLE

    Queries may read views of the catalog, system tables (t$files), and tables as of a version or a time. Spark runs all other statements.

    Args:
        spark: Session that runs queries. Session and text may be turned round.
        text: One statement.
        args: Values of ``:name`` by name, or of ``?`` by position: ``{"day": date(2026, 1, 31)}``.
        catalog: Catalog whose tables may be named as ``db.t``.

    Raises:
        InvalidArgument: The statement has a syntax error. The text shows its position. Or a parameter has no value in ``args``.
        TableNotFound: A statement that needs a Paimon table names another one.
        PaimonError: Any error of the methods of ``Table`` and ``Catalog``. Spark's own errors are not changed.

    >>> sql(spark, "CALL sys.create_tag(table => 'sales.orders', tag => 'v1')", catalog=Catalog("/warehouse")).show()  # doctest: +SKIP
    """
    session: Any = spark
    statement: Any = text
    if isinstance(session, str):
        session, statement = statement, session
    if not isinstance(statement, str) or session is None or isinstance(session, str):
        raise InvalidArgument(
            f"sql needs a Spark session and a statement, sql(spark, 'SELECT ...'), not {spark!r:.60} and {text!r:.60}; see spark_session()"
        )
    spark, text = session, statement
    if args is not None:
        text = with_parameters(text, args, lambda: str(spark.conf.get(_RAW_TEXTS, "false")).lower() != "true")
    text = replace_max_pt(KnownTables(spark, catalog), text)
    try:
        words = TokenCursor(text)
    except InvalidArgument:  # the text has no tokens we can read: Spark's error explains it better
        return spark.sql(text)
    common = _common(words)
    names = KnownTables(spark, catalog, common)
    for first, run in STATEMENTS.items():
        if (not common or first in AFTER_QUERIES) and words.take(*first.split()):
            with time_zone(lambda: str(spark.conf.get("spark.sql.session.timeZone"))):
                result = run(names, words)
            return run_query(KnownTables(spark, catalog), text) if result is None else result
    return run_query(KnownTables(spark, catalog), text)


def _common(words: TokenCursor) -> str:
    """Consume a WITH clause and return its text."""
    if words.peek() != "WITH":
        return ""
    words.until({"SELECT", "FROM", "VALUES", "TABLE", *(first.split()[0] for first in AFTER_QUERIES)})
    return words.text[: words.here]
