"""What statistics leave of a filter."""

from __future__ import annotations

from fileindex.predicate.tree import FALSE, ColumnRef, Compare, In, Op
from lsm.read.file_filter import residual_after_statistics
from manifest.stats.column_stats import ColumnBounds
from sparkexpr.values.column_type import ColumnType, Kind

TEXT = ColumnRef("t")
TYPES = {"t": ColumnType(Kind.VARCHAR)}
KNOWN = ColumnBounds("b", "c\0", 0, 100)


def left(predicate):
    return residual_after_statistics(predicate, lambda _: KNOWN, TYPES)


def test_of_a_long_list_only_what_lies_within_the_bounds_is_left():
    beyond = tuple(f"a{n}" for n in range(100))
    assert left(In(TEXT, (*beyond, "c\0", "b", "c\0\0"))) == In(TEXT, ("b", "c\0"))
    assert left(In(TEXT, beyond)) == FALSE
    inside = In(TEXT, tuple(f"b{n}" for n in range(100)))
    assert left(inside) is inside
    kept = In(TEXT, (*beyond, "b"), negated=True)
    assert left(kept) == kept


def test_a_short_list_stays_as_it_is():
    assert left(In(TEXT, ("a", "b"))) == In(TEXT, ("a", "b"))
    assert left(Compare(TEXT, Op.EQ, "b")) == Compare(TEXT, Op.EQ, "b")
