"""Statements on views: CREATE VIEW, ALTER VIEW, DROP VIEW, SHOW VIEWS."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from manifest.io.errors import TableExists
from paimon_base.errors import InvalidArgument
from paimon_base.texts import count_text
from pyspark_paimon.catalog.catalog_base import DEFAULT_DATABASE, AnyCatalog
from pyspark_paimon.catalog.view import SPARK, View
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.plugins.sql.answers import description, frame_of_result, frame_of_rows
from pyspark_paimon.plugins.sql.names import KnownTables, text_literal
from pyspark_paimon.plugins.sql.queries import replace_tables, run_query, with_views
from pyspark_paimon.plugins.sql.show_patterns import database_name, like_pattern
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from pyspark_paimon.plugins.sql.view_text import qualify_names, refuse_moved, views_read_by


def create_view(names: KnownTables, words: TokenCursor) -> Any:
    """Create a view of the catalog, or a temporary one on a query with Paimon tables; None if Spark should.

    Syntax: ``CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] v [(a [COMMENT 'text'], ...)] [COMMENT 'text']
    [TBLPROPERTIES (...)] AS query``. A temporary view reads the snapshots that are the newest now.
    """
    kind = {token.text.upper() for token in words.tokens[: words.at]}
    is_temporary = bool(kind & {"TEMP", "TEMPORARY"})
    quiet = words.take("IF", "NOT", "EXISTS")
    name = words.name()
    catalog_name = names.catalog_name(name)
    if not is_temporary and names.catalog is not None and names.catalog.has_views and catalog_name is not None:
        return _create_in_catalog(names, words, names.catalog, catalog_name, replaces="REPLACE" in kind, quiet=quiet)
    if quiet or not words.take("AS"):
        return None
    query = replace_tables(names, with_views(names, words.rest()))
    if not query.frames:
        return None
    if not is_temporary or len(name) > 1:
        raise InvalidArgument(
            f"CREATE VIEW {'.'.join(name)}: Spark cannot store a view of Paimon tables; write CREATE TEMPORARY VIEW for this session, "
            "or give a REST or Hive catalog, which stores views"
        )
    frame = query.run(names.spark)
    (frame.createOrReplaceTempView if "REPLACE" in kind else frame.createTempView)(name[0])
    return frame_of_result(names.spark, None)


def cache_table(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``CACHE [LAZY] TABLE c [OPTIONS (...)] AS query`` over Paimon tables; None if Spark should.

    Raises ``InvalidArgument`` for a table of Paimon itself: statements read its newest state.
    """
    lazy = words.take("LAZY")
    words.expect("TABLE")
    start, name = words.here, words.name()
    options = ""
    if words.take("OPTIONS"):
        options_start = words.tokens[words.at - 1].start
        words.properties()
        options = words.text[options_start : words.tokens[words.at - 1].end + 1]
    if not words.take("AS") and words.peek() not in {"SELECT", "WITH", "VALUES", "FROM", "TABLE"}:
        if names.find(name) is None:
            return None
        shown = words.text[start : words.tokens[words.at - 1].end + 1]
        raise InvalidArgument(
            f"CACHE TABLE {shown}: each statement reads the newest state of a Paimon table; cache its present rows: CACHE TABLE c AS TABLE {shown}"
        )
    query = replace_tables(names, with_views(names, words.rest()))
    if not query.frames or len(name) > 1:
        return None
    query.run(names.spark).createTempView(name[0])
    return names.spark.sql(f"CACHE {'LAZY ' if lazy else ''}TABLE {quote_name(name[0])} {options}")


def _create_in_catalog(
    names: KnownTables, words: TokenCursor, catalog: AnyCatalog, catalog_name: str, *, replaces: bool, quiet: bool
) -> Any:
    from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # needed here only

    columns: list[tuple[str, str | None]] = []
    if words.peek() == "(":
        for _ in words.items():
            column = words.part()
            columns.append((column, str(words.literal()) if words.take("COMMENT") else None))
    comment, options = None, dict[str, str]()
    while not words.take("AS"):
        if words.take("COMMENT"):
            comment = str(words.literal())
        elif words.take("TBLPROPERTIES"):
            options |= words.properties()
        else:
            raise words.error("COMMENT, TBLPROPERTIES or AS")
    text = words.rest()
    before = names.view(tuple(catalog_name.split(".")))
    if before is not None and quiet:
        return frame_of_result(names.spark, None)
    if before is not None:
        catalog_name = before.name  # a metastore may ignore the case of names
    if before is not None and not replaces:
        raise TableExists(f"{catalog_name}: the catalog has this view; write CREATE OR REPLACE VIEW")
    if catalog_name in views_read_by(names, text):
        raise InvalidArgument(f"CREATE OR REPLACE VIEW {catalog_name}: the query reads the view itself; name the tables instead")
    query_schema = run_query(names, text).schema
    schema = _renamed(query_schema, columns, catalog_name)
    refuse_moved(catalog_name, text, query_schema.names, schema.names)
    new_schema(schema, (), (), None, None)  # refuse wrong columns before the old view is dropped
    query = qualify_names(names, text)
    try:
        if before is not None:
            catalog.drop_view(catalog_name)
        catalog.create_view(catalog_name, query, schema, comment=comment, options=options, if_not_exists=quiet)
    except Exception as error:
        if before is not None:  # a catalog cannot replace a view in one step
            error.add_note(f"view {catalog_name} may be dropped, and is not created again; its query was: {before.text()}")
        raise
    return frame_of_result(names.spark, None)


