"""Arrow type of VARIANT columns in memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

_MARK = {b"variant": b"true"}

VARIANT_ARROW = pa.struct(
    [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False, metadata=_MARK)]
)
"""A struct of both binaries, as in Parquet. The mark on ``metadata`` is Spark's: it tells a VARIANT from a ROW."""


def is_variant_type(kind: pa.DataType) -> bool:
    """Return whether a type is a VARIANT, and not a ROW with the same fields.

    >>> is_variant_type(VARIANT_ARROW), is_variant_type(pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))
    (True, False)
    """
    if not pa.types.is_struct(kind) or kind.num_fields != 2:
        return False
    metadata_index = kind.get_field_index("metadata")
    return (
        metadata_index >= 0
        and kind.get_field_index("value") >= 0
        and (kind.field(metadata_index).metadata or {}).get(b"variant") == b"true"
    )


def variant_array(values: Any, metadata: Any, nulls: Any = None) -> Any:
    """Return the VARIANT array of both binary arrays.

    nulls: Mask of null rows. Their binaries are empty, not null.
    """
    return pa.StructArray.from_arrays([values, metadata], fields=list(VARIANT_ARROW), mask=nulls)
