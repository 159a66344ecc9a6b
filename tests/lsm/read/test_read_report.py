"""Counters of reads add up."""

from __future__ import annotations

from dataclasses import fields

from lsm.read.metrics import ReadReport


def test_merged_reports_add_up_what_files_and_indexes_counted() -> None:
    one, other = ReadReport(files=1, bytes_read=10), ReadReport(files=2, rows_returned=5)
    one.index.bytes_read = 3
    other.index.bytes_read = 4
    other.index.used["city: bitmap"] = 2
    other.index.of("city", "bitmap").files = 2
    one.merge(other)
    assert (one.files, one.bytes_read, one.rows_returned) == (3, 10, 5)
    assert (one.index.bytes_read, one.index.used["city: bitmap"], one.index.of("city", "bitmap").files) == (7, 2, 2)


def test_a_new_report_has_counted_nothing() -> None:
    counted = [getattr(ReadReport(), item.name) for item in fields(ReadReport) if item.name != "index"]
    assert set(counted) == {0}