def _renamed(schema: Any, columns: Sequence[tuple[str, str | None]], view_name: str) -> Any:
    """Return a Spark schema with the names and comments of a list of columns. Empty: with its own."""
    if not columns:
        return schema
    if len(columns) != len(schema.fields):
        raise InvalidArgument(
            f"CREATE VIEW {view_name}: the list names {count_text(len(columns), 'column')}, and the query has {len(schema.fields)}"
        )
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415  # Spark is imported when it is used

    fields = zip(columns, schema.fields, strict=True)
    return StructType(
        [StructField(name, field.dataType, field.nullable, {"comment": comment} if comment else None) for (name, comment), field in fields]
    )


def drop_view(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DROP VIEW [IF EXISTS] v`` in the catalog.

    None: Spark has the view. A temporary view comes before one of the catalog.
    """
    words.take("IF", "EXISTS")
    name = words.name()
    catalog_name, view = names.catalog_name(name), names.view(name)
    if names.catalog is None or catalog_name is None or view is None:
        return None
    words.end()
    if len(name) == 1 and _is_temporary_view(names.spark, name[0]):
        return None
    names.catalog.drop_view(catalog_name)
    return frame_of_result(names.spark, None)


def _is_temporary_view(spark: Any, name: str) -> bool:
    """Return whether the session has a temporary view of that name."""
    with suppress(Exception):  # Spark does not know the name
        return bool(spark.catalog.getTable(quote_name(name)).isTemporary)
    return False


def alter_view(names: KnownTables, words: TokenCursor) -> Any:
    """Change a view of the catalog; None for a view of Spark.

    Syntax: ``ALTER VIEW v RENAME TO w | SET TBLPROPERTIES (...) | UNSET TBLPROPERTIES [IF EXISTS] ('key', ...) | AS query``.
    """
    name = words.name()
    catalog_name, view = names.catalog_name(name), names.view(name)
    if names.catalog is None or catalog_name is None or view is None:
        return None
    if words.take("RENAME", "TO"):
        target = words.name()
        words.end()
        names.catalog.rename_view(catalog_name, names.require_catalog_name(target, "ALTER VIEW ... RENAME TO")[1])
    elif words.take("SET", "TBLPROPERTIES"):
        options = words.properties()
        words.end()
        names.catalog.alter_view(catalog_name, options=options)
    elif words.take("UNSET", "TBLPROPERTIES"):
        words.take("IF", "EXISTS")
        keys = [str(words.literal()) for _ in words.items()]
        words.end()
        names.catalog.alter_view(catalog_name, options=dict.fromkeys(keys))
    else:
        words.expect("AS")
        _replace_query(names, words.rest(), names.catalog, view)
    return frame_of_result(names.spark, None)


def _replace_query(names: KnownTables, text: str, catalog: AnyCatalog, view: View) -> None:
    if view.name in views_read_by(names, text):
        raise InvalidArgument(f"ALTER VIEW {view.name}: the query reads the view itself; name the tables instead")
    query_columns = [f"{field.name} {field.dataType.simpleString()}" for field in run_query(names, text).schema]
    columns = [f"{field.name} {spark_type(field.type).simpleString()}" for field in view.fields]
    if query_columns != columns:
        raise InvalidArgument(
            f"ALTER VIEW {view.name}: the query has the columns {', '.join(query_columns)}, and the view {', '.join(columns)}; "
            "write CREATE OR REPLACE VIEW"
        )
    catalog.alter_view(view.name, dialects={SPARK: qualify_names(names, text)})


def show_views(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW VIEWS; None for a catalog or a database without views of ours.

    Syntax: ``SHOW VIEWS [IN | FROM db] [[LIKE] 'pattern']``. Spark's views follow those of the default database.
    """
    database = database_name(words) if words.take("IN") or words.take("FROM") else None
    pattern = like_pattern(words)
    listed_database = names.database if database is None else database
    if names.catalog is None or not names.catalog.has_views or listed_database not in names.catalog.list_databases():
        return None
    rows = [(listed_database, name, False) for name in names.catalog.list_views(listed_database) if pattern.fullmatch(name)]
    if listed_database == DEFAULT_DATABASE and database is None:
        rows += [tuple(row) for row in names.spark.sql(words.text).collect()]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, (pa.string(), pa.string(), pa.bool_()), strict=True)]
    return frame_of_rows(names.spark, pa.table(arrays, ["namespace", "viewName", "isTemporary"]))


def view_statement(view: View) -> str:
    """Return the CREATE VIEW statement of a view."""
    columns = [
        f"  {quote_name(field.name)}" + (f" COMMENT {text_literal(field.description)}" if field.description else "")
        for field in view.fields
    ]
    parts = [f"CREATE VIEW {'.'.join(map(quote_name, view.name.split('.')))} (", ",\n".join(columns) + ")"]
    if view.comment:
        parts.append(f"COMMENT {text_literal(view.comment)}")
    options = [f"  {text_literal(key)} = {text_literal(value)}" for key, value in sorted(view.options.items())]
    if options:
        parts += ["TBLPROPERTIES (", ",\n".join(options) + ")"]
    return "\n".join([*parts, f"AS {view.text()}"]) + "\n"


def view_rows(view: View, *, extended: bool) -> pa.Table:
    """Return the rows of DESCRIBE for a view.

    extended: Add comment, query and properties.
    """
    details: dict[str, str] = {}
    if extended:
        options = ",".join(f"{key}={value}" for key, value in sorted(view.options.items()))
        details = {
            "Name": view.name,
            "Type": "VIEW",
            "Comment": view.comment or "",
            "View Text": view.text(),
            "View Properties": f"[{options}]",
        }
    return description(view.fields, "View", details)
