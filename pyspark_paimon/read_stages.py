"""What reading a scan's files came upon, as the last stages of its funnel."""

from __future__ import annotations

from lsm.read_report import ReadReport
from pyspark_paimon.results import FunnelStage


def read_stages(report: ReadReport, millis: float) -> tuple[FunnelStage, ...]:
    """The counters of a read as stages of the funnel."""
    notes = report.index
    used = ", ".join(sorted(notes.used)) if notes.used else ""
    return (
        FunnelStage(name="file index", kept=report.files - report.files_skipped, dropped=report.files_skipped, note=used),
        FunnelStage(
            name="row groups",
            kept=report.row_groups - report.row_groups_skipped,
            dropped=report.row_groups_skipped,
            bytes_kept=report.bytes_read,
        ),
        FunnelStage(
            name="rows",
            kept=report.rows_returned,
            dropped=max(report.rows_decoded - report.rows_returned, 0),
            millis=millis,
            note=f"{report.rows_merged:,} rows merged" if report.rows_merged else "",
        ),
    )
