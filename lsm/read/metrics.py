"""Counters of a read, for explain, progress and tests."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from fileindex.query.metrics import IndexMetrics


@dataclass(slots=True)
class ReadReport:
    """Counters of any number of reads; one per thread, merged afterwards.

    Attributes:
        files: data files asked for rows.
        files_skipped: of those, files that an index or a constant excluded before they were opened.
        files_counted: of those, files whose rows were counted without opening them.
        files_outranked: files (not among ``files``) that hold no row as good as the worst wanted one of a sorted read.
        files_ranked: files of which an index told the first rows in order.
        row_groups: row groups of the opened files.
        row_groups_skipped: of those, row groups that statistics or a row selection excluded.
        pages: pages of the filter's columns whose minima and maxima were looked at.
        pages_skipped: of those, pages that cannot hold a wanted row.
        bytes_read: compressed bytes of the column chunks that were decoded.
        rows_indexed: rows that an index left over, of the files where it selected rows.
        rows_ranked: rows that an index chose of the files that it ranked.
        rows_decoded: rows of the row groups that were decoded.
        rows_merged: rows that went into merges of several runs.
        rows_returned: rows given to the caller.
        index: what the file indexes said.
    """

    files: int = 0
    files_skipped: int = 0
    files_counted: int = 0
    files_outranked: int = 0
    files_ranked: int = 0
    row_groups: int = 0
    row_groups_skipped: int = 0
    pages: int = 0
    pages_skipped: int = 0
    bytes_read: int = 0
    rows_indexed: int = 0
    rows_ranked: int = 0
    rows_decoded: int = 0
    rows_merged: int = 0
    rows_returned: int = 0
    index: IndexMetrics = field(default_factory=IndexMetrics)

    def merge(self, other: ReadReport) -> None:
        """Add what another has counted.

        >>> report = ReadReport(files=1)
        >>> report.merge(ReadReport(files=2, rows_returned=5))
        >>> report.files, report.rows_returned
        (3, 5)
        """
        for item in fields(self):
            if item.name != "index":
                setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))
        self.index.merge(other.index)


__all__ = ["ReadReport"]
