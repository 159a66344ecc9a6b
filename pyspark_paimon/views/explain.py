"""Explanation of a scan: what each pruning stage kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fileindex.query.metrics import IndexUse
from lsm.read.metrics import ReadReport
from paimon_base.errors import InvalidArgument
from paimon_base.plugins import plugin
from paimon_base.public import public
from paimon_base.texts import count_text, size_text
from pyspark_paimon.results.results import FunnelStage

if TYPE_CHECKING:
    from lsm.scan.plan import ScanPlan


_HEADER = ("stage", "kept", "dropped", "bytes kept", "bytes dropped", "ms", "")


@public
@dataclass(frozen=True)
class Explanation:
    """Explanation of a scan.

    ``str()`` gives a table, notebooks show HTML, and ``stages`` has the values.
    """

    title: str
    stages: tuple[FunnelStage, ...]
    summary: str

    @classmethod
    def of(cls, title: str, plan: ScanPlan, read: Iterable[FunnelStage] = (), readers: str = "") -> Explanation:
        """Build the explanation of a plan.

        read: Stages at read time.
        readers: Which reader reads which rows, if there are several.
        """
        stages = (*(funnel_stage(stage) for stage in plan.report), *read)
        return cls(title, stages, "\n".join(filter(None, (_summary(plan), readers))))

    def stage(self, name: str) -> FunnelStage:
        """Return the stage with a name.

        Raises ``InvalidArgument`` where there is none.

        >>> Explanation("Scan(t)", (FunnelStage(name="file index", kept=1, dropped=3),), "").stage("file index").dropped
        3
        """
        by_name = {stage.name: stage for stage in self.stages}
        if name not in by_name:
            raise InvalidArgument(f"stage: there is no stage {name!r}; there are {', '.join(map(repr, by_name))}")
        return by_name[name]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values.

        >>> Explanation("Scan(t)", (FunnelStage(name="splits", kept=1, dropped=0),), "1 split").to_dict()["stages"][0]["kept"]
        1
        """
        return {"scan": self.title, "summary": self.summary, "stages": [stage.model_dump(mode="json") for stage in self.stages]}

    def __str__(self) -> str:
        rows = [_HEADER, *map(_cells, self.stages)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
        lines = [self.title, ""]
        for row in rows:
            cells = [
                cell.ljust(width) if column_number in {0, 6} else cell.rjust(width)
                for column_number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, "", self.summary])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cards = plugin("page", "cards")
        grid = cards.Grid.of(_HEADER, [_cells(stage) for stage in self.stages])
        text: str = cards.card(self.title, [("summary", self.summary)], [grid])
        return text


def funnel_stage(stage: Any) -> FunnelStage:
    """Convert a stage of the planner's report to a result."""
    return FunnelStage(
        name=stage.name,
        kept=stage.kept,
        dropped=stage.dropped,
        bytes_kept=stage.bytes_kept,
        bytes_dropped=stage.bytes_dropped,
        millis=stage.millis,
        note=stage.note,
    )


def _cells(stage: FunnelStage) -> tuple[str, ...]:
    bytes_kept = size_text(stage.bytes_kept) if stage.bytes_kept or stage.bytes_dropped else ""
    bytes_dropped = size_text(stage.bytes_dropped) if stage.bytes_dropped else ""
    return (stage.name, f"{stage.kept:,}", f"{stage.dropped:,}", bytes_kept, bytes_dropped, f"{stage.millis:.1f}", stage.note)


def _summary(plan: ScanPlan) -> str:
    where = "no snapshot yet" if not plan.snapshot_id else f"snapshot {plan.snapshot_id}"
    return f"{where}: {count_text(len(plan.splits), 'split')} ({plan.merging_count} to merge), {count_text(plan.file_count, 'file')}, {size_text(plan.file_size)}"


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
        ranked = f"an index named {_rows(report.rows_ranked)} of {count_text(report.files_ranked, 'file')}" if report.files_ranked else ""
        yield FunnelStage(name="first rows", kept=report.files, dropped=report.files_outranked, note=ranked)
    yield from index_stages(report)
    yield FunnelStage(
        name="row groups",
        kept=report.row_groups - report.row_groups_skipped,
        dropped=report.row_groups_skipped,
        bytes_kept=report.bytes_read,
    )
    if report.pages:
        yield FunnelStage(name="pages", kept=report.pages - report.pages_skipped, dropped=report.pages_skipped, note="of filter columns")
    if report.sections_searched:
        sections = count_text(report.sections_searched, "section")
        note = f"of {_rows(report.rows_searched)} in {sections} with several runs"
        dropped = max(report.rows_searched - report.candidate_keys, 0)
        yield FunnelStage(name="key candidates", kept=report.candidate_keys, dropped=dropped, note=note)
    note = f"{report.rows_merged:,} of {report.rows_decoded:,} decoded rows merged" if report.rows_merged else ""
    dropped = max(report.rows_decoded - report.rows_returned, 0)
    yield FunnelStage(name="rows", kept=report.rows_returned, dropped=dropped, millis=millis, note=note)


def index_stages(report: ReadReport) -> Iterator[FunnelStage]:
    """Yield what all file indexes kept, and what each one did."""
    yield FunnelStage(name="file index", kept=report.files - report.files_skipped, dropped=report.files_skipped, note=_index_note(report))
    for (column, index_type), use in sorted(report.index.by_index.items()):
        yield FunnelStage(name=f"index {column}: {index_type}", kept=use.files - use.skipped, dropped=use.skipped, note=_use_note(use))


def _index_note(report: ReadReport) -> str:
    notes = report.index
    counted = f"{count_text(report.files_counted, 'file')} counted without opening them" if report.files_counted else ""
    read = f"read {size_text(notes.bytes_read)}" if notes.by_index else ""
    reported = sum((use.unusable for use in notes.by_index.values()), Counter[str]())
    other_reasons = [
        f"{reason} ({count})"
        for reason, count in notes.warnings.most_common(2)
        if not any(reported_reason in reason for reported_reason in reported)
    ]
    return "; ".join(filter(None, (read, counted, *other_reasons)))


def _use_note(use: IndexUse) -> str:
    unusable = [f"unusable: {reason} ({count})" for reason, count in use.unusable.most_common(2)]
    selected = f"{_rows(use.rows)} selected" if use.rows else ""
    return "; ".join(filter(None, (", ".join(filter(None, (selected, f"{size_text(use.bytes)} read"))), *unusable)))


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
