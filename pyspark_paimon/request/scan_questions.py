"""Questions about a scan."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import PlainSerializer, PlainValidator

from lsm.aggregate.summary import RowSummary
from lsm.scan.plan import ScanPlan
from pyspark_paimon.request.backend import ScanRequest
from pyspark_paimon.request.operation import OpenTable, Question
from pyspark_paimon.request.plan_json import plan_from_json, plan_to_json, summaries_to_json
from pyspark_paimon.request.results import FunnelStage
from pyspark_paimon.request.tree_report import TreeReport

PlanJson: TypeAlias = Annotated[ScanPlan, PlainValidator(plan_from_json), PlainSerializer(plan_to_json, return_type=str)]


class PlanScan(Question[PlanJson]):
    """Splits of a scan and the report of its planning."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> PlanJson:
        """Plan the scan."""
        return table.plan(self.request)


class DescribeTree(Question[TreeReport]):
    """LSM tree of each bucket at a scan's snapshot."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> TreeReport:
        """Read metadata and indexes."""
        return table.tree(self.request)


class MeasureScan(Question[tuple[FunnelStage, ...]]):
    """Rows kept and dropped by each reading stage."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> tuple[FunnelStage, ...]:
        """Read the rows and drop them."""
        return table.read_stages(self.request)


class CountCheaply(Question[int | None]):
    """Number of rows of a scan.

    None: counting needs data files.
    """

    request: ScanRequest

    def answer(self, table: OpenTable) -> int | None:
        """Count by metadata and exact indexes."""
        return table.cheap_count(self.request)


class AggregateCheaply(Question[str | None]):
    """Aggregates of a scan as ``request.plan_json`` text.

    None: computing them needs many files.
    """

    request: ScanRequest

    def answer(self, table: OpenTable) -> str | None:
        """Aggregate by metadata, indexes and few footers."""
        found: dict[bytes, RowSummary] | None = table.cheap_aggregate(self.request)
        return None if found is None else summaries_to_json(found)


__all__ = ["AggregateCheaply", "CountCheaply", "DescribeTree", "MeasureScan", "PlanScan"]
