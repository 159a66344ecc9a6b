"""HTML: the report on a table's tree, and pictures of plans.

Style, script and pictures are part of the page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lsm.scan.plan import ScanPlan
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import wall_clock_millis
from manifest.schema.table_schema import TableSchema
from paimon_base.texts import count_text, size_text
from pyspark_paimon._version import __version__
from pyspark_paimon.plugins.page.html.card import template_environment
from pyspark_paimon.plugins.page.tree.buckets import TreeFile, bucket_trees
from pyspark_paimon.results.results import FunnelStage
from pyspark_paimon.results.tree_report import TreeBox, TreeBucket, TreeReport, TreeSnapshot
from pyspark_paimon.views.explain import funnel_stage

if TYPE_CHECKING:
    from jinja2 import Environment


_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_STEPS = ((_DAY * 365, "y"), (_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"))
_MOST_BOXES = 300
_MOST_BUCKETS = 6


def render_page(report: TreeReport, *, live: bool = False) -> str:
    """Return the whole page.

    live: Whether a server answers filters typed into the page. False: the page shows one plan.
    """
    script, style = _resource("page.js"), _resource("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    data = report.model_dump(mode="json", exclude={"buckets": {"__all__": {"boxes", "sections"}}})
    page: str = (
        _templates()
        .get_template("page.html.j2")
        .render(report=report, live=live, script=script, style=style, script_digest=digest, data=data, version=__version__)
    )
    return page


def render_live(report: TreeReport) -> str:
    """Return the parts of the page that a filter changes."""
    part: str = _templates().get_template("live.html.j2").render(report=report)
    return part


def render_plan(stages: Sequence[FunnelStage], buckets: Sequence[TreeBucket], of: int, now: int) -> str:
    """Return a small picture of a plan for a notebook.

    The picture has no script. ``buckets`` are those drawn ``of`` all buckets with files.
    """
    part: str = _templates().get_template("plan.html.j2").render(stages=stages, buckets=buckets, of=of, now=now)
    return part


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = template_environment("pyspark_paimon.plugins.page.report")
    environment.filters |= {
        "size": size_text,
        "counted": count_text,
        "count": lambda number: f"{number:,}",
        "percent": lambda share: f"{100 * share:.3f}".rstrip("0").rstrip("."),
        "ratio": lambda value: "-" if value is None else f"{value:.2f}",
        "instant": instant_text,
        "age": age_text,
        "box": box_text,
        "brought": snapshot_text,
        "line": line_points,
        "height": bar_height,
    }
    return environment


@lru_cache(maxsize=8)
def _resource(name: str) -> str:
    return files("pyspark_paimon.plugins.page.report").joinpath("templates", name).read_text(encoding="utf-8")


def instant_text(millis: int | None) -> str:
    """Format a time to the second, with its zone.

    >>> instant_text(1_700_000_000_000)
    '2023-11-14 22:13:20 UTC'
    """
    if millis is None:
        return "unknown"
    try:
        return f"{datetime.fromtimestamp(millis / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):  # the writer's clock was far off
        return f"{millis} ms"


def age_text(millis: int | None) -> str:
    """Format a duration in its largest unit.

    >>> age_text(90_000), age_text(200_000_000), age_text(-5)
    ('1 min', '2 d', '0 s')
    """
    if millis is None:
        return "unknown"
    for step, unit in _STEPS:
        if millis >= step:
            return f"{millis // step} {unit}"
    return "0 s"


def box_text(box: TreeBox, now: int) -> str:
    """Return the description of a box.

    It is used for the tooltip and for screen readers. Its parts are separated by semicolons.
    """
    what = box.name if box.files == 1 else f"{count_text(box.files, 'file')} together"
    deleted = f", {box.deleted:,} of them deleted" if box.deleted else ""
    indexed = "no index" if not box.indexed else _index_text(box)
    keys = [] if box.low is None else [f"keys {_short(box.low)} to {_short(box.high or '')}"]
    age = "unknown" if box.created_millis is None else f"{age_text(now - box.created_millis)} ago"
    plan_text = "kept" if box.kept == box.files else "dropped" if not box.kept else f"{box.kept:,} of {box.files:,} kept"
    parts = [
        what,
        f"level {box.level}",
        f"{size_text(box.size)}",
        f"{count_text(box.rows, 'row')}{deleted}",
        *keys,
        f"written {instant_text(box.created_millis)}, {age}",
        f"sequence numbers {box.first_sequence:,} to {box.last_sequence:,}",
        indexed,
        f"{plan_text} by the plan",
    ]
    return "; ".join(part.replace(";", ",") for part in parts)


def _index_text(box: TreeBox) -> str:
    where = f"{size_text(box.index_bytes)} of index in the manifest" if box.index_bytes else "index in a side file"
    return where if box.indexed == box.files else f"{where}, of {box.indexed:,} of {count_text(box.files, 'file')}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def snapshot_text(snapshot: TreeSnapshot) -> str:
    """Return the description of a snapshot's bar."""
    parts = [
        f"snapshot {snapshot.id}",
        f"{snapshot.kind} at {instant_text(snapshot.time_millis)}",
        f"{snapshot.delta_rows:+,} rows, {snapshot.rows:,} in all",
        f"{count_text(snapshot.added_files, 'file')} added ({size_text(snapshot.written)}), {snapshot.removed_files:,} removed",
        f"then {count_text(snapshot.files, 'file')}, {size_text(snapshot.size)}",
    ]
    return "; ".join(parts)


