"""Statements SHOW PARTITIONS, SHOW TBLPROPERTIES, DESCRIBE and ANALYZE TABLE.

Each function returns None for a table that is not Paimon's.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_paimon.request.partition_spec import displayed_like, spec_of
from pyspark_paimon.statements.answers import frame_of_result, frame_of_rows
from pyspark_paimon.statements.definition import column_rows, description_rows
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.words import TokenCursor, partition_spec

_OTHERS = {"DATABASE", "SCHEMA", "NAMESPACE", "FUNCTION", "QUERY", "CATALOG", "SELECT", "WITH", "("}
"""Words after DESCRIBE that are not table names."""


def show_partitions(names: KnownTables, words: TokenCursor) -> Any:
    """Run SHOW PARTITIONS, with row and file counts.

    Syntax: ``SHOW PARTITIONS t [PARTITION (day = '2026-01-31')]``.
    """
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


def show_properties(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``SHOW TBLPROPERTIES t [('key')]``."""
    table = names.find(words.name())
    if table is None:
        return None
    options = sorted(table.options.items())
    if not words.done:
        wanted = [".".join(words.name()) for _ in words.items()]
        words.end()
        options = [(key, value) for key, value in options if key in wanted]
    columns = {"key": pa.array([key for key, _ in options], pa.string()), "value": pa.array([value for _, value in options], pa.string())}
    return frame_of_rows(names.spark, pa.table(columns))


def describe_history(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DESCRIBE HISTORY t [LIMIT n]``: snapshots, newest first."""
    table = names.find(words.name())
    if table is None:
        return None
    most = words.whole_number() if words.take("LIMIT") else None
    words.end()
    return frame_of_rows(names.spark, table.snapshots().sort_by([("snapshot_id", "descending")]).slice(0, most))


def describe(names: KnownTables, words: TokenCursor) -> Any:
    """Run ``DESCRIBE [TABLE] [EXTENDED] t [column]``."""
    words.take("TABLE")
    extended = words.take("EXTENDED") or words.take("FORMATTED")
    if words.peek() in _OTHERS:
        return None
    name = words.name()
    table = names.find(name) if names.path(name) or names.of_catalog(name) else None
    if table is None:
        return None
    if not words.done:
        column = words.name()
        words.end()
        return frame_of_rows(names.spark, column_rows(table, ".".join(column)))
    return frame_of_rows(names.spark, description_rows(table, extended=extended))


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


__all__ = ["analyze", "describe", "describe_history", "show_partitions", "show_properties"]
