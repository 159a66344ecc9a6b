"""INSERT INTO and INSERT OVERWRITE: a query's columns are those of the table by position, or by name."""

from __future__ import annotations

from typing import Any

from fileindex.base.errors import InvalidArgument
from manifest.io.errors import SchemaMismatch
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.frames.spark_functions import functions_of
from pyspark_paimon.frames.spark_types import spark_type
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.statements.answers import frame_of_result
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.queries import queried
from pyspark_paimon.statements.words import Words, WrittenValue


def insert(names: KnownTables, words: Words) -> Any:
    """``INSERT INTO | OVERWRITE [TABLE] t [PARTITION (...)] [BY NAME | (columns)] query``; None for a table of Spark's own."""
    overwrite = words.take("OVERWRITE")
    if not overwrite:
        words.need("INTO")
    words.take("TABLE")
    table = names.find(words.name())
    if table is None or (words.word() == "WITH" and words.word(1) == "("):
        return None  # with options, our source does it
    schema = table.table_schema
    static: dict[str, WrittenValue] = {}
    if words.take("PARTITION"):
        if words.word(1) == ")":
            raise InvalidArgument("INSERT has no columns in PARTITION ()")
        for _ in words.listed():
            name = resolve(words.part(), schema.column_types)
            if words.take("="):
                words.take("DATE")
                if name in static:
                    raise InvalidArgument(f"PARTITION names the column '{name}' twice")
                static[name] = words.literal()
    by_name = words.take("BY", "NAME")
    columns = _columns(words, schema)
    rows = queried(names, words.rest())
    frame = _placed(rows, [name for name in columns or schema.names if name not in static], schema, static, by_name=by_name)
    dynamic = overwrite and not static
    done = table.write(
        frame,
        mode="overwrite" if overwrite else None,
        partition=static or None if overwrite else None,
        options={"dynamic-partition-overwrite": "false"} if dynamic and not _dynamic(names) else None,
    )
    return frame_of_result(names.spark, done)


def _columns(words: Words, schema: TableSchema) -> list[str] | None:
    """The list of columns before the query; None where there is none."""
    if words.word() != "(" or words.word(1) in {"SELECT", "WITH", "FROM", "VALUES", "("}:
        return None
    if words.word(1) == ")":
        raise InvalidArgument("INSERT lists no columns in (): name some, or leave the brackets out")
    return [resolve(words.part(), schema.column_types) for _ in words.listed()]


def _dynamic(names: KnownTables) -> bool:
    """Whether an overwrite replaces the partitions of its rows alone, as the session says."""
    mode = names.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")
    return str(mode).lower() == "dynamic"


def _placed(rows: Any, columns: list[str], schema: TableSchema, static: dict[str, WrittenValue], *, by_name: bool) -> Any:
    """The rows in columns of the table, in types that hold their values; texts stay texts."""
    if by_name:
        columns = [resolve(name, schema.column_types) for name in rows.columns]
    if len(columns) != len(rows.columns):
        wanted, given = ", ".join(columns), ", ".join(rows.columns)
        raise SchemaMismatch(f"INSERT has {len(rows.columns)} columns ({given}) for {len(columns)} ({wanted}); name them, or write BY NAME")
    if len(set(columns)) < len(columns):
        raise InvalidArgument(f"INSERT names a column twice: {', '.join(columns)}")
    functions = functions_of(rows)
    frame = rows.toDF(*columns)
    made = []
    for name, given in zip(columns, frame.schema, strict=True):
        wanted = spark_type(schema.field(name).type)
        # A cast of a VARIANT would take its parts from the value: it is written as it is.
        kept = given.dataType.typeName() in {"string", "binary"} or given.dataType == wanted or _has_variant(given.dataType)
        column = functions.col(quoted_name(name))
        made.append(column if kept else column.cast(wanted).alias(name))
    constants = [functions.lit(value).cast(spark_type(schema.field(name).type)).alias(name) for name, value in static.items()]
    return frame.select(*made, *constants)


def _has_variant(kind: Any) -> bool:
    """Whether a Spark type is VARIANT, or has one inside."""
    inner = (getattr(kind, name, None) for name in ("elementType", "keyType", "valueType"))
    parts = [part for part in inner if part is not None] + [field.dataType for field in getattr(kind, "fields", ())]
    return kind.typeName() == "variant" or any(map(_has_variant, parts))


__all__ = ["insert"]
