"""What a catalog has: SHOW TABLES, SHOW DATABASES, CREATE DATABASE, DROP DATABASE; without a catalog all of it is Spark's."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.statements.answers import frame_of_result, frame_of_rows
from pyspark_paimon.statements.names import SOURCES, KnownTables
from pyspark_paimon.statements.words import Words

_DEFAULT = "default"


def show_tables(names: KnownTables, words: Words) -> Any:
    """``SHOW TABLES [IN | FROM db] [[LIKE] 'pattern']``: without a database those of ``default`` and what Spark has; None for one of Spark's."""
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


def show_databases(names: KnownTables, words: Words) -> Any:
    """``SHOW DATABASES | SCHEMAS | NAMESPACES [[LIKE] 'pattern']``: the catalog's, and Spark's; None where there is no catalog."""
    if names.catalog is None or words.word() in {"IN", "FROM"}:
        return None
    pattern = _pattern(words)
    ours = {name for name in names.catalog.list_databases() if pattern.fullmatch(name)}
    found = sorted(ours | {row[0] for row in names.spark.sql(words.text).collect()})
    return frame_of_rows(names.spark, pa.table({"namespace": pa.array(found, pa.string())}))


def create_database(names: KnownTables, words: Words) -> Any:
    """``CREATE DATABASE | SCHEMA | NAMESPACE [IF NOT EXISTS] db`` in the catalog; None where there is none."""
    if names.catalog is None:
        return None
    quiet = words.take("IF", "NOT", "EXISTS")
    name = _database(words)
    words.end()
    names.catalog.create_database(name, ignore_if_exists=quiet)
    return frame_of_result(names.spark, None)


def drop_database(names: KnownTables, words: Words) -> Any:
    """``DROP DATABASE | SCHEMA | NAMESPACE [IF EXISTS] db [RESTRICT]`` of the catalog; None for one that it does not have."""
    words.take("IF", "EXISTS")
    name = _database(words)
    if names.catalog is None or name not in names.catalog.list_databases():
        return None
    if words.take("CASCADE"):
        raise InvalidArgument(f"DROP DATABASE {name} CASCADE: tables go one by one, DROP TABLE {name}.t, then the database")
    words.take("RESTRICT")
    words.end()
    names.catalog.drop_database(name)
    return frame_of_result(names.spark, None)


def use(names: KnownTables, words: Words) -> Any:
    """``USE db``, which is Spark's. Raises ``InvalidArgument`` for a database of the catalog, in which names are whole."""
    words.take("DATABASE") or words.take("SCHEMA") or words.take("NAMESPACE")
    name = _database(words)
    if names.catalog is not None and name in names.catalog.list_databases() and not names.spark.catalog.databaseExists(name):
        raise InvalidArgument(f"USE {name}: tables of the catalog are named with their database, {name}.t")


def _database(words: Words) -> str:
    name = words.name()
    return ".".join(name[1:] if len(name) > 1 and name[0].lower() in SOURCES else name)


def _pattern(words: Words) -> re.Pattern[str]:
    """A pattern of Spark's: ``*`` is any text, ``|`` stands between patterns, case does not matter."""
    words.take("LIKE")
    if words.done:
        return re.compile(".*")
    text = str(words.literal())
    words.end()
    return re.compile("|".join(".*".join(map(re.escape, part.strip().split("*"))) for part in text.split("|")), re.IGNORECASE)


__all__ = ["create_database", "drop_database", "show_databases", "show_tables", "use"]
