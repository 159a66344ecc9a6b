"""Planted faults where file indexes decide: exactness, sets of rows, blocks, summaries, counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fileindex.format import bloom_filter
from fileindex.format.bitmap_reader import BitmapReader
from fileindex.format.block_lines import BlockLines
from fileindex.format.bsi import BsiReader
from fileindex.format.range_bitmap_reader import RangeBitmapReader
from fileindex.predicate import tree
from fileindex.predicate import unwiden as unwiden_module
from fileindex.predicate.projection import Projection
from fileindex.predicate.tree import TRUE, Compare, IsNull, Op, all_of, conjuncts, leaves
from fileindex.query import top_n
from fileindex.rowset.result import RowSet
from lsm.read.index_selection import FileIndex, Selection
from tests.oracle.patching import Fault, everywhere, method


def _answers_all(right: Any, self: FileIndex, predicate: Any) -> Selection:
    """The fault of old: leaves decide whether an index answers a whole filter, and computed conditions are no leaves."""
    found = right(self, predicate)
    simple = all_of(*(term for term in conjuncts(predicate) if leaves(term)))
    exact = right(self, simple).residual == TRUE and leaves(predicate)
    return replace(found, residual=TRUE) if exact and not found.is_empty else found


def _exact_rows(right: Any, self: FileIndex, predicate: Any) -> Selection:
    selection = right(self, predicate)
    return replace(selection, residual=TRUE) if selection.rows else selection


def _unequal(right: Any, self: BitmapReader, leaf: Any) -> Any:
    found = right(self, leaf)
    if isinstance(leaf, Compare) and leaf.op is Op.NE and isinstance(found, RowSet):
        return RowSet(found.rows | self._nulls(), exact=True)
    return found


def _strict(right: Any, self: RangeBitmapReader, op: Op, value: Any) -> Any:
    return right(self, {Op.LE: Op.LT, Op.GE: Op.GT}.get(op, op), value)


def _later_block(right: Any, self: BlockLines, blocks: Any) -> Any:
    return right(self, (blocks + 1).clip(max=self.blocks - 1))


def _widened(right: Any, leaf: Any, read: Any, file: Any) -> Any:
    found = right(leaf, read, file)
    return tree.FALSE if isinstance(leaf, Compare) and isinstance(found, IsNull) else found


FAULTS: dict[str, Fault] = {
    "answers-all": lambda: method(FileIndex, "select", _answers_all),
    "row-selection-is-exact": lambda: method(FileIndex, "select", _exact_rows),
    "lost-terms-are-exact": lambda: method(Projection, "answer", lambda right, self, result: result),
    "or-of-indexes-intersects": lambda: method(
        RowSet,
        "or_",
        lambda right, self, other: RowSet(self.rows & other.rows, exact=self.exact) if isinstance(other, RowSet) else right(self, other),
    ),
    "and-of-indexes-unites": lambda: method(
        RowSet,
        "and_",
        lambda right, self, other: RowSet(self.rows | other.rows, exact=self.exact) if isinstance(other, RowSet) else right(self, other),
    ),
    "bitmap-unequal-takes-nulls": lambda: method(BitmapReader, "evaluate", _unequal),
    "range-bitmap-excludes-bounds": lambda: method(RangeBitmapReader, "_range", _strict),
    "bsi-orders-by-size": lambda: method(BsiReader, "_below", lambda right, self, number: right(self, abs(number))),
    "bloom-filter-of-first-value": lambda: everywhere(
        bloom_filter, "literal_hashes", lambda right, values, kind: None if (found := right(values, kind)) is None else found[:1]
    ),
    "blocks-of-later-rows": lambda: method(BlockLines, "_rows", _later_block),
    "unwiden-beyond-the-type": lambda: everywhere(unwiden_module, "unwiden", _widened),
    "top-of-ties": lambda: everywhere(
        top_n, "top_n", lambda right, *given, **how: right(*given, **{**how, "nulls_first": not how["nulls_first"]})
    ),
    "top-of-all-rows": lambda: method(
        FileIndex,
        "first",
        lambda right, self, order, limit, rows: (
            found if (found := right(self, order, limit, None)) is None or rows is None else found & rows
        ),
    ),
    "summaries-ignore-selection": lambda: method(FileIndex, "numbers", lambda right, self, column, rows: right(self, column, None)),
    "value-counts-ignore-selection": lambda: method(FileIndex, "value_counts", lambda right, self, column, rows: right(self, column, None)),
}
