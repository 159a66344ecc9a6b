"""Types of numpy arrays, and conversions between numpy and Arrow.

Arrow's own conversions, ``pa.array``, ``pa.scalar`` and ``to_numpy``, import pandas, which takes 0.2 s of a fresh process. Reads use
the functions of this module.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask: TypeAlias = npt.NDArray[np.bool_]
Int8s: TypeAlias = npt.NDArray[np.int8]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt8s: TypeAlias = npt.NDArray[np.uint8]
UInt32s: TypeAlias = npt.NDArray[np.uint32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Indices: TypeAlias = npt.NDArray[np.intp]
AnyArray: TypeAlias = npt.NDArray[Any]


def arrow_array(values: AnyArray, valid: Mask | None = None) -> Any:
    """Return numbers or booleans as an Arrow array, null where not ``valid``.

    >>> arrow_array(np.array([3, 1], np.int32)).type, arrow_array(np.array([True, False])).to_pylist()
    (DataType(int32), [True, False])
    """
    is_bits = values.dtype == np.bool_
    buffers = [None if valid is None else _bits(valid), _bits(values) if is_bits else pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.bool_() if is_bits else pa.from_numpy_dtype(values.dtype), len(values), buffers)


def _bits(values: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def numpy_array(array: Any) -> AnyArray:
    """Return an Arrow array as numpy does, without a copy of numbers.

    >>> numpy_array(pa.array([3, 1])).tolist(), numpy_array(pa.array([True, False, True])[1:]).tolist()
    ([3, 1], [False, True])
    """
    values: AnyArray
    if isinstance(array, pa.Array) and not array.null_count:
        if pa.types.is_boolean(array.type):
            if not len(array):
                return np.zeros(0, np.bool_)
            bits = np.frombuffer(array.buffers()[1], np.uint8)
            values = np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)
            return values
        if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            values = np.from_dlpack(array)
            return values
    values = array.to_numpy(zero_copy_only=False)
    return values
