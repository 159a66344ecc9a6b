"""Counters of a read as stages of its funnel."""

from __future__ import annotations

from collections import Counter

from fileindex.query.metrics import IndexUse
from lsm.read.metrics import ReadReport
from pyspark_paimon.views.explain import read_stages


def told(report: ReadReport) -> dict[str, tuple[int, int, str]]:
    return {stage.name: (stage.kept, stage.dropped, stage.note) for stage in read_stages(report, 2.5)}


def test_a_read_without_indexes_has_row_groups_and_rows() -> None:
    report = ReadReport(files=3, files_skipped=1, files_counted=1, row_groups=4, row_groups_skipped=1, bytes_read=9, rows_decoded=8)
    assert told(report) == {
        "file index": (2, 1, "1 file counted without opening them"),
        "row groups": (3, 1, ""),
        "rows": (0, 8, ""),
    }
    groups, rows = read_stages(report, 2.5)[1:]
    assert (groups.bytes_kept, groups.millis, rows.bytes_kept, rows.millis) == (9, 0.0, 0, 2.5)


def test_pages_ranks_and_merges_have_their_lines() -> None:
    report = ReadReport(files=2, files_outranked=5, pages=7, pages_skipped=3, rows_decoded=2, rows_merged=1, rows_returned=4)
    assert told(report) == {
        "first rows": (2, 5, ""),
        "file index": (2, 0, ""),
        "row groups": (0, 0, ""),
        "pages": (4, 3, "of filter columns"),
        "rows": (4, 0, "1 of 2 decoded rows merged"),
    }
    ranked = told(ReadReport(files=2, files_ranked=2, rows_ranked=30))
    assert ranked["first rows"] == (2, 0, "an index named 30 rows of 2 files")


def test_what_an_index_could_not_tell_stands_beside_it_once() -> None:
    report = ReadReport(files=2)
    report.index.by_index["v", "bsi"] = IndexUse(files=2, skipped=1, bytes=10, unusable=Counter({"damaged": 2}))
    report.index.warnings.update({"t: damaged": 2, "unknown type": 1})
    found = told(report)
    assert found["index v: bsi"] == (1, 1, "10 B read; unusable: damaged (2)")
    assert found["file index"][2] == "read 0 B; unknown type (1)"
