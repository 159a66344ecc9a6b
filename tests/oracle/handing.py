"""Questions that other engines ask: the condition is that of the scan, and a simple one more comes from DuckDB, polars or Arrow."""

from __future__ import annotations

import operator
import random
from functools import cache
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tests.oracle.answers import bag, bags_differ, matching, text_of
from tests.oracle.conditions import Condition, Params
from tests.oracle.drawing import Drawing
from tests.oracle.tables import Built
from tests.oracle.values import Names

_SHOWN = ["id", "p", "i", "s", "b", "bo", "dt"]
"""Columns that every engine returns as they are."""


def duckdb_filter(built: Built, condition: Condition, draw: random.Random) -> str | None:
    more, params = _simple(built, draw), Params()
    said = more.sql(built.columns.quoted('"'), params)
    if params:
        return None
    text, given = text_of(built, condition)
    relation = built.table.scan(text, params=given).to_duckdb(_connection())
    answer = relation.filter(said).project(", ".join(f'"{built.names[ident]}"' for ident in _SHOWN)).to_arrow_table()
    return _compared(built, condition, more, answer, f"DuckDB {said}")


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def polars_filter(built: Built, condition: Condition, draw: random.Random) -> str | None:
    more = _simple(built, draw)
    text, given = text_of(built, condition)
    said = _expression(more, built.columns, pl)
    frame = built.table.scan(text, params=given).scan_polars().filter(said)
    answer = frame.select([built.names[ident] for ident in _SHOWN]).collect().to_arrow()
    return _compared(built, condition, more, answer, f"polars {said}")


def arrow_filter(built: Built, condition: Condition, draw: random.Random) -> str | None:
    more = _simple(built, draw)
    text, given = text_of(built, condition)
    said = _expression(more, built.columns, pc)
    dataset = built.table.scan(text, params=given).to_dataset()
    answer = dataset.to_table(columns=[built.names[ident] for ident in _SHOWN], filter=said)
    return _compared(built, condition, more, answer, f"Arrow {said}")


def _compared(built: Built, condition: Condition, more: Condition, answer: pa.Table, what: str) -> str | None:
    expected = bag({ident: row[ident] for ident in _SHOWN} for row in matching(built, condition) if more.matches(row))
    return bags_differ(what, bag(built.columns.by_ident(row) for row in answer.to_pylist()), expected)


def _simple(built: Built, draw: random.Random) -> Condition:
    """A condition that all engines understand in the same way."""
    drawing = Drawing(draw, built.columns, built.spec.indexed)
    leaves = [drawing.plain_leaf() for _ in range(draw.choice([1, 1, 2]))]
    simple = leaves[0] if len(leaves) == 1 else Condition(draw.choice(["and", "or"]), tuple(leaves))
    return Condition("not", (simple,)) if draw.random() < 0.2 else simple


_OPERATORS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _expression(condition: Condition, names: Names, engine: Any) -> Any:
    """The condition as an expression of polars or Arrow."""
    parts = [_expression(part, names, engine) for part in condition.parts]
    match condition.form:
        case "not":
            return ~parts[0]
        case "and":
            return parts[0] & parts[1]
        case "or":
            return parts[0] | parts[1]
    column = engine.col(names.of(condition.terms[0].value)) if engine is pl else pc.field(names.of(condition.terms[0].value))
    if condition.form == "null":
        null = column.is_null()
        return null if condition.operator == "=" else ~null
    return _OPERATORS[condition.operator](column, engine.lit(condition.terms[1].value) if engine is pl else condition.terms[1].value)
