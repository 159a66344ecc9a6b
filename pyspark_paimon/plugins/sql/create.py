"""Statements CREATE TABLE, REPLACE TABLE and DROP TABLE."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.answers import frame_of_result
from pyspark_paimon.plugins.sql.names import SOURCES, KnownTables
from pyspark_paimon.plugins.sql.new_table import NewTable, copy_definition, read_clauses, read_column_or_key
from pyspark_paimon.plugins.sql.queries import run_query
from pyspark_paimon.plugins.sql.text.words import NameParts, TokenCursor
from pyspark_paimon.table.table import Table


def create_table(names: KnownTables, words: TokenCursor) -> Any:
    """Run CREATE TABLE; None if Spark should.

    Syntax: ``CREATE TABLE [IF NOT EXISTS] t [(columns, PRIMARY KEY (...) NOT ENFORCED)] [USING paimon] ... [AS query]``.
    """
    quiet = words.take("IF", "NOT", "EXISTS")
    new = _parse_definition(names, words)
    if new is None:
        return None
    path = names.path(new.name) or new.path
    ours = names.catalog_name(new.name) is not None and new.path is None
    if path is None and not ours:
        names.require_catalog_name(new.name, "CREATE TABLE")
    if not new.columns and new.query is None:
        if new.path is not None and not new.primary_keys and not new.partition_keys:
            return _register(names, new, words)
        raise InvalidArgument(
            "CREATE TABLE has no columns: write (id BIGINT NOT NULL, ..., PRIMARY KEY (id) NOT ENFORCED), or AS and a query"
        )
    if quiet and (
        names.of_catalog(new.name, hidden=True) is not None if ours else path is not None and _open_table(names, path) is not None
    ):
        return frame_of_result(names.spark, None)
    rows = None if new.query is None else run_query(names, new.query)
    table = _create_table(names, new, path, _columns_of(new, rows))
    try:
        for name, default in new.defaults.items():
            table.set_default(name, default)
        result = None if rows is None else table.write(rows)
    except BaseException:
        if ours:  # do not remove a path: it may hold other files
            _drop_if_empty(names, new)
        raise
    if new.path is not None:
        _name_in_spark(names, new)
    return frame_of_result(names.spark, result)


def _columns_of(new: NewTable, rows: Any) -> Any:
    """Return the columns as DDL text, or as Spark's schema of the query."""
    # Nullable as in Spark's catalogs: that a query has no null now says nothing about later rows.
    return ", ".join(new.columns) if rows is None else rows.schema.toNullable()


def _register(names: KnownTables, new: NewTable, words: TokenCursor) -> Any:
    """Name an existing table in Spark's catalog; None if Spark should.

    Without USING, Spark would make a table of its own format there.
    """
    if "USING" in {token.text.upper() for token in words.tokens} or _open_table(names, str(new.path)) is None:
        return None
    _name_in_spark(names, new)
    return frame_of_result(names.spark, None)


def _name_in_spark(names: KnownTables, new: NewTable) -> None:
    names.spark.sql(f"CREATE TABLE {'.'.join(map(quote_name, new.name))} USING {SOURCES[1]} OPTIONS (path '{new.path}')")


