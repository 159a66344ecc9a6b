"""CREATE TABLE, with columns or of a query, and DROP TABLE."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fileindex.base.errors import InvalidArgument, PaimonError
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import SOURCES, KnownTables
from pyspark_paimon.statements.new_table import NewTable, copy_definition, read_clauses, read_column_or_key
from pyspark_paimon.statements.queries import queried
from pyspark_paimon.statements.words import NameParts, Words
from pyspark_paimon.table.table import Table


def create_table(names: KnownTables, words: Words) -> Any:
    """``CREATE TABLE [IF NOT EXISTS] t [(columns, PRIMARY KEY (...) NOT ENFORCED)] [USING paimon] ... [AS query]``; None for one of Spark's."""
    quiet = words.take("IF", "NOT", "EXISTS")
    new = _said(names, words)
    if new is None:
        return None
    path = names.path(new.name) or new.path
    ours = names.catalog_name(new.name) is not None and new.path is None
    if path is None and not ours:
        names.needed_name(new.name, "CREATE TABLE")
    if not new.columns and new.query is None:
        if new.path is not None and not new.primary_keys and not new.partition_keys:
            return None  # a name in Spark's catalog for a table that exists
        raise InvalidArgument(
            "CREATE TABLE has no columns: write (id BIGINT NOT NULL, ..., PRIMARY KEY (id) NOT ENFORCED), or AS and a query"
        )
    if quiet and (names.of_catalog(new.name) is not None if ours else path is not None and _opened(names, path) is not None):
        return frame_of_result(names.spark, None)
    rows = None if new.query is None else queried(names, new.query)
    table = _created(names, new, path, ", ".join(new.columns) if rows is None else rows.schema)
    try:
        for name, default in new.defaults.items():
            table.set_default(name, default)
        done = None if rows is None else table.write(rows)
    except BaseException:
        if ours:  # of a path nobody knows what else lies there
            _forgotten(names, new)
        raise
    if new.path is not None:
        names.spark.sql(f"CREATE TABLE {'.'.join(map(quoted_name, new.name))} USING {SOURCES[1]} OPTIONS (path '{new.path}')")
    return frame_of_result(names.spark, done)


def replace_table(names: KnownTables, words: Words) -> Any:
    """``[CREATE OR] REPLACE TABLE t ...``: makes the table, or replaces the rows of one that is as the statement says; None for one of Spark's.

    One snapshot replaces the rows, so that readers see the old ones or the new ones, and older states stay to go back to. Raises
    ``InvalidArgument`` where the table is another.
    """
    at = words.at
    new = _said(names, words)
    if new is None:
        return None
    table = names.find(new.name) if new.path is None else _opened(names, new.path)
    if table is None:
        words.at = at
        return create_table(names, words)
    rows = None if new.query is None else queried(names, new.query)
    _refuse_another(new, table, ", ".join(new.columns) if rows is None else rows.schema)
    if rows is None:
        return frame_of_result(names.spark, table.delete("TRUE"))
    done = table.write(rows, mode="overwrite", options={"dynamic-partition-overwrite": "false"})
    return frame_of_result(names.spark, done)


def drop_table(names: KnownTables, words: Words) -> Any:
    """``DROP TABLE [IF EXISTS] t`` of the catalog; None for a name of Spark's, which is forgotten and leaves the table."""
    quiet = words.take("IF", "EXISTS")
    name = words.name()
    known = names.catalog_name(name)
    if names.path(name) is not None:
        raise InvalidArgument(
            "DROP TABLE takes a name of a catalog, for a path alone may hold anything: sql(spark, text, catalog=Catalog(...))"
        )
    if names.catalog is None or known is None or not names.catalog.table_exists(known):
        if names.catalog is None or known is None or not quiet or len(name) == 1:
            return None
        _to_the_end(words)
        return frame_of_result(names.spark, None)
    _to_the_end(words)
    names.catalog.drop_table(known)
    return frame_of_result(names.spark, None)


def _to_the_end(words: Words) -> None:
    words.take("PURGE")  # a table that is dropped is gone at once
    words.end()


def _said(names: KnownTables, words: Words) -> NewTable | None:
    """What a statement says, from the name on; None for a table of Spark's."""
    new = NewTable(words.name())
    if not _is_ours(names, new.name, words):
        return None
    if words.word() == "(":
        for _ in words.listed():
            read_column_or_key(new, words)
    elif words.take("LIKE"):
        model = names.find(words.name())
        if model is None:
            return None
        copy_definition(new, model.table_schema)
    read_clauses(new, words)
    if new.query is not None and new.columns:
        raise InvalidArgument("CREATE TABLE ... AS takes its columns from the query: leave the list of columns, types and LIKE out")
    return new


def _refuse_another(new: NewTable, table: Table, schema: Any) -> None:
    """Raise ``InvalidArgument`` where the table has other columns, keys or options than the statement says."""
    from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # asked here alone

    there = table.table_schema
    wanted = new_schema(schema, new.primary_keys, new.partition_keys, new.options, new.comment)
    bare = new.query is not None  # what a query's columns may hold says nothing of the table's
    sides = [[(field.name, str(field.type.with_nullable(bare or field.type.nullable))) for field in one.fields] for one in (wanted, there)]
    differs = [
        *(["columns"] if sides[0] != sides[1] else []),
        *(["primary key"] if wanted.primary_keys != there.primary_keys else []),
        *(["partitions"] if wanted.partition_keys != there.partition_keys else []),
        *(f"'{key}'" for key, value in wanted.options.items() if there.options.get(key) != value),
    ]
    if differs:
        shown = ".".join(new.name)
        told = f"CREATE OR REPLACE TABLE {shown}: the table that is there differs in {', '.join(differs)}; nothing was changed"
        raise InvalidArgument(f"{told}: ALTER TABLE it first, or DROP TABLE {shown} and create it anew")


def _opened(names: KnownTables, path: str) -> Table | None:
    from manifest.io.errors import TableNotFound  # noqa: PLC0415  # asked here alone

    try:
        return Table.open(path, names.spark)
    except TableNotFound:
        return None


def _created(names: KnownTables, new: NewTable, path: str | None, schema: Any) -> Table:
    said: dict[str, Any] = {
        "primary_keys": new.primary_keys,
        "partition_keys": new.partition_keys,
        "options": new.options,
        "comment": new.comment,
    }
    if path is not None:
        return Table.create(path, schema, **said, spark=names.spark)
    catalog, known = names.needed_name(new.name, "CREATE TABLE")
    catalog.create_table(known, schema, **said)
    return catalog.table(known, names.spark)


def _forgotten(names: KnownTables, new: NewTable) -> None:
    """Take away the table that was to have a query's rows, if it has none: the statement is whole, or never was."""
    catalog, known = names.needed_name(new.name, "CREATE TABLE")
    with suppress(PaimonError):
        if catalog.table(known, names.spark).snapshots().num_rows == 0:
            catalog.drop_table(known)


def _is_ours(names: KnownTables, name: NameParts, words: Words) -> bool:
    """Whether a table is to be one of ours: it says so, or says nothing and has a name of ours."""
    texts = [token.text.upper() for token in words.tokens[words.at :]]
    before_query = texts[: texts.index("AS")] if "AS" in texts else texts
    if "USING" in before_query:
        return before_query[before_query.index("USING") + 1].lower() in SOURCES
    return names.path(name) is not None or (names.catalog_name(name) is not None and "STORED" not in before_query)


__all__ = ["create_table", "drop_table", "replace_table"]
