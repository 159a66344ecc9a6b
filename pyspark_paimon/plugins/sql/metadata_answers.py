"""Queries that the metadata and indexes of one table answer: counts, minima and maxima, also of groups.

Spark does not ask a Python data source for them, so it would read every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from manifest.schema.table_schema import TableSchema
from paimon_base.errors import PaimonError
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.frames.spark_types import spark_schema
from pyspark_paimon.plugins.sql.answers import frame_of_batches
from pyspark_paimon.plugins.sql.pushdown import column_name, select_of_one_table
from pyspark_paimon.table.scan import Scan
from sparkexpr.values.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, TIMESTAMPS, Kind

_CLAUSES = {"expressions", "from_", "where", "group"}
_FUNCTIONS = {exp.Count: "count", exp.Min: "min", exp.Max: "max"}
_DISTINCT, _KEY = "count_distinct", "key"
_ROWS = "rows of the scan"
_KEYS = {Kind.BOOLEAN, *INTEGERS, Kind.DATE, Kind.DECIMAL, *STRINGS, *BINARIES, *TIMESTAMPS}
"""Kinds of group keys and distinct values. Spark may show another one of equal floats."""
_MICROS = 6


def metadata_answer(spark: Any, text: str, scan: Scan, query: str) -> Any:
    """Return the result of a query as a DataFrame. None: it needs data files.

    scan: Scan of its only table, which applies all its conditions.
    query: The text with ``{paimon_0}`` in place of the table.
    """
    aggregate = SimpleAggregate.of(text)
    return None if aggregate is None else aggregate.answer(spark, scan, query)


@dataclass(frozen=True)
class SimpleAggregate:
    """A query that only computes counts, minima and maxima of one table.

    items: Function and column of each result column. Column None: ``count`` counts rows. Function ``key``: a column of GROUP BY.
    keys: Columns of GROUP BY. None: there is no such clause.
    """

    items: tuple[tuple[str, str | None], ...]
    keys: tuple[str, ...] | None = None

    @classmethod
    def of(cls, text: str) -> SimpleAggregate | None:
        """Return what the query computes. None: it does other things, too.

        >>> SimpleAggregate.of("SELECT count(*), min(t.a) AS low FROM t WHERE p = 1 AND q = 2")
        SimpleAggregate(items=(('count', None), ('min', 'a')), keys=None)
        >>> SimpleAggregate.of("SELECT a, count(DISTINCT b) FROM t GROUP BY a")
        SimpleAggregate(items=(('key', 'a'), ('count_distinct', 'b')), keys=('a',))
        >>> SimpleAggregate.of("SELECT count(*) FROM t GROUP BY a HAVING count(*) > 1")
        """
        select = select_of_one_table(text, _CLAUSES)
        if select is None:
            return None
        table, group = select.args["from_"].this.alias_or_name, select.args.get("group")
        items = [_item(expression.unalias(), table) for expression in select.expressions]
        plain_items = tuple(item for item in items if item is not None)
        keys = None if group is None else _group_keys(group, table)
        if (
            len(plain_items) < len(items)
            or (group is not None and not keys)
            or (group is None and any(item[0] == _KEY for item in plain_items))
        ):
            return None
        return cls(plain_items, keys)

    def answer(self, spark: Any, scan: Scan, text: str) -> Any:
        """Return the result as a DataFrame. None: it needs data files.

        text: The query with ``{paimon_0}`` in place of the table.
        """
        schema = scan.table_schema
        try:
            columns = [(function, None if name is None else resolve(name, schema.column_types)) for function, name in self.items]
            keys = tuple(dict.fromkeys(resolve(name, schema.column_types) for name in self.keys or ()))
            if any(
                name is not None and _is_unsure(schema, name, function) for function, name in [*columns, *((_KEY, key) for key in keys)]
            ):
                return None
            functions_by_column: dict[str, list[str]] = {_ROWS: ["count"]}
            for function, name in columns:
                if name is not None and function != _KEY:
                    functions_by_column.setdefault(name, []).append(function)
                elif name not in {None, *keys}:
                    return None
            distinct = any(function == _DISTINCT for function, _ in columns)
            by = keys if set(keys) <= set(schema.partition_keys) and not distinct else {key: quote_name(key) for key in keys}
            aggregated = scan._aggregate_cheaply(functions_by_column, by)  # noqa: SLF001  # users have aggregate()
        except PaimonError:
            return None  # Spark reports the error, or reads the rows
        if aggregated is None:
            return None
        empty = spark.createDataFrame([], spark_schema(schema.fields))
        result = spark.sql(text, paimon_0=empty).schema
        if len(set(result.names)) < len(result.names):
            return None
        arrays = [aggregated.column(_result_name(function, name)).combine_chunks() for function, name in columns]
        return frame_of_batches(spark, [pa.RecordBatch.from_arrays(arrays, names=list(result.names))], result)


def _result_name(function: str, name: str | None) -> str:
    return _ROWS if name is None else name if function == _KEY else f"{name}_{function}"


def _group_keys(group: exp.Expr, table: str) -> tuple[str, ...]:
    """Return the columns of GROUP BY. Empty: it has other expressions, or several grouping sets."""
    if {name for name, value in group.args.items() if value} - {"expressions"}:
        return ()
    names = [column_name(expression, table) for expression in group.expressions]
    return tuple(name for name in names if name is not None) if None not in names else ()


def _item(node: exp.Expr, table: str) -> tuple[str, str | None] | None:
    """Return function and column of a result column. None: it is something else."""
    key = column_name(node, table)
    if key is not None:
        return _KEY, key
    function = next((name for kind, name in _FUNCTIONS.items() if isinstance(node, kind)), None)
    if function is None or node.args.get("expressions"):
        return None
    value = node.this
    if function == "count" and (isinstance(value, exp.Star) or (isinstance(value, exp.Literal) and not value.is_string)):
        return function, None
    if function == "count" and isinstance(value, exp.Distinct) and len(value.expressions) == 1 and not value.args.get("on"):
        function, value = _DISTINCT, value.expressions[0]
    name = column_name(value, table)
    return None if name is None else (function, name)


def _is_unsure(schema: TableSchema, name: str, function: str) -> bool:
    """Return whether Spark may choose another one of equal values: -0.0 equals 0.0, and it has no nanoseconds."""
    column_type = schema.field(name).type
    if function in {_KEY, _DISTINCT}:
        return column_type.kind not in _KEYS or (column_type.kind in TIMESTAMPS and column_type.column_type.precision > _MICROS)
    return function != "count" and column_type.kind in FLOATS
