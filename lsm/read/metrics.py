"""Counters of a read, for explain, progress and tests."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from fileindex.query.metrics import IndexMetrics


@dataclass(slots=True)
class ReadReport:
    """Counters of reads. Use one per thread and merge them.

    Attributes:
        files: Data files read, including skipped and counted ones.
        files_skipped: Files excluded by an index or a constant before they were opened.
        files_counted: Files whose rows were counted without opening them.
        files_outranked: Files of a sorted read without a row as good as the worst one found. Not included in ``files``.
        files_ranked: Files whose first rows in order were found by an index.
        row_groups: Row groups of the opened files.
        row_groups_skipped: Row groups excluded by statistics or a row selection.
        pages: Pages of filter columns whose minima and maxima were checked.
        pages_skipped: Pages that cannot hold a matching row.
        bytes_read: Compressed bytes of the decoded column chunks.
        rows_indexed: Rows selected by an index.
        rows_ranked: Rows selected by an index in ``files_ranked``.
        rows_decoded: Rows of the decoded row groups.
        sections_searched: sections of which only candidate keys were merged.
        rows_searched: rows of these sections.
        candidate_keys: versions in these sections that match the filter.
        rows_merged: Rows read for merges of several runs.
        rows_returned: Rows returned to the caller.
        index: Results of the file indexes.
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
    sections_searched: int = 0
    rows_searched: int = 0
    candidate_keys: int = 0
    rows_merged: int = 0
    rows_returned: int = 0
    index: IndexMetrics = field(default_factory=IndexMetrics)

    def merge(self, other: ReadReport) -> None:
        """Add the counters of ``other``.

        >>> report = ReadReport(files=1)
        >>> report.merge(ReadReport(files=2, rows_returned=5))
        >>> report.files, report.rows_returned
        (3, 5)
        """
        for name in _COUNTERS:
            if added := getattr(other, name):
                setattr(self, name, getattr(self, name) + added)
        self.index.merge(other.index)


_COUNTERS = tuple(item.name for item in fields(ReadReport) if item.name != "index")
