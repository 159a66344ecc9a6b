"""Lossless casts of Arrow columns, including nested ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import is_bytes, is_text
from paimon_base.hidden_nulls import cast_nested, entry_lists
from sparkexpr.values.rounded_cast import is_rounded, may_round

_WIDEST_DECIMAL = pa.decimal128(38, 0)

Errors: TypeAlias = type[Exception] | tuple[type[Exception], ...]


class LossyCast(ValueError):
    """A value does not fit the target type."""

    def __init__(self, reason: str, *, rounded: bool) -> None:
        super().__init__(reason)
        self.rounded = rounded


def lossless_cast(column: Any, target: Any) -> Any:
    """Cast an Array or ChunkedArray without changing a value.

    ``may_cast`` must be True for its type.

    Raises:
        LossyCast: A value would change.

    >>> lossless_cast(pa.array([1.0, None]), pa.int32()).to_pylist()
    [1, None]
    >>> lossless_cast(pa.array([[0.1]]), pa.list_(pa.float32()))
    Traceback (most recent call last):
    lsm.rows_in.lossless_cast.LossyCast: a value of Arrow list<item: double> would be rounded to become list<item: float>
    """
    source = column.type
    try:
        result = cast_nested(_widen(column, target), target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise LossyCast(str(error), rounded=False) from error
    if any(is_rounded(before, after) for before, after in _leaves(column, result)):
        raise LossyCast(f"a value of Arrow {source} would be rounded to become {target}", rounded=True)
    return result


def first_row(length: int, attempt: Callable[[int, int], object], errors: Errors) -> int:
    """Return the first row for which an attempt fails, by bisection.

    ``attempt(start, stop)`` raises one of ``errors`` for the range of all rows.

    >>> first_row(5, lambda start, stop: 1 / (start > 3 or stop <= 3), ZeroDivisionError)
    3
    """
    start, stop = 0, length
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            attempt(start, middle)
        except errors:
            stop = middle
        else:
            start = middle
    return start


def _widen(column: Any, target: Any) -> Any:
    source = column.type
    if pa.types.is_integer(source) and pa.types.is_decimal(target):
        return column.cast(_WIDEST_DECIMAL)  # Arrow checks integers by type, decimals by value
    if pa.types.is_dictionary(source) and str(source.value_type).endswith("_view"):  # categories of polars: Arrow cannot gather views
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        pieces = [pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(target)) for chunk in chunks]
        return pa.chunked_array(pieces, pa.dictionary(source.index_type, target))
    return column


def _leaves(before: Any, after: Any) -> Iterator[tuple[Any, Any]]:
    """Yield parts before and after a cast that may round."""
    source, target = before.type, after.type
    if source.equals(target) or pa.types.is_null(source) or not (pa.types.is_nested(target) or may_round(source, target)):
        return
    if not pa.types.is_nested(target):
        yield before, after
        return
    for old, new in zip(_filled_chunks(before), _filled_chunks(after), strict=True):
        for pair in zip(_parts(old, target), _parts(new, target), strict=True):
            yield from _leaves(*pair)


def _filled_chunks(column: Any) -> list[Any]:
    """Return the non-empty chunks: Arrow's cast drops empty ones."""
    return [chunk for chunk in column.chunks if len(chunk)] if isinstance(column, pa.ChunkedArray) else [column]


def _parts(array: Any, target: Any) -> Iterator[Any]:
    types = pa.types
    if types.is_struct(target):
        yield from (pc.struct_field(array, [array.type.get_field_index(field.name)]) for field in target)
    elif types.is_map(target):
        entries = entry_lists(array).flatten()
        yield from (entries.field(index) for index in range(2))
    else:
        yield array.flatten()


def may_cast(source: Any, target: Any) -> bool:
    """Return whether an Arrow type can be cast losslessly.

    Whether a cast is lossless also depends on the values.
    """
    types = pa.types
    if types.is_dictionary(source):
        return may_cast(source.value_type, target)
    if source.equals(target) or types.is_null(source):
        return True
    if types.is_integer(target):
        return bool(types.is_integer(source) or types.is_floating(source) or types.is_decimal(source))
    if types.is_floating(target):
        return bool(types.is_floating(source) or types.is_integer(source))
    if types.is_decimal(target):
        return bool(types.is_decimal(source) or types.is_integer(source))
    if types.is_date(target):
        return bool(types.is_date(source) or (types.is_timestamp(source) and source.tz is None))
    if types.is_timestamp(target):
        return bool(
            (types.is_timestamp(source) and (source.tz is None) == (target.tz is None)) or (types.is_date(source) and not target.tz)
        )
    if types.is_time(target):
        return bool(types.is_time(source))
    if types.is_string(target) or types.is_binary(target):
        return is_text(source) if types.is_string(target) else is_bytes(source)
    return _may_cast_nested(source, target)


def _may_cast_nested(source: Any, target: Any) -> bool:
    types = pa.types
    if types.is_map(target):
        return bool(types.is_map(source)) and may_cast(source.key_type, target.key_type) and may_cast(source.item_type, target.item_type)
    if types.is_list(target) or types.is_fixed_size_list(target):
        is_list = types.is_list(source) or types.is_large_list(source) or types.is_fixed_size_list(source)
        return bool(is_list) and may_cast(source.value_type, target.value_type)
    if types.is_struct(target) and types.is_struct(source):
        fields = {source.field(index).name: source.field(index).type for index in range(source.num_fields)}
        target_fields = [target.field(index) for index in range(target.num_fields)]
        same = len(fields) == source.num_fields and set(fields) == {field.name for field in target_fields}
        return same and all(may_cast(fields[field.name], field.type) for field in target_fields)
    return False
