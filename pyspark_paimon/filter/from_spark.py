"""Translation of Spark ``Column`` objects to conditions.

Both kinds of column are trees of calls, attributes and literals. A Connect column gives its protobuf plan, without a
server; a classic column is read from the JVM's ``ColumnNode``. This module does not import pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from paimon_base.errors import InvalidFilter
from pyspark_paimon.filter.ast import (
    Casting,
    Computation,
    Condition,
    DateLiteral,
    GivenValue,
    Literal,
    Term,
    TimeLiteral,
    TimestampLiteral,
    computation,
    item_of,
    literal_from_python,
)
from pyspark_paimon.filter.conditions import Node, combine, condition_of, terms_of
from pyspark_paimon.filter.from_sql import column_of, refuse_quoted_names, sql_condition, sql_tokens
from pyspark_paimon.filter.literals import parse_date, parse_timestamp
from pyspark_paimon.filter.sql_literals import literal_of
from pyspark_paimon.filter.sql_terms import cast_type

_NUMBERS = {"byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean"}
_NAME = re.compile(r"`(?:[^`]|``)+`|[^`.]+")
_TYPE_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


Reference = Callable[[Sequence[str]], Term]
"""Resolver from the parts of a name to a column, or a field of it."""


def column_condition(column: Any, names: Iterable[str] = ()) -> Condition:
    """Return the unbound condition of a Spark ``Column``.

    The column need not belong to a DataFrame.
    names: The table's columns. SQL text inside ``expr`` may not write them in double quotes.
    Raises ``InvalidFilter`` for a function that filters do not support.

    >>> from pyspark.sql.connect.functions import col  # doctest: +SKIP
    >>> column_condition(col("k") > 3)  # doctest: +SKIP
    Comparison(column=ColumnRef(name='k', key=None), op=<Op.GT: '>'>, value=3)
    """
    return condition_of(_Reader(tuple(names)).node(column))


def column_term(column: Any, reference: Reference) -> Term:
    """Return the unbound term of a Spark ``Column``.

    reference: Resolver of the column names in it.
    Raises ``InvalidFilter`` as ``column_condition`` does.
    """
    return _one_term(_Reader((), reference, joins=True).node(column))


@dataclass(frozen=True)
class _Reader:
    """Reader of a ``Column``.

    names: The table's columns.
    reference: Resolver of names.
    joins: Whether the names are columns of several sides.
    """

    names: tuple[str, ...]
    reference: Reference = column_of
    joins: bool = False

    def node(self, column: Any) -> Node:
        """Return the node of a column of either kind."""
        if hasattr(column, "_jc"):
            return self._classic(column._jc.node())  # noqa: SLF001  # a classic Column has no public accessor of its tree
        expression = getattr(column, "_expr", None)
        if expression is None:
            raise InvalidFilter(f"{column!r} is not a Spark Column")
        return self._connect(expression.to_plan(None))

    def _attribute(self, text: str) -> Term:
        parts = _NAME.findall(text)
        if "".join(f"{part}." for part in parts) != f"{text}.":
            raise InvalidFilter(f"'{text}' is not the name of a column; write names with other characters in backticks")
        return self.reference([part[1:-1].replace("``", "`") if part[0] == "`" else part for part in parts])

    def _sql(self, text: str) -> Condition:
        if self.joins:
            raise InvalidFilter(f"expr('{text}') is used inside a Column; write the whole expression as SQL text")
        refuse_quoted_names(text, self.names, sql_tokens)
        return sql_condition(text)

    def _connect(self, plan: Any) -> Node:
        kind = str(plan.WhichOneof("expr_type"))
        body: Any = getattr(plan, kind, None)
        match kind:
            case "literal":
                return GivenValue(_connect_literal(body))
            case "unresolved_attribute":
                return self._attribute(body.unparsed_identifier)
            case "unresolved_function":
                return _call(body.function_name, tuple(map(self._connect, body.arguments)))
            case "unresolved_extract_value":
                return _call("extract", (self._connect(body.child), self._connect(body.extraction)))
            case "expression_string":
                return self._sql(body.expression)
            case "alias":
                return self._connect(body.expr)
            case "cast":
                type_text = body.type_str or body.type.WhichOneof("kind")
                return _cast(_one_term(self._connect(body.expr)), _TYPE_NAMES.get(type_text, type_text))
        raise InvalidFilter(f"a Column of kind '{kind}' is not supported in filters")

    def _classic(self, node: Any) -> Node:
        kind = node.getClass().getSimpleName()
        match kind:
            case "Literal":
                return GivenValue(_classic_literal(node.value()))
            case "UnresolvedAttribute":
                return self.reference([str(part) for part in _sequence(node.nameParts())])
            case "UnresolvedFunction":
                return _call(node.functionName(), tuple(map(self._classic, _sequence(node.arguments()))))
            case "UnresolvedExtractValue":
                return _call("extract", (self._classic(node.child()), self._classic(node.extraction())))
            case "SqlExpression":
                return self._sql(node.expression())
            case "Alias":
                return self._classic(node.child())
            case "Cast":
                return _cast(_one_term(self._classic(node.child())), node.dataType().sql())
            case "CaseWhenOtherwise":
                parts = [part for branch in _sequence(node.branches()) for part in map(branch.productElement, (0, 1))]
                last = node.otherwise()
                return _call("when", tuple(map(self._classic, [*parts, last.get()] if last.isDefined() else parts)))
        raise InvalidFilter(f"a Column of kind '{kind}' is not supported in filters")


def _one_term(node: Node) -> Term:
    if (terms := terms_of((node,))) is None:
        raise InvalidFilter("expr(...) cannot be used inside a computed expression; write the whole filter as SQL text")
    return terms[0]


def _call(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return a call, a map entry, or a number with its minus."""
    folded = name.lower()
    match folded, arguments:
        case (("negative" | "-"), (GivenValue(int() | float() | Decimal() as number),)):
            return GivenValue(number.copy_negate() if isinstance(number, Decimal) else -number)  # minus rounds a Decimal to 28 digits
        case (("element_at" | "try_element_at" | "extract"), (_, _)):
            parent, part = map(_one_term, arguments)
            return item_of(parent, part, "item" if folded == "extract" else folded)
        case (("and" | "or"), _):
            return combine(folded, arguments)
        case (("not" | "!"), (_,)):
            return combine("not", arguments)
    terms = tuple(map(_one_term, arguments))
    return Computation(folded, terms) if folded == "in" else computation(folded, terms)


