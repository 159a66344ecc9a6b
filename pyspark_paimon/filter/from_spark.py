"""Translation of Spark ``Column`` objects to conditions.

Both kinds of column are trees of calls, attributes and literals. A Connect column gives its protobuf plan, without a
server; a classic column is read from the JVM's ``ColumnNode``. This module does not import pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from fileindex.base.column_type import ColumnType
from fileindex.base.errors import InvalidFilter
from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.ast import (
    MIRRORED,
    And,
    Casting,
    Comparison,
    ComputedCondition,
    Condition,
    Constant,
    DateLiteral,
    GivenValue,
    Literal,
    Membership,
    NanTest,
    Not,
    NullSafeEqual,
    NullTest,
    Or,
    Prefix,
    Term,
    TimeLiteral,
    TimestampLiteral,
    Truth,
    computation,
    literal_from_python,
)
from pyspark_paimon.filter.from_sql import refuse_quoted_names, sql_condition, sql_tokens
from pyspark_paimon.filter.literals import parse_date, parse_timestamp
from pyspark_paimon.filter.sql_literals import literal_of
from pyspark_paimon.filter.sql_terms import cast_type, like

_OPS = {"==": Op.EQ, "=": Op.EQ, "!=": Op.NE, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
_NUMBERS = {"byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean"}
_TYPE_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


@dataclass(frozen=True)
class _Call:
    name: str
    arguments: tuple[_Node, ...]


@dataclass(frozen=True)
class _Value:
    value: Literal


@dataclass(frozen=True)
class _Sql:
    text: str


@dataclass(frozen=True)
class _Cast:
    argument: _Node
    wanted: ColumnType


@dataclass(frozen=True)
class _Dotted:
    """A dotted name, valid only in expressions on several sides."""

    text: str


_Node = _Call | _Value | _Sql | _Cast | _Dotted | ColumnRef
Reference = Callable[[Sequence[str]], ColumnRef]
"""Resolver from the parts of a name to a column."""


def column_condition(column: Any, names: Iterable[str] = ()) -> Condition:
    """Return the unbound condition of a Spark ``Column``.

    The column need not belong to a DataFrame.
    names: The table's columns. SQL text inside ``expr`` may not write them in double quotes.
    Raises ``InvalidFilter`` for a function that filters do not support.

    >>> from pyspark.sql.connect.functions import col  # doctest: +SKIP
    >>> column_condition(col("k") > 3)  # doctest: +SKIP
    Comparison(column=ColumnRef(name='k', key=None), op=<Op.GT: '>'>, value=3)
    """
    tree = _tree(column)
    for text in _sql_texts(tree):
        refuse_quoted_names(text, names, sql_tokens)
    return _condition(tree)


def column_term(column: Any, reference: Reference) -> Term:
    """Return the unbound term of a Spark ``Column``.

    reference: Resolver of the column names in it.
    Raises ``InvalidFilter`` as ``column_condition`` does.
    """
    return _term(_read(_tree(column), reference))


def _sql_texts(node: _Node) -> Iterator[str]:
    match node:
        case _Sql(text):
            yield text
        case _Call(_, arguments):
            for argument in arguments:
                yield from _sql_texts(argument)
        case _Cast(argument, _):
            yield from _sql_texts(argument)


def _tree(column: Any) -> _Node:
    if hasattr(column, "_jc"):
        return _classic_node(column._jc.node())  # noqa: SLF001  # a classic Column has no public accessor of its tree
    expression = getattr(column, "_expr", None)
    if expression is None:
        raise InvalidFilter(f"{column!r} is not a Spark Column")
    return _connect_node(expression.to_plan(None))


def _read(node: _Node, reference: Reference) -> _Node:
    """Return the tree with every name resolved by ``reference``."""
    match node:
        case ColumnRef(name, None):
            return reference([name])
        case _Dotted(text):
            parts = exp.to_column(text, dialect="spark").parts
            return reference([part.name for part in parts])
        case _Call(name, arguments):
            return _Call(name, tuple(_read(argument, reference) for argument in arguments))
        case _Cast(argument, wanted):
            return _Cast(_read(argument, reference), wanted)
        case _Sql(text):
            raise InvalidFilter(f"expr('{text}') is used inside a Column; write the whole expression as SQL text")
    return node


def _condition(node: _Node) -> Condition:
    match node:
        case ColumnRef():
            return Truth(node)
        case _Value(value):
            if value is None or isinstance(value, bool):
                return Constant(value)
            raise InvalidFilter(f"the literal {value!r} is not a condition")
        case _Sql(text):
            return sql_condition(text)
        case _Call("and", arguments):
            return And(tuple(_condition(argument) for argument in arguments))
        case _Call("or", arguments):
            return Or(tuple(_condition(argument) for argument in arguments))
        case _Call("not" | "!", (child,)):
            return Not(_condition(child))
        case _Call(name, (left, right)) if name in _OPS:
            return _comparison(node, _OPS[name], left, right)
        case _Call("<=>", (left, right)) if _is_column(left) and isinstance(right, _Value):
            return NullSafeEqual(_column(left), right.value)
        case _Call("<=>", (left, right)) if _is_column(right) and isinstance(left, _Value):
            return NullSafeEqual(_column(right), left.value)
        case _Call("in", (column, *values)) if _is_column(column) and all(isinstance(value, _Value) for value in values):
            return Membership(_column(column), tuple(_literal(value) for value in values))
        case _Call("isnull" | "isnotnull" as name, (column,)) if _is_column(column):
            return NullTest(_column(column)) if name == "isnull" else Not(NullTest(_column(column)))
        case _Call("isnan", (column,)) if _is_column(column):
            return NanTest(_column(column))
        case _Call("startswith", (column, _Value() as pattern)) if _is_column(column):
            return Prefix(_column(column), _text(pattern))
        case _Call("like", (column, pattern, *escape)) if _is_column(column):
            return like(_column(column), _text(pattern), _text(escape[0]) if escape else "\\")
    return ComputedCondition(_term(node))


def _comparison(node: _Node, op: Op, left: _Node, right: _Node) -> Condition:
    if isinstance(left, _Value) and _is_column(right):
        return Comparison(_column(right), MIRRORED[op], left.value)
    if isinstance(right, _Value) and _is_column(left):
        return Comparison(_column(left), op, right.value)
    return ComputedCondition(_term(node))


def _is_column(node: _Node) -> bool:
    return isinstance(node, ColumnRef) or (isinstance(node, _Call) and node.name in {"element_at", "extract"} and len(node.arguments) == 2)


def _term(node: _Node) -> Term:
    match node:
        case ColumnRef():
            return node
        case _Value(value):
            return GivenValue(value)
        case _Dotted(text):
            raise _no_column(text)
        case _Cast(argument, wanted):
            return Casting(_term(argument), wanted)
        case _Call("in", (value, *items)):
            return computation("or", tuple(computation("=", (_term(value), _term(item))) for item in items))
        case _Call(name, arguments):
            return _column(node) if _is_column(node) else computation(name, tuple(map(_term, arguments)))
    raise InvalidFilter(f"{node!r} cannot be used inside a computed expression; write the whole filter as SQL text")


def _column(node: _Node) -> ColumnRef:
    match node:
        case ColumnRef():
            return node
        case _Call("element_at" | "extract", (ColumnRef(name, None), _Value(str(key)))):
            return ColumnRef(name, key)
        case _Dotted(text) | _Call("element_at" | "extract", (_Dotted(text), _)):
            raise _no_column(text)
        case _Call(name, _):
            raise InvalidFilter(f"'{name}' is used where a column or an entry of a map column is expected")
    raise InvalidFilter(f"{node!r} is used where a column is expected")


def _literal(node: _Node) -> Literal:
    if isinstance(node, _Value):
        return node.value
    raise InvalidFilter(f"a literal is expected here, not {node!r}")


def _text(node: _Node) -> str:
    value = _literal(node)
    if not isinstance(value, str):
        raise InvalidFilter(f"a pattern must be a text, not {value!r}")
    return value


def _call(name: str, arguments: tuple[_Node, ...]) -> _Node:
    """Return a call, or a number with its minus."""
    match name.lower(), arguments:
        case (("negative" | "-"), (_Value(int() | float() | Decimal() as number),)):
            return _Value(number.copy_negate() if isinstance(number, Decimal) else -number)  # minus rounds a Decimal to 28 digits
        case folded, _:
            return _Call(folded, arguments)


def _attribute(text: str) -> ColumnRef | _Dotted:
    if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1].replace("``", ""):
        return ColumnRef(text[1:-1].replace("``", "`"))
    return _Dotted(text) if "." in text or "`" in text else ColumnRef(text)


def _no_column(text: str) -> InvalidFilter:
    return InvalidFilter(f"'{text}': write `{text}` for a column with a dot in its name, and m['key'] for the entry of a map")


def _cast_node(node: _Node, type_text: str) -> _Node:
    """Return the cast of a literal, or a computed cast."""
    if isinstance(node, _Value) and (
        node.value is None or not isinstance(node.value, bytes | DateLiteral | TimeLiteral | TimestampLiteral | bool)
    ):
        return _cast_literal(node, type_text)
    try:
        return _Cast(node, cast_type(exp.DataType.build(type_text, dialect="spark")))
    except SqlglotError as error:
        raise InvalidFilter(f"a cast to '{type_text}': {error}") from error


def _cast_literal(node: _Value, type_text: str) -> _Node:
    value = node.value
    if value is None:
        return node
    literal = exp.Literal.string(value) if isinstance(value, str) else exp.Literal.number(str(value))
    try:
        return _Value(literal_of(exp.Cast(this=literal, to=exp.DataType.build(type_text, dialect="spark"))))
    except SqlglotError as error:
        raise InvalidFilter(f"a cast of a literal to '{type_text}': {error}") from error


def _connect_node(plan: Any) -> _Node:
    kind = str(plan.WhichOneof("expr_type"))
    body: Any = getattr(plan, kind, None)
    match kind:
        case "literal":
            return _Value(_connect_literal(body))
        case "unresolved_attribute":
            return _attribute(body.unparsed_identifier)
        case "unresolved_function":
            return _call(body.function_name, tuple(_connect_node(argument) for argument in body.arguments))
        case "unresolved_extract_value":
            return _Call("extract", (_connect_node(body.child), _connect_node(body.extraction)))
        case "expression_string":
            return _Sql(body.expression)
        case "alias":
            return _connect_node(body.expr)
        case "cast":
            type_text = body.type_str or body.type.WhichOneof("kind")
            return _cast_node(_connect_node(body.expr), _TYPE_NAMES.get(type_text, type_text))
    raise InvalidFilter(f"a Column of kind '{kind}' is not supported in filters")


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


def _classic_node(node: Any) -> _Node:
    kind = node.getClass().getSimpleName()
    match kind:
        case "Literal":
            return _Value(_classic_literal(node.value()))
        case "UnresolvedAttribute":
            parts = [str(part) for part in _sequence(node.nameParts())]
            return ColumnRef(parts[0]) if len(parts) == 1 else _attribute(".".join(parts))
        case "UnresolvedFunction":
            return _call(node.functionName(), tuple(_classic_node(argument) for argument in _sequence(node.arguments())))
        case "UnresolvedExtractValue":
            return _Call("extract", (_classic_node(node.child()), _classic_node(node.extraction())))
        case "SqlExpression":
            return _Sql(node.expression())
        case "Alias":
            return _classic_node(node.child())
        case "Cast":
            return _cast_node(_classic_node(node.child()), node.dataType().sql())
        case "CaseWhenOtherwise":
            parts = [part for branch in _sequence(node.branches()) for part in map(branch.productElement, (0, 1))]
            last = node.otherwise()
            return _call("when", tuple(map(_classic_node, [*parts, last.get()] if last.isDefined() else parts)))
    raise InvalidFilter(f"a Column of kind '{kind}' is not supported in filters")


def _sequence(values: Any) -> Iterator[Any]:
    return (values.apply(at) for at in range(values.size()))


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


__all__ = ["Reference", "column_condition", "column_term"]
