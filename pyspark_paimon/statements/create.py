"""CREATE TABLE, with columns or of a query, and DROP TABLE."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fileindex.base.errors import InvalidArgument, PaimonError
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import SOURCES, KnownTables
from pyspark_paimon.statements.new_table import NewTable, read_clauses, read_column_or_key
from pyspark_paimon.statements.queries import queried
from pyspark_paimon.statements.words import NameParts, Words
from pyspark_paimon.table.table import Table


def create_table(names: KnownTables, words: Words) -> Any:
    """``CREATE TABLE [IF NOT EXISTS] t [(columns, PRIMARY KEY (...) NOT ENFORCED)] [USING paimon] ... [AS query]``; None for one of Spark's."""
    quiet = words.take("IF", "NOT", "EXISTS")
    new = NewTable(words.name())
    if not _is_ours(names, new.name, words):
        return None
    if words.word() == "(":
        for _ in words.listed():
            read_column_or_key(new, words)
    read_clauses(new, words)
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
    if quiet and (names.of_catalog(new.name) is not None if ours else _exists(names, path)):
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
        if names.catalog is not None and known is not None and quiet and len(name) > 1:
            return frame_of_result(names.spark, None)
        return None
    words.take("PURGE")
    words.end()
    names.catalog.drop_table(known)
    return frame_of_result(names.spark, None)


def _exists(names: KnownTables, path: str | None) -> bool:
    from manifest.io.errors import TableNotFound  # noqa: PLC0415  # asked here alone

    try:
        return path is not None and Table.open(path, names.spark) is not None
    except TableNotFound:
        return False


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


__all__ = ["create_table", "drop_table"]
