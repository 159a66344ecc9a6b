"""Conversion of pandas-on-Spark DataFrames to Spark DataFrames.

Three things need care. The index is lost unless it is requested. Categories are stored as their codes. A ``datetime64`` without zone
is stored as the instant of that local time in the session's zone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lsm.rows_in.arrow import frame_column, index_levels
from manifest.io.errors import SchemaMismatch
from pyspark_paimon.frames.spark_functions import quote_name

if TYPE_CHECKING:
    import pandas as pd
    import pyspark.pandas as ps
    from pyspark.sql import Column, DataFrame

_DROPPED = "__paimon_index_{}__"


def spark_frame(data: ps.DataFrame, schema: pa.Schema, index_col: str | Sequence[str] | None = None) -> DataFrame:
    """Convert a pandas-on-Spark DataFrame for a table.

    The result has the columns of ``data`` and the levels of its index. Without ``index_col``, a level becomes the column of its name.
    Levels without a name, such as the default index, and levels whose name is also a column, are left out.

    schema: Arrow schema of the table.
    index_col: Column names of all levels of the index.

    Raises:
        InvalidArgument: ``index_col`` and the index have different numbers of levels.
        SchemaMismatch: a level would become a column that the frame already has or that the table lacks. Or a level has categories of
            a type without Spark literals.
    """
    names = [frame_column(label) for label in data.columns]
    levels = index_levels(data.index.names, names, schema.names, index_col)
    index_columns = [_DROPPED.format(position) if level is None else level for position, level in enumerate(levels)]
    keeps_index = any(level is not None for level in levels)
    with warnings.catch_warnings():  # pandas-on-Spark warns about a dropped index
        warnings.simplefilter("ignore")
        frame = data.to_spark(index_col=index_columns) if keeps_index else data.to_spark()
    dtypes = list(data.dtypes)
    if keeps_index:
        names, dtypes = [*index_columns, *names], [*(data.index.dtypes if len(index_columns) > 1 else [data.index.dtype]), *dtypes]
    frame = _with_wall_clocks(_with_categories(frame, names, dtypes), names, schema)
    return frame.drop(*(name for name, level in zip(index_columns, levels, strict=True) if level is None)) if keeps_index else frame


def _with_categories(frame: DataFrame, names: Sequence[str], dtypes: Sequence[Any]) -> DataFrame:
    """Replace codes of categories by their values.

    A code without a category becomes null.
    """
    decoded = {name: dtype.categories for name, dtype in zip(names, dtypes, strict=True) if hasattr(dtype, "categories")}
    if not decoded:
        return frame
    from pyspark.sql import functions as f  # noqa: PLC0415  # needs pyspark

    def value(name: str, categories: pd.Index[Any]) -> Column:
        values = pa.array(categories, from_pandas=True)
        if pa.types.is_temporal(values.type):
            raise SchemaMismatch(f"column '{name}' has categories of {values.type}; convert it with astype('datetime64[ns]')")
        literals = values.to_pylist()  # Spark's lit() does not accept NumPy values
        code = frame[quote_name(name)].cast("int")
        return f.get(f.array(*map(f.lit, literals)), code) if literals else f.lit(None)

    return frame.withColumns({name: value(name, categories) for name, categories in decoded.items()})


def _with_wall_clocks(frame: DataFrame, names: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Convert instants back to local times, for columns without zone."""
    type_by_name = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    local = {field.name for field in schema if pa.types.is_timestamp(field.type) and field.type.tz is None}
    shown = [name for name in names if name in local and type_by_name[name] == "timestamp"]
    return frame.withColumns({name: frame[quote_name(name)].cast("timestamp_ntz") for name in shown}) if shown else frame
