"""Merge rounds with texts of 2 GiB and more.

They have 64-bit offsets during the merge.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lsm.schema.leaf_types import with_leaves
from lsm.schema.pieces import in_pieces

_LONGEST = 2**31 - 1


def widen(rows: Any) -> Any:
    """Return ``rows`` with wide types if a column needs them.

    A column with more bytes than 32-bit offsets can count needs them.

    >>> widen(pa.table({"text": ["a"]})).schema.types
    [DataType(string)]
    """
    if all(column.nbytes <= _LONGEST for column in rows.columns):
        return rows
    return rows.cast(pa.schema([field.with_type(with_leaves(field.type, _wide)) for field in rows.schema]))


def narrow(rows: Any, schema: Any) -> Any:
    """Return ``widen`` rows with the types of ``schema``.

    Rows are cut into chunks that fit.
    """
    return pa.concat_tables([piece.cast(schema) for piece, _ in in_pieces(rows)])


def _wide(leaf: pa.DataType) -> pa.DataType:
    if pa.types.is_string(leaf):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(leaf) else leaf


__all__ = ["narrow", "widen"]
