"""Filters: drawn once, said in each filter language, and judged in plain Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests.lsm.aggregate_model import order_of
from tests.model.columns import Column
from tests.model.values import SCALARS, Row

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LANGUAGES = ("sql", "arrow", "polars")


@dataclass(frozen=True)
class Condition:
    """``kind`` is compare, in, null, prefix, entry, and, or, not; ``parts`` its conditions, ``values`` of the column's type."""

    kind: str
    column: Column | None = None
    operator: str = "="
    values: tuple[Any, ...] = ()
    parts: tuple[Condition, ...] = ()

    def judge(self, row: Row, language: str = "sql") -> bool | None:
        """True, False, or None for unknown. Arrow's ``is_in`` says False of null, where SQL does not know."""
        if self.column is None:
            return _joined(self.kind, [part.judge(row, language) for part in self.parts])
        value = row[self.column.name]
        if self.kind == "null":
            return (value is None) == (self.operator == "=")
        if self.kind == "entry" and value is not None:
            value = dict(value).get("a")
        if value is None:
            return False if self.kind == "in" and language == "arrow" else None
        if self.kind == "prefix":
            return bool(value.startswith(self.values[0]))
        left, kind = order_of(_equal_zero(value), self.column.type), self.column.type
        right = [order_of(_equal_zero(given), kind) for given in self.values]
        if self.kind == "in":
            return left in right
        return COMPARE[self.operator](left, right[0])

    def matches(self, row: Row, language: str = "sql") -> bool:
        return self.judge(row, language) is True

    def sql(self, params: dict[str, Any], schema: pa.Schema) -> str:
        """SQL text; values are parameters."""
        if self.column is None:
            texts = [f"({part.sql(params, schema)})" for part in self.parts]
            return f"NOT {texts[0]}" if self.kind == "not" else f" {self.kind.upper()} ".join(texts)
        name = self.column.name if self.column.name.isidentifier() else f"`{self.column.name}`"
        if self.kind == "null":
            return f"{name} IS {'' if self.operator == '=' else 'NOT '}NULL"
        if self.kind == "prefix":
            return f"{name} LIKE '{self.values[0]}%'"
        kind = pa.int32() if self.kind == "entry" else schema.field(self.column.name).type
        given = []
        for value in self.values:
            params[f"v{len(params)}"] = pa.scalar(value, kind).as_py()
            given.append(f":v{len(params) - 1}")
        if self.kind == "in":
            return f"{name} IN ({', '.join(given)})"
        return f"{name}{chr(91)}'a'] {self.operator} {given[0]}" if self.kind == "entry" else f"{name} {self.operator} {given[0]}"

    def arrow(self, schema: pa.Schema) -> Any:
        if self.column is None:
            given = [part.arrow(schema) for part in self.parts]
            return ~given[0] if self.kind == "not" else given[0] & given[1] if self.kind == "and" else given[0] | given[1]
        named = pc.field(self.column.name)
        kind = schema.field(self.column.name).type
        match self.kind:
            case "null":
                return named.is_null() if self.operator == "=" else named.is_valid()
            case "prefix":
                return pc.starts_with(named, self.values[0])
            case "in":
                return named.isin(pa.array(self.values, kind))
        return _OPERATORS[self.operator](named, pa.scalar(self.values[0], kind))

    def polars(self, schema: pa.Schema) -> Any:
        import polars as pl

        if self.column is None:
            given = [part.polars(schema) for part in self.parts]
            return ~given[0] if self.kind == "not" else given[0] & given[1] if self.kind == "and" else given[0] | given[1]
        named = pl.col(self.column.name)
        kind = schema.field(self.column.name).type
        match self.kind:
            case "null":
                return named.is_null() if self.operator == "=" else named.is_not_null()
            case "prefix":
                return named.str.starts_with(self.values[0])
            case "in":
                return named.is_in([pa.scalar(value, kind).as_py() for value in self.values])
        return _OPERATORS[self.operator](named, pl.lit(pa.scalar(self.values[0], kind).as_py()))

    def languages(self) -> set[str]:
        """Those that can say it."""
        if self.column is None:
            return set.intersection(*(part.languages() for part in self.parts))
        if self.kind == "entry":
            return {"sql"}
        simple = self.column.type in {"INT", "BIGINT", "STRING", "DOUBLE", "BOOLEAN", "DATE", "SMALLINT", "TINYINT"}
        nanos = self.column.type == "TIMESTAMP(9)"
        return {"arrow"} if nanos and self.kind != "null" else {"sql", "arrow", "polars"} if simple else {"sql", "arrow"}

    def said(self, language: str, schema: pa.Schema) -> tuple[Any, dict[str, Any] | None]:
        """The filter and its parameters."""
        if language == "sql":
            params: dict[str, Any] = {}
            text = self.sql(params, schema)
            return text, params or None
        return (self.arrow if language == "arrow" else self.polars)(schema), None

    def code(self, language: str, schema: pa.Schema) -> str:
        """Arguments of a scan, as Python text; other languages are told as SQL."""
        params: dict[str, Any] = {}
        text = self.sql(params, schema)
        return f"{text!r}" + (f", params={params!r}" if params else "") + (f"  # said to {language}" if language != "sql" else "")


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {**COMPARE}


def _joined(kind: str, parts: list[bool | None]) -> bool | None:
    if kind == "not":
        return None if parts[0] is None else not parts[0]
    ends = kind == "or"
    if ends in parts:
        return ends
    return None if None in parts else not ends


def _equal_zero(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


def conditions(columns: list[Column]) -> st.SearchStrategy[Condition]:
    """Conditions about some columns, two levels deep at most."""
    leaves = st.one_of([_leaf(column) for column in columns])
    return leaves | st.builds(
        lambda kind, parts: Condition(kind, parts=tuple(parts[:1] if kind == "not" else parts)),
        st.sampled_from(["and", "or", "not"]),
        st.lists(leaves, min_size=2, max_size=2),
    )


def _leaf(column: Column) -> st.SearchStrategy[Condition]:
    null = st.builds(Condition, st.just("null"), st.just(column), st.sampled_from(["=", "<>"]))
    if column.type == "MAP<STRING, INT>":
        return null | st.builds(
            Condition, st.just("entry"), st.just(column), st.sampled_from(list(COMPARE)), st.tuples(st.sampled_from([0, 1, 3]))
        )
    if column.type not in SCALARS:
        return null
    values = st.sampled_from(SCALARS[column.type])
    found = [
        null,
        st.builds(Condition, st.just("compare"), st.just(column), st.sampled_from(list(COMPARE)), st.tuples(values)),
        st.builds(Condition, st.just("in"), st.just(column), st.just("="), st.lists(values, min_size=1, max_size=3).map(tuple)),
    ]
    if column.type in {"STRING", "VARCHAR(20)"}:
        found.append(
            st.builds(Condition, st.just("prefix"), st.just(column), st.just("="), st.tuples(st.sampled_from(["a", "b", "x", "ä"])))
        )
    return st.one_of(found)
