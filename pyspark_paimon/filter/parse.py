"""The filter languages: SQL text in Spark's dialect, a Spark ``Column``, a pyarrow expression, or a ready predicate tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from fileindex.base.errors import InvalidArgument, InvalidFilter
from fileindex.base.time_zone import UTC, session_zone, time_zone
from fileindex.predicate.tree import And, Compare, Formula, In, IsNull, Or, Predicate, StartsWith
from pyspark_paimon.typing import Filter

if TYPE_CHECKING:
    from pyspark_paimon.filter.ast import Condition
    from pyspark_paimon.filter.bind import Types

_HAS_TIMES = re.compile("date|time|cast|year|::", re.IGNORECASE)
_KEPT_TEXT = 1024
"""Characters of a filter that is held parsed; longer ones are rarely asked again."""


def bind_filter(filter_: Filter, types: Types, params: Mapping[str, object] | None = None) -> Predicate | None:
    """Any filter as a predicate on the columns in ``types``; None for none. ``params``: the values of SQL text's ``:name``s.

    Raises:
        InvalidFilter: the text cannot be parsed, or says what files cannot answer.
        UnknownColumn: a name is none of the columns.

    >>> from fileindex.base.column_type import ColumnType, Kind
    >>> bind_filter("k BETWEEN 1 AND 3.5", {"k": ColumnType(Kind.INT)})
    And(children=(Compare(column=ColumnRef(name='k', key=None), op=<Op.GE: '>='>, value=1),
                  Compare(column=ColumnRef(name='k', key=None), op=<Op.LE: '<='>, value=3)))
    """
    if isinstance(filter_, str):
        return parse_filter(filter_, types, params)
    if params:
        raise InvalidFilter("params go with a filter of SQL text, which names them as :name")
    if filter_ is None:
        return None
    if isinstance(filter_, Compare | In | IsNull | StartsWith | Formula | And | Or):
        return filter_
    from pyspark_paimon.filter.bind import bind  # noqa: PLC0415  # see test_imports

    if isinstance(filter_, pc.Expression):
        from pyspark_paimon.filter.from_arrow import arrow_condition  # noqa: PLC0415  # as above

        with time_zone(UTC):  # Arrow's own reading
            return bind(arrow_condition(filter_), types)
    if type(filter_).__module__.startswith("pyspark."):
        from pyspark_paimon.filter.from_spark import column_condition  # noqa: PLC0415  # a Column is at hand, so pyspark is

        return bind(column_condition(filter_, types), types)
    raise InvalidFilter(f"a filter is SQL text, a Spark Column or a pyarrow expression, not {type(filter_).__name__}")


def parse_filter(text: str, types: Types, params: Mapping[str, object] | None = None) -> Predicate:
    """The predicate of a WHERE clause in Spark's SQL. Raises as ``bind_filter``.

    >>> from fileindex.base.column_type import ColumnType, Kind
    >>> parse_filter("City LIKE 'Os%'", {"city": ColumnType(Kind.VARCHAR)})
    StartsWith(column=ColumnRef(name='city', key=None), prefix='Os', negated=False)
    """
    from pyspark_paimon.filter.bind import bind  # noqa: PLC0415  # see test_imports

    if '"' in text:
        from pyspark_paimon.filter.from_sql import sql_tokens  # noqa: PLC0415  # as below
        from pyspark_paimon.filter.quoted_names import refuse_quoted_names  # noqa: PLC0415  # as below

        refuse_quoted_names(text, types, sql_tokens)
    if params or len(text) > _KEPT_TEXT:
        return bind(_condition(text, params), types)
    zone = UTC
    if _HAS_TIMES.search(text):  # constants that are computed while the text is read may depend on the zone
        try:
            zone = session_zone()
        except InvalidArgument:  # a zone without a name matters only where it is needed
            return bind(_condition(text, params), types)
    return bind(_kept_condition(text, zone), types)


def _condition(text: str, params: Mapping[str, object] | None = None) -> Condition:
    from pyspark_paimon.filter.from_sql import sql_condition  # noqa: PLC0415  # sqlglot takes a third of a second

    return sql_condition(text, params)


@lru_cache(maxsize=256)
def _kept_condition(text: str, zone: str) -> Condition:  # noqa: ARG001  # a part of the key
    return _condition(text)


__all__ = ["bind_filter", "parse_filter"]
