"""Filters of random columns and values, and which rows of a model they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.scale.columns import Column, Dice


@dataclass(frozen=True)
class Question:
    """A filter as SQL with parameters, and the mask of its rows; null: neither true nor false."""

    sql: str
    params: dict[str, Any]
    mask: Any

    @property
    def rows(self) -> Any:
        return pc.fill_null(self.mask, fill_value=False)

    def __str__(self) -> str:
        shown = {name: _short(value) for name, value in list(self.params.items())[:6]}
        return f"{self.sql[:300]} {shown}"


def _short(value: Any) -> str:
    return repr(value) if len(repr(value)) < 60 else f"{repr(value)[:40]}... of {len(value)}"


def draw_question(dice: Dice, rows: pa.Table, columns: list[Column], name: str = "v") -> Question:
    """A filter of one column, or of two of them."""
    if dice.random() < 0.25:
        parts = [draw_question(dice, rows, columns, f"{name}{side}") for side in "ab"]
        word, join = (("AND", pc.and_kleene), ("OR", pc.or_kleene))[dice.integers(0, 2)]
        return Question(f"({parts[0].sql}) {word} ({parts[1].sql})", parts[0].params | parts[1].params, join(parts[0].mask, parts[1].mask))
    column = columns[int(dice.integers(0, len(columns)))]
    values = rows.column(column.name)
    if not column.asked or dice.random() < 0.12 or values.null_count == len(values):
        word, mask = (("IS NULL", pc.is_null(values)), ("IS NOT NULL", pc.is_valid(values)))[dice.integers(0, 2)]
        return Question(f"{column.name} {word}", {}, mask)
    return _compared(dice, column, values, name)


def _compared(dice: Dice, column: Column, values: Any, name: str) -> Question:
    text = pa.types.is_string(values.type)
    how = str(dice.choice(["=", "=", "IN", "IN", "range", ">=", "<", "<>", *(["LIKE", "prefix", "absent"] if text else [])]))
    low, high = sorted(_samples(dice, values, 2), key=lambda value: value.as_py())
    shown, one = column.name, low.as_py()
    if pa.types.is_boolean(values.type):
        how = "="
    match how:
        case "IN":
            chosen = _samples(dice, values, int(dice.choice([1, 3, 70, 300])))
            params = {f"{name}{at}": value.as_py() for at, value in enumerate(chosen)}
            listed = ", ".join(f":{key}" for key in params)
            found = pc.if_else(
                pc.is_valid(values), pc.is_in(_zero(values), _zero(pa.array([value.as_py() for value in chosen], values.type))), None
            )
            return Question(f"{shown} IN ({listed})", params, found)
        case "range":
            params = {f"{name}l": one, f"{name}h": high.as_py()}
            return Question(
                f"{shown} BETWEEN :{name}l AND :{name}h", params, pc.and_kleene(_greater(values, low), pc.less_equal(values, high))
            )
        case "LIKE":
            part = one[1 : 1 + int(dice.integers(1, 4))].replace("%", "").replace("_", "")
            return Question(f"{shown} LIKE :{name}", {name: f"%{part}%"}, pc.match_substring(values, part))
        case "prefix":
            part = one[: int(dice.integers(1, 6))]
            return Question(f"{shown} LIKE :{name}", {name: f"{part}%"}, pc.starts_with(values, part))
        case "absent":
            return Question(f"{shown} = :{name}", {name: f"{one}."}, pc.equal(values, pa.scalar(f"{one}.", values.type)))
        case ">=":
            return Question(f"{shown} >= :{name}", {name: one}, _greater(values, low))
        case "<":
            return Question(f"{shown} < :{name}", {name: one}, pc.invert(_greater(values, low)))
        case "<>":
            return Question(f"{shown} <> :{name}", {name: one}, pc.not_equal(values, low))
        case _:
            return Question(f"{shown} = :{name}", {name: one}, pc.equal(values, low))


def _samples(dice: Dice, values: Any, count: int) -> list[Any]:
    """Values that are there, none of them null or NaN."""
    found: list[Any] = []
    known = values.drop_null()
    for at in dice.integers(0, len(known), 3 * count):
        value = known[int(at)]
        if not (pa.types.is_floating(values.type) and math.isnan(value.as_py())):
            found.append(value)
    return (found or [pa.scalar(1, values.type)] * count)[:count] * (1 if len(found) >= count else 2)


def _zero(values: Any) -> Any:
    """Values in which -0.0 is 0.0: ``is_in`` distinguishes them."""
    return pc.add(values, pa.scalar(0.0)) if pa.types.is_floating(values.type) else values


def _greater(values: Any, low: Any) -> Any:
    """NaN is the greatest."""
    found = pc.greater_equal(values, low)
    return pc.or_kleene(found, pc.is_nan(values)) if pa.types.is_floating(values.type) else found
