"""Search for rows with given texts.

Polars searches several row groups at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lsm.formats.open_data_file import OpenDataFile
from lsm.parquet.footer import RowGroup
from lsm.read.metrics import ReadReport
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask

_Rows = Int64s


@dataclass(frozen=True)
class TextRows:
    """Search for rows of an open file by text.

    Args:
        data: Open data file.
        column: Name of the text column in the file.
        texts: Texts to find, at least one.
        groups: Row groups that may hold such rows, ascending.
        report: Counters to add to.
    """

    data: OpenDataFile
    column: str
    texts: Sequence[str]
    groups: Sequence[RowGroup]
    report: ReadReport
    _rows_by_group: dict[int, _Rows | None] = field(default_factory=dict, repr=False)

    def strike_others(self, group: RowGroup, row_mask: Mask) -> bool:
        """Remove rows without any of the texts from ``row_mask``.

        ``row_mask`` is a mask of the group's rows. False: a search is not possible here.
        """
        if group.index not in self._rows_by_group:
            self._search([each for each in self.groups if each.index >= group.index])
        rows = self._rows_by_group[group.index]
        if rows is None:
            return False
        has_text = np.zeros(group.num_rows, np.bool_)
        has_text[rows] = True
        row_mask &= has_text
        return True

    def _search(self, groups: Sequence[RowGroup]) -> None:
        sizes = [self.data.compressed_size([self.column], [group]) for group in groups]
        searched_groups = groups[: max(1, int(np.count_nonzero(np.cumsum(sizes) <= thresholds.text_search_bytes)))]
        pages = [group_pages for group in searched_groups if (group_pages := self.data.pages(group)) is not None]
        rows_by_group = self.data.rows_of_texts(pages, self.column, self.texts) if len(pages) == len(searched_groups) else None
        if rows_by_group is not None:
            self.report.bytes_read += sum(sizes[: len(searched_groups)])
        self._rows_by_group.update(
            zip((group.index for group in searched_groups), rows_by_group or [None] * len(searched_groups), strict=True)
        )
