"""Small scans of a query. Their rows are part of the query's plan, or are its result."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from manifest.types.data_type import DataField
from paimon_base.thresholds import thresholds
from pyspark_paimon.frames.spark_types import spark_schema
from pyspark_paimon.plugins.sql.answers import frame_of_batches
from pyspark_paimon.plugins.sql.join_keys import TableScan
from pyspark_paimon.plugins.sql.pushdown import is_truncated, select_of_one_table
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from pyspark_paimon.table.scan import Scan
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind

_PLAIN = {Kind.BOOLEAN, *INTEGERS, *FLOATS, Kind.DECIMAL, Kind.DATE, *STRINGS, *BINARIES, *TIMESTAMPS}
"""Kinds of values that Spark takes from Arrow, and gives, unchanged."""


_FUNCTIONS = {"USER", "CURRENT_USER", "SESSION_USER", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"}
"""Functions that need no parentheses."""


def small_rows(source: TableScan) -> pa.Table | None:
    """Return the rows of a small scan: a plan that reads them costs more. None: Spark reads them."""
    scan, max_bytes = source.scan, thresholds.driver_bytes if source.filtered else thresholds.sent_bytes
    return scan._rows_if_small(max_bytes) if max_bytes and _is_plain(scan) else None  # noqa: SLF001  # users have to_arrow()


def _is_plain(scan: Scan) -> bool:
    """Return whether rows of a scan may be part of a plan: each column is of the table, and of a type that Spark takes from Arrow."""
    types = [scan.table_schema.column_types.get(name) for name in scan.schema.names]
    return bool(types) and all(type_ is not None and type_.kind in _PLAIN and not is_truncated(type_) for type_ in types)


def frame_of_small(spark: Any, scan: Scan, rows: pa.Table) -> Any:
    """Return the rows of a small scan as a DataFrame."""
    return frame_of_batches(spark, rows.to_batches(), spark_schema([scan.table_schema.field(name) for name in scan.schema.names]))


def plain_answer(spark: Any, text: str, scan: Scan, rows: pa.Table) -> Any:
    """Return the result of a query of columns of one table as a DataFrame. None: it computes something.

    rows: Rows of the scan, which applies all conditions of the query.
    """
    columns = _selected_columns(text)
    if columns is None:
        return None
    schema = scan.table_schema
    columns = columns or [(name, name) for name in schema.names]
    results = [result for _, result in columns]
    # Spark finds a column of another case, and a result may have a name twice.
    if not {name for name, _ in columns} <= set(rows.column_names) or len(set(results)) < len(results):
        return None
    named_rows = rows.select([name for name, _ in columns]).rename_columns(results)
    fields = [DataField(schema.field(name).id, result, schema.field(name).type, schema.field(name).description) for name, result in columns]
    return frame_of_batches(spark, named_rows.to_batches(), spark_schema(fields))


def _selected_columns(text: str) -> list[tuple[str, str]] | None:
    """Return the columns that a query of one table selects, and their names in its result. Empty: all columns. None: it does other things.

    >>> _selected_columns("SELECT t.a, b AS c FROM db.t WHERE a = 1"), _selected_columns("SELECT * FROM t")
    ([('a', 'a'), ('b', 'c')], [])
    >>> _selected_columns("SELECT +a FROM t"), _selected_columns("SELECT a, FROM t"), _selected_columns("SELECT a FROM t LIMIT 1")
    (None, None, None)
    """
    select = select_of_one_table(text, {"expressions", "from_", "where"})
    if select is None:
        return None
    table, words, columns = select.args["from_"].this.alias_or_name, TokenCursor(text), list[tuple[str, str]]()
    if not words.take("SELECT"):
        return None
    if words.take("*", "FROM"):
        return []
    while True:  # sqlglot reads more than Spark, such as a comma before FROM
        name = _name(words)
        if words.take("."):
            qualifier, name = name, _name(words)
            if qualifier != table:
                return None
        renamed = words.take("AS") or words.peek() not in {",", "FROM"}
        result = _name(words) if renamed else name
        if name is None or result is None:
            return None
        columns.append((name, result))
        if words.take("FROM"):
            return columns
        if not words.take(","):
            return None


def _name(words: TokenCursor) -> str | None:
    """Read a name without dots. None: it is something else, or a word that Spark also takes for a function."""
    if words.done or words.tokens[words.at].kind not in {TokenType.VAR, TokenType.IDENTIFIER} or words.peek() in _FUNCTIONS:
        return None
    return words.part()
