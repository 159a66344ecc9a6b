"""Column statistics: stored form, bounds, and predicate evaluation.

The stored form is Paimon's ``SimpleStats``. Bounds may be wider than the data, never narrower. Unknown bounds keep the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fileindex.base.column_type import FLOATS, ColumnType, Kind, Plain
from fileindex.base.float_order import spark_order_key
from fileindex.predicate.tree import And, ColumnRef, Compare, Formula, In, IsNull, Or, Predicate, StartsWith
from manifest.row.binary_row import EMPTY_ROW, decode_fields
from manifest.stats.leaf_on_bounds import identity, leaf_may_match, prefix_may_match
from manifest.types.data_type import DataType


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Serialised minima and maxima, and null counts.

    All for the same columns in the same order.
    """

    min_values: bytes = EMPTY_ROW
    max_values: bytes = EMPTY_ROW
    null_counts: tuple[int | None, ...] = ()

    EMPTY: ClassVar[SimpleStats]
    """Statistics of no columns."""


SimpleStats.EMPTY = SimpleStats()


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Bounds of a column's values in ``row_count`` rows.

    None is unknown.
    """

    min: Plain
    max: Plain
    null_count: int | None
    row_count: int

    @property
    def all_null(self) -> bool:
        """Whether all values are certainly null."""
        return self.null_count is not None and self.null_count >= self.row_count


def decode_bounds(
    stats: SimpleStats,
    names: Sequence[str],
    types: Sequence[DataType],
    row_count: int,
    wanted: Container[str] | None = None,
    *,
    unbounded: Collection[Kind] = frozenset(),
) -> dict[str, ColumnBounds]:
    """Return bounds by column name.

    Returns {} if the stored rows have other columns than ``names``.

    Args:
        stats: Stored statistics.
        names: Columns of the statistics.
        types: Their types.
        row_count: Rows of the file.
        wanted: Columns to return. None: all.
        unbounded: Kinds whose bounds are unreliable. Only their null counts are returned.

    >>> from fileindex.base.column_type import Kind
    >>> from manifest.row.binary_row import encode_row
    >>> types = (DataType(Kind.INT),)
    >>> decode_bounds(SimpleStats(encode_row((1,), types), encode_row((9,), types), (0,)), ["id"], types, 5)
    {'id': ColumnBounds(min=1, max=9, null_count=0, row_count=5)}
    """
    arity = len(names)
    if len(stats.null_counts) != arity:
        return {}
    at = [i for i, name in enumerate(names) if wanted is None or name in wanted]
    fields = [(i, _NULL_SLOT if types[i].is_nested else types[i]) for i in at]
    minima, maxima = decode_fields(stats.min_values, arity, fields), decode_fields(stats.max_values, arity, fields)
    found = {names[i]: ColumnBounds(low, high, stats.null_counts[i], row_count) for i, low, high in zip(at, minima, maxima, strict=True)}
    for i in at if unbounded else ():
        if types[i].kind in unbounded:
            found[names[i]] = ColumnBounds(None, None, stats.null_counts[i], row_count)
    return found


def slot_type(data_type: DataType) -> DataType:
    """Return a column's type in a row of minima.

    Nested columns are always null there and have any fixed type.
    """
    return _NULL_SLOT if data_type.is_nested else data_type


_NULL_SLOT = DataType(Kind.BIGINT)
BoundsLookup = Callable[[ColumnRef], ColumnBounds | None]


def may_match(predicate: Predicate, bounds: BoundsLookup, types: Mapping[str, ColumnType]) -> bool:
    """Return False only if no row can satisfy ``predicate``.

    Floats compare as in Spark SQL. ``bounds`` returns None for a column (or map entry) without bounds.

    >>> from fileindex.base.column_type import Kind
    >>> from fileindex.predicate.tree import Op
    >>> id_ = ColumnRef("id")
    >>> known = ColumnBounds(10, 20, 0, 100)
    >>> [may_match(Compare(id_, Op.GT, v), lambda _: known, {"id": ColumnType(Kind.INT)}) for v in (19, 20)]
    [True, False]
    """
    match predicate:
        case And(children):
            return all(may_match(child, bounds, types) for child in children)
        case Or(children):
            return any(may_match(child, bounds, types) for child in children)
        case Formula():
            return True
        case leaf:
            known = bounds(leaf.column)
            if known is None:
                return True
            column_type = types.get(leaf.column.name)
            return _leaf_may_match(leaf, known, column_type is not None and column_type.kind in FLOATS)


def _leaf_may_match(leaf: Compare | In | IsNull | StartsWith, known: ColumnBounds, is_float: bool) -> bool:
    if isinstance(leaf, IsNull):
        if leaf.negated:
            return not known.all_null
        return known.null_count is None or known.null_count > 0
    if known.all_null:
        return False
    low, high = known.min, known.max
    if low is None or high is None:
        return True
    if isinstance(leaf, StartsWith):
        both_texts = isinstance(low, str) and isinstance(high, str)
        return not both_texts or prefix_may_match(leaf.prefix, low, high, negated=leaf.negated)
    if is_float:
        return bool(leaf_may_match(leaf, spark_order_key(low), spark_order_key(high), spark_order_key))
    return bool(leaf_may_match(leaf, low, high, identity))


__all__ = ["ColumnBounds", "SimpleStats", "decode_bounds", "may_match", "slot_type"]
