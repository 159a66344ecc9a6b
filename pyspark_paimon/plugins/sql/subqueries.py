"""Subqueries in the conditions and values of DELETE and UPDATE.

Spark runs them. The result of a subquery that stands alone becomes a literal: a list for ``IN``, TRUE or FALSE for ``EXISTS``, a value
elsewhere. For one that uses the changed row, or has many values, Spark finds the primary keys of the rows that match, and their new values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from fileindex.predicate.tree import Predicate
from paimon_base.errors import InvalidArgument
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.names import KnownTables
from pyspark_paimon.plugins.sql.queries import run_query
from pyspark_paimon.plugins.sql.text.parameters import literal_sql
from pyspark_paimon.plugins.sql.text.words import TokenCursor
from pyspark_paimon.table.table import Table

_STARTS = {"SELECT", "WITH", "FROM", "VALUES", "TABLE"}
_KEY = "__paimon_key_"
Outside: TypeAlias = Callable[[str], str]
"""Rewriter of the text around subqueries."""


class _NeedsRows(Exception):  # control flow: Spark must evaluate the condition for each row
    """A subquery does not become a literal."""


@dataclass(frozen=True)
class Subqueries:
    """A condition with subqueries.

    ``names``: tables of the statement. ``table``: the changed table. ``text``: the condition.
    ``source``: the changed table in the text, with its alias.
    """

    names: KnownTables
    table: Table
    text: str
    source: str
    outside: Outside
    _params: dict[str, Any] = field(default_factory=dict)

    def literal_filter(self) -> Predicate | None:
        """Return the condition with the results of its subqueries as literals.

        None: Spark must find the rows, by ``matching_keys``.
        Raises the errors of ``spark.sql`` and ``bind_filter``.
        """
        try:
            text = self._replaced(self.text, self._bound)
        except _NeedsRows as reason:
            if not self.table.table_schema.is_primary_key_table:
                raise InvalidArgument(
                    f"WHERE {self.text:.80}: {reason}, which needs a table with a primary key. Write the values of the subquery as a list, "
                    "or merge its rows. Nothing was changed"
                ) from reason.__cause__
            return None
        return bind_filter(text, self.table.table_schema.column_types, self._params)

    def value_text(self, column: str, text: str) -> str | None:
        """Return the new value of a column with the results of its subqueries as literals.

        None: Spark must compute it for each row, by ``matching_keys``. Raises the errors of ``spark.sql``.
        """
        try:
            return self._replaced(text, partial(self._literal, text))
        except _NeedsRows as reason:
            if not self.table.table_schema.is_primary_key_table:
                raise InvalidArgument(
                    f"SET {column} = {text:.80}: {reason}, which needs a table with a primary key. Write the values of the subquery, or "
                    "merge its rows. Nothing was changed"
                ) from reason.__cause__
            return None

    def matching_keys(self, values: Mapping[str, str] | None = None) -> tuple[Any, str]:
        """Return the primary keys of the matching rows, and the condition that joins them.

        The columns have other names than those of the table.
        values: Expressions to compute for each row, by the name of their column in the result.
        """
        keys = self.table.table_schema.primary_keys
        selected = ", ".join(
            [f"{quote_name(name)} AS {_KEY}{position}" for position, name in enumerate(keys)]
            + [f"({text}) AS {name}" for name, text in (values or {}).items()]
        )
        frame = run_query(self.names, f"SELECT {selected} FROM {self.source} WHERE {self.text}")  # noqa: S608  # the user's own SQL
        return frame, " AND ".join(f"t.{quote_name(name)} = s.{_KEY}{position}" for position, name in enumerate(keys))

    def _replaced(self, text: str, literal: Callable[[str, str], str]) -> str:
        """Return a text with literals in place of its subqueries.

        literal: Returns the literal of a word before the bracket and a query.
        """
        words, parts, end = TokenCursor(text), list[str](), 0
        while not words.done:
            if words.peek() != "(" or words.peek(1) not in _STARTS:
                words.at += 1
                continue
            before = words.tokens[words.at - 1] if words.at else None
            start, kind = words.here, "" if before is None else words.peek(-1)
            words.expect("(")
            query = words.until()
            words.expect(")")
            if kind == "EXISTS" and before is not None:
                start = int(before.start)
            parts += [self.outside(text[end:start]), literal(kind, query)]
            end = words.tokens[words.at - 1].end + 1
        return "".join([*parts, self.outside(text[end:])])

    def _bound(self, kind: str, query: str) -> str:
        """Return the parameter of a filter that has a subquery's result."""
        if kind == "EXISTS":
            return self._exists(query)
        return self._list(query) if kind == "IN" else f" :{self._param(self._value(query).as_py())} "

    def _literal(self, text: str, kind: str, query: str) -> str:
        """Return a subquery's result as a literal, of the type of the query in an expression.

        text: The value that contains the subquery.
        """
        if kind == "EXISTS":
            return self._exists(query)
        if kind == "IN":
            raise _NeedsRows("IN compares a value of the row")
        kind_of_value = self._frame(query).schema.fields[0].dataType
        value = self._value(query).as_py()
        if isinstance(value, list | dict) or kind_of_value.typeName() == "variant":
            raise _NeedsRows(f"the value of the subquery has type {kind_of_value.simpleString()}")
        literal = literal_sql("subquery", value, lambda: True)
        return literal if text.strip()[1:-1].strip() == query.strip() else f" CAST({literal} AS {kind_of_value.simpleString()}) "

    def _exists(self, query: str) -> str:
        return " TRUE " if self._rows(query, 1).num_rows else " FALSE "

    def _list(self, query: str) -> str:
        frame = self._frame(query)
        if len(frame.columns) != 1:
            raise _NeedsRows("IN compares several columns")
        keyed = self.table.table_schema.is_primary_key_table
        distinct = frame.distinct()
        rows = (distinct.limit(thresholds.listed_subquery + 1) if keyed else distinct).toArrow()
        if keyed and rows.num_rows > thresholds.listed_subquery:
            raise _NeedsRows("the subquery has many values")
        return f" :{self._param(rows.column(0).combine_chunks())} "

    def _value(self, query: str) -> Any:
        """Return the value of a scalar subquery as an Arrow scalar."""
        rows = self._rows(query, 2)
        if rows.num_columns != 1 or rows.num_rows > 1:
            raise InvalidArgument(f"the subquery ({query:.80}) must have one column and at most one row. Nothing was changed")
        return rows.column(0)[0] if rows.num_rows else pa.scalar(None, rows.schema.field(0).type)

    def _rows(self, query: str, limit: int) -> pa.Table:
        return self._frame(query).limit(limit).toArrow()

    def _frame(self, query: str) -> Any:
        from pyspark.errors import AnalysisException  # noqa: PLC0415  # the caller has a session: pyspark is loaded

        try:
            frame = run_query(self.names, query)
            frame.schema  # noqa: B018  # Spark Connect may resolve a frame when its schema is asked for
        except AnalysisException as error:
            raise _NeedsRows("the subquery cannot run without the row that is changed") from error
        return frame

    def _param(self, value: Any) -> str:
        name = f"{_KEY}{len(self._params)}"
        self._params[name] = value
        return name


def has_subquery(text: str) -> bool:
    """Return whether a condition has a subquery.

    >>> has_subquery("k IN (SELECT id FROM u)"), has_subquery("k IN (1, 2) AND s = '(SELECT'")
    (True, False)
    """
    words = TokenCursor(text)
    return any(words.peek(index) == "(" and words.peek(index + 1) in _STARTS for index in range(len(words.tokens)))
