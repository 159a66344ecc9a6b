"""Positions of the rows whose text equals one that a filter names, found by polars in several row groups at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fileindex.base.arrays import Int64s, Mask
from fileindex.base.thresholds import thresholds
from lsm.formats.open_data_file import OpenDataFile
from lsm.parquet.footer import RowGroup
from lsm.read.metrics import ReadReport

_Rows = Int64s


@dataclass(frozen=True)
class TextRows:
    """A column of an open file and the texts of which a row must have one.

    Args:
        data: the file.
        column: its name there.
        texts: one of them at least.
        groups: row groups that may hold such rows, ascending.
        report: counters to add to.
    """

    data: OpenDataFile
    column: str
    texts: Sequence[str]
    groups: Sequence[RowGroup]
    report: ReadReport
    _found: dict[int, _Rows | None] = field(default_factory=dict, repr=False)

    def strike_others(self, group: RowGroup, chosen: Mask) -> bool:
        """Strike the rows from ``chosen``, a mask of the group's, that have none of the texts; False if that cannot be told fast."""
        if group.index not in self._found:
            self._search([each for each in self.groups if each.index >= group.index])
        rows = self._found[group.index]
        if rows is None:
            return False
        found = np.zeros(group.num_rows, np.bool_)
        found[rows] = True
        chosen &= found
        return True

    def _search(self, groups: Sequence[RowGroup]) -> None:
        sizes = [self.data.compressed_size([self.column], [group]) for group in groups]
        some = groups[: max(1, int(np.count_nonzero(np.cumsum(sizes) <= thresholds().text_search_bytes)))]
        pages = [known for group in some if (known := self.data.pages(group)) is not None]
        found = self.data.rows_of_texts(pages, self.column, self.texts) if len(pages) == len(some) else None
        if found is not None:
            self.report.bytes_read += sum(sizes[: len(some)])
        self._found.update(zip((group.index for group in some), found or [None] * len(some), strict=True))


__all__ = ["TextRows"]
