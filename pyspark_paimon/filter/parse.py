"""Entry points that turn any supported filter into a predicate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from fileindex.predicate.tree import And, ColumnRef, Compare, ComputedPredicate, In, IsNull, Or, Predicate, StartsWith
from paimon_base.errors import InvalidArgument, InvalidFilter
from pyspark_paimon.typing import Filter
from sparkexpr.values.time_zone import UTC, session_zone, time_zone

if TYPE_CHECKING:
    from pyspark_paimon.filter.ast import Condition
    from pyspark_paimon.filter.bind import Types
    from sparkexpr.expression.tree import Expression

_HAS_TIMES = re.compile("date|time|cast|year|::", re.IGNORECASE)
_HAS_NOW = re.compile(r"current_|curdate|localtimestamp|now\s*\(", re.IGNORECASE)
"""Texts whose constants differ at each call: they are not cached."""
_MAX_CACHED_TEXT = 1024
"""Longest filter text whose parsed condition is cached. Longer ones rarely repeat."""


def bind_filter(filter_: Filter, types: Types, params: Mapping[str, object] | None = None) -> Predicate | None:
    """Bind any supported filter to the columns in ``types``.

    A filter is SQL text in Spark's dialect, a Spark ``Column``, an expression of pyarrow or polars, a predicate tree, or None.
    params: Values of the parameters that SQL text names as ``:name``.

    Raises:
        InvalidFilter: the text cannot be parsed, or the filter uses something that is not supported.
        UnknownColumn: a name is not a column of the table.

    >>> from sparkexpr.values.column_type import ColumnType, Kind
    >>> bind_filter("k BETWEEN 1 AND 3.5", {"k": ColumnType(Kind.INT)})
    And(children=(Compare(column=ColumnRef(name='k', key=None), op=<Op.GE: '>='>, value=1),
                  Compare(column=ColumnRef(name='k', key=None), op=<Op.LE: '<='>, value=3)))
    """
    if isinstance(filter_, str):
        return parse_filter(filter_, types, params)
    if params:
        raise InvalidFilter("params can only be used with a filter of SQL text, which names them as :name")
    if filter_ is None:
        return None
    if isinstance(filter_, Compare | In | IsNull | StartsWith | ComputedPredicate | And | Or):
        return filter_
    from pyspark_paimon.filter.bind import bind  # noqa: PLC0415  # see test_imports

    if isinstance(filter_, pc.Expression):
        from pyspark_paimon.filter.from_arrow import arrow_condition  # noqa: PLC0415  # as above

        with time_zone(UTC):  # Arrow reads local timestamps in UTC
            return bind(arrow_condition(filter_), types)
    if type(filter_).__module__.startswith("pyspark."):
        from pyspark_paimon.filter.from_spark import column_condition  # noqa: PLC0415  # needed for a Column only

        return bind(column_condition(filter_, types), types)
    if type(filter_).__module__.startswith("polars."):
        from pyspark_paimon.filter.from_polars import whole_polars_condition  # noqa: PLC0415  # needed for polars only

        with time_zone(UTC):  # polars reads timestamps without a zone in UTC
            return bind(whole_polars_condition(filter_, types), types)
    kind = type(filter_).__name__
    raise InvalidFilter(
        f"a filter must be SQL text, a Spark Column or an expression of pyarrow or polars, not {kind}; keys are given to lookup(keys) and delete(keys=...)"
    )


def parse_filter(text: str, types: Types, params: Mapping[str, object] | None = None) -> Predicate:
    """Parse and bind a WHERE clause in Spark's SQL.

    Raises the errors of ``bind_filter``.

    >>> from sparkexpr.values.column_type import ColumnType, Kind
    >>> parse_filter("City LIKE 'Os%'", {"city": ColumnType(Kind.VARCHAR)})
    StartsWith(column=ColumnRef(name='city', key=None), prefix='Os', negated=False)
    """
    from pyspark_paimon.filter.bind import bind  # noqa: PLC0415  # see test_imports

    if '"' in text:
        from pyspark_paimon.filter.from_sql import refuse_quoted_names, sql_tokens  # noqa: PLC0415  # as below

        refuse_quoted_names(text, types, sql_tokens)
    if params or len(text) > _MAX_CACHED_TEXT or _HAS_NOW.search(text):
        return bind(_condition(text, params), types)
    zone = UTC
    if _HAS_TIMES.search(text):  # constants computed during parsing may depend on the zone: it is part of the cache key
        try:
            zone = session_zone()
        except InvalidArgument:  # the zone has no name: do not cache; the error is raised only if the zone is needed
            return bind(_condition(text, params), types)
    return bind(_cached_condition(text, zone), types)


def bind_value(value: object, types: Types) -> Expression:
    """Bind an expression on the columns in ``types``: SQL text, a Spark ``Column`` or an Arrow expression.

    A text that is the name of a column is that column.
    Raises ``UnknownColumn``, and ``InvalidFilter`` for an expression that is not supported.

    >>> from sparkexpr.values.column_type import ColumnType, Kind
    >>> str(bind_value("n + 1", {"n": ColumnType(Kind.INT)}))
    '(n + 1)'
    """
    from pyspark_paimon.filter.bind_terms import bind_term  # noqa: PLC0415  # see test_imports
    from pyspark_paimon.filter.from_sql import column_of, sql_term  # noqa: PLC0415  # as above

    if isinstance(value, str):
        return bind_term(ColumnRef(value) if value in types else sql_term(value, types), types)
    if isinstance(value, pc.Expression):
        from pyspark_paimon.filter.from_arrow import arrow_term  # noqa: PLC0415  # as above

        with time_zone(UTC):  # Arrow reads local timestamps in UTC
            return bind_term(arrow_term(value, ColumnRef), types)
    if type(value).__module__.startswith("pyspark."):
        from pyspark_paimon.filter.from_spark import column_term  # noqa: PLC0415  # needed for a Column only

        return bind_term(column_term(value, column_of), types)
    raise InvalidFilter(f"an expression is SQL text, a Spark Column or an expression of pyarrow, not {value!r:.60}")


def refuse_constant(verb: str, text: str, names: Iterable[str]) -> None:
    """Raise ``InvalidArgument`` for the filter of a change that has no column.

    ``TRUE`` and ``FALSE`` are allowed.
    """
    from pyspark_paimon.filter.from_sql import sql_tokens, writes_column  # noqa: PLC0415  # importing sqlglot takes 0.3 s

    if text.strip().upper() not in {"TRUE", "FALSE"} and not writes_column(sql_tokens(text), names):
        raise InvalidArgument(
            f"{verb}: the filter '{text:.60}' has no column, so it means every row or none; write 'TRUE' for every row, or compare a column"
        )


def _condition(text: str, params: Mapping[str, object] | None = None) -> Condition:
    from pyspark_paimon.filter.plain_text import plain_condition  # noqa: PLC0415  # see test_imports

    plain = None if params else plain_condition(text)
    if plain is not None:
        return plain
    from pyspark_paimon.filter.from_sql import sql_condition  # noqa: PLC0415  # importing sqlglot takes 0.3 s

    return sql_condition(text, params)


@lru_cache(maxsize=256)
def _cached_condition(text: str, zone: str) -> Condition:  # noqa: ARG001  # part of the cache key
    return _condition(text)