def bar_height(value: int, greatest: int) -> float:
    """Return the height of a bar in percent.

    Heights are square roots, so that small commits remain visible next to large ones.

    >>> bar_height(25, 100), bar_height(0, 100)
    (50.0, 1.0)
    """
    return round(max(100 * (value / greatest) ** 0.5 if greatest else 0.0, 1.0), 2)


def line_points(values: list[float | None]) -> dict[str, Any]:
    """Return the points of a line chart.

    The box is 100 by 40. The result also has the lowest and highest value. The scale always includes 1.
    """
    points_with_value = [(position, value) for position, value in enumerate(values) if value is not None]
    if not points_with_value:
        return {"points": "", "low": None, "high": None, "last": None}
    high = max(value for _, value in points_with_value)
    low = min(1.0, *(value for _, value in points_with_value))
    span, steps = max(high - low, 0.01), max(len(values) - 1, 1)
    points = [(100 * position / steps, 38 - 36 * (value - low) / span) for position, value in points_with_value]
    if len(points) == 1:
        points = [(0.0, points[0][1]), (100.0, points[0][1])]
    return {"points": " ".join(f"{x:.2f},{y:.2f}" for x, y in points), "low": low, "high": high, "last": points_with_value[-1][1]}


def render_scan_plan(plan: ScanPlan, schema: TableSchema | None) -> str:
    """Return the picture of a plan. ``schema`` decodes keys."""
    files = []
    splits: Sequence[object] = plan.splits  # plans of incremental scans have other splits
    for split in splits:
        if not isinstance(split, DataSplit):
            continue
        vectors = split.deletion_files or (None,) * len(split.files)
        for file, vector in zip(split.files, vectors, strict=True):
            deleted = (file.delete_row_count or 0) + (0 if vector is None else vector.cardinality or 0)
            files.append(TreeFile(split.partition, split.bucket, file, deleted, kept=True))
    trees = () if schema is None else bucket_trees(files, schema, most_boxes=_MOST_BOXES)
    drawn = sorted((tree for tree in trees if tree.boxes), key=lambda tree: -tree.size)[:_MOST_BUCKETS]
    return render_plan(tuple(map(funnel_stage, plan.report)), drawn, len(trees), wall_clock_millis())
