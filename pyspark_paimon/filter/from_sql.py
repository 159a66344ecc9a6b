"""Translation of WHERE clauses in Spark's SQL to conditions.

Double quotes make texts in Spark's SQL, but names in standard SQL: ``refuse_quoted_names`` finds probable mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from typing import Any, cast

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from fileindex.predicate.tree import ColumnRef, Op
from paimon_base.errors import InvalidFilter
from paimon_base.thresholds import thresholds
from pyspark_paimon.filter.ast import (
    And,
    Condition,
    Constant,
    Literal,
    Not,
    Or,
    Term,
    TimestampLiteral,
    field_of,
)
from pyspark_paimon.filter.conditions import among, condition_of
from pyspark_paimon.filter.literals import nanos_of
from pyspark_paimon.filter.parameters import extract_long_lists, list_values, parameter_values, set_placeholders
from pyspark_paimon.filter.sql_literals import is_literal, literal_of
from pyspark_paimon.filter.sql_terms import ColumnOf, term_of
from sparkexpr.values.column_type import Kind

_OPS: dict[type[exp.Expression], Op] = {exp.EQ: Op.EQ, exp.NEQ: Op.NE, exp.LT: Op.LT, exp.LTE: Op.LE, exp.GT: Op.GT, exp.GTE: Op.GE}
_HELP = "a filter may use = <> < <= > >= <=>, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT, fields (s.a), entries of maps (m['key']), elements (a[0]), arithmetic and functions"
MOST_PARENTHESES = 1000
_BEFORE_A_GROUP = {TokenType.L_PAREN, TokenType.AND, TokenType.OR, TokenType.NOT}
_GROUP = "_grouped_"
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between, exp.Like)


class SparkFilter(Spark):
    """Spark 4's SQL dialect.

    A doubled quote inside a text is one quote character (``'it''s'``).
    """

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokenizer with doubled quotes as an escape."""

        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012  # sqlglot requires a list as class attribute

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]  # sqlglot builds the class
        """Spark's parser with paths into a VARIANT (``v:a.b``)."""

        COLON_IS_VARIANT_EXTRACT = True


def sql_condition(text: str, params: Mapping[str, object] | None = None) -> Condition:
    """Parse SQL text to an unbound condition.

    params: Values of the parameters that the text names as ``:name``.
    Raises ``InvalidFilter`` with the position of a syntax error.
    """
    if not text.strip():
        raise InvalidFilter(f"the filter is empty; {_HELP}")
    short, lists = extract_long_lists(text)
    values = {**parameter_values(params or {}), **lists}
    try:
        tree = parse_by_groups(short, sql_tokens, _parse)
        refuse_compared_texts(tree)
        if values or ":" in short or "?" in short:
            set_placeholders(tree, values)
        return _condition(tree)
    except ParseError as error:
        raise InvalidFilter(syntax_error_text("the filter", text, error)) from error
    except SqlglotError as error:
        raise InvalidFilter(f"the filter cannot be read: {error}\n  {text}") from error
    except RecursionError:
        raise InvalidFilter("the filter nests too deeply") from None


def sql_term(text: str, names: Iterable[str], column: ColumnOf | None = None) -> Term:
    """Parse SQL text to an unbound term.

    names: Columns that the text may not write in double quotes.
    column: Resolver of the parts of a name. None: a column, or a field of it.
    Raises ``InvalidFilter`` with the position of a syntax error.
    """
    refuse_quoted_names(text, names, sql_tokens)
    try:
        tree = _parse(text)
    except ParseError as error:
        raise InvalidFilter(syntax_error_text("the expression", text, error)) from error
    except SqlglotError as error:
        raise InvalidFilter(f"'{text}' cannot be read: {error}") from error
    except RecursionError:
        raise InvalidFilter("the expression nests too deeply; simplify it") from None
    refuse_compared_texts(tree)
    return term_of(tree, column or column_of)


def sql_tokens(text: str) -> list[Any]:
    """Tokenize SQL text in Spark's dialect."""
    return list(sqlglot.tokenize(text, dialect=SparkFilter))


def _parse(text: str) -> exp.Expression:
    return cast("exp.Expression", sqlglot.parse_one(text, dialect=SparkFilter, into=exp.Condition))