def replace_table(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``[CREATE OR] REPLACE TABLE``; None if Spark should.

    The statement creates the table, or replaces the columns and the rows of an existing one.
    One snapshot replaces the rows, and older snapshots stay, with their columns. Other columns and options are a new version of the schema
    before it: until that snapshot, readers see the old rows in the new columns. If the rows cannot be written, the old columns return.
    Raises ``InvalidArgument`` if the existing table has other keys, partitions or buckets.
    """
    start = words.at
    new = _parse_definition(names, words)
    if new is None:
        return None
    table = _open_table(names, new.path) if new.path is not None else names.of_catalog(new.name, hidden=True) or names.find(new.name)
    if table is None:
        words.at = start
        return create_table(names, words)
    rows = None if new.query is None else run_query(names, new.query)
    schema = _columns_of(new, rows)
    before = table.table_schema
    if _differs(new, table, schema):
        table.replace_columns(schema, options=new.options, comment=new.comment)
    try:
        for name, default in new.defaults.items():
            table.set_default(name, default)
        if rows is None:
            result: Any = table.delete("TRUE")
        else:
            result = table.write(rows, mode="overwrite", options={"dynamic-partition-overwrite": "false"})
    except BaseException as error:
        _bring_back(table, before, error)
        raise
    return frame_of_result(names.spark, result)


def _bring_back(table: Table, before: TableSchema, error: BaseException) -> None:
    """Restore the columns of a table whose rows were not replaced."""
    try:
        if table.table_schema.id != before.id:
            table.replace_columns(before)
    except PaimonError as failed:
        error.add_note(
            f"{table.path}: the table has the new columns and the old rows, and its schema {before.id} could not be restored: {failed}"
        )


def drop_table(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DROP TABLE [IF EXISTS] t`` in the catalog.

    None for a name of Spark's catalog: Spark removes the name and leaves the table.
    """
    quiet = words.take("IF", "EXISTS")
    name = words.name()
    catalog_name = names.catalog_name(name)
    if names.path(name) is not None:
        raise InvalidArgument(
            "DROP TABLE needs the name of a catalog table, not a path, because a path may have other files: sql(spark, text, catalog=Catalog(...))"
        )
    if names.catalog is None or catalog_name is None or not names.catalog.table_exists(catalog_name):
        if names.catalog is None or catalog_name is None or not quiet or len(name) == 1:
            return None
        _finish(words)
        return frame_of_result(names.spark, None)
    _finish(words)
    names.catalog.drop_table(catalog_name)
    return frame_of_result(names.spark, None)


def _finish(words: TokenCursor) -> None:
    words.take("PURGE")  # accepted without effect: a dropped table is always deleted at once
    words.end()


def _parse_definition(names: KnownTables, words: TokenCursor) -> NewTable | None:
    """Parse a definition; None if it is not Paimon's."""
    new = NewTable(words.name())
    if not _is_ours(names, new.name, words):
        return None
    if words.peek() == "(":
        for _ in words.items():
            read_column_or_key(new, words)
    elif words.take("LIKE"):
        model = names.find(words.name())
        if model is None:
            return None
        copy_definition(new, model.table_schema)
    read_clauses(new, words)
    if new.query is not None and new.columns:
        raise InvalidArgument("CREATE TABLE ... AS takes its columns from the query: remove the list of columns or LIKE")
    return new


def _differs(new: NewTable, table: Table, schema: Any) -> bool:
    """Return whether the table has other columns, options or another comment.

    Raises ``InvalidArgument`` for other keys, partitions or buckets, which a table cannot change.
    """
    from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # needed here only

    there = table.table_schema
    new_definition = new_schema(schema, new.primary_keys, new.partition_keys, new.options, new.comment)
    bare = new.query is not None  # do not compare nullability with that of a query's columns
    sides = [
        [(field.name, str(field.type.with_nullable(bare or field.type.nullable))) for field in each_schema.fields]
        for each_schema in (new_definition, there)
    ]
    changed_options = {key for key, value in new_definition.options.items() if there.options.get(key) != value}
    differs = [
        *(["primary key"] if new_definition.primary_keys != there.primary_keys else []),
        *(["partitions"] if new_definition.partition_keys != there.partition_keys else []),
        *(f"'{key}'" for key in sorted(changed_options & {"bucket", "bucket-key"})),
    ]
    if differs:
        shown = ".".join(new.name)
        problem = f"CREATE OR REPLACE TABLE {shown}: the existing table differs in {', '.join(differs)}; nothing was changed"
        raise InvalidArgument(f"{problem}: older snapshots could not be read; DROP TABLE {shown} and create it again, without its history")
    return sides[0] != sides[1] or bool(changed_options) or new_definition.comment != there.comment


def _open_table(names: KnownTables, path: str) -> Table | None:
    from manifest.io.errors import TableNotFound  # noqa: PLC0415  # needed here only

    try:
        return Table.open(path, names.spark)
    except TableNotFound:
        return None


def _create_table(names: KnownTables, new: NewTable, path: str | None, schema: Any) -> Table:
    definition: dict[str, Any] = {
        "primary_keys": new.primary_keys,
        "partition_keys": new.partition_keys,
        "options": new.options,
        "comment": new.comment,
    }
    if path is not None:
        return Table.create(path, schema, **definition, spark=names.spark)
    catalog, catalog_name = names.require_catalog_name(new.name, "CREATE TABLE")
    catalog.create_table(catalog_name, schema, **definition)
    return catalog.table(catalog_name, names.spark)


def _drop_if_empty(names: KnownTables, new: NewTable) -> None:
    """Drop the new table of a failed statement."""
    # Keep the table if another writer has added rows.
    catalog, catalog_name = names.require_catalog_name(new.name, "CREATE TABLE")
    with suppress(PaimonError):
        if catalog.table(catalog_name, names.spark).snapshots().num_rows == 0:
            catalog.drop_table(catalog_name)


def _is_ours(names: KnownTables, name: NameParts, words: TokenCursor) -> bool:
    """Return whether the statement creates a Paimon table.

    It does if USING names our source, or if there is no USING and the name is a path or a name of the catalog.
    """
    texts = [token.text.upper() for token in words.tokens[words.at :]]
    before_query = texts[: texts.index("AS")] if "AS" in texts else texts
    if "USING" in before_query:
        return before_query[before_query.index("USING") + 1].lower() in SOURCES
    return names.path(name) is not None or (names.catalog_name(name) is not None and "STORED" not in before_query)
