"""Filters and columns of a query that its Paimon tables apply while reading.

Spark's Python data sources get neither from Spark. Spark evaluates the query completely, so a filter may be left out, but must not
drop a row that the query needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # as sqlglot shows it

from fileindex.predicate.projection import Projection
from fileindex.predicate.tree import TRUE, ComputedPredicate, Predicate, all_of, columns_of, computed_predicates
from manifest.schema.metadata_columns import METADATA_NAMES, metadata_names
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon.filter.parse import parse_filter
from pyspark_paimon.plugins.sql.exact_conditions import has_plain_words, is_exact
from pyspark_paimon.plugins.sql.text.pipelines import without_pipelines
from pyspark_paimon.plugins.sql.text.words import StatementTokens, tokens_of
from sparkexpr.expression.tree import ColumnValue, FunctionCall
from sparkexpr.values.column_type import STRINGS, TIMESTAMPS, ColumnType, Kind
from sparkexpr.values.time_zone import time_zone

if TYPE_CHECKING:
    from pyspark_paimon.table.scan import Scan
    from pyspark_paimon.table.table import Table

_SPARK_DIGITS = 6


@dataclass(frozen=True)
class Usage:
    """What a query needs of one of its tables.

    conditions: Conditions of WHERE on this table alone, as SQL text without the table's name.
    is_whole: The query has no other conditions of WHERE beside this table, and Spark reads its text as we do.
    names: Words of the query in upper case, among which are all needed columns. None: all columns.
    metadata: Words of the query that may be metadata columns.
    """

    conditions: tuple[str, ...] = ()
    names: frozenset[str] | None = None
    metadata: frozenset[str] = frozenset()
    is_whole: bool = False

    def metadata_of(self, table: Table) -> list[str]:
        """Return the metadata columns of a table that the query names."""
        return metadata_names(sorted(self.metadata), table.table_schema) if self.metadata else []

    def scan(self, table: Table, travel: Mapping[str, Any], zone: Callable[[], str]) -> tuple[Scan, Projection]:
        """Return the scan of the table for the query, and the conditions that it applies.

        ``travel``: arguments of ``scan``. ``zone``: returns the time zone of the session.
        """
        # An older snapshot or a setting may give the columns of an older schema.
        scan = table.scan(**travel)
        schema = scan.table_schema
        metadata_columns = self.metadata_of(table)
        if self.names is None:
            columns = [*schema.names, *metadata_columns] if metadata_columns else None
        else:
            columns = [*(name for name in schema.names if name.upper() in self.names), *metadata_columns] or list(schema.names[:1])
        if columns is not None:
            scan = table.scan(columns=columns, **travel) if metadata_columns else scan.projected(columns)
        pushed = self.projection(schema, zone)
        return scan if pushed.inclusive == TRUE else scan.narrowed(pushed.inclusive), pushed

    def projection(self, schema: TableSchema, zone: Callable[[], str]) -> Projection:
        """Return the conditions that a scan evaluates. Exact: they are all that the query has, and Spark finds the same rows by them."""
        predicates, exact = list[Predicate](), self.is_whole
        for text in self.conditions:
            predicate = _evaluable(text, schema, zone)
            exact = exact and predicate is not None and is_exact(text, schema.column_types)
            predicates += [] if predicate is None else [predicate]
        return Projection(all_of(*predicates), exact=exact)


def _evaluable(text: str, schema: TableSchema, zone: Callable[[], str]) -> Predicate | None:
    """Return a condition that a scan evaluates as Spark does. None: only Spark does."""
    try:
        with time_zone(zone):
            predicate = parse_filter(text, schema.column_types)
    except PaimonError:
        return None  # Spark evaluates it, and reports errors
    if any(is_truncated(schema.column_types[name]) for name in columns_of(predicate)):
        return None  # more rows have the truncated value
    # Without ANSI mode, Spark computes null where we raise an error. A LIKE has no errors.
    return predicate if all(map(_is_like, computed_predicates(predicate))) else None


def is_truncated(column_type: ColumnType) -> bool:
    """Return whether Spark's values of a column have fewer digits of a second than the stored ones."""
    parts = [column_type.key, column_type.value, *(part for _, part in column_type.fields)]
    is_time = column_type.kind in TIMESTAMPS or column_type.kind is Kind.TIME
    return (is_time and column_type.precision > _SPARK_DIGITS) or any(part is not None and is_truncated(part) for part in parts)


def _is_like(computed: ComputedPredicate) -> bool:
    """Return whether a predicate is a LIKE of a text column."""
    test = computed.test
    if not isinstance(test, FunctionCall) or test.function != "like":
        return False
    value = test.arguments[0]
    while isinstance(value, FunctionCall) and value.function == "cast" and value.arguments[0].type.kind in STRINGS:
        value = value.arguments[0]
    return isinstance(value, ColumnValue)


@dataclass(frozen=True)
class QueryTree:
    """Tree of a query. Callers share it, so they must not change it.

    is_whole: False: operators of a pipeline are left out, so it says only which rows and columns its tables need.
    """

    tree: exp.Expr
    is_whole: bool


@lru_cache(maxsize=8)  # several steps of one statement read its query
def parse_query(text: str) -> QueryTree | None:
    """Return the tree of a query. None: it cannot be read, or depends on settings of the session."""
    if '"' in text or "\\" in text or "${" in text:  # Spark replaces variables
        return None
    try:
        if any("'" in word.text for word in tokens_of(text) if word.kind is TokenType.STRING):  # what two quotes in a text mean is set, too
            return None
        plain, is_whole = without_pipelines(text)
        return QueryTree(sqlglot.parse_one(plain, dialect=StatementTokens), is_whole)
    except (SqlglotError, RecursionError, InvalidArgument):
        return None


