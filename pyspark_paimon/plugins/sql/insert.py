"""Statements INSERT INTO and INSERT OVERWRITE."""

from __future__ import annotations

from typing import Any

from lsm.rows_in.policy import RowPolicy
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, UnknownColumn
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.frames.fetched_rows import has_variant, inner_types
from pyspark_paimon.frames.spark_functions import functions_of, quote_name
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.plugins.sql.answers import frame_of_result
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.queries import run_query
from pyspark_paimon.plugins.sql.text.words import TokenCursor, WrittenValue
from pyspark_paimon.plugins.sql.value_rows import value_rows
from pyspark_paimon.spark.wire.session_settings import settings_of

_OTHER_ROWS = "for other rows write DELETE FROM t WHERE and INSERT INTO t"


def insert(names: KnownTables, words: TokenCursor) -> Any:
    """Run INSERT; None if Spark should.

    Syntax: ``INSERT INTO | OVERWRITE [TABLE] t [PARTITION (...)] [BY NAME | (columns)] query``, or
    ``INSERT INTO t REPLACE WHERE partition column = value [AND ...] query``.
    """
    overwrite = words.take("OVERWRITE")
    if not overwrite:
        words.expect("INTO")
    words.take("TABLE")
    table = names.find(words.name())
    if table is None or (words.peek() == "WITH" and words.peek(1) == "("):
        return None  # Spark runs INSERT ... WITH (options) through our data source
    schema = table.table_schema
    replaced = _replaced_partition(words, schema) if not overwrite and words.take("REPLACE", "WHERE") else {}
    static: dict[str, WrittenValue] = {}
    if words.take("PARTITION"):
        if words.peek(1) == ")":
            raise InvalidArgument("INSERT: PARTITION () is empty; name partition columns, or remove it")
        for _ in words.items():
            name = resolve(words.part(), schema.column_types)
            if words.take("="):
                words.take("DATE")
                if name in static:
                    raise InvalidArgument(f"PARTITION names the column '{name}' twice")
                static[name] = words.literal()
    by_name = words.take("BY", "NAME")
    columns = _columns(words, schema)
    query = without_default_words(words.rest())
    given = [name for name in columns or schema.names if name not in static]
    rows = None if by_name or static else value_rows(query, given, schema)
    if rows is None:
        merges = by_name and _merges(names, table.path, schema)
        rows = _align_columns(run_query(names, query), given, schema, static, by_name=by_name, merges=merges)
    dynamic = overwrite and not static
    result = table.write(
        rows,
        mode="overwrite" if overwrite or replaced else None,
        partition=replaced or (static or None if overwrite else None),
        options={"dynamic-partition-overwrite": "false"} if dynamic and not _dynamic(names) else None,
        missing="null",  # columns that a list of columns leaves out are null in SQL
    )
    return frame_of_result(names.spark, result)


def _replaced_partition(words: TokenCursor, schema: TableSchema) -> dict[str, WrittenValue]:
    """Parse the condition of REPLACE WHERE.

    Raises ``InvalidArgument`` if it does not select whole partitions by equality.
    """
    value_by_column: dict[str, WrittenValue] = {}
    while True:
        name = words.part()
        column = next((key for key in schema.partition_keys if key.lower() == name.lower()), None)
        if column is None or column in value_by_column or not words.take("="):
            raise InvalidArgument(
                f"INSERT ... REPLACE WHERE takes partition columns ({', '.join(schema.partition_keys) or 'this table has none'}) with one "
                f"value each, joined by AND; {_OTHER_ROWS}"
            )
        words.take("DATE")
        value_by_column[column] = words.literal()
        if value_by_column[column] is None:
            raise InvalidArgument(f"INSERT ... REPLACE WHERE {column} = NULL is true for no row; name a value, {_OTHER_ROWS}")
        if not words.take("AND"):
            return value_by_column


def without_default_words(query: str) -> str:
    """Return VALUES with NULL for each value DEFAULT.

    The writer gives null the default of its column.

    >>> without_default_words("VALUES (1, DEFAULT), (DEFAULT, 'default')")
    "VALUES (1, NULL), (NULL, 'default')"
    """
    words = TokenCursor(query)
    if not words.take("VALUES"):
        return query
    parts, end, depth = list[str](), 0, 0
    for index, token in enumerate(words.tokens):
        words.at = index
        depth += (words.peek() == "(") - (words.peek() == ")")
        is_value = index and words.tokens[index - 1].text.upper() in {"(", ",", "VALUES"} and words.peek(1) in {",", ")", ""}
        if is_value and depth <= 1 and words.peek() == "DEFAULT":
            parts += [query[end : token.start], "NULL"]
            end = token.end + 1
    return "".join([*parts, query[end:]])


