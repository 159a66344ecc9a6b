"""Rows of a Spark DataFrame as an Arrow table.

``DataFrame.toArrow`` fails for a NULL in a VARIANT: Spark sends its binaries as nulls, and PySpark's client refuses those. Such columns
are sent as arrays of one value, or as NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_base.hidden_nulls import cast_nested
from pyspark_paimon.frames.spark_functions import functions_of, quote_name, text_sql
from sparkexpr.values.variant_type import VARIANT_ARROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as st


def fetch_rows(frame: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame.

    As ``toArrow()``, but a VARIANT may be NULL, at any depth.
    """
    fields = frame.schema.fields
    if not any(has_variant(field.dataType) for field in fields):
        return frame.toArrow()
    expr = functions_of(frame).expr
    columns = [
        _sent(quote_name(field.name), field.dataType, 0) if has_variant(field.dataType) else quote_name(field.name) for field in fields
    ]
    sent = frame.select(*(expr(text).alias(f"c{index}") for index, text in enumerate(columns))).toArrow()
    arrays = [
        pa.chunked_array([_restore(chunk, field.dataType) for chunk in column.chunks], _arrow(column.type, field.dataType))
        if has_variant(field.dataType)
        else column
        for column, field in zip(sent.columns, fields, strict=True)
    ]
    return pa.table(arrays, names=[field.name for field in fields])


def has_variant(kind: st.DataType) -> bool:
    """Return whether a Spark type is or contains a VARIANT."""
    return kind.typeName() == "variant" or any(map(has_variant, inner_types(kind)))


def inner_types(kind: st.DataType) -> list[Any]:
    """Return the types within a nested Spark type. Others have none."""
    inner = (getattr(kind, name, None) for name in ("elementType", "keyType", "valueType"))
    return [part for part in inner if part is not None] + [field.dataType for field in getattr(kind, "fields", ())]


def _sent(text: str, kind: Any, depth: int) -> str:
    """Return SQL of the form in which a value is sent."""
    if not has_variant(kind):
        return text
    name = f"x{depth}"
    match kind.typeName():
        case "variant":
            return f"IF({text} IS NULL, NULL, array({text}))"
        case "array":
            return f"transform({text}, {name} -> {_sent(name, kind.elementType, depth + 1)})"
        case "map":
            return f"transform_values({text}, (k{depth}, {name}) -> {_sent(name, kind.valueType, depth + 1)})"
    members = [part for field in kind.fields for part in (text_sql(field.name), _member(text, field, depth))]
    return f"IF({text} IS NULL, NULL, named_struct({', '.join(members)}))"


def _member(text: str, field: st.StructField, depth: int) -> str:
    sent = _sent(f"{text}.{quote_name(field.name)}", field.dataType, depth + 1)
    # PySpark refuses fields that are NOT NULL in a row that is NULL, too.
    return sent if field.nullable else f"IF({text} IS NULL, NULL, {sent})"


def _restore(array: Any, kind: Any) -> Any:
    """Return the values of an array in the form of ``_sent``."""
    if not has_variant(kind):
        return array
    if kind.typeName() == "variant":
        offsets = np.asarray(array.offsets)
        variants = array.values.take(pa.array(offsets[:-1], mask=np.diff(offsets) == 0))
        return cast_nested(variants, VARIANT_ARROW)
    mask = array.is_null() if array.null_count else None
    arrow_type = _arrow(array.type, kind)
    if kind.typeName() == "struct":
        children = [_restore(pc.struct_field(array, [index]), field.dataType) for index, field in enumerate(kind.fields)]
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=mask)
    offsets = pa.array(np.asarray(array.offsets))
    if kind.typeName() == "map":
        return pa.MapArray.from_arrays(offsets, array.keys, _restore(array.items, kind.valueType), type=arrow_type, mask=mask)
    return pa.ListArray.from_arrays(offsets, _restore(array.values, kind.elementType), type=arrow_type, mask=mask)


def _arrow(sent: pa.DataType, kind: Any) -> pa.DataType:
    """Return the Arrow type of a column sent as ``sent``."""
    if not has_variant(kind):
        return sent
    match kind.typeName():
        case "variant":
            return VARIANT_ARROW
        case "array":
            return pa.list_(sent.value_field.with_type(_arrow(sent.value_type, kind.elementType)).with_nullable(True))
        case "map":
            return pa.map_(sent.key_field, sent.item_field.with_type(_arrow(sent.item_type, kind.valueType)).with_nullable(True))
    fields = zip(sent, kind.fields, strict=True)
    return pa.struct([part.with_type(_arrow(part.type, field.dataType)).with_nullable(True) for part, field in fields])
