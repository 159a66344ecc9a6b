"""Rounds of a merge that one Arrow array cannot hold: texts of 2 GiB and more have offsets of 64 bits while they are folded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lsm.schema.leaf_types import with_leaves
from lsm.schema.pieces import in_pieces

_LONGEST = 2**31 - 1


def widened(rows: Any) -> Any:
    """``rows``, a table; with columns of wide types where one has more bytes than offsets of 32 bits can count.

    >>> widened(pa.table({"text": ["a"]})).schema.types
    [DataType(string)]
    """
    if all(column.nbytes <= _LONGEST for column in rows.columns):
        return rows
    return rows.cast(pa.schema([field.with_type(with_leaves(field.type, _wide)) for field in rows.schema]))


def narrowed(rows: Any, schema: Any) -> Any:
    """``rows`` that were ``widened`` with the types of ``schema`` again, in chunks that can hold them."""
    return pa.concat_tables([piece.cast(schema) for piece, _ in in_pieces(rows)])


def _wide(leaf: pa.DataType) -> pa.DataType:
    if pa.types.is_string(leaf):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(leaf) else leaf


__all__ = ["narrowed", "widened"]
