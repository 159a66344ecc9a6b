"""Filter parts decided by partition, key, bucket or file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask, type_of
from fileindex.predicate.tree import (
    FALSE,
    TRUE,
    Compare,
    ComputedPredicate,
    In,
    IsNull,
    Leaf,
    Or,
    Predicate,
    all_of,
    columns_of,
    computed_predicates,
    conjuncts,
    leaves,
    map_leaves,
    values_of,
)
from lsm.keys.key_set import KeySet
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import FilterFailed, UnknownColumn
from paimon_base.thresholds import thresholds
from sparkexpr.expression.compute import compute
from sparkexpr.expression.tree import ColumnValue, Expression, LiteralValue, map_columns
from sparkexpr.values.column_type import FLOATS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import literal_array

_ColumnValues: TypeAlias = tuple[str, dict[Any, Plain]]
"""A column and the values that a term allows, by their spelling."""


def is_short(predicate: Predicate) -> bool:
    """Return whether the ``repr`` of a filter is cheap.

    Used for cache keys.

    >>> from fileindex.predicate.tree import ColumnRef, Op
    >>> is_short(In(ColumnRef("a"), (1, 2))), is_short(In(ColumnRef("a"), tuple(range(100))))
    (True, False)
    """
    limit, terms = thresholds.short_filter, leaves(predicate)
    if len(terms) > limit or any(isinstance(leaf, In) and len(leaf.values) > limit for leaf in terms):
        return False
    return not computed_predicates(predicate)


def required_texts(predicate: Predicate, columns: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return a text column and its allowed values.

    ``predicate`` must restrict the column to these values.

    The column is one of ``columns``. None: no such column.

    >>> from fileindex.predicate.tree import And, ColumnRef, Op
    >>> required_texts(And((Compare(ColumnRef("n"), Op.GT, 1), Compare(ColumnRef("t"), Op.EQ, "x"))), {"t"})
    ('t', ('x',))
    """
    for term in conjuncts(predicate):
        if not isinstance(term, Compare | In) or (values := values_of(term)) is None:
            continue
        column = term.column
        texts = tuple(value for value in values if isinstance(value, str))
        if column.key is None and column.name in columns and texts and len(texts) == len(values):
            return column.name, texts
    return None


def bind_constants(predicate: Predicate, constants: Mapping[str, Plain], types: Mapping[str, ColumnType]) -> Predicate:
    """Replace columns with one known value in every row.

    None as a value is null. Returns TRUE or FALSE if that decides the filter.

    >>> from sparkexpr.values.column_type import Kind
    >>> from fileindex.predicate.tree import And, ColumnRef, Op
    >>> day, id_ = Compare(ColumnRef("day"), Op.EQ, 5), Compare(ColumnRef("id"), Op.GT, 1)
    >>> bind_constants(And((day, id_)), {"day": 5}, {"day": ColumnType(Kind.INT)}) == id_
    True
    """
    if constants.keys().isdisjoint(columns_of(predicate)):
        return predicate
    return map_leaves(
        predicate,
        lambda leaf: _decide(leaf, constants, types) if leaf.column.name in constants else leaf,
        lambda computed: _bind_computed(computed, constants),
    )


def bind_rows(
    predicate: Predicate, names: Sequence[str], rows: Sequence[Sequence[Plain]], types: Mapping[str, ColumnType]
) -> list[Predicate]:
    """Apply ``bind_constants`` to many rows of constants.

    Rows with equal results share one predicate.

    >>> from sparkexpr.values.column_type import Kind
    >>> from fileindex.predicate.tree import ColumnRef, Op
    >>> bind_rows(Compare(ColumnRef("day"), Op.EQ, 5), ["day"], [(5,), (6,), (None,)], {"day": ColumnType(Kind.INT)}) == [TRUE, FALSE, FALSE]
    True
    """
    if not names:
        return [predicate] * len(rows)
    within = [leaf for leaf in leaves(predicate) if leaf.column.name in names]
    constant_computed = [computed for computed in computed_predicates(predicate) if set(columns_of(computed)) <= set(names)]
    terms: list[Leaf | ComputedPredicate] = list(dict.fromkeys([*within, *constant_computed]))
    if not terms:
        return [predicate] * len(rows)
    term_columns = {name for term in terms for name in columns_of(term)}
    columns = {
        name: literal_array(values, types[name])
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
        if name in term_columns
    }
    table = pa.record_batch(columns)
    answers = [_evaluate(term, table, types) for term in terms]
    bound: dict[tuple[bool, ...], Predicate] = {}
    bound_predicates = []
    for decided in zip(*answers, strict=True):
        if decided not in bound:
            truth = {term: TRUE if answer else FALSE for term, answer in zip(terms, decided, strict=True) if answer is not None}
            bound[decided] = _with_truth(predicate, truth)
        bound_predicates.append(bound[decided])
    return bound_predicates


def _evaluate(term: Leaf | ComputedPredicate, table: pa.RecordBatch, types: Mapping[str, ColumnType]) -> list[bool | None]:
    """Return whether a term is true for each row.

    None: the predicate fails for some row, which another term may exclude.
    """
    try:
        answers: list[bool | None] = mask(term, table, types).to_pylist()
    except FilterFailed:
        return [None] * table.num_rows
    return answers


def _with_truth(predicate: Predicate, truth: Mapping[Leaf | ComputedPredicate, Predicate]) -> Predicate:
    return map_leaves(predicate, lambda leaf: truth.get(leaf, leaf), lambda computed: truth.get(computed, computed))