_HINTS = (
    (r"^\s*SELECT\b", "give only the condition after WHERE"),
    (r"^\s*WHERE\b", "leave out the word WHERE"),
    (r"&&|\|\|", "write AND and OR"),
    (r"\bORDER\s+BY\b", "use scan(order_by=...)"),
    (r"\bLIMIT\s+\d", "use scan(limit=...)"),
    (r";", "a filter is one condition"),
)
"""Hints for common mistakes: a pattern of the text, and what to write instead."""


def syntax_error_text(what: str, text: str, error: ParseError) -> str:
    """Return the error text of a syntax error.

    It has line, column, the line itself and a mark below the error.
    what: Name of the text in the message, such as "the filter".
    """
    details = error.errors[0] if error.errors else {}
    line, end, mark = int(details.get("line") or 1), int(details.get("col") or 1), str(details.get("highlight") or "")
    start = max(end - max(len(mark), 1), 0)
    lines = text.splitlines() or [text]
    shown = lines[min(line, len(lines)) - 1]
    problem = str(details.get("description") or "it is not an expression").split(" for <class")[0]
    quoted = f"; if {mark} is a column, write `{mark}`" if mark.isidentifier() else ""
    hint = next((f"; {advice}" for pattern, advice in _HINTS if re.search(pattern, text, re.IGNORECASE)), quoted)
    return f"{what} cannot be read at line {line}, column {start + 1}: {problem}{hint}\n  {shown}\n  {' ' * start}{'^' * max(len(mark), 1)}"


def _condition(node: exp.Expression) -> Condition:
    negated = False
    while isinstance(node, exp.Paren | exp.Not):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    condition = _one_condition(node)
    return Not(condition) if negated else condition


def _one_condition(node: exp.Expression) -> Condition:
    match node:
        case exp.And():
            return And(tuple(_condition(cast("exp.Expression", child)) for child in node.flatten()))
        case exp.Or():
            return Or(tuple(_condition(cast("exp.Expression", child)) for child in node.flatten()))
        case exp.In():
            _only(node, "this", "expressions", "field")
            if (field := node.args.get("field")) is not None:
                return among(term_of(node.this, column_of), list_values(field))
    if type(node) in _OPS:
        left, right = node.this, cast("exp.Expression", node.expression)
        if is_literal(left) and is_literal(right):
            return _constant(node, _OPS[type(node)], literal_of(left), literal_of(right))
    return condition_of(term_of(node, column_of))


def _constant(node: exp.Expression, op: Op, left: Literal, right: Literal) -> Condition:
    """Evaluate a comparison of two literals (``1 = 1``)."""
    if left is None or right is None:
        return Constant(None)
    if isinstance(left, TimestampLiteral) and isinstance(right, TimestampLiteral):
        left, right = (nanos_of(literal, Kind.TIMESTAMP_LTZ) for literal in (left, right))
    numbers = isinstance(left, int | Decimal) and isinstance(right, int | Decimal)
    if not numbers and type(left) is not type(right):
        raise InvalidFilter(f"'{_sql(node)}' compares two literals of different types")
    order = (left > right) - (left < right)  # type: ignore[operator]  # numbers, or both of one type
    return Constant({Op.EQ: order == 0, Op.NE: order != 0, Op.LT: order < 0, Op.LE: order <= 0, Op.GT: order > 0, Op.GE: order >= 0}[op])


def column_of(parts: Sequence[str]) -> Term:
    """Return a column, or a field of it.

    >>> column_of(["s", "a"])
    ColumnRef(name='s', key='a')
    """
    return field_of(ColumnRef(parts[0]), parts[1:])


def _only(node: exp.Expression, *allowed: str) -> None:
    """Raise ``InvalidFilter`` for other arguments than ``allowed``."""
    # Newer versions of sqlglot may attach arguments that this module would silently ignore.
    for name, value in node.args.items():
        if value and name not in allowed:
            raise InvalidFilter(f"'{_sql(node)}' is not supported in filters; {_HELP}")


def _sql(node: exp.Expression) -> str:
    text: str = node.sql(dialect="spark")
    return text if len(text) <= 120 else text[:117] + "..."


# sqlglot makes about twenty Python calls for each level of parentheses: inner groups are parsed first to stay below the recursion limit.


@dataclass
class _Open:
    """Text pieces of a parenthesis that is still open.

    groups: Whether it groups a condition, and is not a list or a call.
    depth: Levels of unparsed parentheses inside it.
    """

    groups: bool
    pieces: list[str] = field(default_factory=list)
    depth: int = 0


