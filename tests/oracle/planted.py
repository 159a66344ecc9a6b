"""Faults that the oracle must find: each replaces one function of the product by a wrong one, at a place that drops a condition or a row."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from fileindex.format.bitmap_reader import BitmapReader
from fileindex.predicate import projection, tree
from fileindex.predicate.projection import Projection
from fileindex.predicate.tree import TRUE, Compare, In, IsNull, Op, all_of, conjuncts, leaves
from fileindex.query import top_n
from fileindex.rowset.result import RowSet
from lsm.aggregate.value_counts import ValueCounting
from lsm.read import file_filter, key_candidates
from lsm.read.data_file import DataFileRead
from lsm.read.index_selection import FileIndex, Selection
from lsm.read.split import SplitRead
from lsm.scan import bucket_pruner, predicates
from lsm.schema.evolution import SchemaMapping
from manifest.stats import column_stats

ROOMS = ("fileindex", "manifest", "lsm", "pyspark_paimon")
Patches = Iterator[Any]


def everywhere(module: Any, name: str, wrong: Callable[..., Any]) -> Patches:
    """Patches of a function in each module that has imported it. ``wrong`` takes the function first."""
    right = getattr(module, name)
    changed = functools.partial(wrong, right)
    for other in list(sys.modules.values()):
        if other is not None and other.__name__.split(".")[0] in ROOMS and vars(other).get(name) is right:
            yield patch.object(other, name, changed)


def method(owner: type, name: str, wrong: Callable[..., Any]) -> Patches:
    """A patch of a method. ``wrong`` takes the method first."""
    right = getattr(owner, name)
    yield patch.object(owner, name, lambda *given, **options: wrong(right, *given, **options))


def _answers_all(right: Any, self: FileIndex, predicate: Any) -> Selection:
    """The fault of old: leaves decide whether an index answers a whole filter, and computed conditions are no leaves."""
    found = right(self, predicate)
    simple = all_of(*(term for term in conjuncts(predicate) if leaves(term)))
    exact = right(self, simple).residual == TRUE and leaves(predicate)
    return replace(found, residual=TRUE) if exact and not found.is_empty else found


def _exact_rows(right: Any, self: FileIndex, predicate: Any) -> Selection:
    selection = right(self, predicate)
    return replace(selection, residual=TRUE) if selection.rows else selection


def _subset(right: Any, predicate: Any, columns: Any) -> Projection:
    terms = [term for term in conjuncts(predicate) if set(columns) & set(tree.columns_of(term))]
    return Projection(all_of(*terms), exact=False)


def _always(right: Any, leaf: Any, bounds: Any, types: Any) -> bool:
    known = bounds(leaf.column)
    return right(leaf, (lambda _: replace(known, null_count=0)) if known is not None and known.min is not None else bounds, types)


def _compare(right: Any, op: Op, low: Any, high: Any, value: Any) -> Any:
    return high > value if op is Op.GE else right(op, low, high, value)


def _unequal(right: Any, self: BitmapReader, leaf: Any) -> Any:
    found = right(self, leaf)
    if isinstance(leaf, Compare) and leaf.op is Op.NE and isinstance(found, RowSet):
        return RowSet(found.rows | self._nulls(), exact=True)
    return found


def _prefix(right: Any, prefix: Any, low: Any, high: Any, *, negated: bool) -> bool:
    return bool(low <= prefix <= high) and not negated


def _widened(right: Any, leaf: Any, read: Any, file: Any) -> Any:
    found = right(leaf, read, file)
    return tree.FALSE if isinstance(leaf, Compare) and isinstance(found, IsNull) else found


def _counted(right: Any, self: ValueCounting, read: DataFileRead) -> Any:
    return right(self, replace(read, deletion_file=None))


def _values(right: Any, term: Any, types: Any) -> Any:
    """An OR of two columns counts for the first one."""
    if isinstance(term, tree.Or) and all(isinstance(child, Compare | In) for child in term.children):
        return next(filter(None, (right(child, types) for child in term.children)), None)
    return right(term, types)


FAULTS: dict[str, Callable[[], Patches]] = {
    "answers-all": lambda: method(FileIndex, "select", _answers_all),
    "lost-terms-are-exact": lambda: method(Projection, "answer", lambda right, self, result: result),
    "keys-of-any-overlap": lambda: everywhere(projection, "only_columns", _subset),
    "statistics-forget-nulls": lambda: everywhere(file_filter, "_always", _always),
    "statistics-exclude-maximum": lambda: everywhere(column_stats, "_may_compare", _compare),
    "bitmap-unequal-takes-nulls": lambda: method(BitmapReader, "evaluate", _unequal),
    "prefix-of-whole-bounds": lambda: everywhere(column_stats, "prefix_may_match", _prefix),
    "unwiden-beyond-the-type": lambda: everywhere(sys.modules["fileindex.predicate.unwiden"], "unwiden", _widened),
    "deletion-vectors-not-counted": lambda: method(Selection, "without", lambda right, self, dead, rows: self),
    "groups-forget-deletion-vectors": lambda: method(ValueCounting, "_of_file", _counted),
    "top-of-ties": lambda: everywhere(
        top_n, "top_n", lambda right, *given, **how: right(*given, **{**how, "nulls_first": not how["nulls_first"]})
    ),
    "bounds-of-any-cast": lambda: method(SchemaMapping, "bound", lambda right, self, column, value: (value, True)),
    "filter-before-merge": lambda: method(
        SplitRead,
        "_runs",
        lambda right, self, *given, **how: [[replace(r, wanted=self._filter) for r in run] for run in right(self, *given, **how)],
    ),
    "versions-of-whole-filter": lambda: everywhere(key_candidates, "version_filters", lambda right, fold, predicate, schema: (predicate,)),
    "bucket-of-one-column": lambda: everywhere(predicates, "_values", _values),
    "bucket-of-first-value": lambda: everywhere(bucket_pruner, "_among", lambda right, values, wanted: right(values, wanted[:1])),
    "row-selection-is-exact": lambda: method(FileIndex, "select", _exact_rows),
    "or-of-indexes-intersects": lambda: method(
        RowSet,
        "or_",
        lambda right, self, other: RowSet(self.rows & other.rows, exact=self.exact) if isinstance(other, RowSet) else right(self, other),
    ),
    "partition-null-matches": lambda: everywhere(
        predicates, "_evaluate", lambda right, term, table, types: [value is not False or None for value in right(term, table, types)]
    ),
}
"""Each planted fault by its name."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The product with one fault."""
    patches = list(FAULTS[name]())
    assert patches, f"nothing is replaced by {name}"
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
