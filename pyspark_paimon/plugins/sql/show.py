"""Statements that show metadata: SHOW, DESCRIBE and ANALYZE TABLE.

Each function returns None for a table that is not Paimon's. Spark itself runs statements on
databases, and SHOW TABLES, if no catalog is set.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from manifest.io.catalog_errors import NotOffered
from paimon_base.errors import InvalidArgument
from pyspark_paimon.catalog.catalog_base import DEFAULT_DATABASE
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.answers import frame_of_result, frame_of_rows
from pyspark_paimon.plugins.sql.names import SOURCES, KnownTables
from pyspark_paimon.plugins.sql.new_table import column_rows, description_rows
from pyspark_paimon.plugins.sql.procedures import NAMESPACE, OF_CATALOGS, PROCEDURES
from pyspark_paimon.plugins.sql.show_patterns import compile_pattern, database_name, like_pattern
from pyspark_paimon.plugins.sql.text.words import TokenCursor, partition_spec
from pyspark_paimon.plugins.sql.views import view_rows
from pyspark_paimon.request.partition_spec import display_pattern, spec_of

_DATABASES = ("DATABASE", "SCHEMA", "NAMESPACE")
_OTHERS = {"FUNCTION", "QUERY", "CATALOG", "SELECT", "WITH", "("}
"""Words after DESCRIBE that are not table names."""


def show_partitions(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW PARTITIONS, with row and file counts.

    Syntax: ``SHOW PARTITIONS t [PARTITION (day = '2026-01-31')]``.
    """
    table = names.find(words.name())
    if table is None:
        return None
    spec = partition_spec(words) if words.take("PARTITION") else {}
    words.end()
    partitions = table.partitions()
    if spec:
        named = display_pattern(spec_of(spec, table.table_schema), table.table_schema)
        partitions = partitions.filter(
            pa.array([named.fullmatch(text) is not None for text in partitions["partition"].to_pylist()], pa.bool_())
        )
    return frame_of_rows(names.spark, partitions)


