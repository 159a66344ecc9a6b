"""Explanation of a scan: what each pruning stage kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fileindex.base.public import public
from pyspark_paimon.html.card import Grid, card
from pyspark_paimon.request.results import FunnelStage

if TYPE_CHECKING:
    from lsm.scan.plan import ScanPlan

_HEADER = ("stage", "kept", "dropped", "bytes kept", "bytes dropped", "ms", "")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: int) -> str:
    """Format a number of bytes.

    >>> size_text(512), size_text(1536), size_text(3 << 30)
    ('512 B', '1.5 KiB', '3.0 GiB')
    """
    amount = float(size)
    for unit in _UNITS:
        if amount < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


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
                cell.ljust(width) if at in {0, 6} else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, "", self.summary])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card(self.title, [("summary", self.summary)], [Grid.of(_HEADER, [_cells(stage) for stage in self.stages])])


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
    return f"{where}: {len(plan.splits)} splits ({plan.merging_count} to merge), {plan.file_count} files, {size_text(plan.file_size)}"


__all__ = ["Explanation", "funnel_stage", "size_text"]
