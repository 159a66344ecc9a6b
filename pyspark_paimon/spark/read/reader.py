"""Batch reads in Spark.

The driver plans splits of a pinned snapshot, and tasks read them.
The scan and its splits are JSON. Spark does not push columns into a Python data source, and pushes only some filters. Therefore columns
and filter are options, and the reader filters exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from fileindex.base.errors import InvalidFilter, UnknownColumn
from fileindex.predicate.tree import ColumnRef, Op, all_of
from lsm.read.metrics import ReadReport
from pyspark_paimon.filter.ast import Comparison, Condition, Membership, Not, NullSafeEqual, NullTest, Prefix, literal_from_python
from pyspark_paimon.filter.bind import bind
from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark
from pyspark_paimon.request.backend import ScanRequest
from pyspark_paimon.request.plan_json import report_to_json, summaries_to_json
from pyspark_paimon.scheduling.task_packing import pack_tasks
from pyspark_paimon.spark.driver.catalog_tables import explain_stale_columns
from pyspark_paimon.spark.driver.options import pushes_once, read_options, table_path
from pyspark_paimon.spark.driver.scan_options import scan_request
from pyspark_paimon.spark.read.threads import use_task_cpus
from pyspark_paimon.spark.wire.arrow_stream import encode_rows
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.rpc import FORM, FSCK, HASHES, SCAN, form_of, parse_hash_scan
from pyspark_paimon.spark.wire.session_settings import refuse_task_settings
from pyspark_paimon.system.opened import local_backend

_COMPARISONS = {
    ds.EqualTo: Op.EQ,
    ds.GreaterThan: Op.GT,
    ds.GreaterThanOrEqual: Op.GE,
    ds.LessThan: Op.LT,
    ds.LessThanOrEqual: Op.LE,
}


@dataclass
class SplitPartition(ds.InputPartition):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Splits that one task reads."""

    splits: tuple[str, ...]
    """Splits as JSON."""


class PaimonReader(ds.DataSourceReader):  # type: ignore[misc]  # as above
    """Reader of a scan of the table at ``path``.

    Args:
        path: Path of the table.
        request: ``ScanRequest`` as JSON.
        schema: Spark schema of the output.
        form: Output of the scan, one of ``rpc.FORM``.
        given: Options of a read that Spark planned without our client. Tasks check the session's settings against them.
    """

    def __init__(self, path: str, request: str, schema: StructType, form: str = "rows", given: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.request = request
        self.schema = schema
        self.form = form
        self.given = given

    def partitions(self) -> list[ds.InputPartition]:
        """Plan the scan and return its splits. Small splits share a partition."""
        with attach_error_notes():
            backend, request = local_backend(self.path), ScanRequest.model_validate_json(self.request)
            ordered = self.form == "blobs" or request.incremental is not None
            tasks = pack_tasks(backend.plan(request), backend.stored_schema(request.schema_id), ordered=ordered)
            return [SplitPartition(tuple(task)) for task in tasks]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's output in Spark's Arrow schema."""
        if isinstance(partition, SplitPartition):
            with attach_error_notes():
                if self.given is not None:
                    refuse_task_settings(self.path, self.given)
                for split in partition.splits:
                    yield from self._read(split)

    def _read(self, split: str) -> Iterator[pa.RecordBatch]:
        use_task_cpus()
        wanted = arrow_for_spark(self.schema)
        if self.form == "summaries":
            found = local_backend(self.path).aggregate_split(ScanRequest.model_validate_json(self.request), split)
            yield pa.record_batch([pa.array([summaries_to_json(found)])], schema=wanted)
            return
        report = ReadReport()
        for batch in local_backend(self.path).read_split(ScanRequest.model_validate_json(self.request), split, report):
            if self.form == "rows":
                yield cast_for_spark(batch, wanted)
            elif self.form == "blobs":
                yield pa.record_batch([pa.array([encode_rows(pa.Table.from_batches([batch]))], pa.binary())], schema=wanted)
        if self.form == "reports":
            yield pa.record_batch([pa.array([report_to_json(report)])], schema=wanted)


class PushdownReader(PaimonReader):
    """Reader that Spark pushes filters into.

    Its frame may be queried only once.

    Spark uses it only with ``spark.sql.python.filterPushdown.enabled``.
    """

    # Spark 4.3 keeps the partitions of a query's pushed filters with the frame. If the frame's next query pushes no filter, Spark
    # reuses them, and rows would be missing. So a user has to set the option pushdown to "once".

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802  # Spark's name
        """Add filters to the scan and return the unsupported ones."""
        with attach_error_notes():
            request = ScanRequest.model_validate_json(self.request)
            types = local_backend(self.path).schema(request.schema_id).column_types
            pushed, rest = [request.predicate], []
            for filter_ in filters:
                try:
                    pushed.append(bind(_condition(filter_), types))
                except (InvalidFilter, UnknownColumn):
                    rest.append(filter_)
            tree = all_of(*pushed)
            self.request = request.model_copy(update={"predicate": tree}).model_dump_json()
        return rest


def reader_for(options: Mapping[str, str], schema: StructType) -> ds.DataSourceReader:
    """Return the reader that the options ask for.

    It has a pinned snapshot and the columns of ``schema``.
    """
    with attach_error_notes():
        if FSCK in options:
            from pyspark_paimon.spark.read.fsck_reader import FsckReader  # noqa: PLC0415  # see test_imports

            return FsckReader(table_path(options), options[FSCK], schema)
        if HASHES in options:
            from pyspark_paimon.spark.read.hash_index_reader import HashReader  # noqa: PLC0415  # see test_imports

            return HashReader(table_path(options), parse_hash_scan(options[HASHES]).snapshot_id, schema)
        given = {SCAN: options[SCAN], "path": table_path(options)} if SCAN in options else read_options(options, schema)
        path = table_path(given)
        form = form_of(options)
        with explain_stale_columns(schema):
            request = scan_request(local_backend(path), given, tuple(schema.names) if form == "rows" else None)
        kind = PushdownReader if pushes_once(options if SCAN in options else given) else PaimonReader
        return kind(path, request.model_dump_json(), schema, form, None if FORM in options else {**given, **options})


def _condition(filter_: Any) -> Condition:
    """Return a Spark filter as a condition.

    Raises ``InvalidFilter`` for an unsupported form.
    """
    if isinstance(filter_, ds.Not):
        return Not(_condition(filter_.child))
    path = filter_.attribute
    if len(path) != 1:
        raise InvalidFilter(f"a nested column: {path}")
    column = ColumnRef(path[0])
    if isinstance(filter_, ds.IsNull):
        return NullTest(column)
    if isinstance(filter_, ds.IsNotNull):
        return Not(NullTest(column))
    if isinstance(filter_, ds.In):
        return Membership(column, tuple(literal_from_python(value) for value in filter_.value))
    if isinstance(filter_, ds.StringStartsWith):
        return Prefix(column, filter_.value)
    if isinstance(filter_, ds.EqualNullSafe):
        return NullSafeEqual(column, literal_from_python(filter_.value))
    op = _COMPARISONS.get(type(filter_))
    if op is None:
        raise InvalidFilter(f"only Spark can evaluate {type(filter_).__name__}")
    return Comparison(column, op, literal_from_python(filter_.value))


__all__ = ["PaimonReader", "PushdownReader", "SplitPartition", "reader_for"]
