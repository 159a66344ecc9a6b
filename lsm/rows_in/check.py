"""Checks of Arrow arrays from outside.

Names, UTF-8, decimal and time ranges, dictionary indices, offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.rows_in.arrow import ArrowRows
from lsm.rows_in.lossless_cast import first_row
from manifest.io.errors import SchemaMismatch

_DAMAGE = (pa.ArrowException, UnicodeDecodeError)


def check_rows(rows: ArrowRows) -> ArrowRows:
    """Return rows whose batches are checked before use.

    Reading raises the errors of ``validate_rows``.

    Raises:
        SchemaMismatch: Two columns have one name.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in rows.reader:
            validate_rows(batch, start)
            start += batch.num_rows
            yield batch

    schema = rows.reader.schema
    refuse_repeated(schema)
    return replace(rows, reader=pa.RecordBatchReader.from_batches(schema, batches()))


def refuse_repeated(schema: pa.Schema) -> None:
    """Raise ``SchemaMismatch`` if two columns have one name."""
    repeated = [name for name, times in Counter(schema.names).items() if times > 1]
    if repeated:
        raise SchemaMismatch(f"the rows to write have several columns named {', '.join(repeated)}")


def validate_rows(rows: Any, start: int = 0) -> None:
    r"""Raise ``SchemaMismatch`` for a damaged value.

    The message names row and column. ``start`` is the number of the first row in the message.

    >>> damaged = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    >>> validate_rows(pa.table({"s": damaged}))
    Traceback (most recent call last):
    pyspark_paimon.SchemaMismatch: column 's', row 0: the Arrow array is damaged: ...
    """
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        before = start
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
            try:
                chunk.validate(full=not _is_ascii(chunk))
            except _DAMAGE as error:
                row, path = _first_fault(chunk)
                where = f"column '{name}{path}'" + ("" if row is None else f", row {before + row}")
                raise SchemaMismatch(f"{where}: the Arrow array is damaged: {error}; build it again from valid values") from error
            before += len(chunk)


def _is_ascii(array: Any) -> bool:
    """Return whether an array is ASCII text."""
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)) or not len(array):
        return False
    # Checking for ASCII is several times faster than for UTF-8.
    array.validate()
    _, offsets, data = array.buffers()
    width: Any = np.int32 if pa.types.is_string(array.type) else np.int64
    bounds = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    if data is None or bounds[0] < 0 or bool(np.any(bounds[1:] < bounds[:-1])):
        return False
    return bool(np.frombuffer(data, np.int8)[bounds[0] : bounds[-1]].min(initial=0) >= 0)


def _is_damaged(array: Any) -> bool:
    try:
        array.validate(full=True)
    except _DAMAGE:
        return True
    return False


def _first_fault(array: Any) -> tuple[int | None, str]:
    """Return row and path of the first damaged value.

    None: the damage has no row.
    """
    types, kind = pa.types, array.type
    if types.is_struct(kind):
        for position, field in enumerate(kind):
            if _is_damaged(part := array.field(position)):
                row, path = _first_fault(part)
                return row, f".{field.name}{path}"
        return None, ""  # the damage is outside of the slice
    if types.is_map(kind):
        for part, step in ((array.keys, "[key]"), (array.items, "[value]")):
            if _is_damaged(part):
                row, path = _first_fault(part)
                return _row_of(array, row), step + path
    elif types.is_fixed_size_list(kind):
        if _is_damaged(array.values):
            row, path = _first_fault(array.values)
            return None if row is None else row // max(1, kind.list_size) - array.offset, f"[]{path}"
    elif (types.is_list(kind) or types.is_large_list(kind)) and _is_damaged(array.values):
        row, path = _first_fault(array.values)
        return _row_of(array, row), f"[]{path}"
    if types.is_dictionary(kind) and _is_damaged(array.dictionary):
        entry, path = _first_fault(array.dictionary)
        row_of_entry = -1 if entry is None else int(pc.index(array.indices, pa.scalar(entry, kind.index_type)).as_py())
        return (None if row_of_entry < 0 else row_of_entry), path
    row = first_row(len(array), lambda start, stop: array.slice(start, stop - start).validate(full=True), _DAMAGE)
    return (row if len(array) and _is_damaged(array.slice(row, 1)) else None), ""


def _row_of(array: Any, position: int | None) -> int | None:
    """Return the row of a list that contains ``position``."""
    if position is None:
        return None
    offsets = array.offsets.to_numpy(zero_copy_only=False)
    row = int(np.searchsorted(offsets, position, side="right")) - 1
    return row if 0 <= row < len(array) else None
