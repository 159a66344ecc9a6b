"""The grammar of filters: each node has its SQL text and its three-valued judgement of a row.

The judgement is a tree walker of this file. It follows Spark SQL with ANSI mode, and shares nothing with the product.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tests.model.conditions import COMPARE
from tests.oracle.values import VALUES, Names, Row, order

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Params(dict[str, Any]):
    """Values of the parameters of a text."""

    def add(self, value: Any) -> str:
        name = f"v{len(self)}"
        self[name] = value
        return f":{name}"


def literal(value: Any, params: Params) -> str:
    """Text of a literal. What has no short text is a parameter."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case str() if value.isprintable() and "\\" not in value:
            return "'" + value.replace("'", "''") + "'"
        case date() if not isinstance(value, datetime) and value.year > 1000:
            return f"DATE '{value.isoformat()}'"
        case Decimal():
            return str(value)
    return params.add(value)


@dataclass(frozen=True)
class Term:
    """A value of a row. ``kind`` is a column's identity whose type and values it shares."""

    kind: str
    form: str
    parts: tuple[Term, ...] = ()
    value: Any = None

    def sql(self, names: Names, params: Params) -> str:
        given = [part.sql(names, params) for part in self.parts]
        match self.form:
            case "column":
                return names.text(self.value)
            case "literal":
                return literal(self.value, params)
            case "field":
                return f"{names.text('r')}.{self.value}"
            case "entry":
                return f"{names.text('m')}['{self.value}']"
            case "case":
                return f"CASE WHEN {given[0]} > {literal(self.value, params)} THEN {given[0]} ELSE {literal(self.value, params)} END"
            case "cast":
                return f"CAST({given[0]} AS {self.value})"
            case form if form in _INFIX:
                return f"({given[0]} {form} {given[1]})"
        return f"{self.form}({', '.join(given)})"

    def of(self, row: Row) -> Any:
        match self.form:
            case "column":
                return row[self.value]
            case "literal":
                return self.value
            case "field":
                return None if row["r"] is None else row["r"][self.value]
            case "entry":
                return None if row["m"] is None else dict(row["m"]).get(self.value)
        given = [part.of(row) for part in self.parts]
        if self.form == "coalesce":
            return next((value for value in given if value is not None), None)
        if self.form == "case":
            return given[0] if given[0] is not None and given[0] > self.value else self.value
        if None in given:
            return None
        return _FUNCTIONS[self.form](*given)

    def shrunk(self) -> Iterator[Term]:
        yield from (part for part in self.parts if part.kind == self.kind)


_INFIX = ("+", "-", "*", "%")


def _remainder(left: int, right: int) -> int:
    return abs(left) % abs(right) * (-1 if left < 0 else 1)  # the sign is that of the dividend


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": _remainder,
    "abs": abs,
    "size": len,
    "length": len,
    "upper": str.upper,
    "lower": str.lower,
    "concat": operator.add,
    "trim": lambda text: text.strip(" "),
    "substring": lambda text, start, count: text[start - 1 :][:count],
    "cast": lambda value: value if isinstance(value, str) else str(value),
}


