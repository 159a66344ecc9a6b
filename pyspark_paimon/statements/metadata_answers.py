"""Queries that the metadata of one table answers: counts, minima and maxima.

Spark does not ask a Python data source for them, so it would read every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from fileindex.base.column_type import FLOATS
from fileindex.base.errors import PaimonError
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.filter.columns import resolve
from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark, spark_schema
from pyspark_paimon.statements.pushdown import parse_query, renames_columns, terms
from pyspark_paimon.table.scan import Scan

_CLAUSES = {"expressions", "from_", "where"}
_FUNCTIONS = {exp.Count: "count", exp.Min: "min", exp.Max: "max"}
_ROWS = "rows of the scan"


@dataclass(frozen=True)
class SimpleAggregate:
    """A query that only computes counts, minima and maxima of one table.

    items: Function and column of each result column. Column None: ``count`` counts rows.
    condition_count: Number of the conditions of WHERE.
    """

    items: tuple[tuple[str, str | None], ...]
    condition_count: int

    @classmethod
    def of(cls, text: str) -> SimpleAggregate | None:
        """Return what the query computes. None: it does other things, too.

        >>> SimpleAggregate.of("SELECT count(*), min(t.a) AS low FROM t WHERE p = 1 AND q = 2")
        SimpleAggregate(items=(('count', None), ('min', 'a')), condition_count=2)
        >>> SimpleAggregate.of("SELECT count(*) FROM t GROUP BY a")
        """
        tree = parse_query(text)
        if not isinstance(tree, exp.Select) or {name for name, value in tree.args.items() if value} - _CLAUSES:
            return None
        source = tree.args.get("from_")
        if not isinstance(source, exp.From) or not isinstance(source.this, exp.Table) or _is_changed(source.this):
            return None
        items = [_item(one.unalias(), source.this.alias_or_name) for one in tree.expressions]
        where = tree.args.get("where")
        known = tuple(item for item in items if item is not None)
        return cls(known, len(list(terms(where.this))) if where else 0) if len(known) == len(items) else None

    def answer(self, spark: Any, scan: Scan, text: str) -> Any:
        """Return the result as a DataFrame. None: it needs data files.

        text: The query with ``{paimon}`` in place of the table.
        """
        schema = scan.table_schema
        try:
            columns = [(function, None if name is None else resolve(name, schema.column_types)) for function, name in self.items]
            if any(name is not None and function != "count" and _is_unsure(schema, name) for function, name in columns):
                return None
            wanted: dict[str, list[str]] = {_ROWS: ["count"]}
            for function, name in columns:
                if name is not None:
                    wanted.setdefault(name, []).append(function)
            found = scan._aggregate_cheaply(wanted)  # noqa: SLF001  # users have aggregate()
        except PaimonError:
            return None  # Spark reports the error, or reads the rows
        if found is None:
            return None
        empty = spark.createDataFrame([], spark_schema(schema.fields))
        result = spark.sql(text, paimon=empty).schema
        if len(set(result.names)) < len(result.names):
            return None
        arrays = [found.column(_ROWS if name is None else f"{name}_{function}").combine_chunks() for function, name in columns]
        rows = cast_for_spark(pa.RecordBatch.from_arrays(arrays, names=list(result.names)), arrow_for_spark(result))
        return spark.createDataFrame(pa.Table.from_batches([rows]), result)


def _is_changed(table: exp.Table) -> bool:
    return renames_columns(table) or any(table.args.get(name) for name in ("pivots", "sample", "joins", "laterals"))


def _item(node: exp.Expr, table: str) -> tuple[str, str | None] | None:
    """Return function and column of a result column. None: it is something else."""
    function = next((name for kind, name in _FUNCTIONS.items() if isinstance(node, kind)), None)
    if function is None or node.args.get("expressions"):
        return None
    value = node.this
    if function == "count" and (isinstance(value, exp.Star) or (isinstance(value, exp.Literal) and not value.is_string)):
        return function, None
    if not isinstance(value, exp.Column) or value.args.get("db") or (value.table and value.table.lower() != table.lower()):
        return None
    return function, value.name


def _is_unsure(schema: TableSchema, name: str) -> bool:
    """Return whether Spark may choose another one of equal values: -0.0 equals 0.0."""
    return schema.field(name).type.kind in FLOATS


__all__ = ["SimpleAggregate"]
