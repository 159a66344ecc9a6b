"""Rounds of a merge that one Arrow array cannot hold: texts of 2 GiB and more have offsets of 64 bits while they are folded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lsm.schema.pieces import in_pieces

_LONGEST = 2**31 - 1


def widened(rows: Any) -> Any:
    """``rows``, a table; with columns of wide types where one has more bytes than offsets of 32 bits can count.

    >>> widened(pa.table({"text": ["a"]})).schema.types
    [DataType(string)]
    """
    if all(column.nbytes <= _LONGEST for column in rows.columns):
        return rows
    return rows.cast(pa.schema([field.with_type(_wide(field.type)) for field in rows.schema]))


def narrowed(rows: Any, schema: Any) -> Any:
    """``rows`` that were ``widened`` with the types of ``schema`` again, in chunks that can hold them."""
    return pa.concat_tables([piece.cast(schema) for piece, _ in in_pieces(rows)])


def _wide(kind: Any) -> Any:
    types = pa.types
    if types.is_string(kind):
        return pa.large_string()
    if types.is_binary(kind):
        return pa.large_binary()
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_wide(kind.value_type)))
    if types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_wide(kind.key_type)), kind.item_field.with_type(_wide(kind.item_type)))
    if types.is_struct(kind):
        return pa.struct([kind.field(at).with_type(_wide(kind.field(at).type)) for at in range(kind.num_fields)])
    return kind


__all__ = ["narrowed", "widened"]