def parse_by_groups(text: str, tokenize: Callable[[str], list[Any]], parse: Callable[[str], exp.Expression]) -> exp.Expression:
    """Parse ``text``, group by group if its parentheses are deep.

    Raises ``InvalidFilter`` beyond MOST_PARENTHESES levels.
    """
    deepest = max(accumulate(1 if letter == "(" else -1 for letter in re.findall(r"[()]", text))) if "(" in text else 0
    if deepest <= thresholds.nested_groups:
        return parse(text)
    if deepest > MOST_PARENTHESES:
        raise InvalidFilter(f"the filter nests too deeply: it has more than {MOST_PARENTHESES} levels of parentheses")
    return _in_groups(text, tokenize(text), parse)


def _in_groups(text: str, tokens: list[Any], parse: Callable[[str], exp.Expression]) -> exp.Expression:
    groups: dict[str, exp.Expression] = {}
    stack = [_Open(groups=False)]
    end, before = 0, None
    for token in tokens:
        stack[-1].pieces.append(text[end : token.start])
        end = token.end + 1
        if token.token_type is TokenType.L_PAREN:
            stack.append(_Open(groups=before is None or before in _BEFORE_A_GROUP))
        elif token.token_type is TokenType.R_PAREN and len(stack) > 1:
            _close(stack, groups, parse)
        else:
            stack[-1].pieces.append(text[token.start : end])
        before = token.token_type
    if len(stack) > 1:
        return parse(text[:end])  # raises with the position of the missing parenthesis
    return _insert_groups("".join(stack[0].pieces) + text[end:], groups, parse)


def _close(stack: list[_Open], groups: dict[str, exp.Expression], parse: Callable[[str], exp.Expression]) -> None:
    group, around = stack.pop(), stack[-1]
    group_text = "".join(group.pieces)
    if group.groups and group.depth >= thresholds.nested_groups:
        name = f"{_GROUP}{len(groups)}"
        groups[name] = _insert_groups(group_text, groups, parse)
        around.pieces.append(f" :{name} ")
    else:
        around.pieces.append(f"({group_text})")
        around.depth = max(around.depth, group.depth + 1)


def _insert_groups(text: str, groups: dict[str, exp.Expression], parse: Callable[[str], exp.Expression]) -> exp.Expression:
    tree = parse(text)
    for node in list(tree.find_all(exp.Placeholder)):
        if node.name in groups:
            group = exp.Paren(this=groups[node.name])
            if node is tree:
                tree = group
            else:
                node.replace(group)
    return tree


def writes_column(tokens: Iterable[Any], names: Iterable[str]) -> bool:
    """Return whether one of the tokens is a column's name.

    >>> writes_column(sql_tokens("1 = 1 OR `a b` > 'n'"), ["n", "A b"])
    True
    """
    lower_names = {name.lower() for name in names}
    return any(token.token_type is not TokenType.STRING and token.text.lower() in lower_names for token in tokens)


def refuse_quoted_names(text: str, names: Iterable[str], tokenize: Callable[[str], list[Any]]) -> None:
    """Raise ``InvalidFilter`` for a column name in double quotes.

    The key of a map entry (``m["key"]``) is allowed.
    """
    if '"' not in text:
        return
    name_by_lower = {name.lower(): name for name in names}
    before = None
    for token in tokenize(text):
        quoted = token.token_type is TokenType.STRING and text[token.start : token.start + 1] == '"'
        if quoted and before is not TokenType.L_BRACKET and token.text.lower() in name_by_lower:
            name = name_by_lower[token.text.lower()]
            raise InvalidFilter(
                f"\"{token.text}\" is a text, as double quotes make texts in Spark's SQL; write `{name}` for the column, '{token.text}' for the text"
            )
        before = token.token_type


def refuse_compared_texts(tree: exp.Expression) -> None:
    """Raise ``InvalidFilter`` for a text compared without a column."""
    for node in tree.find_all(*_COMPARISONS):
        if node.find(exp.Column, exp.Placeholder) is not None:
            continue
        texts = [literal for literal in node.find_all(exp.Literal) if literal.is_string and not isinstance(literal.parent, exp.Cast)]
        if texts:
            shown, text = node.sql(dialect="spark")[:120], texts[0].name
            raise InvalidFilter(f"{shown} compares a text and has no column; write `{text}` in backticks for a column")
