"""Columns from Python data.

Lists, NumPy arrays, pandas and polars Series, Arrow arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.rows_in.infer_type import infer_type
from lsm.rows_in.lossless_cast import values_hint
from lsm.rows_in.python_families import CONVERSION_ERRORS, without_nan
from lsm.rows_in.python_values import InvalidValue, python_array
from manifest.io.errors import SchemaMismatch


def python_column(name: str, values: Any, target_type: pa.DataType | None, *, first_row: int = 0, widens: bool = False) -> Any:
    """Convert the values of a column to Arrow.

    Columns with an Arrow type keep it: ``conform`` checks them. Python values become ``target_type``. None: infer the type.
    ``widens``: numbers that ``target_type`` cannot have get an inferred type. ``first_row`` is the number of the first value in error messages.

    Raises:
        SchemaMismatch: A value does not fit; the message names row and column.

    >>> python_column("n", [1, 2.0], pa.int8()).to_pylist()
    [1, 2]
    >>> python_column("n", [1, 2.5], pa.int8())
    Traceback (most recent call last):
    pyspark_paimon.SchemaMismatch: column 'n', row 1: 2.5 (float) does not fit int8: ...
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    of_pandas = any(kind.__module__.startswith("pandas.") for kind in type(values).__mro__)
    try:
        if isinstance(values, np.ndarray) and values.dtype.kind != "O" and values.ndim == 1:
            return pa.array(values)
        if of_pandas and not _holds_objects(values.dtype):
            return pa.array(values, from_pandas=True)
        if hasattr(values, "__arrow_c_stream__") and not of_pandas:
            return pa.chunked_array(values)
        if hasattr(values, "__arrow_c_array__") and not of_pandas:
            return pa.array(values)
    except CONVERSION_ERRORS as error:
        raise SchemaMismatch(f"column '{name}' cannot be converted to an Arrow type: {error}") from error
    listed: Sequence[Any] = values if isinstance(values, list | tuple) else list(values)
    if of_pandas:
        listed = without_nan(listed)
    try:
        return python_array(listed, infer_type(listed) if target_type is None else target_type)
    except InvalidValue as error:
        if widens and target_type is not None and (wider := _wider(listed, target_type)) is not None:
            return wider
        where = f"column '{name}{error.path}', row {first_row + error.row}"
        raise SchemaMismatch(f"{where}: {error.reason}{'' if error.path else values_hint(target_type)}") from error


def _wider(values: Sequence[Any], target_type: pa.DataType) -> pa.Array | None:
    """Return numbers in their inferred type. None: not only numbers."""
    try:
        kind = infer_type(values)
        return python_array(values, kind) if _is_number(target_type) and _is_number(kind) else None
    except InvalidValue:
        return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _holds_objects(dtype: Any) -> bool:
    """Return whether values of a pandas type are Python objects.

    Then the Arrow type depends on the values.
    """
    return str(getattr(getattr(dtype, "categories", None), "dtype", dtype)) == "object"


def python_scalar(name: str, value: Any, target_type: pa.DataType) -> pa.Scalar:
    """Convert one value of a column.

    Raises:
        SchemaMismatch: The value does not fit; the message names the column.
    """
    try:
        return python_array([value], target_type)[0]
    except InvalidValue as error:
        raise SchemaMismatch(f"column '{name}{error.path}': {error.reason}{'' if error.path else values_hint(target_type)}") from error