def _cast(value: Term, type_text: str) -> Term:
    """Return the cast of a literal, or a computed cast."""
    try:
        target_type = exp.DataType.build(type_text, dialect="spark")
        if not isinstance(value, GivenValue) or isinstance(value.value, bytes | DateLiteral | TimeLiteral | TimestampLiteral | bool):
            return Casting(value, cast_type(target_type))
        if value.value is None:
            return value
        literal = exp.Literal.string(value.value) if isinstance(value.value, str) else exp.Literal.number(str(value.value))
        return GivenValue(literal_of(exp.Cast(this=literal, to=target_type)))
    except SqlglotError as error:
        raise InvalidFilter(f"a cast to '{type_text}': {error}") from error


def _connect_literal(literal: Any) -> Literal:
    kind = literal.WhichOneof("literal_type")
    body = getattr(literal, kind)
    match kind:
        case "null":
            return None
        case "date":
            return DateLiteral(body)
        case "timestamp" | "timestamp_ntz":
            return TimestampLiteral(body * 1000, wall=kind == "timestamp_ntz")
        case "time":
            return TimeLiteral(body.nano)
        case "decimal":
            return Decimal(body.value)
        case _ if kind in _NUMBERS:
            return literal_from_python(body)
    raise InvalidFilter(f"a literal of kind '{kind}' cannot be compared with a column")


def _sequence(values: Any) -> Iterator[Any]:
    return (values.apply(index) for index in range(values.size()))


def _classic_literal(value: Any) -> Literal:
    """Convert the value of a classic literal."""
    # py4j converts simple values to Python; dates and times stay JVM objects.
    if not hasattr(value, "getClass"):
        return literal_from_python(value)
    match value.getClass().getName():
        case "java.sql.Date" | "java.time.LocalDate":
            return parse_date(value.toString())
        case "java.sql.Timestamp":
            instant = value.toInstant()
            return TimestampLiteral(instant.getEpochSecond() * 10**9 + instant.getNano())
        case "java.time.Instant":
            return TimestampLiteral(value.getEpochSecond() * 10**9 + value.getNano())
        case "java.time.LocalDateTime":
            return parse_timestamp(value.toString(), zoned=False)
        case "java.time.LocalTime":
            return TimeLiteral(value.toNanoOfDay())
    raise InvalidFilter(f"a literal of the Java class {value.getClass().getName()} cannot be compared with a column")