def show_properties(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``SHOW TBLPROPERTIES t [('key')]``."""
    table = names.find(words.name())
    if table is None:
        return None
    options = sorted(table.options.items())
    if not words.done:
        requested_keys = [".".join(words.name()) for _ in words.items()]
        words.end()
        options = [(key, value) for key, value in options if key in requested_keys]
    columns = {"key": pa.array([key for key, _ in options], pa.string()), "value": pa.array([value for _, value in options], pa.string())}
    return frame_of_rows(names.spark, pa.table(columns))


def describe_history(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DESCRIBE HISTORY t [LIMIT n]``: snapshots, newest first."""
    table = names.find(words.name())
    if table is None:
        return None
    limit = words.whole_number() if words.take("LIMIT") else None
    words.end()
    return frame_of_rows(names.spark, table.history(limit))


def describe(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DESCRIBE [TABLE] [EXTENDED] t [column]`` or ``DESCRIBE DATABASE db``. A view is described without a column."""
    if any(words.take(kind) for kind in _DATABASES):
        return _describe_database(names, words)
    words.take("TABLE")
    extended = words.take("EXTENDED") or words.take("FORMATTED")
    if words.peek() in _OTHERS:
        return None
    name = words.name()
    table = names.find(name) if names.path(name) or names.of_catalog(name) else None
    if table is None:
        view = names.view(name)
        if view is None:
            return None
        words.end()
        return frame_of_rows(names.spark, view_rows(view, extended=extended))
    if not words.done:
        column = words.name()
        words.end()
        return frame_of_rows(names.spark, column_rows(table, ".".join(column)))
    return frame_of_rows(names.spark, description_rows(table, extended=extended))


def _describe_database(names: KnownTables, words: TokenCursor) -> Any:
    """Describe a database of the catalog in Spark's layout. None: Spark has it."""
    words.take("EXTENDED")
    name = database_name(words)
    words.end()
    if names.catalog is None or name not in names.catalog.list_databases():
        return None
    facts = {"Catalog Name": SOURCES[0], "Namespace Name": name, "Tables": str(len(names.catalog.list_tables(name)))}
    return frame_of_rows(names.spark, pa.table({"info_name": list(facts), "info_value": list(facts.values())}))


def analyze(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``ANALYZE TABLE t COMPUTE STATISTICS``.

    Optional clause: ``FOR ALL COLUMNS`` or ``FOR COLUMNS a, b``.
    """
    table = names.find(words.name())
    if table is None:
        return None
    words.expect("COMPUTE", "STATISTICS")
    columns: list[str] | None = []
    if words.take("FOR", "ALL", "COLUMNS"):
        columns = None
    elif words.take("FOR", "COLUMNS"):
        columns = [words.part()]
        while words.take(","):
            columns.append(words.part())
    words.end()
    return frame_of_result(names.spark, table.analyze(columns))


def show_tables(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW TABLES; None for a database of Spark's catalog.

    Syntax: ``SHOW TABLES [IN | FROM db] [[LIKE] 'pattern']``.
    Without a database, the result has the tables of the catalog's current database. If that is ``default``, those that Spark lists
    follow.
    """
    database = database_name(words) if words.take("IN") or words.take("FROM") else None
    pattern = like_pattern(words)
    if names.catalog is None or (database is not None and database not in names.catalog.list_databases()):
        return None
    listed_database = names.database if database is None else database
    tables = names.catalog.list_tables(listed_database) if listed_database in names.catalog.list_databases() else []
    rows = [(listed_database, name, False) for name in tables if pattern.fullmatch(name)]
    if listed_database == DEFAULT_DATABASE and database is None:
        rows += [tuple(row) for row in names.spark.sql(words.text).collect()]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, (pa.string(), pa.string(), pa.bool_()), strict=True)]
    return frame_of_rows(names.spark, pa.table(arrays, ["namespace", "tableName", "isTemporary"]))


def show_procedures(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``SHOW PROCEDURES [IN | FROM sys] [[LIKE] 'pattern']``, in Spark's layout; None for another namespace."""
    namespace = database_name(words) if words.take("IN") or words.take("FROM") else NAMESPACE
    if namespace.lower() != NAMESPACE:
        return None
    pattern = like_pattern(words)
    called = [name for name in sorted({*PROCEDURES, *OF_CATALOGS}) if pattern.fullmatch(name)]
    columns = {"catalog": SOURCES[0], "schema": NAMESPACE}
    return frame_of_rows(
        names.spark,
        pa.table(
            {
                **{key: pa.array([text] * len(called), pa.string()) for key, text in columns.items()},
                "procedure": pa.array(called, pa.string()),
            }
        ),
    )


def show_databases(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW DATABASES for the catalog and Spark.

    Syntax: ``SHOW DATABASES | SCHEMAS | NAMESPACES [[LIKE] 'pattern']``.
    """
    if names.catalog is None or words.peek() in {"IN", "FROM"}:
        return None
    pattern = like_pattern(words)
    ours = {name for name in names.catalog.list_databases() if pattern.fullmatch(name)}
    database_names = sorted(ours | {row[0] for row in names.spark.sql(words.text).collect()})
    return frame_of_rows(names.spark, pa.table({"namespace": pa.array(database_names, pa.string())}))


def create_database(names: KnownTables, words: TokenCursor) -> Any:
    """Run CREATE DATABASE in the catalog; None without a catalog.

    Syntax: ``CREATE DATABASE | SCHEMA | NAMESPACE [IF NOT EXISTS] db``.
    """
    if names.catalog is None:
        return None
    quiet = words.take("IF", "NOT", "EXISTS")
    name = database_name(words)
    words.end()
    names.catalog.create_database(name, ignore_if_exists=quiet)
    return frame_of_result(names.spark, None)


def drop_database(names: KnownTables, words: TokenCursor) -> Any:
    """Run DROP DATABASE; None if the catalog lacks it.

    Syntax: ``DROP DATABASE | SCHEMA | NAMESPACE [IF EXISTS] db [RESTRICT | CASCADE]``.
    """
    words.take("IF", "EXISTS")
    name = database_name(words)
    if names.catalog is None or name not in names.catalog.list_databases():
        return None
    cascades = words.take("CASCADE")
    words.take("RESTRICT")
    words.end()
    for table in names.catalog.list_tables(name) if cascades else ():
        names.catalog.drop_table(f"{name}.{table}")
    with suppress(NotOffered):  # the catalog's server has no views
        for view in names.catalog.list_views(name) if cascades and names.catalog.has_views else ():
            names.catalog.drop_view(f"{name}.{view}")
    names.catalog.drop_database(name)
    return frame_of_result(names.spark, None)


def use(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``USE [DATABASE] db`` for a database of the catalog; None if Spark should.

    Later statements with the same catalog look there for names without a database.
    """
    if words.take("CATALOG"):
        return None
    words.take("DATABASE") or words.take("SCHEMA") or words.take("NAMESPACE")
    name = database_name(words)
    ours = names.catalog is not None and name in names.catalog.list_databases()
    words.end()
    names.use(name if ours else None)
    if not ours:
        return None
    if names.spark.catalog.databaseExists(name):
        return names.spark.sql(f"USE {quote_name(name)}")
    return frame_of_result(names.spark, None)


def show_table_extended(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW TABLE EXTENDED for tables of the catalog; None if Spark should.

    Syntax: ``SHOW TABLE EXTENDED [IN | FROM db] LIKE 'pattern' [PARTITION (...)]``.
    """
    database = database_name(words) if words.take("IN") or words.take("FROM") else names.database
    if names.catalog is None or database not in names.catalog.list_databases():
        return None
    words.expect("LIKE")
    text = str(words.literal())
    spec = partition_spec(words) if words.take("PARTITION") else None
    words.end()
    pattern = compile_pattern(text)
    matching_tables = [name for name in names.catalog.list_tables(database) if pattern.fullmatch(name)]
    if spec is not None and matching_tables != [text]:
        raise InvalidArgument(f"SHOW TABLE EXTENDED ... PARTITION needs the name of one table, and {database} has no table '{text}'")
    rows = [(database, name, False, _information(names, database, name, spec)) for name in matching_tables]
    types = {"namespace": pa.string(), "tableName": pa.string(), "isTemporary": pa.bool_(), "information": pa.string()}
    columns = zip(*rows, strict=True) if rows else ((),) * len(types)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types.values(), strict=True)]
    return frame_of_rows(names.spark, pa.table(arrays, list(types)))


def _information(names: KnownTables, database: str, name: str, spec: dict[str, object] | None) -> str:
    """Return the lines that describe a table, or one of its partitions."""
    table = names.table((database, name))
    if spec is None:
        rows = description_rows(table, extended=True).to_pylist()
        header_index = next(index for index, row in enumerate(rows) if row["col_name"].startswith("#"))
        facts = {"Database": database, "Table": name, **{row["col_name"]: row["data_type"] for row in rows[header_index + 1 :]}}
        columns = [f" |-- {row['col_name']}: {row['data_type']}" for row in rows[: header_index - 1]]
        return "\n".join([*(f"{key}: {value}" for key, value in facts.items()), "Schema: root", *columns, ""])
    matches = display_pattern(spec_of(spec, table.table_schema), table.table_schema).fullmatch
    matching_partitions = [row for row in table.partitions().to_pylist() if matches(row["partition"])]
    if len(matching_partitions) != 1:
        shown = ", ".join(f"{key}={value}" for key, value in spec.items())
        raise InvalidArgument(
            f"SHOW TABLE EXTENDED: {len(matching_partitions)} partitions of {database}.{name} match ({shown}); name one of them"
        )
    parameters = ", ".join(f"{key}={value}" for key, value in matching_partitions[0].items() if key != "partition")
    return f"Partition Values: [{matching_partitions[0]['partition'].replace('/', ', ')}]\nPartition Parameters: {{{parameters}}}\nLocation: {table.path}\n"


def refresh(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``REFRESH [TABLE] t``: nothing to do; None for tables that are not Paimon's.

    Each statement reads the newest state, and no metadata is held that could be old.
    """
    table = names.find(words.name())
    if table is None:
        return None
    words.end()
    return frame_of_result(names.spark, None)