def _bind_computed(computed: ComputedPredicate, constants: Mapping[str, Plain]) -> Predicate:
    """Replace constants in a computed predicate by literals.

    Returns TRUE or FALSE if no other column is left and the predicate can be computed.
    """
    if not any(name in constants for name in columns_of(computed)):
        return computed

    def literal(column: ColumnValue) -> Expression:
        return LiteralValue(constants[column.name], column.type) if column.name in constants else column

    test = map_columns(computed.test, literal)
    bound = ComputedPredicate(test, computed.negated)
    if columns_of(bound):
        return bound
    try:
        answer = compute(test, _no_column, 1)[0].as_py()
    except FilterFailed:
        return bound
    return TRUE if answer is not None and answer is not computed.negated else FALSE


def _no_column(column: ColumnValue) -> NoReturn:
    raise UnknownColumn(column.name)


def _decide(leaf: Leaf, constants: Mapping[str, Plain], types: Mapping[str, ColumnType]) -> Predicate:
    value = constants[leaf.column.name]
    if value is None:
        return TRUE if isinstance(leaf, IsNull) and not leaf.negated else FALSE
    column_type = type_of(leaf.column, types)
    row = pa.record_batch({leaf.column.name: literal_array([value], column_type)})
    return TRUE if mask(leaf, row, types)[0].as_py() else FALSE


def bucket_keys(predicate: Predicate | None, columns: Sequence[str], types: Mapping[str, ColumnType]) -> list[tuple[Plain, ...]] | None:
    """Return the bucket-key values that a matching row can have.

    None: they are unknown or too many. Each column needs a conjunct that is an equality, an IN, or an OR of them on that column.
    Several conjuncts on one column intersect.

    Args:
        predicate: Filter with partition columns already replaced.
        columns: Bucket-key columns.
        types: Types of the table's columns.

    >>> from sparkexpr.values.column_type import Kind
    >>> from fileindex.predicate.tree import And, ColumnRef, Op
    >>> a, b = Compare(ColumnRef("a"), Op.EQ, 1), In(ColumnRef("b"), (2, 3))
    >>> bucket_keys(And((a, b)), ["a", "b"], {"a": ColumnType(Kind.INT), "b": ColumnType(Kind.INT)})
    [(1, 2), (1, 3)]
    """
    return _combinations([_values(term, types) for term in conjuncts(predicate)], columns)


def _combinations(values_of_terms: Sequence[_ColumnValues | None], columns: Sequence[str]) -> list[tuple[Plain, ...]] | None:
    choices: dict[str, dict[Any, Plain]] = {}
    for column_values in values_of_terms:
        if column_values is None or column_values[0] not in columns:
            continue
        column, values = column_values
        earlier_values = choices.get(column)
        choices[column] = values if earlier_values is None else {key: value for key, value in earlier_values.items() if key in values}
    if not columns or set(choices) != set(columns) or not all(choices.values()):
        return None
    if prod(len(choices[column]) for column in columns) > thresholds.bucket_keys:
        return None
    return list(product(*(choices[column].values() for column in columns)))


def whole_keys(predicate: Predicate | None, schema: TableSchema) -> tuple[KeySet | None, Predicate | None]:
    """Return the possible primary keys, and the filter that remains.

    None: the filter does not fix every column of the key.

    >>> from fileindex.predicate.tree import And, ColumnRef, Op
    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("id INT, n INT", primary_keys=["id"], options={"bucket": "1"})
    >>> keys, rest = whole_keys(And((In(ColumnRef("id"), (2, 1)), Compare(ColumnRef("n"), Op.GT, 5))), schema)
    >>> keys.rows["id"].to_pylist(), rest
    ([2, 1], Compare(column=ColumnRef(name='n', key=None), op=<Op.GT: '>'>, value=5))
    """
    names, types = schema.primary_keys, schema.column_types
    kinds = {types[name].kind for name in names}
    if predicate is None or not names or Kind.CHAR in kinds:
        return None, predicate
    terms = conjuncts(predicate)
    values_of_terms = [_values(term, types) for term in terms]
    key_rows = _combinations(values_of_terms, names)
    if key_rows is None:
        return None, predicate
    columns = [literal_array(values, types[name]) for name, values in zip(names, zip(*key_rows, strict=True), strict=True)]
    keys = KeySet(pa.table(columns, names=list(names)))
    if kinds & FLOATS:  # a literal may be no value of a FLOAT column
        return keys, predicate
    rest = [
        term for term, column_values in zip(terms, values_of_terms, strict=True) if column_values is None or column_values[0] not in names
    ]
    return keys, all_of(*rest) if rest else None


def _values(term: Predicate, types: Mapping[str, ColumnType]) -> _ColumnValues | None:
    """Return the column and the values that a term allows.

    None: the term is not an equality, IN, or OR of them on one column.
    """
    terms = term.children if isinstance(term, Or) else (term,)
    values: list[Plain] = []
    names: set[str] = set()
    for equality in terms:
        if not isinstance(equality, Compare | In) or equality.column.key is not None or (listed := values_of(equality)) is None:
            return None
        names.add(equality.column.name)
        values.extend(listed)
    if len(names) != 1:
        return None
    (name,) = names
    if types[name].kind in FLOATS:  # -0.0 equals 0.0 for a filter, but not for a hash
        values = [spelling for value in values for spelling in ((0.0, -0.0) if value == 0 else (value,))]
        return name, {repr(value): value for value in values}
    return name, {value: value for value in values}
