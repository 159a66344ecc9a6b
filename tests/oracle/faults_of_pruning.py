"""Planted faults where metadata decide: statistics, ranges, sections, partitions, buckets, pages, row counts."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from fileindex.predicate import projection, tree
from fileindex.predicate.projection import Projection
from fileindex.predicate.tree import FALSE, TRUE, And, Compare, In, IsNull, Op, Or, all_of, conjuncts
from lsm.aggregate.aggregation import RowAggregation
from lsm.aggregate.value_counts import ValueCounting
from lsm.keys import order_by
from lsm.parquet import row_group_pages
from lsm.read import file_filter, row_group
from lsm.read.data_file import DataFileRead
from lsm.read.index_selection import Selection
from lsm.read.row_group_pruner import RowGroupPruner
from lsm.scan import bucket_pruner, planner, predicates
from lsm.schema.evolution import SchemaMapping
from manifest.entry import bounds as entry_bounds
from manifest.entry.column_ranges import ColumnRanges
from manifest.stats import column_stats
from manifest.stats.column_stats import PartitionType, SimpleStats
from tests.oracle.patching import Fault, class_method, everywhere, method


def _always(right: Any, leaf: Any, bounds: Any, types: Any) -> bool:
    known = bounds(leaf.column)
    return right(leaf, (lambda _: replace(known, null_count=0)) if known is not None and known.min is not None else bounds, types)


def _compare(right: Any, op: Op, low: Any, high: Any, value: Any) -> Any:
    return high > value if op is Op.GE else right(op, low, high, value)


def _prefix(right: Any, prefix: Any, low: Any, high: Any, *, negated: bool) -> bool:
    return bool(low <= prefix <= high) and not negated


def _or_is_and(right: Any, predicate: Any, count: int, of_leaf: Any) -> Any:
    return right(And(predicate.children) if isinstance(predicate, Or) and predicate.children else predicate, count, of_leaf)


def _added(right: Any, leaf: Any, constants: Any, types: Any) -> Any:
    return TRUE if constants[leaf.column.name] is None else right(leaf, constants, types)


def _subset(right: Any, predicate: Any, columns: Any) -> Projection:
    terms = [term for term in conjuncts(predicate) if set(columns) & set(tree.columns_of(term))]
    return Projection(all_of(*terms), exact=False)


def _minima(right: Any, self: PartitionType, partitions: Any) -> SimpleStats:
    stats = right(self, partitions)
    return replace(stats, max_values=stats.min_values)


def _no_nulls(right: Any, self: ColumnRanges, fields: Any) -> Any:
    return {number: replace(known, null_count=0) for number, known in right(self, fields).items()}


def _null_lost(right: Any, term: Any, table: Any, types: Any) -> Any:
    has_null = [None in row.values() for row in table.select(list(tree.columns_of(term))).to_pylist()]
    return [False if is_null else answer for is_null, answer in zip(has_null, right(term, table, types), strict=True)]


def _by_name(right: Any, read: Any, file: Any, schema_id: int) -> SchemaMapping:
    mapping = right(read, file, schema_id)
    names = {column.name: column for column in file}
    return replace(mapping, sources={name: names.get(name) for name in mapping.sources})


def _values(right: Any, term: Any, types: Any) -> Any:
    """An OR of two columns counts for the first one."""
    if isinstance(term, Or) and all(isinstance(child, Compare | In) for child in term.children):
        return next(filter(None, (right(child, types) for child in term.children)), None)
    return right(term, types)


def _limit(right: Any, self: Any, splits: Any, limit: Any) -> Any:
    self._predicate = TRUE
    return right(self, splits, limit)


def _nulls_too(right: Any, *given: Any) -> bool:
    *_, rows, _, column = given
    count = column.count + rows
    known = right(*given)
    column.count = count if known else column.count
    return bool(known)


def _counted(right: Any, self: ValueCounting, read: DataFileRead) -> Any:
    return right(self, replace(read, deletion_file=None))


def _first_pages(right: Any, predicate: Any, num_rows: int, lookup: Any, types: Any) -> Any:
    found = right(predicate, num_rows, lookup, types)
    return np.concatenate([found[1:], found[:1]])


def _last_group(right: Any, self: RowGroupPruner, group: Any, column: Any) -> Any:
    return right(self, self.data.row_groups[-1], column)


FAULTS: dict[str, Fault] = {
    "statistics-forget-nulls": lambda: everywhere(file_filter, "_always", _always),
    "statistics-exclude-maximum": lambda: everywhere(column_stats, "_may_compare", _compare),
    "statistics-intersect-or": lambda: everywhere(entry_bounds, "combine_masks", _or_is_and),
    "prefix-of-whole-bounds": lambda: everywhere(column_stats, "prefix_may_match", _prefix),
    "bounds-of-any-cast": lambda: method(SchemaMapping, "bound", lambda right, self, column, value: (value, True)),
    "orc-maximum-is-minimum": lambda: everywhere(
        import_module("pyspark_paimon.plugins.file_formats.orc.statistics"),
        "stripe_bounds",
        lambda right, *given: None if (known := right(*given)) is None else replace(known, max=known.min),
    ),
    "added-column-matches-anything": lambda: everywhere(predicates, "_decide", _added),
    "columns-by-name": lambda: class_method(SchemaMapping, "of", _by_name),
    "null-partition-matches-nothing": lambda: everywhere(predicates, "_evaluate", _null_lost),
    "partition-ranges-of-minima": lambda: method(PartitionType, "stats", _minima),
    "bucket-of-one-column": lambda: everywhere(predicates, "_values", _values),
    "bucket-of-first-value": lambda: everywhere(bucket_pruner, "_among", lambda right, values, wanted: right(values, wanted[:1])),
    "manifest-ranges-forget-nulls": lambda: method(ColumnRanges, "bounds", _no_nulls),
    "keys-of-any-overlap": lambda: everywhere(projection, "only_columns", _subset),
    "sections-of-one-file": lambda: everywhere(
        bucket_pruner, "section_starts", lambda right, *given: np.ones(len(right(*given)), np.bool_)
    ),
    "values-prune-older-versions": lambda: method(
        planner._Funnel, "_keep_sections", lambda right, self, tally, files, cut, test: right(self, tally, files, None, test)
    ),
    "row-groups-have-bounds-of-last": lambda: method(RowGroupPruner, "bounds", _last_group),
    "pages-of-next-row": lambda: everywhere(row_group_pages, "matching_rows", _first_pages),
    "limit-before-filter": lambda: method(planner._Funnel, "_limit", _limit),
    "count-ignores-filter": lambda: method(
        RowAggregation, "_known_rows", lambda right, self, split: None if self.wanted else split.merged_row_count
    ),
    "metadata-count-nulls": lambda: method(RowAggregation, "_add_known", _nulls_too),
    "deletion-vectors-not-counted": lambda: method(Selection, "without", lambda right, self, dead, rows: self),
    "groups-forget-deletion-vectors": lambda: method(ValueCounting, "_of_file", _counted),
    "top-bound-without-nulls": lambda: everywhere(order_by, "_at_least", lambda right, *given, **how: _without_nulls(right(*given, **how))),
    "retracts-are-rows": lambda: everywhere(row_group, "may_have_retracts", lambda right, *given: False),
}


def _without_nulls(bound: Any) -> Any:
    return (
        next((child for child in bound.children if not isinstance(child, IsNull)), FALSE)
        if isinstance(bound, Or) and bound.children
        else bound
    )
