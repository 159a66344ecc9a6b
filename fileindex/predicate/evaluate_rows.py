"""Exact evaluation of predicates on Arrow batches.

All other uses of a predicate only prune.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.predicate.tree import And, ColumnRef, Compare, ComputedPredicate, In, IsNull, Leaf, Op, Or, Predicate, StartsWith, derive
from paimon_base.errors import FilterFailed, InvalidFilter, UnknownColumn
from sparkexpr.expression.compute import compute
from sparkexpr.expression.nested import column_part
from sparkexpr.expression.tree import ColumnValue, column_values
from sparkexpr.values.arrays import arrow_array, numpy_array
from sparkexpr.values.column_type import FLOATS, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import canonical_array, fixed_array, literal_array, to_scalar

_BOOLEANS = arrow_array(np.array([False, True]))
_KERNELS = {Op.EQ: pc.equal, Op.NE: pc.not_equal, Op.LT: pc.less, Op.LE: pc.less_equal, Op.GT: pc.greater, Op.GE: pc.greater_equal}


def type_of(column: ColumnRef, types: Mapping[str, ColumnType]) -> ColumnType:
    """Return the type of a column or MAP entry.

    Raises:
        UnknownColumn: The table has no such column.
        InvalidFilter: An entry of a column that is not a MAP with string keys.
    """
    column_type = types.get(column.name)
    if column_type is None:
        raise UnknownColumn(column.name, tuple(types))
    if column.key is None:
        return column_type
    if column_type.kind is not Kind.MAP or column_type.key is None or column_type.value is None or column_type.key.kind not in STRINGS:
        raise InvalidFilter(
            f"'{column}': column '{column.name}' of type {column_type.kind} is not a MAP with string keys, nor a ROW with fields"
        )
    return column_type.value


def mask(predicate: Predicate, batch: Any, types: Mapping[str, ColumnType]) -> Any:
    """Return a mask of the rows that satisfy ``predicate``.

    Follows Spark SQL. The mask has no nulls.

    Args:
        predicate: Its literals are plain values of the types in ``types``.
        batch: A RecordBatch or a Table. Columns may be dictionary encoded, large or views.
        types: The table's columns by name.

    Returns:
        A BooleanArray of the batch's rows; a ChunkedArray for a Table.

    Raises:
        UnknownColumn, InvalidFilter: The predicate does not fit the types.
        UnsupportedType: A column's Arrow type is not valid for its Paimon type.
        FilterFailed: A computed predicate has no value for a row that the other conditions have not decided.

    >>> from fileindex.predicate.tree import Compare
    >>> batch = pa.record_batch({"a": pa.array([1, None, 3])})
    >>> mask(Compare(ColumnRef("a"), Op.GT, 1), batch, {"a": ColumnType(Kind.BIGINT)}).to_pylist()
    [False, False, True]
    """
    if isinstance(batch, pa.Table):
        return pa.chunked_array([_tree(predicate, part, types) for part in batch.to_batches()], pa.bool_())
    return _tree(predicate, batch, types)


def _tree(predicate: Predicate, batch: Any, types: Mapping[str, ColumnType]) -> Any:
    match predicate:
        case And(children):
            return _fold(children, pc.and_, batch, types, empty=True)
        case Or(children):
            return _fold(children, pc.or_, batch, types, empty=False)
        case ComputedPredicate():
            return _evaluate_computed(predicate, batch, types)
        case leaf:
            return _leaf(leaf, batch, types)


def _fold(children: tuple[Predicate, ...], combine: Any, batch: Any, types: Mapping[str, ColumnType], *, empty: bool) -> Any:
    if not children:
        return _constant(empty, batch.num_rows)
    late = [child for child in children if _computes(child)]
    if not late:
        return reduce(combine, [_tree(child, batch, types) for child in children])
    answers = _fold(tuple(child for child in children if not _computes(child)), combine, batch, types, empty=empty)
    for child in late:
        answers = combine(answers, _where_open(child, answers, batch, types, decided=not empty))
    return answers


def _computes(predicate: Predicate) -> bool:
    if isinstance(predicate, And | Or):
        return any(map(_computes, predicate.children))
    return isinstance(predicate, ComputedPredicate)


def _where_open(predicate: Predicate, decided_answers: Any, batch: Any, types: Mapping[str, ColumnType], *, decided: bool) -> Any:
    """Return answers for the rows that ``decided_answers`` leaves undecided.

    The other rows get an answer that changes nothing.
    """
    opened = pc.invert(decided_answers) if decided else decided_answers
    if opened.true_count == len(opened):
        return _tree(predicate, batch, types)
    computed = _tree(predicate, batch.filter(opened), types)
    is_open = numpy_array(opened)
    return computed.take(arrow_array(np.cumsum(is_open) - 1, is_open)).fill_null(_BOOLEANS[not decided])


def _evaluate_computed(computed: ComputedPredicate, batch: Any, types: Mapping[str, ColumnType]) -> Any:
    """Evaluate a computed predicate."""
    # A computed predicate of one dictionary-encoded column is computed once per distinct value.
    names = {(column.name, column.key) for column in column_values(computed.test)}
    answers = None
    if len(names) == 1:
        ((name, key),) = names
        array = _column(ColumnRef(name, key), batch)
        if pa.types.is_dictionary(array.type) and len(array.dictionary) < len(array):
            answers = _by_values(computed, array, batch, types)
    if answers is None:
        answers = compute(computed.test, lambda column: _typed_column(column, batch, types), batch.num_rows)
    return (pc.invert(answers) if computed.negated else answers).fill_null(_BOOLEANS[False])


def _by_values(computed: ComputedPredicate, array: Any, batch: Any, types: Mapping[str, ColumnType]) -> Any:
    """Evaluate a computed predicate on the values of a dictionary.

    None if that fails for some value: the value may not occur in any row.
    """
    values = pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)])
    for column in column_values(computed.test):
        _typed_column(column, batch.slice(0, 0), types)
    try:
        answers = compute(computed.test, lambda _: values, len(values))
    except FilterFailed:
        return None
    return answers.take(array.indices.fill_null(len(values) - 1))


def _typed_column(column: ColumnValue, batch: Any, types: Mapping[str, ColumnType]) -> Any:
    reference = ColumnRef(column.name, column.key)
    if type_of(reference, types) != column.type:
        raise InvalidFilter(
            f"'{reference}' of type {type_of(reference, types).kind} is used as {column.type.kind}: the filter was built for another table"
        )
    return _column(reference, batch)


def _constant(value: bool, length: int) -> Any:
    return arrow_array(np.full(length, value))


def _leaf(leaf: Leaf, batch: Any, types: Mapping[str, ColumnType]) -> Any:
    column_type = type_of(leaf.column, types)
    array = _column(leaf.column, batch)
    if pa.types.is_dictionary(array.type) and len(array.dictionary) <= len(array):
        null_matches = isinstance(leaf, IsNull) and not leaf.negated
        return _matches(leaf, array.dictionary, column_type).take(array.indices).fill_null(_BOOLEANS[null_matches])
    return _matches(leaf, array, column_type)


def _column(column: ColumnRef, batch: Any) -> Any:
    position = batch.schema.get_field_index(column.name)
    if position < 0:
        raise UnknownColumn(column.name, tuple(batch.schema.names))
    array = batch.column(position)
    return column_part(array, column.key)


def _matches(leaf: Leaf, array: Any, column_type: ColumnType) -> Any:
    if isinstance(leaf, IsNull):
        return array.is_valid() if leaf.negated else array.is_null()
    array = canonical_array(array, column_type)
    match leaf:
        case Compare(_, op, value) if column_type.kind in FLOATS:
            answers = _compare_floats(array, op, _float(value, column_type))
        case Compare(_, op, value):
            answers = _KERNELS[op](array, _literal(value, column_type, array.type))
        case In(_, values, negated):
            answers = _is_in(array, values, column_type)
            answers = pc.and_(pc.invert(answers), array.is_valid()) if negated else answers
        case StartsWith(column, prefix, negated):
            if column_type.kind not in STRINGS:
                raise InvalidFilter(f"'{column}' of type {column_type.kind} is not a string column; a prefix needs one")
            answers = pc.starts_with(array, pattern=prefix)
            answers = pc.invert(answers) if negated else answers
    return answers.fill_null(_BOOLEANS[False])


def _compare_floats(array: Any, op: Op, value: float) -> Any:
    if not math.isnan(value):
        answers = _KERNELS[op](array, fixed_array([value], pa.float64())[0])
        return pc.or_(answers, pc.is_nan(array)) if op in {Op.GT, Op.GE} else answers
    match op:
        case Op.EQ | Op.GE:
            return pc.is_nan(array)
        case Op.NE | Op.LT:
            return pc.invert(pc.is_nan(array))
        case Op.LE:
            return array.is_valid()
        case Op.GT:
            return _constant(value=False, length=len(array))


def _is_in(array: Any, values: tuple[Plain, ...], column_type: ColumnType) -> Any:
    if column_type.kind not in FLOATS:
        value_set = derive(values, (column_type, array.type), lambda literals: _literals(literals, column_type).cast(array.type))
        return pc.is_in(array, value_set=value_set)
    floats = derive(values, column_type, partial(_floats, column_type))
    answers = pc.is_in(array.cast(pa.float64()), value_set=floats.regular)
    if floats.zero:  # Arrow's hash distinguishes the two zeros
        answers = pc.or_(answers, pc.equal(array, 0.0).fill_null(False))
    if floats.nan:
        answers = pc.or_(answers, pc.is_nan(array).fill_null(False))
    return answers


@dataclass(frozen=True, slots=True)
class _FloatLiterals:
    """Float literals of an IN list.

    ``regular`` are those that Arrow's hash compares as Spark does. ``zero`` and ``nan``: whether these are in the list, too.
    """

    regular: Any
    zero: bool
    nan: bool


def _floats(column_type: ColumnType, values: tuple[Plain, ...]) -> _FloatLiterals:
    numbers = np.array([_float(value, column_type) for value in values], np.float64)
    zero, nan = numbers == 0, np.isnan(numbers)
    return _FloatLiterals(arrow_array(numbers[~(zero | nan)]), bool(zero.any()), bool(nan.any()))


def _literal(value: Plain, column_type: ColumnType, arrow_type: Any) -> Any:
    if value is None:
        raise InvalidFilter("a predicate must not compare with null; use IsNull")
    scalar = to_scalar(value, column_type)
    return scalar if scalar.type == arrow_type else scalar.cast(arrow_type)


def _literals(values: tuple[Plain, ...], column_type: ColumnType) -> Any:
    if None in values:
        raise InvalidFilter("a predicate must not compare with null; use IsNull")
    return literal_array(values, column_type)


def _float(value: Plain, column_type: ColumnType) -> float:
    if not isinstance(value, float):
        raise InvalidFilter(f"{value!r} is not a value of type {column_type.kind}")
    return value
