"""Containers of given values: Arrow in its many layouts, dicts, pandas, polars."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from tests.oracle.meanings import Type

SOURCES = ("arrow", "slice", "chunked", "reversed", "large", "view", "list view", "dictionary", "dicts", "columns", "pandas", "polars")
Columns = Mapping[str, tuple[Any, list[Any]]]


def holds(value: Any, given: Type, source: str) -> bool:
    """Whether the container has the value as it is."""
    if source == "polars":
        return not given.has("MAP") and not given.has("BYTES")
    if source == "pandas":  # NaN is a null there
        return not given.parts and not (isinstance(value, float) and math.isnan(value))
    return True


def contain(columns: Columns, source: str) -> Any:
    """Return the rows in a container."""
    match source:
        case "dicts":
            names = list(columns)
            return [dict(zip(names, row, strict=True)) for row in zip(*(values for _, values in columns.values()), strict=True)]
        case "columns":
            return {name: values for name, (_, values) in columns.items()}
        case "pandas":
            import pandas as pd

            return pd.DataFrame({name: pd.Series(values, dtype=object) for name, (_, values) in columns.items()})
        case "polars":
            import polars as pl

            return pl.from_arrow(_table(columns))
        case "chunked":
            whole = _table(columns)
            return pa.concat_tables([whole.slice(at, 1) for at in range(whole.num_rows)])
        case "slice":
            around = {name: (kind, [*values[::-1], None, *values, *values]) for name, (kind, values) in columns.items()}
            count = len(next(iter(columns.values()))[1])
            return _table(around).slice(count + 1, count)
        case "dictionary":
            whole = _table(columns)
            kinds = [field.type for field in whole.schema]
            arrays = [
                column if pa.types.is_nested(kind) or name == "id" else column.combine_chunks().dictionary_encode()
                for name, column, kind in zip(whole.schema.names, whole.columns, kinds, strict=True)
            ]
            return pa.table(arrays, names=whole.schema.names)
    return _table({name: (_layout(kind, source), values) for name, (kind, values) in columns.items()})


def _table(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})


def _layout(kind: pa.DataType, source: str) -> pa.DataType:
    """The type in another layout: fields in reverse order, wide offsets, views."""
    if pa.types.is_struct(kind):
        fields = [pa.field(field.name, _layout(field.type, source)) for field in kind]
        return pa.struct(fields[::-1] if source == "reversed" else fields)
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _layout(kind.item_type, source))
    if pa.types.is_list(kind):
        make = {"large": pa.large_list, "list view": pa.list_view}.get(source, pa.list_)
        return make(_layout(kind.value_type, source))
    if source in {"large", "view"}:
        large, view = {pa.string(): (pa.large_string(), pa.string_view()), pa.binary(): (pa.large_binary(), pa.binary_view())}.get(
            kind, (kind, kind)
        )
        return large if source == "large" else view
    return kind
