"""Statements on databases, and SHOW TABLES.

Without a catalog, Spark runs them.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.answers import frame_of_result, frame_of_rows
from pyspark_paimon.statements.names import SOURCES, KnownTables
from pyspark_paimon.statements.words import TokenCursor

_DEFAULT = "default"


def show_tables(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW TABLES; None for a database of Spark's catalog.

    Syntax: ``SHOW TABLES [IN | FROM db] [[LIKE] 'pattern']``.
    Without a database, the result has the catalog's tables of ``default`` and those that Spark lists.
    """
    database = _database(words) if words.take("IN") or words.take("FROM") else None
    pattern = _pattern(words)
    if names.catalog is None or (database is not None and database not in names.catalog.list_databases()):
        return None
    known = _DEFAULT if database is None else database
    tables = names.catalog.list_tables(known) if known in names.catalog.list_databases() else []
    rows = [(known, name, False) for name in tables if pattern.fullmatch(name)]
    if database is None:
        rows += [tuple(row) for row in names.spark.sql(words.text).collect()]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, (pa.string(), pa.string(), pa.bool_()), strict=True)]
    return frame_of_rows(names.spark, pa.table(arrays, ["namespace", "tableName", "isTemporary"]))


def show_databases(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW DATABASES for the catalog and Spark.

    Syntax: ``SHOW DATABASES | SCHEMAS | NAMESPACES [[LIKE] 'pattern']``.
    """
    if names.catalog is None or words.peek() in {"IN", "FROM"}:
        return None
    pattern = _pattern(words)
    ours = {name for name in names.catalog.list_databases() if pattern.fullmatch(name)}
    found = sorted(ours | {row[0] for row in names.spark.sql(words.text).collect()})
    return frame_of_rows(names.spark, pa.table({"namespace": pa.array(found, pa.string())}))


def create_database(names: KnownTables, words: TokenCursor) -> Any:
    """Run CREATE DATABASE in the catalog; None without a catalog.

    Syntax: ``CREATE DATABASE | SCHEMA | NAMESPACE [IF NOT EXISTS] db``.
    """
    if names.catalog is None:
        return None
    quiet = words.take("IF", "NOT", "EXISTS")
    name = _database(words)
    words.end()
    names.catalog.create_database(name, ignore_if_exists=quiet)
    return frame_of_result(names.spark, None)


def drop_database(names: KnownTables, words: TokenCursor) -> Any:
    """Run DROP DATABASE; None if the catalog lacks it.

    Syntax: ``DROP DATABASE | SCHEMA | NAMESPACE [IF EXISTS] db [RESTRICT]``.
    """
    words.take("IF", "EXISTS")
    name = _database(words)
    if names.catalog is None or name not in names.catalog.list_databases():
        return None
    if words.take("CASCADE"):
        raise InvalidArgument(f"DROP DATABASE {name} CASCADE is not supported: drop each table with DROP TABLE {name}.t, then the database")
    words.take("RESTRICT")
    words.end()
    names.catalog.drop_database(name)
    return frame_of_result(names.spark, None)


def use(names: KnownTables, words: TokenCursor) -> Any:
    """Return None for ``USE db``, which Spark runs.

    Raises ``InvalidArgument`` for a database of the catalog: its tables must be named with their database.
    """
    words.take("DATABASE") or words.take("SCHEMA") or words.take("NAMESPACE")
    name = _database(words)
    if names.catalog is not None and name in names.catalog.list_databases() and not names.spark.catalog.databaseExists(name):
        raise InvalidArgument(f"USE {name}: name tables of the catalog with their database, {name}.t")


def _database(words: TokenCursor) -> str:
    name = words.name()
    return ".".join(name[1:] if len(name) > 1 and name[0].lower() in SOURCES else name)


def _pattern(words: TokenCursor) -> re.Pattern[str]:
    """Parse an optional LIKE pattern to a regular expression."""
    # Spark's patterns: * matches any text, | separates alternatives, case is ignored.
    words.take("LIKE")
    if words.done:
        return re.compile(".*")
    text = str(words.literal())
    words.end()
    return re.compile("|".join(".*".join(map(re.escape, part.strip().split("*"))) for part in text.split("|")), re.IGNORECASE)


__all__ = ["create_database", "drop_database", "show_databases", "show_tables", "use"]
