"""Pruning stages that are counted while files are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fileindex.query.metrics import IndexUse
from lsm.read.metrics import ReadReport
from pyspark_paimon.request.results import FunnelStage
from pyspark_paimon.views.explain import size_text


def read_stages(report: ReadReport, millis: float) -> tuple[FunnelStage, ...]:
    """Return the counters of a read as stages.

    The stages are files, one line for each index, then row groups, pages and rows of the opened files.

    >>> from collections import Counter
    >>> report = ReadReport(files=3, files_skipped=2, row_groups=1, rows_decoded=9, rows_returned=1)
    >>> report.index.by_index["city", "bitmap"] = IndexUse(files=3, skipped=2, rows=1, bytes=2048)
    >>> [(stage.name, stage.kept, stage.dropped, stage.note) for stage in read_stages(report, 1.0)][:2]
    [('file index', 1, 2, 'read 0 B'), ('index city: bitmap', 1, 2, '1 row selected, 2.0 KiB read')]
    """
    return tuple(_stages(report, millis))


def _stages(report: ReadReport, millis: float) -> Iterator[FunnelStage]:
    if report.files_outranked or report.files_ranked:
        ranked = f"an index named {_rows(report.rows_ranked)} of {report.files_ranked} files" if report.files_ranked else ""
        yield FunnelStage(name="first rows", kept=report.files, dropped=report.files_outranked, note=ranked)
    yield FunnelStage(name="file index", kept=report.files - report.files_skipped, dropped=report.files_skipped, note=_index_note(report))
    for (column, index_type), use in sorted(report.index.by_index.items()):
        yield FunnelStage(name=f"index {column}: {index_type}", kept=use.files - use.skipped, dropped=use.skipped, note=_use_note(use))
    yield FunnelStage(
        name="row groups",
        kept=report.row_groups - report.row_groups_skipped,
        dropped=report.row_groups_skipped,
        bytes_kept=report.bytes_read,
    )
    if report.pages:
        yield FunnelStage(name="pages", kept=report.pages - report.pages_skipped, dropped=report.pages_skipped, note="of filter columns")
    if report.sections_searched:
        note = f"of {report.sections_searched} section{'' if report.sections_searched == 1 else 's'} with several runs"
        dropped = max(report.rows_searched - report.candidate_keys, 0)
        yield FunnelStage(name="key candidates", kept=report.candidate_keys, dropped=dropped, note=note)
    merged = f"{_rows(report.rows_merged)} merged" if report.rows_merged else ""
    dropped = max(report.rows_decoded - report.rows_returned, 0)
    yield FunnelStage(name="rows", kept=report.rows_returned, dropped=dropped, millis=millis, note=merged)


def _index_note(report: ReadReport) -> str:
    notes = report.index
    counted = f"{report.files_counted} files counted without opening them" if report.files_counted else ""
    read = f"read {size_text(notes.bytes_read)}" if notes.by_index else ""
    reported = sum((use.unusable for use in notes.by_index.values()), Counter[str]())
    others = [f"{reason} ({count})" for reason, count in notes.warnings.most_common(2) if not any(known in reason for known in reported)]
    return "; ".join(filter(None, (read, counted, *others)))


def _use_note(use: IndexUse) -> str:
    unusable = [f"unusable: {reason} ({count})" for reason, count in use.unusable.most_common(2)]
    selected = f"{_rows(use.rows)} selected" if use.rows else ""
    return "; ".join(filter(None, (", ".join(filter(None, (selected, f"{size_text(use.bytes)} read"))), *unusable)))


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


__all__ = ["read_stages"]