def select_of_one_table(text: str, clauses: Collection[str]) -> exp.Select | None:
    """Return the tree of a SELECT from one table, with no other than these clauses. None: it is something else."""
    query = parse_query(text)
    tree = query.tree if query is not None and query.is_whole else None
    if not isinstance(tree, exp.Select) or {name for name, value in tree.args.items() if value} - set(clauses):
        return None
    source = tree.args.get("from_")
    table = source.this if isinstance(source, exp.From) else None
    changes = ("pivots", "sample", "joins", "laterals")
    if not isinstance(table, exp.Table) or renames_columns(table) or any(table.args.get(name) for name in changes):
        return None
    return tree


def column_name(node: exp.Expr, table: str) -> str | None:
    """Return the name of a column of the table. None: it is something else."""
    if not isinstance(node, exp.Column) or node.args.get("db") or (node.table and node.table.lower() != table.lower()):
        return None
    return None if isinstance(node.this, exp.Star) else node.name


def usages(text: str) -> dict[int, Usage]:
    """Return the usage of each table of a query, by the position of its name in the text.

    Empty if the query cannot be read; Spark then reads all rows and columns.

    >>> usages("SELECT x.a FROM db.t AS x JOIN db.u ON x.id = u.id WHERE x.a = 1 AND x.b > u.b")[16].conditions
    ('a = 1',)
    """
    query = parse_query(text)
    if query is None:
        return {}
    words = tokens_of(text)  # also those of operators that the tree does not have
    parts = (part.upper() for word in words for part in (word.text, *word.text.split(".")))
    names = frozenset(parts) if _names_columns(query.tree) else None
    metadata = METADATA_NAMES.intersection(word.text for word in words if word.kind is not TokenType.STRING)
    is_whole_query = query.is_whole and has_plain_words(text, words)
    usage_by_start = {}
    for table in query.tree.find_all(exp.Table):
        first = next((part for part in table.parts if isinstance(part, exp.Identifier)), None)
        start = None if first is None else first.meta.get("start")
        if start is not None:
            conditions, is_whole = ((), False) if renames_columns(table) else _conditions(table)
            usage_by_start[start] = Usage(conditions, None if renames_columns(table) else names, metadata, is_whole_query and is_whole)
    return usage_by_start


def renames_columns(table: exp.Table) -> bool:
    """Return whether the alias of a table names its columns, too: ``t AS x(a, b)``."""
    alias = table.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


def _names_columns(tree: exp.Expr) -> bool:
    """Return whether a query names all columns of its tables that it needs."""
    if not isinstance(tree, exp.Query) or tree.find(exp.Pivot) is not None:
        return False
    if any(join.args.get("method") == "NATURAL" for join in tree.find_all(exp.Join)):
        return False
    return all(isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))


def _conditions(table: exp.Table) -> tuple[tuple[str, ...], bool]:
    """Return the conditions of WHERE that concern one table alone, and whether there are no others."""
    select = table.parent.parent if isinstance(table.parent, exp.From | exp.Join) else None
    if not isinstance(select, exp.Select):
        return (), False
    if select.args.get("where") is None:
        return (), True
    if table.args.get("pivots") or table.args.get("sample") or select.args.get("sample") or _may_be_null(table, select):
        return (), False
    alone = isinstance(table.parent, exp.From) and not select.args.get("joins") and not select.args.get("laterals")
    where = select.args["where"].this
    same_case = all(column.table in {"", table.alias_or_name} for column in where.find_all(exp.Column))
    parts = list(terms(where))
    texts = [text for term in parts if (text := _condition(term, table, alone=alone)) is not None]
    return tuple(texts), same_case and len(texts) == len(parts)


def _condition(term: exp.Expr, table: exp.Table, *, alone: bool) -> str | None:
    """Return the text of a condition on one table. None: it has other columns, functions or queries."""
    columns = list(term.find_all(exp.Column))
    mine = all((column.table.lower() == table.alias_or_name.lower()) if column.table else alone for column in columns)
    if not columns or not mine or any(column.args.get("db") for column in columns) or any(map(_computes, term.walk())):
        return None
    mine_alone = _without_table(term)
    text = mine_alone.sql(dialect=StatementTokens)
    # A text that reads differently is not what the user wrote.
    same = sqlglot.parse_one(text, dialect=StatementTokens).transform(_as_cast) == mine_alone.transform(_as_cast)
    return text if same else None


def _computes(node: exp.Expr) -> bool:
    """Return whether a node is a query or a function, other than a typed literal."""
    is_literal = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)
    return isinstance(node, exp.Query) or (isinstance(node, exp.Func) and not isinstance(node, exp.Connector) and not is_literal)


def _as_cast(node: exp.Expr) -> exp.Expr:
    """Return a cast for a typed literal: ``DATE'2026-01-31'`` is written as one."""
    return exp.Cast(this=node.this, to=node.args["to"]) if isinstance(node, exp.TryCast) else node


def _without_table(term: exp.Expr) -> exp.Expr:
    unqualified = term.copy()
    for column in list(unqualified.find_all(exp.Column)):
        column.set("table", None)
    return unqualified


def terms(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a condition that all have to be true."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        yield from terms(condition.left)
        yield from terms(condition.right)
    else:
        yield condition


def _may_be_null(table: exp.Table, select: exp.Select) -> bool:
    """Return whether an outer join may replace the table's rows by nulls."""
    joins = select.args.get("joins") or []
    join_index = joins.index(table.parent) if isinstance(table.parent, exp.Join) else -1
    is_outer = join_index >= 0 and (joins[join_index].side in {"LEFT", "FULL"} or joins[join_index].kind in {"SEMI", "ANTI"})
    return is_outer or any(join.side in {"RIGHT", "FULL"} for join in joins[join_index + 1 :])
