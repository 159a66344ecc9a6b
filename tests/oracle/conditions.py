"""The grammar of filters: each node has its SQL text and its three-valued judgement of a row.

The judgement is a tree walker of this file. It follows Spark SQL with ANSI mode, and shares nothing with the product.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tests.model.conditions import COMPARE
from tests.oracle.values import Names, Row, order, path_of


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
            case "path":
                kind = "string" if self.kind == "s" else "int"
                return f"try_variant_get({names.text('v')}, '$.{self.value}', '{kind}')"
            case "entry":
                return f"{names.text('m')}['{self.value}']"
            case "case":
                return f"CASE WHEN {given[0]} > {literal(self.value, params)} THEN {given[0]} ELSE {literal(self.value, params)} END"
            case "cast":
                return f"CAST({given[0]} AS {self.value})"
            case "widened":
                return f"CAST({given[0]} AS BIGINT)"
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
            case "path":
                return path_of(row["v"], self.value)
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

    @property
    def idents(self) -> set[str]:
        """The columns that the term reads."""
        own = {"column": self.value, "field": f"r.{self.value}", "entry": "m", "path": "v"}.get(self.form)
        return set().union({own} if own else set(), *(part.idents for part in self.parts))

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
    "widened": lambda value: value,
    "get": lambda values, position: values[position] if position < len(values) else None,
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

    @property
    def idents(self) -> set[str]:
        """The columns that the condition reads."""
        return set().union(*(part.idents for part in (*self.parts, *self.terms)))

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
