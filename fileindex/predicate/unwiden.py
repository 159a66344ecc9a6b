"""Rewriting of filters for files older than a type widening.

A column that was INT when the file was written and is BIGINT now contains the same numbers. A literal that fits INT is kept.
A literal beyond INT decides the comparison for every value, so the rewritten filter is exact.
"""

from __future__ import annotations

from fileindex.predicate.tree import FALSE, Compare, In, IsNull, Leaf, Op, Predicate, ValueSet, derive
from sparkexpr.values.column_type import INTEGERS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import is_plain


def unwiden(leaf: Leaf, read: ColumnType, file: ColumnType) -> Predicate | None:
    """Rewrite ``leaf`` from the table's type to the file's type.

    Integers may be widened to integers, and decimals to more digits of the same scale. None for any other change.

    Args:
        leaf: Leaf on the widened column.
        read: Type of the leaf's literals.
        file: Type of the column before it was widened.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> a, int_, bigint = ColumnRef("a"), ColumnType(Kind.INT), ColumnType(Kind.BIGINT)
    >>> unwiden(Compare(a, Op.LT, 5), bigint, int_) == Compare(a, Op.LT, 5)
    True
    >>> unwiden(Compare(a, Op.LT, 2**40), bigint, int_), unwiden(Compare(a, Op.EQ, 2**40), bigint, int_)
    (IsNull(column=ColumnRef(name='a', key=None), negated=True), Or(children=()))
    """
    if not _is_widening(read, file):
        return None
    match leaf:
        case IsNull():
            return leaf
        case Compare(column, op, int(value)):
            if is_plain(value, file):
                return leaf
            always = op is Op.NE or op in ({Op.LT, Op.LE} if value > 0 else {Op.GT, Op.GE})
            return IsNull(column, negated=True) if always else FALSE
        case In(column, values, negated):
            return In(column, _values_that_fit(values, file), negated)
        case _:
            return None


def _values_that_fit(values: tuple[Plain, ...], file: ColumnType) -> tuple[Plain, ...]:
    return derive(values, ("fitting", file), lambda literals: ValueSet(value for value in literals if is_plain(value, file)))


def _is_widening(read: ColumnType, file: ColumnType) -> bool:
    if file.kind is Kind.DECIMAL:
        return read.kind is Kind.DECIMAL and read.scale == file.scale and read.precision >= file.precision
    return file.kind in INTEGERS and read.kind in INTEGERS and _WIDTH[read.kind] >= _WIDTH[file.kind]


_WIDTH = {Kind.TINYINT: 1, Kind.SMALLINT: 2, Kind.INT: 4, Kind.BIGINT: 8}