def _columns(words: TokenCursor, schema: TableSchema) -> list[str] | None:
    """Return the column list before the query, or None."""
    if words.peek() != "(" or words.peek(1) in {"SELECT", "WITH", "FROM", "VALUES", "("}:
        return None
    if words.peek(1) == "TABLE" and words.peek(2) not in {",", ")"}:  # a query, not a column of that name
        return None
    if words.peek(1) == ")":
        raise InvalidArgument("INSERT: the list of columns () is empty; name columns, or remove the parentheses")
    return [resolve(words.part(), schema.column_types) for _ in words.items()]


def _merges(names: KnownTables, path: str, schema: TableSchema) -> bool:
    """Return whether a write adds new columns to the table at ``path``."""
    return RowPolicy.of(schema, settings_of(names.spark, path)).merges


def _matching(name: str, schema: TableSchema, *, added: bool) -> str:
    try:
        return resolve(name, schema.column_types)
    except UnknownColumn:
        if not added:
            raise
        return name


def _dynamic(names: KnownTables) -> bool:
    """Return the session's setting of dynamic partition overwrite."""
    mode = names.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    return str(mode).lower() == "dynamic"


def _align_columns(
    rows: Any, columns: list[str], schema: TableSchema, static: dict[str, WrittenValue], *, by_name: bool, merges: bool = False
) -> Any:
    """Convert the query's columns to columns of the table.

    Texts and binaries are not cast.
    by_name: Match the columns by name instead of position.
    merges: Whether the write adds columns that the table does not have.
    """
    if by_name:
        columns = [_matching(name, schema, added=merges) for name in rows.columns]
    if len(columns) != len(rows.columns):
        column_type, field = ", ".join(columns), ", ".join(rows.columns)
        raise SchemaMismatch(
            f"INSERT has {len(rows.columns)} columns ({field}), but the table expects {len(columns)} ({column_type}); name them, or write BY NAME"
        )
    if len(set(columns)) < len(columns):
        raise InvalidArgument(f"INSERT names a column twice: {', '.join(columns)}")
    functions = functions_of(rows)
    frame = rows.toDF(*columns)
    aligned = []
    for name, field in zip(columns, rows.schema, strict=True):
        if name not in schema.column_types:
            aligned.append(functions.col(quote_name(name)))
            continue
        column_type = spark_type(schema.field(name).type)
        _refuse_assignment(name, field.dataType, column_type)
        # Do not cast a VARIANT to another type: the cast would extract parts of the value.
        extracts = has_variant(field.dataType) and not has_variant(column_type)
        keeps_type = field.dataType.typeName() in {"string", "binary"} or field.dataType == column_type or extracts
        column = functions.col(quote_name(name))
        aligned.append(column if keeps_type else column.cast(column_type).alias(name))
    constants = [functions.lit(value).cast(spark_type(schema.field(name).type)).alias(name) for name, value in static.items()]
    return frame.select(*aligned, *constants)


def _refuse_assignment(name: str, source_type: Any, column_type: Any) -> None:
    """Raise ``SchemaMismatch`` for types that Spark's store assignment keeps apart.

    A CAST would accept them: 1 would become true, and an instant a number.
    """
    if _are_apart(source_type, column_type):
        shown, target = source_type.simpleString().upper(), column_type.simpleString().upper()
        value = "CAST(... AS STRING)" if target == "BINARY" else "..."  # Spark casts nothing but texts to bytes
        raise SchemaMismatch(
            f"INSERT: column '{name}' is {target}, and its value is of type {shown}, which Spark does not store there: "
            f"write CAST({value} AS {target})"
        )


_NESTED = {"array", "map", "struct"}
_TEXTS = {"string", "char", "varchar"}


def _are_apart(source_type: Any, column_type: Any, *, in_nested: bool = False) -> bool:
    """Return whether Spark's store assignment refuses the types. Texts and binaries outside of nested values are left to the writer."""
    source, column = source_type.typeName(), column_type.typeName()
    if {"void", "variant"} & {source, column}:
        return False
    if source in _NESTED or column in _NESTED:
        parts = inner_types(source_type), inner_types(column_type)
        return (
            source != column
            or len(parts[0]) != len(parts[1])
            or any(_are_apart(*pair, in_nested=True) for pair in zip(*parts, strict=True))
        )
    if column == "binary" and source not in {*_TEXTS, "binary"}:
        return True
    if in_nested and source in {*_TEXTS, "binary"}:
        return column not in {*_TEXTS, source}
    return len({_family(source_type), _family(column_type)} - {None}) > 1


def _family(kind: Any) -> str | None:
    """Return the types among which Spark's store assignment casts. None: it is decided elsewhere."""
    name = kind.typeName()
    if name in {"byte", "short", "integer", "long", "float", "double"} or name.startswith("decimal"):
        return "number"
    return {"boolean": "boolean", "date": "time", "timestamp": "time", "timestamp_ntz": "time"}.get(name)
