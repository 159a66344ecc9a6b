"""Read side of the Spark engine: questions and scans.

The server's tasks read the rows of a scan.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from lsm.arrow.limit import limit_rows
from lsm.read.metrics import ReadReport
from paimon_base.errors import InvalidArgument, UnsupportedOption
from paimon_base.memory_size import parse_memory_size
from paimon_base.texts import count_text, size_text
from paimon_base.thresholds import thresholds
from pyspark_paimon.jobs.ordering import candidates, sort_frame, sort_rows
from pyspark_paimon.jobs.progress import reporting_start, reporting_tasks
from pyspark_paimon.request.engine import MeasuredPlan, RowGrouping
from pyspark_paimon.request.operation import Request
from pyspark_paimon.request.plan_json import report_from_json, summaries_from_json
from pyspark_paimon.request.requests import Progress, ScanRequest
from pyspark_paimon.request.scan_questions import (
    AggregateCheaply,
    AggregateRows,
    CountCheaply,
    CountRows,
    IfSmall,
    MeasureScan,
    PlanScan,
    ReadRows,
    answer_if_small,
)
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.results.counters import ScanTally
from pyspark_paimon.results.results import FunnelStage
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.arrow_stream import BLOB, decode_batches
from pyspark_paimon.spark.wire.errors import raise_typed_errors
from pyspark_paimon.spark.wire.names import UNIQUE_NAME
from pyspark_paimon.spark.wire.native_plan import NativePlan, native_frame

_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
_FRAME_FILTER = "to_spark().filter(...): Spark filters what the readers return, and no file is skipped; use scan(...) for the filter"

if TYPE_CHECKING:
    from lsm.aggregate.summary import RowSummary
    from lsm.scan.plan import ScanPlan


def tag_of(stage: str, path: str, share: str = "") -> str:
    """Return the Spark job tag of an operation.

    ``share`` is the amount of work. Commas become semicolons: Spark allows no comma in a tag.

    >>> tag_of("compact", "/warehouse/flights", "12 buckets")
    'paimon compact flights (12 buckets)'
    """
    name = f"paimon {stage} {PurePosixPath(path).name}" + (f" ({share})" if share else "")
    return name.replace(",", ";")


@contextmanager
def named_jobs(spark: Any, tag: str) -> Iterator[None]:
    """Tag the Spark jobs that this thread starts.

    Existing tags of the thread stay.
    """
    if not hasattr(spark, "addTag") or tag in spark.getTags():
        yield
        return
    spark.addTag(tag)
    try:
        yield
    finally:
        spark.removeTag(tag)


A = TypeVar("A")


class SparkScans:
    """Questions and scans that a Spark server answers.

    Implements the read part of ``Engine``. ``progress`` receives the task counts of read and write jobs, over Spark Connect only.
    """

    def __init__(self, path: str, spark: Any, *, progress: Progress | None = None) -> None:
        self._path = path
        self._spark = spark
        self._progress = progress

    @property
    def path(self) -> str:
        """Path of the table, as the server resolves it."""
        return self._path

    @property
    def spark(self) -> Any:
        """Spark session."""
        return self._spark

    def read_split(self, request: ScanRequest, split: object) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  # nothing is read
        """Raise ``InvalidArgument``: only Spark tasks read splits.

        Splits name files of the server.
        """
        raise InvalidArgument(
            f"only Spark's tasks can read splits of {self._path}: use to_batches() or to_spark(), or open the table in process"
        )

    def read(
        self,
        request: ScanRequest,
        *,
        keeps_all: bool = False,  # noqa: ARG002  # always one stream
        tally: ScanTally | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows.

        The driver reads small scans, Spark tasks others. Rows arrive as Arrow streams. The client holds one stream at a time, unless
        ``order_by`` needs all.
        """
        rows = self._read_rows(request)
        return rows if tally is None else tally.count_rows(rows)

    def _read_rows(self, request: ScanRequest) -> Iterator[pa.RecordBatch]:
        # Dictionaries of an answer may differ between batches, and Arrow streams lose the number of rows without columns.
        small_answer = self._ask_if_small(ReadRows(request=request)) if request.columns and not request.dictionaries else None
        if small_answer is not None:
            yield from small_answer.to_batches()
            return
        if request.order_by:
            candidate_request = candidates(request)
            rows = sort_rows(self._blobs(candidate_request), candidate_request, self._ask(SchemaOf(id=request.schema_id)))
            yield from rows.select(list(request.columns)).to_batches()
            return
        yield from limit_rows(self._blobs(request), request.limit)

    def explain(self, request: ScanRequest, *, analyze: bool) -> MeasuredPlan:
        """Plan a scan; ``analyze``: also read its rows, and count them.

        One round trip, unless tasks must read the rows, or the filter is very long.
        """
        planning, native = PlanScan(request=request), rpc.AskNative(request=candidates(request))
        measuring = MeasureScan(request=request)
        small = IfSmall(question=measuring.to_text(), most_bytes=thresholds.driver_bytes)
        questions: list[Request[Any]] = [planning, native, *([small] if analyze and thresholds.driver_bytes else ())]
        plan, native_files, *measured = self._ask_all(questions)
        read = tuple[FunnelStage, ...]()
        if analyze:
            stages_text = measured[0] if measured else None
            read = self._measure(request) if stages_text is None else measuring.answer_of(stages_text)
        readers = _describe_readers(native_files, plan)
        if request.predicate is None and plan.file_count:
            readers = f"{readers}\n{_FRAME_FILTER}"
        return MeasuredPlan(plan, read, readers)

    def _ask_all(self, questions: Sequence[Request[Any]]) -> list[Any]:
        """Return the answers to questions, in one round trip unless a request of all would be too long."""
        together = rpc.AskAll(questions=[each.to_text() for each in questions])
        if len(together.to_text()) > rpc.LONGEST:
            return [self._ask(each) for each in questions]
        answers = self._ask(together)
        return [each.answer_of(answer) for each, answer in zip(questions, answers, strict=True)]

    def _measure(self, request: ScanRequest) -> tuple[FunnelStage, ...]:
        """Read the rows in tasks and count them per stage."""
        from pyspark_paimon.views.explain import read_stages  # noqa: PLC0415  # only explain needs it

        started = time.perf_counter()
        return read_stages(self._report(candidates(request)), (time.perf_counter() - started) * 1000)

    def count(self, request: ScanRequest) -> int:
        """Return the number of rows.

        Uses metadata if it is sufficient. The driver counts in small files, tasks in others. No row reaches the client.
        """
        driver_count = self._ask(CountCheaply(request=request))
        driver_count = self._ask_if_small(CountRows(request=request)) if driver_count is None else driver_count
        if driver_count is not None:
            return driver_count
        counted = self._report(request.model_copy(update={"columns": (), "order_by": ()})).rows_returned
        return counted if request.limit is None else min(counted, request.limit)

    def aggregate(self, request: ScanRequest) -> dict[bytes, RowSummary]:
        """Return the aggregates of the rows by partition.

        Uses metadata and indexes if few files are enough. The driver reads small files, tasks read others. No row reaches the client.
        """
        summaries_text = self._ask(AggregateCheaply(request=request))
        summaries_text = self._ask_if_small(AggregateRows(request=request)) if summaries_text is None else summaries_text
        if summaries_text is not None:
            return summaries_from_json([summaries_text], request.aggregates)
        with raise_typed_errors(), self._reporting("scan"):
            texts = [row[rpc.ANSWER] for row in self._load(request, self._spark, "summaries").collect()]
        return summaries_from_json(texts, request.aggregates)

    def group(self, request: ScanRequest, grouping: RowGrouping) -> pa.Table:
        """Return a row for each group of the rows, which Spark's tasks fold."""
        from pyspark_paimon.spark.client.groups import folded_groups  # noqa: PLC0415  # rarely needed

        frame = self.frame(request, self._spark, native=True)
        with raise_typed_errors(), self._reporting("aggregate"):
            return folded_groups(frame, grouping)

    def frame(self, request: ScanRequest, spark: Any, *, native: bool = False) -> Any:
        """Return the scan as a lazy DataFrame.

        ``spark`` is the session of the DataFrame. None: the session of this engine.
        """
        candidate_request = candidates(request)
        frame = self._rows(candidate_request, spark or self._spark, native=native)
        with raise_typed_errors():
            if request.order_by:
                return sort_frame(frame, request.order_by, request.limit, request.columns)
            return frame if request.limit is None else frame.limit(request.limit)

    def _rows(self, request: ScanRequest, spark: Any, *, native: bool) -> Any:
        plan = self._ask(rpc.AskNative(request=request), spark) if native else NativePlan()
        rest = self._load(request.model_copy(update={"excluded_files": plan.files}), spark, "rows")
        with raise_typed_errors():
            frame = native_frame(spark, plan, rest) if plan.groups else rest
            return frame.hint("broadcast") if _is_small(spark, plan.file_bytes) else frame

    def _blobs(self, request: ScanRequest) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the tasks, stream after stream."""
        frame = self._load(request, self._spark, "blobs")
        with raise_typed_errors(), reporting_tasks(self._spark, self._progress, "scan"):
            # Tag the start of the job only: the caller may start other jobs between rows.
            with named_jobs(self._spark, tag_of("scan", self._path)):
                blobs = iter(frame.toLocalIterator())
                first = next(blobs, None)
            for row in chain(() if first is None else (first,), blobs):
                yield from decode_batches(row[BLOB])

    def _load(self, request: ScanRequest, spark: Any, form: str) -> Any:
        options = {"path": self._path, rpc.SCAN: request.model_dump_json(), rpc.FORM: form}
        with raise_typed_errors():
            return spark.read.format(UNIQUE_NAME).options(**options).load()

    def _report(self, request: ScanRequest) -> ReadReport:
        """Return the merged counters of all tasks."""
        report = ReadReport()
        with raise_typed_errors(), self._reporting("scan"):
            for row in self._load(request, self._spark, "reports").collect():
                report.merge(report_from_json(row[rpc.ANSWER]))
        return report

    @contextmanager
    def _reporting(self, stage: str, share: str = "") -> Iterator[None]:
        """Report progress and tag the jobs of the block.

        ``share`` is the amount of work.
        """
        with reporting_tasks(self._spark, self._progress, stage), named_jobs(self._spark, tag_of(stage, self._path, share)):
            yield

    def _ask_if_small(self, question: Request[A]) -> A | None:
        """Return the driver's answer to a question about rows.

        None: the scan needs tasks.
        """
        return answer_if_small(self._ask, question, thresholds.driver_bytes)

    def _ask(self, question: Request[A], spark: Any = None) -> A:
        # The analysis of a plan carries the answer; no job runs.
        session = spark or self._spark
        with raise_typed_errors(), reporting_start(session, self._progress):
            options = {"path": self._path, rpc.QUESTION: question.to_text()}
            answer = rpc.answer_of(session.read.format(UNIQUE_NAME).options(**options).load().schema)
        return question.answer_of(answer)


def _describe_readers(native: NativePlan, plan: ScanPlan) -> str:
    """Describe which files Spark's own Parquet reader reads.

    Also contains their size, and the reason if this package's reader reads all files.
    """
    if not native.groups:
        return f"to_spark(): our reader reads all files ({native.why})"
    names = {PurePosixPath(path).name for path in native.files}
    size = sum(file.file_size for split in plan.splits for file in split.files if file.file_name in names)
    share = f"to_spark(): Spark's own Parquet reader reads {len(names)} of {count_text(plan.file_count, 'file')}, {size_text(size)}"
    return f"{share}; our reader the rest, which is merged or masked, or of types that it must cast" if native.has_rest else share


def _is_small(spark: Any, file_bytes: int | None) -> bool:
    """Return whether Spark should send a scan to all tasks of a join, by its own rule for Parquet files.

    Spark knows no size of a Python source.
    """
    if file_bytes is None or file_bytes > thresholds.broadcast_bytes:
        return False
    limit_text = str(spark.conf.get(_BROADCAST))
    if limit_text.startswith("-"):  # Spark's way to turn it off
        return False
    try:
        return file_bytes <= parse_memory_size(limit_text, _BROADCAST)
    except UnsupportedOption:  # petabytes
        return True
