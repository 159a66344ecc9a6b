"""What a table is and has been: SHOW PARTITIONS, SHOW TBLPROPERTIES, DESCRIBE, DESCRIBE HISTORY, ANALYZE TABLE."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_paimon.request.partition_spec import displayed_like, spec_of
from pyspark_paimon.statements.answers import frame_of_result, frame_of_rows
from pyspark_paimon.statements.definition import described, described_column
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import Words, partition_spec

_OTHERS = {"DATABASE", "SCHEMA", "NAMESPACE", "FUNCTION", "QUERY", "CATALOG", "SELECT", "WITH", "("}
"""What DESCRIBE describes besides tables."""


def show_partitions(names: KnownTables, words: Words) -> Any:
    """``SHOW PARTITIONS t [PARTITION (day = '2026-01-31')]``: its partitions, with their rows and files; None for a table of Spark's own."""
    table = names.find(words.name())
    if table is None:
        return None
    wanted = partition_spec(words) if words.take("PARTITION") else {}
    words.end()
    found = table.partitions()
    if wanted:
        named = displayed_like(spec_of(wanted, table.table_schema), table.table_schema)
        found = found.filter(pa.array([named.fullmatch(text) is not None for text in found["partition"].to_pylist()], pa.bool_()))
    return frame_of_rows(names.spark, found)


def show_properties(names: KnownTables, words: Words) -> Any:
    """``SHOW TBLPROPERTIES t [('key')]``: its options, or one; None for a table of Spark's own."""
    table = names.find(words.name())
    if table is None:
        return None
    options = sorted(table.options.items())
    if not words.done:
        wanted = [".".join(words.name()) for _ in words.listed()]
        words.end()
        options = [(key, value) for key, value in options if key in wanted]
    columns = {"key": pa.array([key for key, _ in options], pa.string()), "value": pa.array([value for _, value in options], pa.string())}
    return frame_of_rows(names.spark, pa.table(columns))


def describe_history(names: KnownTables, words: Words) -> Any:
    """``DESCRIBE HISTORY t [LIMIT n]``: its snapshots, the newest first."""
    table = names.find(words.name())
    if table is None:
        return None
    most = words.whole_number() if words.take("LIMIT") else None
    words.end()
    return frame_of_rows(names.spark, table.snapshots().sort_by([("snapshot_id", "descending")]).slice(0, most))


def describe(names: KnownTables, words: Words) -> Any:
    """``DESCRIBE [TABLE] [EXTENDED] t``: its columns, and what it is; None for anything that is none of our tables."""
    words.take("TABLE")
    extended = words.take("EXTENDED") or words.take("FORMATTED")
    if words.word() in _OTHERS:
        return None
    name = words.name()
    table = names.find(name) if names.path(name) or names.of_catalog(name) else None
    if table is None:
        return None
    if not words.done:
        column = words.name()
        words.end()
        return frame_of_rows(names.spark, described_column(table, ".".join(column)))
    return frame_of_rows(names.spark, described(table, extended=extended))


def analyze(names: KnownTables, words: Words) -> Any:
    """``ANALYZE TABLE t COMPUTE STATISTICS [FOR ALL COLUMNS | FOR COLUMNS a, b]``; None for a table of Spark's own."""
    table = names.find(words.name())
    if table is None:
        return None
    words.need("COMPUTE", "STATISTICS")
    columns: list[str] | None = []
    if words.take("FOR", "ALL", "COLUMNS"):
        columns = None
    elif words.take("FOR", "COLUMNS"):
        columns = [words.part()]
        while words.take(","):
            columns.append(words.part())
    words.end()
    return frame_of_result(names.spark, table.analyze(columns))


__all__ = ["analyze", "describe", "describe_history", "show_partitions", "show_properties"]
