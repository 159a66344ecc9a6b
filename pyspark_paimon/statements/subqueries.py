"""Subqueries in the conditions of DELETE and UPDATE.

Spark runs them. The result of a subquery that stands alone becomes a literal: a list for ``IN``, TRUE or FALSE for ``EXISTS``, a value
elsewhere. For one that uses the changed row, or has many values, Spark finds the primary keys of the rows that match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from fileindex.base.thresholds import thresholds
from fileindex.predicate.tree import Predicate
from pyspark_paimon.filter.parse import bind_filter
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.statements.names import KnownTables
from pyspark_paimon.statements.queries import run_query
from pyspark_paimon.statements.words import TokenCursor
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
            text = self._replaced()
        except _NeedsRows as reason:
            if not self.table.table_schema.is_primary_key_table:
                raise InvalidArgument(
                    f"WHERE {self.text:.80}: {reason}, which needs a table with a primary key. Write the values of the subquery as a list, "
                    "or merge its rows. Nothing was changed"
                ) from reason.__cause__
            return None
        return bind_filter(text, self.table.table_schema.column_types, self._params)

    def matching_keys(self) -> tuple[Any, str]:
        """Return the primary keys of the matching rows, and the condition that joins them.

        The columns have other names than those of the table.
        """
        keys = self.table.table_schema.primary_keys
        chosen = ", ".join(f"{quote_name(name)} AS {_KEY}{at}" for at, name in enumerate(keys))
        frame = run_query(self.names, f"SELECT {chosen} FROM {self.source} WHERE {self.text}")  # noqa: S608  # the user's own SQL
        return frame, " AND ".join(f"t.{quote_name(name)} = s.{_KEY}{at}" for at, name in enumerate(keys))

    def _replaced(self) -> str:
        words, parts, end = TokenCursor(self.text), list[str](), 0
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
                start, literal = int(before.start), self._exists(query)
            else:
                literal = self._list(query) if kind == "IN" else self._value(query)
            parts += [self.outside(self.text[end:start]), literal]
            end = words.tokens[words.at - 1].end + 1
        return "".join([*parts, self.outside(self.text[end:])])

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

    def _value(self, query: str) -> str:
        rows = self._rows(query, 2)
        if rows.num_columns != 1 or rows.num_rows > 1:
            raise InvalidArgument(f"the subquery ({query:.80}) must have one column and at most one row. Nothing was changed")
        return f" :{self._param(rows.column(0)[0].as_py() if rows.num_rows else None)} "

    def _rows(self, query: str, most: int) -> pa.Table:
        return self._frame(query).limit(most).toArrow()

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
    return any(words.peek(at) == "(" and words.peek(at + 1) in _STARTS for at in range(len(words.tokens)))


__all__ = ["Subqueries", "has_subquery"]