@dataclass(frozen=True)
class Condition:
    """``form``: and, or, not, compare, in, null, between, like, contains, flag."""

    form: str
    parts: tuple[Condition, ...] = ()
    terms: tuple[Term, ...] = ()
    operator: str = "="
    value: Any = None

    def sql(self, names: Names, params: Params) -> str:
        inner = [f"({part.sql(names, params)})" for part in self.parts]
        terms = [term.sql(names, params) for term in self.terms]
        negated = "NOT " if self.operator == "<>" else ""
        match self.form:
            case "and" | "or":
                return f" {self.form.upper()} ".join(inner)
            case "not":
                return f"NOT {inner[0]}"
            case "compare":
                return f"{terms[0]} {self.operator} {terms[1]}"
            case "in":
                return f"{terms[0]} {negated}IN ({', '.join(terms[1:])})"
            case "null":
                return f"{terms[0]} IS {negated}NULL"
            case "between":
                return f"{terms[0]} {negated}BETWEEN {terms[1]} AND {terms[2]}"
            case "like":
                return f"{terms[0]} {negated}LIKE {literal(self.value, params)}"
            case "contains":
                return f"{negated}array_contains({terms[0]}, {terms[1]})"
        return f"{negated}{terms[0]}"

    def judge(self, row: Row) -> bool | None:
        if self.form in {"and", "or"}:
            return _joined([part.judge(row) for part in self.parts], ends=self.form == "or")
        if self.form == "not":
            return _not(self.parts[0].judge(row))
        values = [term.of(row) for term in self.terms]
        if self.form == "null":
            return (values[0] is None) == (self.operator == "=")
        if values[0] is None:
            return None
        if self.form == "compare":
            return None if values[1] is None else COMPARE[self.operator](order(values[0]), order(values[1]))
        answer = self._answer(values)
        return answer if self.operator == "=" else _not(answer)

    def _answer(self, values: list[Any]) -> bool | None:
        match self.form:
            case "in":
                listed = [order(value) for value in values[1:] if value is not None]
                return True if order(values[0]) in listed else None if None in values[1:] else False
            case "between":
                low, high = (None if end is None else order(end) for end in values[1:])
                ends = [None if low is None else low <= order(values[0]), None if high is None else order(values[0]) <= high]
                return _joined(ends, ends=False)
            case "like":
                pattern = "".join(".*" if one == "%" else "." if one == "_" else re.escape(one) for one in self.value)
                return re.fullmatch(pattern, values[0], re.DOTALL) is not None
            case "contains":
                return True if values[1] in values[0] else None if None in values[0] else False
        return bool(values[0])

    def matches(self, row: Row) -> bool:
        return self.judge(row) is True

    def shrunk(self) -> Iterator[Condition]:
        """Simpler conditions, the simplest first."""
        yield from self.parts
        for at, part in enumerate(self.parts):
            for less in part.shrunk():
                yield Condition(self.form, (*self.parts[:at], less, *self.parts[at + 1 :]), self.terms, self.operator, self.value)
        if self.form in {"and", "or"} and len(self.parts) > 2:
            for at in range(len(self.parts)):
                yield Condition(self.form, self.parts[:at] + self.parts[at + 1 :])
        for at, term in enumerate(self.terms):
            for less in term.shrunk():
                yield Condition(self.form, (), (*self.terms[:at], less, *self.terms[at + 1 :]), self.operator, self.value)


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _joined(answers: list[bool | None], *, ends: bool) -> bool | None:
    return ends if ends in answers else None if None in answers else not ends


