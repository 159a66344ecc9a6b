"""Page indexes of one row group.

Page indexes are optional: if one is missing or damaged, whole column chunks are decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fileindex.predicate.tree import ColumnRef, Leaf, Predicate, leaves
from lsm.parquet.nested import NestedPages
from lsm.parquet.page_index import ColumnPages, PageIndexes, TouchedPages
from manifest.entry.bounds import BoundsColumn, combine_masks, may_match_each
from manifest.types.data_type import DataType
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask
from sparkexpr.values.column_type import ColumnType

DAMAGE = (ValueError, LookupError, TypeError, AttributeError, struct.error)
"""Errors raised by decoding a damaged page index."""

_Mask = Mask
_Rows = Int64s
PageLookup = Callable[[ColumnRef], tuple[BoundsColumn, _Rows] | None]
"""Returns the bounds of every page of a column, and the first rows followed by the row count. None: unknown."""


@dataclass
class GroupPages:
    """Pages of one row group.

    Args:
        indexes: Page indexes of the file.
        group: Number of the row group.
        chunk_size: Returns the compressed bytes of a column's chunk.
    """

    indexes: PageIndexes
    group: int
    chunk_size: Callable[[str], int]
    _columns: dict[str, ColumnPages | NestedPages | None] = field(default_factory=dict)

    def column(self, name: str) -> ColumnPages | NestedPages | None:
        """Return the pages of a column.

        None: only the whole chunk can be read.
        """
        if name not in self._columns:
            self._columns[name] = None
            try:
                parts = self.indexes.column(self.group, name)
                if parts is not None and all(len(part.starts) for part in parts):
                    self._columns[name] = NestedPages(parts) if len(parts[0].elements) > 1 else parts[0]
            except DAMAGE:
                return None
        return self._columns[name]

    def bounds(self, name: str, data_type: DataType) -> tuple[BoundsColumn, _Rows] | None:
        """Return the bounds of a column's pages, and their starts.

        Bounds are values of ``data_type``, from the column index.
        """
        pages = self.column(name)
        if pages is None:
            return None
        try:
            page_bounds = pages.bounds(data_type)
        except DAMAGE:
            return None
        return None if page_bounds is None else (page_bounds, pages.starts)

    def places(self, name: str, rows: _Rows) -> list[tuple[int, int]]:
        """Return (offset, length) of pages with ``rows``, and the dictionary.

        Adjacent pages are combined. Empty if the column has no pages.
        """
        pages = self.column(name)
        parts = () if pages is None else pages.leaves if isinstance(pages, NestedPages) else (pages,)
        pages_of = TouchedPages(rows)
        return [page_range for part in parts for page_range in part.places(pages_of.of(part.starts))]

    def cost(self, names: Sequence[str], rows: _Rows) -> tuple[int, bool]:
        """Return the bytes of a page read, if worthwhile.

        It pays if it reads far fewer bytes than the whole chunks. Otherwise the bytes are approximate.
        """
        sizes = [self.chunk_size(name) for name in names]
        total, touched, pages_of = sum(sizes), 0, TouchedPages(rows)
        for name, size in zip(names, sizes, strict=True):
            pages = self.column(name)
            parts = () if pages is None else pages.leaves if isinstance(pages, NestedPages) else (pages,)
            touched += min(size, sum(part.size(pages_of.of(part.starts)) for part in parts)) if parts else size
            if thresholds.pages_pay * touched > total:  # skip reading the page indexes of the other columns
                return touched, False
        return touched, True


def matching_rows(predicate: Predicate, num_rows: int, lookup: PageLookup, types: Mapping[str, ColumnType]) -> _Mask:
    """Return a mask of rows whose pages can match ``predicate``.

    >>> from sparkexpr.values.column_type import Kind
    >>> from fileindex.predicate.tree import Compare, Op
    >>> from manifest.stats.column_stats import ColumnBounds
    >>> bounds = BoundsColumn.of([ColumnBounds(0, 4, 0, 2), ColumnBounds(5, 9, 0, 1)], DataType(Kind.INT))
    >>> pages = bounds, np.array([0, 2, 3])
    >>> matching_rows(Compare(ColumnRef("a"), Op.GT, 6), 3, lambda _: pages, {"a": ColumnType(Kind.INT)}).tolist()
    [False, False, True]
    """
    pages = {column: page_bounds for column in {leaf.column for leaf in leaves(predicate)} if (page_bounds := lookup(column)) is not None}
    breaks = _all_breaks([starts for _, starts in pages.values()], num_rows)

    def of_leaf(leaf: Leaf) -> _Mask:
        if leaf.column not in pages:
            return np.ones(len(breaks) - 1, np.bool_)
        bounds, starts = pages[leaf.column]
        page_mask = may_match_each(leaf, lambda _: bounds, types, len(starts) - 1)
        return page_mask if starts is breaks else page_mask[np.searchsorted(starts, breaks[:-1], side="right") - 1]

    return np.repeat(combine_masks(predicate, len(breaks) - 1, of_leaf), np.diff(breaks))


def _all_breaks(starts: Sequence[_Rows], num_rows: int) -> _Rows:
    """Return the first rows of all pages, then row count."""
    if not starts:
        return np.array([0, num_rows])
    alike = all(page_starts is starts[0] for page_starts in starts)
    return starts[0] if alike else np.unique(np.concatenate(starts))
