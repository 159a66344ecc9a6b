"""The value of an expression for every row: an Arrow array. An argument is computed only for rows that need it.

``a <> 0 AND b / a > 1`` divides by no zero: AND, OR, CASE and COALESCE narrow the rows before they go on, as Spark's row by row does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.base.column_type import BINARIES, STRINGS, ColumnType, Plain
from fileindex.base.errors import FilterFailed, InvalidFilter
from fileindex.base.plain_value import canonical_array, to_scalar
from fileindex.expression import calendar, comparison, text, zones
from fileindex.expression.functions import kernel_of
from fileindex.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue

ColumnArrays = Callable[[ColumnValue], Any]


def computed(expression: Expression, columns: ColumnArrays, rows: int) -> Any:
    """The array of ``rows`` values, of ``expression.type``; texts and binaries are large ones.

    Args:
        expression: made by ``call`` and ``cast_to``.
        columns: gives the array of a column in any form that its type may have.
        rows: how many rows there are.

    Raises:
        FilterFailed: a number does not fit, a divisor is zero, a text is no number.
    """
    match expression:
        case ColumnValue():
            return _uniform(canonical_array(columns(expression), expression.type), expression.type)
        case LiteralValue(value, column_type):
            return pa.repeat(_uniform_scalar(value, column_type), rows)
        case FunctionCall():
            try:
                return _called(expression, columns, rows)
            except pa.ArrowInvalid as error:
                raise FilterFailed(f"'{expression}': {error}") from error
            except FilterFailed as error:
                raise error if str(error).startswith("'") else FilterFailed(f"'{expression}': {error}") from error


def _uniform(array: Any, column_type: ColumnType) -> Any:
    wanted = _arrow(column_type)
    cast = array if array.type == wanted else array.cast(wanted)
    return _from_the_start(cast) if column_type.kind in STRINGS | BINARIES else cast


def _from_the_start(array: Any) -> Any:
    """``array`` without the bytes before a slice's first text: some kernels of Arrow's count offsets from zero."""
    if not len(array) or array.buffers()[1] is None:
        return array
    first = np.frombuffer(array.buffers()[1], np.int64, 1, 8 * array.offset)[0]
    return pa.concat_arrays([array.slice(0, 0), array]) if first or array.offset else array


def _uniform_scalar(value: Plain, column_type: ColumnType) -> Any:
    return to_scalar(value, column_type).cast(_arrow(column_type))


def _arrow(column_type: ColumnType) -> Any:
    if column_type.kind in STRINGS:
        return pa.large_string()
    return pa.large_binary() if column_type.kind in BINARIES else column_type.arrow


def _called(made: FunctionCall, columns: ColumnArrays, rows: int) -> Any:
    kernel = kernel_of(made)
    if kernel is not None:
        values = [computed(argument, columns, rows) for argument in made.arguments]
        return _uniform(kernel(values, made.type), made.type)
    first = made.arguments[0]
    match made.function:
        case "and" | "or":
            return _logic(made, columns, rows)
        case "coalesce":
            return _first_known(made.arguments, columns, rows)
        case "case":
            return _chosen(made, columns, rows)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return comparison.compared(made.function, [computed(one, columns, rows) for one in made.arguments], first.type)
        case "<=>":
            return comparison.same_or_both_null([computed(one, columns, rows) for one in made.arguments], first.type)
        case "date_trunc":
            return calendar.truncated(computed(made.arguments[1], columns, rows), _texts(made.arguments[:1])[0])
        case zones.TRUNCATED:
            unit, zone = _texts((first, made.arguments[2]))
            return zones.truncated_instant(computed(made.arguments[1], columns, rows), unit, zone)
    return _of_text(made, computed(first, columns, rows))


def _of_text(made: FunctionCall, value: Any) -> Any:
    """Functions of a text and literals."""
    match made.function:
        case "like":
            return text.matches_like(value, *_texts(made.arguments[1:]))
        case "contains":
            return text.contains(value, *_texts(made.arguments[1:]))
        case "startswith":
            return text.startswith(value, *_texts(made.arguments[1:]))
        case "endswith":
            return text.endswith(value, *_texts(made.arguments[1:]))
        case "substring":
            start, *size = [int(one.value or 0) for one in made.arguments[1:] if isinstance(one, LiteralValue)]
            return text.substring(value, start, size[0] if size else None)
    raise InvalidFilter(f"'{made.function}' is not computed in filters")


def _texts(arguments: Sequence[Expression]) -> list[str]:
    return [str(one.value) for one in arguments if isinstance(one, LiteralValue)]


def _logic(made: FunctionCall, columns: ColumnArrays, rows: int) -> Any:
    """AND, OR of three values: a row that is decided is not looked at again."""
    decides = made.function == "or"
    combine = pc.or_kleene if decides else pc.and_kleene
    found = computed(made.arguments[0], columns, rows)
    for argument in made.arguments[1:]:
        opened = np.asarray(pc.not_equal(found, decides).fill_null(True))
        found = combine(found, _among(argument, opened, columns, otherwise=pa.scalar(decides)))
    return found


def _first_known(arguments: Sequence[Expression], columns: ColumnArrays, rows: int) -> Any:
    found = computed(arguments[0], columns, rows)
    for argument in arguments[1:]:
        if not found.null_count:
            break
        found = pc.coalesce(found, _among(argument, np.asarray(found.is_null()), columns))
    return found


def _chosen(made: FunctionCall, columns: ColumnArrays, rows: int) -> Any:
    """The value of the first condition that is true."""
    *pairs, otherwise = made.arguments
    opened = np.ones(rows, np.bool_)
    found = pa.nulls(rows, _arrow(made.type))
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        true = np.asarray(_among(condition, opened, columns).fill_null(False))
        found = pc.if_else(pa.array(true), _among(value, true, columns), found)
        opened = opened & ~true
    return pc.if_else(pa.array(opened), _among(otherwise, opened, columns), found)


def _among(expression: Expression, wanted: Any, columns: ColumnArrays, otherwise: Any = None) -> Any:
    """The expression's values for the ``wanted`` rows; null, or ``otherwise``, for the others, which are not looked at."""
    rows = len(wanted)
    if wanted.all():
        return computed(expression, columns, rows)
    mask = pa.array(wanted)
    some = computed(expression, lambda column: columns(column).filter(mask), int(wanted.sum()))
    places = np.cumsum(wanted) - 1
    found = some.take(pa.array(places, mask=~wanted))
    return found if otherwise is None else pc.if_else(mask, found, otherwise)


__all__ = ["computed"]
