"""Questions about a scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias, TypeVar

import pyarrow as pa
from pydantic import PlainSerializer, PlainValidator

from lsm.aggregate.summary import RowSummary
from lsm.scan.plan import ScanPlan
from paimon_base.errors import InvalidArgument
from paimon_base.thresholds import thresholds
from pyspark_paimon.request.bound import BoundRows
from pyspark_paimon.request.operation import OpenTable, Question, Request, parse_request
from pyspark_paimon.request.plan_json import plan_from_json, plan_to_json, summaries_to_json
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.results.results import FunnelStage
from pyspark_paimon.results.tree_report import TreeReport

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


class ReadRows(Question[BoundRows | None]):
    """Rows of a scan.

    None: they are too large for an answer.
    """

    request: ScanRequest

    def answer(self, table: OpenTable) -> BoundRows | None:
        """Read the rows, up to ``thresholds.answer_bytes``."""
        batches, size = list[pa.RecordBatch](), 0
        for batch in table.read(self.request):
            size += batch.nbytes
            if size > thresholds.answer_bytes:
                return None
            batches.append(batch)
        return pa.Table.from_batches(batches) if batches else pa.table({})


class CountRows(Question[int]):
    """Number of rows of a scan."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> int:
        """Count the rows, in data files if necessary."""
        return table.count(self.request)


class AggregateRows(Question[str]):
    """Aggregates of a scan as ``request.plan_json`` text."""

    request: ScanRequest

    def answer(self, table: OpenTable) -> str:
        """Aggregate the rows, in data files if necessary."""
        return summaries_to_json(table.aggregate(self.request))


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
        summaries: dict[bytes, RowSummary] | None = table.cheap_aggregate(self.request)
        return None if summaries is None else summaries_to_json(summaries)


class GroupCheaply(Question[BoundRows | None]):
    """Number of rows with each combination of values of ``by``, as ``jobs.grouping`` folds them.

    None: counting needs data files, or the answer is too large. ``counted``: columns of ``by`` whose values are counted.
    """

    request: ScanRequest
    by: tuple[str, ...]
    counted: tuple[str, ...] = ()

    def answer(self, table: OpenTable) -> BoundRows | None:
        """Count by indexes of few files, up to ``thresholds.answer_bytes``."""
        groups = table.cheap_groups(self.request, self.by, self.counted)
        return None if groups is None or groups.nbytes > thresholds.answer_bytes else groups


class IfSmall(Question[str | None]):
    """Answer to a scan's question, as text.

    None: the scan reads more than ``most_bytes`` of data files.
    """

    question: str
    most_bytes: int

    def answer(self, table: OpenTable) -> str | None:
        """Plan the scan, and answer the question if the plan is small."""
        question: Question[object] = parse_request(self.question, Question, "question")  # type: ignore[type-abstract]  # only a base
        if not isinstance(question, ReadRows | CountRows | AggregateRows | MeasureScan):
            raise InvalidArgument(f"option 'question' must be a question about the rows of a scan, not {type(question).__name__}")
        if table.scan_bytes(question.request) > self.most_bytes:
            return None
        return question.answer_text(question.answer(table))


A = TypeVar("A")


def answer_if_small(ask: Callable[[IfSmall], str | None], question: Request[A], max_bytes: int) -> A | None:
    """Return the answer to a question about the rows of a scan.

    None: the scan reads more than ``max_bytes`` of data files. 0: nothing is asked.
    """
    answer = ask(IfSmall(question=question.to_text(), most_bytes=max_bytes)) if max_bytes else None
    return None if answer is None else question.answer_of(answer)
