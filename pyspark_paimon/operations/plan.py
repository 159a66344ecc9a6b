"""Questions about a scan that metadata and indexes answer."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import PlainSerializer, PlainValidator

from lsm.aggregate.summary import RowSummary
from lsm.scan.plan import ScanPlan
from pyspark_paimon.request.backend import ScanRequest
from pyspark_paimon.request.operation import OpenTable, Question
from pyspark_paimon.request.tree_report import TreeReport
from pyspark_paimon.views.plan_json import plan_from_json, plan_to_json
from pyspark_paimon.views.summaries import summaries_to_json

PlanJson: TypeAlias = Annotated[ScanPlan, PlainValidator(plan_from_json), PlainSerializer(plan_to_json, return_type=str)]


class PlanScan(Question[PlanJson]):
    """Splits of a scan and the report of its planning."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> PlanJson:
        """Plan the scan."""
        return table.plan(self.request)


class DescribeTree(Question[TreeReport]):
    """The LSM tree of each bucket at the snapshot of a scan."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> TreeReport:
        """Read metadata and indexes."""
        return table.tree(self.request)


class CountCheaply(Question[int | None]):
    """Number of rows of a scan, if no data file is needed."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> int | None:
        """Count by metadata and exact indexes."""
        return table.cheap_count(self.request)


class AggregateCheaply(Question[str | None]):
    """Aggregates of a scan as ``views.summaries`` text, if few files tell them."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> str | None:
        """Aggregate by metadata, indexes and few footers."""
        found: dict[bytes, RowSummary] | None = table.cheap_aggregate(self.request)
        return None if found is None else summaries_to_json(found)


__all__ = ["AggregateCheaply", "CountCheaply", "DescribeTree", "PlanScan"]
