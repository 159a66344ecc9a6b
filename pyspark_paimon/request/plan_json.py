"""Scan plans and read reports as JSON.

A server sends them to its client.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields

from fileindex.query.metrics import IndexMetrics
from lsm.aggregate.names import AggregateName
from lsm.aggregate.summary import RowSummary
from lsm.incremental.planner import split_from_json
from lsm.read.metrics import ReadReport
from lsm.scan.plan import ScanPlan, Stage


def plan_to_json(plan: ScanPlan) -> str:
    """Encode a plan as JSON."""
    report = [asdict(stage) for stage in plan.report]
    return json.dumps({"snapshot_id": plan.snapshot_id, "splits": [split.to_json() for split in plan.splits], "report": report})


def plan_from_json(text: str) -> ScanPlan:
    """Decode a plan."""
    value = json.loads(text)
    splits = tuple(split_from_json(split) for split in value["splits"])
    return ScanPlan(value["snapshot_id"], splits, tuple(Stage(**stage) for stage in value["report"]))


def report_to_json(report: ReadReport) -> str:
    """Encode a report as JSON.

    >>> report = ReadReport(files=2, index=IndexMetrics(bytes_read=3))
    >>> report_from_json(report_to_json(report)) == report
    True
    """
    counts = {item.name: getattr(report, item.name) for item in fields(report) if item.name != "index"}
    return json.dumps(counts | {"index": report.index.to_json()})


def report_from_json(text: str) -> ReadReport:
    """Decode a report."""
    value = json.loads(text)
    return ReadReport(**value | {"index": IndexMetrics.from_json(value["index"])})


def summaries_to_json(summaries: Mapping[bytes, RowSummary]) -> str:
    """Encode summaries as JSON for ``summaries_from_json``."""
    return json.dumps([[partition.hex(), summary.to_json()] for partition, summary in summaries.items()])


def summaries_from_json(texts: Iterable[str], functions: Mapping[str, Iterable[AggregateName]]) -> dict[bytes, RowSummary]:
    """Decode texts and add up their summaries.

    >>> summaries_from_json([summaries_to_json({b"p": RowSummary({}, 2)}), '[["70", {"rows": 3, "columns": {}}]]'], {})
    {b'p': RowSummary(columns={}, rows=5)}
    """
    summaries: dict[bytes, RowSummary] = {}
    for text in texts:
        for partition, summary in json.loads(text):
            partition_bytes = bytes.fromhex(partition)
            if partition_bytes not in summaries:
                summaries[partition_bytes] = RowSummary.of(functions, {})
            summaries[partition_bytes].merge_json(summary)
    return summaries
