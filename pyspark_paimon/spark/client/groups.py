"""Aggregates of groups of rows in Spark, in the form that ``jobs.grouping`` folds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lsm.aggregate.names import AggregateName
from lsm.keys.encoding import one_array
from paimon_base.errors import OutOfRange
from pyspark_paimon.filter.columns import TARGET
from pyspark_paimon.frames.spark_functions import functions_of
from pyspark_paimon.jobs.grouping import ROWS, key_name, sortable, sum_columns
from pyspark_paimon.request.engine import RowGrouping
from pyspark_paimon.spark.client.expression_sql import row_sql
from sparkexpr.expression.tree import Expression
from sparkexpr.values.column_type import FLOATS

_MOST_DIGITS = 38


def folded_groups(frame: Any, grouping: RowGrouping) -> pa.Table:
    """Return the groups of a frame of the table's columns."""
    functions = functions_of(frame)
    types = {name: value.type for name, value in grouping.values.items()}
    keys = [functions.expr(row_sql(key)).alias(key_name(position)) for position, key in enumerate(grouping.keys.values())]
    values = [functions.expr("count(*)").alias(ROWS)]
    for name, parts in grouping.parts.items():
        values += [functions.expr(_aggregate_sql(part, grouping.values[name])).alias(f"{name}.{part}") for part in parts]
    folded = frame.alias(TARGET).groupBy(*keys).agg(*values).toArrow()
    arrays = {
        key_name(position): sortable(one_array(folded.column(position)).cast(key.type.arrow), key.type)
        for position, key in enumerate(grouping.keys.values())
    }
    column_index = len(arrays)
    arrays[ROWS] = one_array(folded.column(column_index))
    for name, parts in grouping.parts.items():
        for part in parts:
            column_index += 1
            array = one_array(folded.column(column_index))
            if part == "sum":
                _refuse_overflow(array, folded.column(f"{name}.count"), name)
                arrays |= sum_columns(name, array, types[name])
            elif part == "count":
                arrays[f"{name}.count"] = array
            else:
                arrays[f"{name}.{part}"] = sortable(array.cast(types[name].arrow), types[name])
    return pa.table(arrays)


def _refuse_overflow(sums: Any, counts: Any, name: str) -> None:
    """Raise ``OutOfRange`` for a sum of values that is null."""
    if pc.any(pc.and_(sums.is_null(), pc.greater(counts.combine_chunks(), 0)), min_count=0).as_py():
        raise OutOfRange(f"a sum of column '{name}' has more than {_MOST_DIGITS} digits: sum a group at a time, or as DOUBLE")


def _aggregate_sql(function: AggregateName, value: Expression) -> str:
    text = row_sql(value)
    if function != "sum":
        return f"{function}({text})"
    if value.type.kind in FLOATS:
        return f"sum(CAST({text} AS DOUBLE))"
    return f"try_sum(CAST({text} AS DECIMAL({_MOST_DIGITS}, {value.type.scale})))"
