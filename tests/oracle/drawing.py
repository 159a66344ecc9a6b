"""Random conditions and values, weighted so that what indexes answer mixes with what only rows can say."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

from tests.model.conditions import COMPARE
from tests.oracle.conditions import Condition, Term
from tests.oracle.values import VALUES, Names

_CHANGING = ("e", "n", "k")
ADDED = ("z", "k", "h", "g", "g2")
"""Scalar columns that only some tables have."""
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Drawing:
    """Random conditions on the columns of ``names``. Those of ``often`` are drawn more often: they have indexes."""

    def __init__(self, draw: random.Random, names: Names, often: Collection[str] = ()) -> None:
        self.draw = draw
        self.names = names
        scalars = [
            ident for ident in ("id", "id", "id", "p", "p", "i", "e", "b", "s", "s", "d", "d", "n", "t", "dt", *ADDED) if names.has(ident)
        ]
        self.indexed = [ident for ident in scalars if ident in often]
        self.scalars = [*scalars, *(ident for ident in scalars if ident in often for _ in range(3))]

    def condition(self, depth: int = 2) -> Condition:
        if self.draw.random() < 0.05:
            return Condition("flag", (), (_literal("bo", True),))
        form = self.draw.choice(["leaf", "leaf", "and", "and", "or", "not", *["partly"] * min(len(self.indexed), 2)]) if depth else "leaf"
        if form == "leaf":
            return self.leaf()
        if form == "partly":
            return self.partly_indexed()
        if form == "not":
            return Condition("not", (self.condition(depth - 1),))
        return Condition(form, tuple(self.condition(depth - 1) for _ in range(self.draw.choice([2, 2, 3]))))

    def partly_indexed(self) -> Condition:
        """Comparisons with an index, and inside of the OR one on a column whose type may have changed, which files cannot answer."""
        indexes = [self.compared(_column(ident)) for ident in self.draw.choices(self.indexed, k=2)]
        changed = self.compared(self.term(self.draw.choice([ident for ident in _CHANGING if self.names.has(ident)])))
        return Condition("or", (Condition("and", (indexes[0], changed)), indexes[1]))

    def compared(self, left: Term) -> Condition:
        return Condition("compare", (), (left, self.value(left.kind)), self.draw.choice(["=", "=", "=", *COMPARE]))

    def leaf(self) -> Condition:
        negated = self.draw.choice(["=", "=", "<>"])
        form = self.draw.choice(["compare", "compare", "compare", "in", "in", "null", "between", "like", "contains", "flag", "terms"])
        if form == "like":
            value = self.draw.choice(["a%", "%a", "%a%", "a_", "_", "%", "ä%", "a", "%'%", "%aaaa%", "%AA%", "%it's%", ""])
            return Condition("like", (), (self.term("s"),), negated, value)
        if form == "contains":
            return Condition("contains", (), (_column("l"), _literal("i", self.draw.choice([0, 1, 2, 9]))), negated)
        if form == "flag":
            return Condition("flag", (), (_column("bo"),), negated)
        if form == "null":
            ident = self.draw.choice([*self.scalars, "bo", "l", "m", *(["v"] if self.names.has("v") else [])])
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

    def plain_leaf(self) -> Condition:
        """A comparison of a column with a value of its type, or a test for null."""
        kind = self.draw.choice([ident for ident in self.scalars if ident not in {"d", "n", "t"}])
        if self.draw.random() < 0.2:
            return Condition("null", (), (_column(kind),), self.draw.choice(["=", "<>"]))
        return Condition("compare", (), (_column(kind), self.value(kind)), self.draw.choice(list(COMPARE)))

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
                return Term(kind, form, (), self.draw.choice([name for name in self.names.fields if name != "y"]) if kind == "i" else "y")
            case "path" if not self.names.has("v"):
                return _column(kind)
            case "path":
                return Term(kind, form, (), "b" if kind == "s" else self.draw.choice(["a", "l[1]"]))
            case "get":
                return Term(kind, form, (_column("l"), small))
            case "widened":
                return Term(kind, form, (_column("i"),))
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
    "i": ["field", "field", "path", "path", "get", "entry", "size", "length", "abs", "coalesce", "case", "+", "-", "*", "%"],
    "s": ["field", "path", "concat", "substring", "upper", "lower", "trim", "cast", "coalesce"],
    "d": ["coalesce"],
    "b": ["coalesce", "%", "widened"],
    "e": ["coalesce", "%"],
    "z": ["coalesce", "+"],
    "id": ["+", "%"],
    "p": ["+", "coalesce"],
    "k": ["coalesce"],
    "h": ["coalesce"],
    "g2": ["coalesce"],
}
_BEYOND = {"e": [2**40, -(2**40), 2**31, -(2**31) - 1], "i": [2**31], "k": [200, -129], "h": [40000, 2**31], "s": ["zz", "a" * 16]}
"""Literals that no row has, and some that no value of the narrower type can have."""
_NUMBERS = {"id", "p", "i", "e", "b", "z", "k", "h", "g"}


def _column(ident: str) -> Term:
    return Term(ident, "column", (), ident)


def _literal(kind: str, value: Any) -> Term:
    return Term(kind, "literal", (), value)
