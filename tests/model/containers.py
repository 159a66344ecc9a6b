"""The forms in which rows are handed in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

CONTAINERS = (
    "table",
    "table",
    "batch",
    "reader",
    "chunked",
    "dictionary",
    "large",
    "view",
    "dicts",
    "columns",
    "pandas",
    "arrow pandas",
    "polars",
)


def contained(rows: pa.Table, how: str) -> Any:
    """The rows in another container."""
    match how:
        case "batch":
            return rows.combine_chunks().to_batches()[0] if rows.num_rows else rows
        case "reader":
            return rows.to_reader(max_chunksize=2)
        case "chunked":
            return pa.concat_tables([rows.slice(at, 1) for at in range(rows.num_rows)]) if rows.num_rows else rows
        case "dictionary":
            return _recast(rows, {pa.string(): pa.dictionary(pa.int32(), pa.string()), pa.binary(): pa.dictionary(pa.int32(), pa.binary())})
        case "large":
            return _recast(rows, {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()})
        case "view":
            return _recast(rows, {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()})
        case "dicts":
            return rows.to_pylist()
        case "columns":
            return rows.to_pydict()
        case "arrow pandas":
            import pandas as pd

            return rows.to_pandas(types_mapper=pd.ArrowDtype)
        case "pandas":
            return rows.to_pandas(integer_object_nulls=True, date_as_object=True)
        case "polars":
            import polars as pl

            return pl.from_arrow(rows)
        case _:
            return rows


def fits(rows: pa.Table, how: str) -> bool:
    """Whether the container holds the rows as they are: pandas has no null beside NaN and few years of nanoseconds, polars no maps."""
    kinds = [field.type for field in rows.schema]
    if how == "pandas":
        return not any(
            pa.types.is_floating(kind) or pa.types.is_timestamp(kind) or pa.types.is_nested(kind) or pa.types.is_boolean(kind)
            for kind in kinds
        )
    if how == "arrow pandas":
        return not any(pa.types.is_nested(kind) for kind in kinds)
    if how == "polars":
        return not any(pa.types.is_map(kind) for kind in kinds) and rows.num_rows > 0
    if how in {"dicts", "columns"}:
        return not any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in kinds)
    return True


def _recast(rows: pa.Table, types: dict[pa.DataType, pa.DataType]) -> pa.Table:
    for at, field in enumerate(rows.schema):
        if field.type in types:
            kind = types[field.type]
            column = rows.column(at).dictionary_encode() if pa.types.is_dictionary(kind) else rows.column(at).cast(kind)
            rows = rows.set_column(at, field.name, column)
    return rows
