"""Encoding of Arrow columns as Avro rows, in numpy.

Each column is encoded separately. Then the columns are interleaved to rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import AnyArray, Int64s
from fileindex.base.hidden_nulls import entry_lists
from lsm.avro.shapes import Shape

_MOST_BYTES = 10
_DECIMAL_BYTES = 16


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded values: their bytes, and the length of each."""

    data: AnyArray
    lengths: Int64s

    def spread(self, present: AnyArray) -> Encoded:
        """Return the values at ``present`` places, empty values elsewhere."""
        lengths = np.zeros(len(present), np.int64)
        lengths[present] = self.lengths
        return Encoded(self.data, lengths)


def encode(array: Any, shape: Shape) -> Encoded:
    """Encode an array with values of ``shape``.

    It must have neither chunks nor dictionaries.

    >>> encode(pa.array([1, None, -1]), Shape("long", pa.int64(), nullable=True)).data.tolist()
    [2, 2, 0, 2, 1]
    """
    if not shape.nullable:
        return _values(array, shape)
    present = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    branch = (present != shape.null_last).astype(np.uint8) * 2
    filled = array if array.null_count == 0 else array.drop_null()
    return interleave([Encoded(branch, np.ones(len(array), np.int64)), _values(filled, shape).spread(present)])


def interleave(parts: Sequence[Encoded]) -> Encoded:
    """Interleave parts, value by value.

    All first values come first, then all second ones, and so on.
    """
    lengths: Int64s = np.sum([part.lengths for part in parts], axis=0, dtype=np.int64)
    data = np.empty(int(lengths.sum()), np.uint8)
    place = np.cumsum(lengths) - lengths
    for part in parts:
        source = np.cumsum(part.lengths) - part.lengths
        data[np.repeat(place - source, part.lengths) + np.arange(len(part.data))] = part.data
        place = place + part.lengths
    return Encoded(data, lengths)


def _values(array: Any, shape: Shape) -> Encoded:
    match shape.kind:
        case "boolean":
            return Encoded(array.to_numpy(zero_copy_only=False).astype(np.uint8), np.ones(len(array), np.int64))
        case "int" | "long":
            return _varints(_integers(array))
        case "float" | "double":
            wide = 4 if shape.kind == "float" else 8
            return Encoded(np.frombuffer(array.to_numpy(zero_copy_only=False).tobytes(), np.uint8), np.full(len(array), wide, np.int64))
        case "string" | "bytes":
            content = _decimal_bytes(array) if pa.types.is_decimal(shape.arrow) else _content(array)
            return interleave([_varints(content.lengths), content])
        case "record":
            return interleave([encode(array.field(at), child) for at, child in enumerate(shape.children)])
        case "array":
            return _items(array, encode(array.flatten(), shape.children[0]))
        case _:
            entries = entry_lists(array)
            return _items(entries, _values(entries.flatten(), shape.entries))


def _items(array: Any, items: Encoded) -> Encoded:
    """Encode each list as one block and the end.

    An empty list is the end only.
    """
    counts = np.asarray(array.value_lengths().to_numpy(zero_copy_only=False), np.int64)
    ends = np.concatenate([[0], np.cumsum(items.lengths)])
    last = np.cumsum(counts)
    sizes = ends[last] - ends[last - counts]
    filled = counts > 0
    end = Encoded(np.zeros(len(counts), np.uint8), np.ones(len(counts), np.int64))
    return interleave([_varints(counts[filled]).spread(filled), Encoded(items.data, sizes), end])


def _integers(array: Any) -> Int64s:
    """Return dates, times and numbers as integers."""
    wide = pa.types.is_int64(array.type) or pa.types.is_timestamp(array.type)
    plain = array.view(pa.int64()) if wide else array.view(pa.int32()) if array.type.bit_width == 32 else array
    return np.asarray(plain.to_numpy(zero_copy_only=False), np.int64)


def _varints(values: Int64s) -> Encoded:
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    lengths = np.ones(len(values), np.int64)
    for more in range(1, _MOST_BYTES):
        lengths += zigzag >= np.uint64(1 << (7 * more))
    place = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    for at in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > at)
        byte = (zigzag[rows] >> np.uint64(7 * at)) & np.uint64(0x7F)
        data[place[rows] + at] = byte | np.where(lengths[rows] > at + 1, np.uint64(0x80), np.uint64(0))
    return Encoded(data, lengths)


def _content(array: Any) -> Encoded:
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1] if len(array) else np.zeros(1, np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None and len(data) else np.zeros(0, np.uint8)
    return Encoded(content[bounds[0] : bounds[-1]], np.diff(bounds))


def _decimal_bytes(array: Any) -> Encoded:
    """Return decimals as big-endian numbers of minimal length."""
    data = array.buffers()[1]
    words = np.frombuffer(data, np.uint8)[array.offset * _DECIMAL_BYTES :][: len(array) * _DECIMAL_BYTES].reshape(-1, _DECIMAL_BYTES)[
        :, ::-1
    ]
    sign = np.where(words[:, 0] > 0x7F, 0xFF, 0).astype(np.uint8)
    needless = np.zeros((len(array), _DECIMAL_BYTES), np.bool_)
    needless[:, :-1] = (words[:, :-1] == sign[:, None]) & ((words[:, 1:] > 0x7F) == (sign > 0)[:, None])
    kept = ~np.logical_and.accumulate(needless, axis=1)
    return Encoded(words[kept], kept.sum(axis=1))


__all__ = ["Encoded", "encode", "interleave"]
