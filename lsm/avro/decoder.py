"""Blocks of Avro rows as Arrow columns: polars decodes the layout, here its values become what their logical types say."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s
from lsm.avro.shapes import Shape, plain_schema
from manifest.avro.wire import SYNC_BYTES, block_prefix, encode_header

_DECIMAL_BYTES = 16
_SYNC = bytes(SYNC_BYTES)


def decode_blocks(shape: Shape, blocks: Sequence[tuple[int, bytes]], columns: Sequence[str], *, branch: bool) -> Any:
    """A record batch of ``columns``, in the order asked.

    Args:
        shape: of the rows.
        blocks: rows and bytes of each.
        columns: names in ``shape``.
        branch: whether a number stands before each row, which must be 1: 0 would be a null row.

    Raises:
        ValueError: the bytes are no rows of this shape, or a row is null.
    """
    import polars as pl  # noqa: PLC0415  # it takes a fifth of a second to load

    at = [shape.names.index(name) for name in columns]
    encoded = plain_schema(shape, branch=branch).encode()
    parts = [encode_header({b"avro.schema": encoded}), _SYNC]
    for rows, data in blocks:
        parts += [block_prefix(rows, data), data, _SYNC]
    wanted = [*(["branch"] if branch else []), *(f"f{each}" for each in sorted({*at}))]
    try:
        frame = pl.read_avro(io.BytesIO(b"".join(parts)), columns=wanted)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(str(error)) from error
    if branch and frame.height and (frame["branch"] != 1).any():
        raise ValueError("a row is null")
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    arrays = [_restored(_one(table.column(f"f{each}")), shape.children[each]) for each in at]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _one(column: Any) -> Any:
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def _restored(array: Any, shape: Shape) -> Any:
    """``array`` with the types of ``shape``."""
    match shape.kind:
        case "record":
            children = [_restored(array.field(at), child) for at, child in enumerate(shape.children)]
            named = [pa.field(name, child.type) for name, child in zip(shape.names, children, strict=True)]
            if not children:
                return array
            return pa.StructArray.from_arrays(children, fields=named, mask=_nulls(array))
        case "array":
            return pa.ListArray.from_arrays(
                _offsets(array), _restored(array.values, shape.children[0]), type=shape.arrow, mask=_nulls(array)
            )
        case "map":
            keys, values = (_restored(array.values.field(at), child) for at, child in enumerate(shape.children))
            return pa.MapArray.from_arrays(_offsets(array), keys, values, type=shape.arrow, mask=_nulls(array))
    if pa.types.is_decimal(shape.arrow):
        return _decimals(array, shape.arrow)
    return array if array.type == shape.arrow else array.cast(shape.arrow)


def _offsets(array: Any) -> Any:
    return pa.array(array.offsets.to_numpy().astype(np.int32, casting="unsafe")) if array.offsets[-1].as_py() < 1 << 31 else _too_long()


def _too_long() -> Any:
    raise ValueError("a block's arrays have more items than a column can hold")


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _decimals(array: Any, type_: Any) -> Any:
    """Big-endian numbers of any length as decimals."""
    array = array.cast(pa.large_binary())
    count = len(array)
    _, offsets, data = array.buffers()
    bounds: Int64s = np.frombuffer(offsets, np.int64)[array.offset : array.offset + count + 1]
    start, end = bounds[:-1], bounds[1:]
    length = end - start
    if count and int(length.max()) > _DECIMAL_BYTES:
        raise ValueError("a decimal is longer than 16 bytes")
    content = np.frombuffer(data, np.uint8) if data is not None and len(data) else np.zeros(1, np.uint8)
    filled = length > 0
    sign = np.where(filled & (content[np.where(filled, start, 0)] > 0x7F), 0xFF, 0).astype(np.uint8)
    words = np.empty((count, _DECIMAL_BYTES), np.uint8)
    for place in range(_DECIMAL_BYTES):
        inside = place < length
        words[:, place] = np.where(inside, content[np.where(inside, end - 1 - place, 0)], sign)
    valid = pa.array(~array.is_null().to_numpy(zero_copy_only=False)).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(words.tobytes())])


__all__ = ["decode_blocks"]
