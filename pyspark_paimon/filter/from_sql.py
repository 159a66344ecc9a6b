"""SQL text to conditions: the WHERE clause of Spark's dialect, as far as sorted and indexed files can answer it."""

from __future__ import annotations

from decimal import Decimal
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from fileindex.base.errors import InvalidFilter
from fileindex.predicate.tree import ColumnRef, Op
from pyspark_paimon.filter.ast import (
    MIRRORED,
    All,
    Any,
    Comparison,
    Condition,
    Constant,
    Literal,
    Membership,
    NanTest,
    Not,
    NullSafeEqual,
    NullTest,
    Prefix,
    Truth,
)
from pyspark_paimon.filter.like import like
from pyspark_paimon.filter.sql_literals import literal_of

_OPS: dict[type[exp.Expression], Op] = {exp.EQ: Op.EQ, exp.NEQ: Op.NE, exp.LT: Op.LT, exp.LTE: Op.LE, exp.GT: Op.GT, exp.GTE: Op.GE}
_HELP = "a filter may use = <> < <= > >= <=>, IN, BETWEEN, LIKE 'prefix%', IS NULL, AND, OR, NOT, and entries of maps: m['key']"


class SparkFilter(Spark):
    """Spark 4's dialect: a doubled quote inside a text stands for one (``'it''s'``)."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens, with that escape."""

        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012  # sqlglot reads it as a list of the class


def sql_condition(text: str) -> Condition:
    """The unbound condition of SQL text. Raises ``InvalidFilter`` with the position of what it cannot read."""
    if not text.strip():
        raise InvalidFilter(f"the filter is empty; {_HELP}")
    try:
        tree = sqlglot.parse_one(text, dialect=SparkFilter, into=exp.Condition)
        return _condition(cast("exp.Expression", tree))
    except ParseError as error:
        raise InvalidFilter(_located(text, error)) from error
    except SqlglotError as error:
        raise InvalidFilter(f"the filter cannot be read: {error}\n  {text}") from error
    except RecursionError:
        raise InvalidFilter("the filter nests too deeply") from None


def _located(text: str, error: ParseError) -> str:
    found = error.errors[0] if error.errors else {}
    line, end, mark = int(found.get("line") or 1), int(found.get("col") or 1), str(found.get("highlight") or "")
    start = max(end - max(len(mark), 1), 0)
    lines = text.splitlines() or [text]
    shown = lines[min(line, len(lines)) - 1]
    what = str(found.get("description") or "it is no expression").split(" for <class")[0]
    return f"the filter cannot be read at line {line}, column {start + 1}: {what}\n  {shown}\n  {' ' * start}{'^' * max(len(mark), 1)}"


def _condition(node: exp.Expression) -> Condition:
    match node:
        case exp.Paren():
            return _condition(node.this)
        case exp.And():
            return All(tuple(_condition(cast("exp.Expression", child)) for child in node.flatten()))
        case exp.Or():
            return Any(tuple(_condition(cast("exp.Expression", child)) for child in node.flatten()))
        case exp.Not():
            return Not(_condition(node.this))
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Null():
            return Constant(None)
        case exp.Column() | exp.Bracket():
            return Truth(column_of(node))
        case exp.In():
            _only(node, "this", "expressions")
            return Membership(column_of(node.this), tuple(literal_of(item) for item in node.expressions))
        case exp.Between():
            _only(node, "this", "low", "high")
            low, high = literal_of(node.args["low"]), literal_of(node.args["high"])
            column = column_of(node.this)
            return All((Comparison(column, Op.GE, low), Comparison(column, Op.LE, high)))
        case exp.Is():
            return _is(node)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return _null_safe(node)
        case exp.Like() | exp.Escape():
            return _like(node)
        case exp.StartsWith():
            return Prefix(column_of(node.this), _text(node.expression))
        case exp.IsNan():
            return NanTest(column_of(node.this))
        case exp.Anonymous() if str(node.this).lower() in {"isnull", "isnotnull"} and len(node.expressions) == 1:
            test = NullTest(column_of(node.expressions[0]))
            return test if str(node.this).lower() == "isnull" else Not(test)
        case _ if type(node) in _OPS:
            return _comparison(node, _OPS[type(node)])
    raise InvalidFilter(f"'{_sql(node)}' is no condition that files can answer; {_HELP}")