class Drawing:
    """Random conditions on the columns of ``names``. Those of ``often`` are drawn more often: they have indexes."""

    def __init__(self, draw: random.Random, names: Names, often: Collection[str] = ()) -> None:
        self.draw = draw
        self.names = names
        scalars = [ident for ident in ("id", "id", "id", "p", "p", "i", "e", "b", "s", "d", "n", "t", "dt", "z") if names.has(ident)]
        self.scalars = [*scalars, *(ident for ident in scalars if ident in often for _ in range(3))]

    def condition(self, depth: int = 2) -> Condition:
        if self.draw.random() < 0.05:
            return Condition("flag", (), (_literal("bo", True),))
        form = self.draw.choice(["leaf", "leaf", "and", "and", "or", "not"]) if depth else "leaf"
        if form == "leaf":
            return self.leaf()
        if form == "not":
            return Condition("not", (self.condition(depth - 1),))
        return Condition(form, tuple(self.condition(depth - 1) for _ in range(self.draw.choice([2, 2, 3]))))

    def leaf(self) -> Condition:
        negated = self.draw.choice(["=", "=", "<>"])
        form = self.draw.choice(["compare", "compare", "compare", "in", "null", "between", "like", "contains", "flag", "terms"])
        if form == "like":
            value = self.draw.choice(["a%", "%a", "%a%", "a_", "_", "%", "ä%", "a", "%'%", "%aaaa%", "%AA%", "%it's%", ""])
            return Condition("like", (), (self.term("s"),), negated, value)
        if form == "contains":
            return Condition("contains", (), (_column("l"), _literal("i", self.draw.choice([0, 1, 2, 9]))), negated)
        if form == "flag":
            return Condition("flag", (), (_column("bo"),), negated)
        if form == "null":
            ident = self.draw.choice([*self.scalars, "bo", "l", "m"])
            return Condition("null", (), (self.term(ident),), negated)
        kind = self.draw.choice(self.scalars)
        left = self.term(kind)
        if form == "terms":
            other = self.term("i" if left.kind in _NUMBERS else left.kind)
            return Condition("compare", (), (left, other), self.draw.choice(list(COMPARE)))
        if form == "in":
            listed = [self.value(left.kind) for _ in range(self.draw.choice([1, 2, 3]))]
            return Condition("in", (), (left, *listed, *([_literal(left.kind, None)] if self.draw.random() < 0.1 else [])), negated)
        if form == "between":
            return Condition("between", (), (left, self.value(left.kind), self.value(left.kind)), negated)
        sides = (left, self.value(left.kind))
        chosen = self.draw.choice(list(COMPARE))
        return (
            Condition("compare", (), sides, chosen)
            if self.draw.random() < 0.8
            else Condition("compare", (), sides[::-1], _MIRRORED[chosen])
        )

    def value(self, kind: str) -> Term:
        known = [value for value in VALUES.get(kind, [0, 1, 2, 5, 13, 40]) if value is not None]
        return _literal(kind, self.draw.choice([*known, *_BEYOND.get(kind, [])]))

    def term(self, kind: str) -> Term:
        """A column, or something that only rows can say."""
        forms = _COMPUTED.get(kind, [])
        if not forms or self.draw.random() < 0.6:
            return _column(kind)
        form = self.draw.choice(forms)
        small = _literal("i", self.draw.choice([1, 2, 3]))
        match form:
            case "field":
                return Term(kind, form, (), "x" if kind == "i" else "y")
            case "entry":
                return Term(kind, form, (), self.draw.choice(["k", "j", "none"]))
            case "size":
                return Term(kind, form, (_column("l"),))
            case "length":
                return Term(kind, form, (_column("s"),))
            case "abs":
                return Term(kind, form, (_column(kind),))
            case "coalesce":
                return Term(kind, form, (_column(kind), self.value(kind)))
            case "case":
                return Term(kind, form, (_column(kind),), self.draw.choice([0, 1, 2]))
            case "cast":
                return Term(kind, form, (_column("i"),), "STRING")
            case "concat":
                return Term(kind, form, (_column("s"), _literal("s", "a")))
            case "substring":
                return Term(kind, form, (_column("s"), _literal("i", 1), _literal("i", 2)))
            case "upper" | "lower" | "trim":
                return Term(kind, form, (_column("s"),))
        return Term(kind, form, (_column(kind), small))


_COMPUTED = {
    "i": ["field", "field", "entry", "size", "length", "abs", "coalesce", "case", "+", "-", "*", "%"],
    "s": ["field", "concat", "substring", "upper", "lower", "trim", "cast", "coalesce"],
    "d": ["coalesce"],
    "b": ["coalesce", "%"],
    "e": ["coalesce", "%"],
    "z": ["coalesce", "+"],
    "id": ["+", "%"],
    "p": ["+", "coalesce"],
}
_BEYOND = {"e": [2**40, -(2**40), 2**31, -(2**31) - 1], "i": [2**31], "s": ["zz", "a" * 16]}
"""Literals that no row has, and some that no value of the narrower type can have."""
_NUMBERS = {"id", "p", "i", "e", "b", "z"}


def _column(ident: str) -> Term:
    return Term(ident, "column", (), ident)


def _literal(kind: str, value: Any) -> Term:
    return Term(kind, "literal", (), value)
