"""Evaluation of expressions on Arrow arrays.

An argument is computed only for rows that need it: ``a <> 0 AND b / a > 1`` never divides by zero.
AND, OR, CASE and COALESCE narrow the rows before they evaluate the next argument, as Spark does row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkexpr.errors import FilterFailed, InvalidFilter
from sparkexpr.expression import calendar, comparison, java_regex, nested, rounding, text, variants
from sparkexpr.expression.casts import cast_kernel
from sparkexpr.expression.functions import WITH_FIELD, kernel_of
from sparkexpr.expression.tree import ColumnValue, Expression, FunctionCall, LiteralValue
from sparkexpr.values.column_type import BINARIES, LISTS, STRINGS, WITH_PARTS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import canonical_array, literal_array, to_scalar
from sparkexpr.values.rounded_cast import is_rounded, may_round

ColumnArrays = Callable[[ColumnValue], Any]


def compute(expression: Expression, columns: ColumnArrays, rows: int) -> Any:
    """Return the values of an expression for all rows.

    The array has type ``expression.type``; texts and binaries have the large types. Values with parts are as the columns have them.

    Args:
        expression: Built by ``call`` and ``cast_to``.
        columns: Function that returns the array of a column, in any form that its type may have.
        rows: Number of rows.

    Raises:
        FilterFailed: A number does not fit its type, a divisor is zero, or a text is not a number.
    """
    match expression:
        case ColumnValue():
            return _canonical(columns(expression), expression.type)
        case LiteralValue(value, column_type):
            # A null may have any type, of an array or row too: a column that a file lacks is one.
            return pa.nulls(rows, _arrow(column_type)) if value is None else pa.repeat(_uniform_scalar(value, column_type), rows)
        case FunctionCall():
            try:
                return _compute_call(expression, columns, rows)
            except pa.ArrowInvalid as error:
                raise FilterFailed(f"'{expression}': {error}") from error
            except FilterFailed as error:
                raise error if str(error).startswith("'") else FilterFailed(f"'{expression}': {error}") from error


def _canonical(array: Any, column_type: ColumnType) -> Any:
    return array if column_type.kind in WITH_PARTS else _uniform(canonical_array(array, column_type), column_type)


def _uniform(array: Any, column_type: ColumnType) -> Any:
    arrow_type = _arrow(column_type)
    cast = array if array.type == arrow_type else array.cast(arrow_type)
    return _without_offset(cast) if column_type.kind in STRINGS | BINARIES else cast


def _without_offset(array: Any) -> Any:
    """Return ``array`` without unused bytes before its first text."""
    # Some of Arrow's kernels count offsets from zero.
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


def _compute_call(node: FunctionCall, columns: ColumnArrays, rows: int) -> Any:
    kernel = kernel_of(node)
    if kernel is not None:
        values = [compute(argument, columns, rows) for argument in node.arguments]
        result = kernel(values, node.type)
        return result if node.type.kind in WITH_PARTS else _uniform(result, node.type)
    first = node.arguments[0]
    match node.function:
        case "and" | "or":
            return _logic(node, columns, rows)
        case "coalesce":
            return _coalesce(node.arguments, columns, rows)
        case "case":
            return _case(node, columns, rows)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return comparison.compare(node.function, [compute(operand, columns, rows) for operand in node.arguments], first.type)
        case "<=>":
            return comparison.same_or_both_null([compute(operand, columns, rows) for operand in node.arguments], first.type)
        case "in":
            listed = literal_array([operand.value for operand in node.arguments[1:] if isinstance(operand, LiteralValue)], first.type)
            return comparison.among(compute(first, columns, rows), _uniform(listed, first.type), first.type)
        case "date_trunc":
            return calendar.truncate(compute(node.arguments[1], columns, rows), _texts(node.arguments[:1])[0])
        case calendar.TRUNCATED:
            unit, zone = _texts((first, node.arguments[2]))
            return calendar.truncate_instant(compute(node.arguments[1], columns, rows), unit, zone)
        case "item" | "get" | "element_at" | "try_element_at":
            return _canonical(_item(node, compute(first, columns, rows)), node.type)
        case name if name in variants.GETTERS:
            return variants.extract(node, compute(first, columns, rows))
        case name if name == WITH_FIELD:
            return _with_field(node, columns, rows)
        case "array_contains":
            return _array_contains(first.type, node.arguments[1], compute(first, columns, rows), compute(node.arguments[1], columns, rows))
    return _compute_with_literals(node, compute(first, columns, rows))


def _item(node: FunctionCall, array: Any) -> Any:
    """Return a field, an element or an entry of each row."""
    container, selector = node.arguments
    assert isinstance(selector, LiteralValue)
    if container.type.kind is Kind.ROW:
        return nested.struct_field(array, str(selector.value))
    if container.type.kind in LISTS:
        index = int(selector.value or 0)
        if node.function in {"item", "get"} and index < 0:
            return nested.list_item(array, 2**31, strict=node.function == "item")
        if node.function in {"element_at", "try_element_at"} and index > 0:
            index -= 1
        return nested.list_item(array, index, strict=node.function in {"item", "element_at"})
    if isinstance(selector.value, str):
        return nested.map_entries(array, [selector.value])[0]
    keys = _canonical(nested.map_keys(array), selector.type)
    return nested.map_item(
        array, comparison.compare("=", [keys, pa.repeat(_uniform_scalar(selector.value, selector.type), len(keys))], selector.type)
    )


def _with_field(node: FunctionCall, columns: ColumnArrays, rows: int) -> Any:
    """Return structs with another value of a field. As in Spark, a null struct becomes one whose other fields are null."""
    struct, field, value = node.arguments
    assert isinstance(field, LiteralValue)
    structs = compute(struct, columns, rows)
    field_type = structs.type.field(str(field.value)).type
    is_null = isinstance(value, LiteralValue) and value.value is None
    try:
        field_values = pa.nulls(rows, field_type) if is_null else _without_loss(compute(value, columns, rows), field_type)
    except pa.ArrowInvalid as error:
        kind = dict(struct.type.fields)[str(field.value)].kind
        raise FilterFailed(f"'{value}' does not fit field {field} of type {kind}: {error}") from error
    return nested.with_field(structs, str(field.value), field_values)


def _without_loss(values: Any, target: Any) -> Any:
    """Cast the values of a field. Raises ``ArrowInvalid`` where one would change."""
    types = pa.types
    if types.is_integer(values.type) and types.is_decimal(target):
        values = values.cast(pa.decimal128(38, 0))  # Arrow checks integers by type, decimals by value
    cast_values = values.cast(target)
    if may_round(values.type, target) and is_rounded(values, cast_values):
        raise pa.ArrowInvalid("a value would be rounded")
    return cast_values


def _array_contains(list_type: ColumnType, searched: Expression, lists: Any, values: Any) -> Any:
    assert list_type.value is not None
    elements, owners = nested.owned_values(lists)
    cast = _uniform(cast_kernel(list_type.value, searched.type)(_canonical(elements, list_type.value), searched.type), searched.type)
    return nested.any_of_rows(comparison.compare("=", [cast, values.take(pa.array(owners))], searched.type), owners, lists)


def _compute_with_literals(node: FunctionCall, value: Any) -> Any:
    """Compute a function of one value and literals."""
    match node.function:
        case "like":
            return text.matches_like(value, *_texts(node.arguments[1:]))
        case "rlike":
            return java_regex.matches(value, *_texts(node.arguments[1:]))
        case "contains":
            return text.contains(value, *_texts(node.arguments[1:]))
        case "startswith":
            return text.startswith(value, *_texts(node.arguments[1:]))
        case "endswith":
            return text.endswith(value, *_texts(node.arguments[1:]))
        case "round":
            return rounding.round_to(value, _numbers(node.arguments[1:])[0], node.type)
        case "trunc":
            return calendar.truncate_day(value, *_texts(node.arguments[1:]))
        case calendar.SHIFTED:
            unit, *zone = _texts((node.arguments[1], *node.arguments[3:]))
            return calendar.add_interval(value, unit, _numbers(node.arguments[2:3])[0], node.type, *zone)
        case "replace":
            return text.replace(value, *_texts(node.arguments[1:]))
        case "repeat":
            return text.repeat(value, *_numbers(node.arguments[1:]))
        case "lpad" | "rpad":
            return text.pad(value, _numbers(node.arguments[1:2])[0], _texts(node.arguments[2:])[0], left=node.function == "lpad")
        case "instr":
            return text.position(value, *_texts(node.arguments[1:]))
        case "split_part":
            return text.split_part(value, _texts(node.arguments[1:2])[0], _numbers(node.arguments[2:])[0])
        case "substring":
            start, *size = _numbers(node.arguments[1:])
            return text.substring(value, start, size[0] if size else None)
    raise InvalidFilter(f"'{node.function}' is not supported in filters")


def _texts(arguments: Sequence[Expression]) -> list[str]:
    return [str(argument.value) for argument in arguments if isinstance(argument, LiteralValue)]


def _numbers(arguments: Sequence[Expression]) -> list[int]:
    return [int(argument.value or 0) for argument in arguments if isinstance(argument, LiteralValue)]


def _logic(node: FunctionCall, columns: ColumnArrays, rows: int) -> Any:
    """Compute AND or OR in three-valued logic.

    Rows that are already decided are not evaluated again.
    """
    decides = node.function == "or"
    combine = pc.or_kleene if decides else pc.and_kleene
    result = compute(node.arguments[0], columns, rows)
    for argument in node.arguments[1:]:
        opened = np.asarray(pc.not_equal(result, decides).fill_null(True))
        result = combine(result, _compute_rows(argument, opened, columns, otherwise=pa.scalar(decides)))
    return result


def _coalesce(arguments: Sequence[Expression], columns: ColumnArrays, rows: int) -> Any:
    result = compute(arguments[0], columns, rows)
    for argument in arguments[1:]:
        if not result.null_count:
            break
        result = pc.coalesce(result, _compute_rows(argument, np.asarray(result.is_null()), columns))
    return result


def _case(node: FunctionCall, columns: ColumnArrays, rows: int) -> Any:
    """Return each row's value of the first true condition."""
    *pairs, otherwise = node.arguments
    opened = np.ones(rows, np.bool_)
    result = pa.nulls(rows, _arrow(node.type))
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        true = np.asarray(_compute_rows(condition, opened, columns).fill_null(False))
        result = pc.if_else(pa.array(true), _compute_rows(value, true, columns), result)
        opened = opened & ~true
    return pc.if_else(pa.array(opened), _compute_rows(otherwise, opened, columns), result)


def _compute_rows(expression: Expression, selection: Any, columns: ColumnArrays, otherwise: Any = None) -> Any:
    """Return the expression's values for the ``selection`` rows.

    The other rows are not evaluated: they are null, or ``otherwise``.
    """
    rows = len(selection)
    if selection.all():
        return compute(expression, columns, rows)
    mask = pa.array(selection)
    computed = compute(expression, lambda column: columns(column).filter(mask), int(selection.sum()))
    positions = np.cumsum(selection) - 1
    scattered = computed.take(pa.array(positions, mask=~selection))
    return scattered if otherwise is None else pc.if_else(mask, scattered, otherwise)