def _comparison(node: exp.Expression, op: Op) -> Condition:
    left, right = node.this, cast("exp.Expression", node.expression)
    left_is_column, right_is_column = _names_column(left), _names_column(right)
    if left_is_column and right_is_column:
        raise InvalidFilter(f"'{_sql(node)}' compares two columns; one side must be a literal")
    if left_is_column:
        return Comparison(column_of(left), op, literal_of(right))
    if right_is_column:
        return Comparison(column_of(right), MIRRORED[op], literal_of(left))
    return _constant(node, op, literal_of(left), literal_of(right))


def _constant(node: exp.Expression, op: Op, left: Literal, right: Literal) -> Condition:
    """``1 = 1`` and its like, which programs put in front of a list of conditions."""
    if left is None or right is None:
        return Constant(None)
    numbers = isinstance(left, int | Decimal) and isinstance(right, int | Decimal)
    if not numbers and type(left) is not type(right):
        raise InvalidFilter(f"'{_sql(node)}' compares two literals of different types")
    order = (left > right) - (left < right)  # type: ignore[operator]  # numbers, or both of one type
    return Constant({Op.EQ: order == 0, Op.NE: order != 0, Op.LT: order < 0, Op.LE: order <= 0, Op.GT: order > 0, Op.GE: order >= 0}[op])


def _is(node: exp.Is) -> Condition:
    column = column_of(node.this)
    match node.expression:
        case exp.Null():
            return NullTest(column)
        case exp.Boolean() as word:
            return NullSafeEqual(column, bool(word.this))
    raise InvalidFilter(f"'{_sql(node)}': IS takes NULL, NOT NULL, TRUE or FALSE")


def _null_safe(node: exp.Expression) -> Condition:
    left, right = node.this, cast("exp.Expression", node.expression)
    column, literal = (left, right) if _names_column(left) else (right, left)
    same = NullSafeEqual(column_of(column), literal_of(literal))
    return same if isinstance(node, exp.NullSafeEQ) else Not(same)


def _like(node: exp.Expression) -> Condition:
    escape = "\\"
    if isinstance(node, exp.Escape):
        escape = _text(node.expression)
        node = node.this
    if not isinstance(node, exp.Like) or len(escape) != 1:
        raise InvalidFilter(f"'{_sql(node)}' is no LIKE with an escape of one character")
    _only(node, "this", "expression", "negate")
    found = like(column_of(node.this), _text(node.expression), escape)
    return Not(found) if node.args.get("negate") else found


def column_of(node: exp.Expression) -> ColumnRef:
    """A column, or the entry of a map column. Raises ``InvalidFilter`` for anything else."""
    if isinstance(node, exp.Paren):
        return column_of(node.this)
    if isinstance(node, exp.Column):
        if len(node.parts) == 1 and isinstance(node.this, exp.Identifier):
            return ColumnRef(node.name)
        dotted = ".".join(part.name for part in node.parts)
        raise InvalidFilter(f"'{dotted}': write `{dotted}` for a column with a dot in its name, and m['key'] for the entry of a map")
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1 and isinstance(node.this, exp.Column):
        return ColumnRef(column_of(node.this).name, _text(node.expressions[0], "the key of a map entry"))
    raise InvalidFilter(f"'{_sql(node)}' is no column; {_HELP}")


def _names_column(node: exp.Expression) -> bool:
    return node.find(exp.Column) is not None


def _text(node: exp.Expression, what: str = "a pattern") -> str:
    value = literal_of(node)
    if not isinstance(value, str):
        raise InvalidFilter(f"'{_sql(node)}': {what} is a text in quotes")
    return value


def _only(node: exp.Expression, *allowed: str) -> None:
    """Refuse what a later parser, or SQL, may attach to a node and this module would silently drop."""
    for name, value in node.args.items():
        if value and name not in allowed:
            raise InvalidFilter(f"'{_sql(node)}' is no condition that files can answer; {_HELP}")


def _sql(node: exp.Expression) -> str:
    text: str = node.sql(dialect="spark")
    return text if len(text) <= 120 else text[:117] + "..."


__all__ = ["sql_condition"]
