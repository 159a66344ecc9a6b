"""Batch reads in Spark.

The driver plans splits of a pinned snapshot, and tasks read them.
The scan and its splits are JSON. Columns and filter are options, and the reader filters exactly. Spark pushes no columns into a Python
data source. It could push filters. But Spark 4.3 keeps the partitions of the last pushed filters with the relation. All scans of a query,
a temporary view, or a frame share that: rows would be missing, even if the reader also returned the filters. Spark's main branch
keeps the partitions with the scan; its readers have ``pushLimit``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from lsm.read.metrics import ReadReport
from paimon_base.thresholds import thresholds
from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark
from pyspark_paimon.request.operation import SharedQuestion, parse_request
from pyspark_paimon.request.plan_json import report_to_json, summaries_to_json
from pyspark_paimon.request.requests import ScanRequest
from pyspark_paimon.scheduling.task_packing import pack_tasks
from pyspark_paimon.spark.driver.catalog_tables import explain_stale_columns
from pyspark_paimon.spark.driver.options import read_options, table_path
from pyspark_paimon.spark.driver.scan_options import scan_request
from pyspark_paimon.spark.read.threads import use_task_cpus
from pyspark_paimon.spark.wire.arrow_stream import encode_rows
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.rpc import FORM, HASHES, SCAN, SHARED, form_of, parse_hash_scan
from pyspark_paimon.spark.wire.session_settings import refuse_task_settings
from pyspark_paimon.system.opened import local_engine


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
            engine, request = local_engine(self.path), ScanRequest.model_validate_json(self.request)
            ordered = self.form == "blobs" or request.incremental is not None
            tasks = pack_tasks(engine.plan(request), engine.stored_schema(request.schema_id), ordered=ordered)
            return [SplitPartition(tuple(task)) for task in tasks]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's output in Spark's Arrow schema."""
        if isinstance(partition, SplitPartition):
            with attach_error_notes():
                if self.given is not None:
                    refuse_task_settings(self.path, self.given)
                use_task_cpus()
                engine, request, arrow_schema = (
                    local_engine(self.path),
                    ScanRequest.model_validate_json(self.request),
                    arrow_for_spark(self.schema),
                )
                match self.form:
                    case "rows":
                        rows = chain.from_iterable(engine.read_split(request, split) for split in partition.splits)
                        yield from join_small(cast_for_spark(batch, arrow_schema) for batch in rows)
                    case "blobs":
                        rows = chain.from_iterable(engine.read_split(request, split) for split in partition.splits)
                        for batch in join_small(rows):
                            yield pa.record_batch(
                                [pa.array([encode_rows(pa.Table.from_batches([batch]))], pa.binary())], schema=arrow_schema
                            )
                    case "summaries":
                        for split in partition.splits:
                            summaries = engine.aggregate_split(request, split)
                            yield pa.record_batch([pa.array([summaries_to_json(summaries)])], schema=arrow_schema)
                    case _:
                        for split in partition.splits:
                            report = ReadReport()
                            for _ in engine.read_split(request, split, report):
                                pass
                            yield pa.record_batch([pa.array([report_to_json(report)])], schema=arrow_schema)


def join_small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in fewer batches.

    Batches of one schema are joined, up to ``block_rows`` and ``block_bytes``.

    >>> parts = [pa.record_batch({"id": [1]}), pa.record_batch({"id": [2]}), pa.record_batch({"key": [3]})]
    >>> [batch.to_pydict() for batch in join_small(parts)]
    [{'id': [1, 2]}, {'key': [3]}]
    """
    pending, rows, size = list[pa.RecordBatch](), 0, 0
    # Each batch costs Spark about a millisecond.
    for batch in batches:
        is_full = rows + batch.num_rows > thresholds.block_rows or size + batch.nbytes > thresholds.block_bytes
        if pending and (is_full or not batch.num_columns or batch.schema != pending[0].schema):
            yield _joined(pending)
            pending, rows, size = [], 0, 0
        pending.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if pending:
        yield _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1 or not any(batch.num_rows for batch in batches):
        return batches[0]
    columns = [pa.chunked_array([batch.column(index) for batch in batches]).unify_dictionaries() for index in range(batches[0].num_columns)]
    return pa.Table.from_arrays(columns, schema=batches[0].schema).combine_chunks().to_batches()[0]


def reader_for(options: Mapping[str, str], schema: StructType) -> ds.DataSourceReader:
    """Return the reader that the options ask for.

    It has a pinned snapshot and the columns of ``schema``.
    """
    with attach_error_notes():
        if SHARED in options:
            shared: SharedQuestion[Any] = parse_request(options[SHARED], SharedQuestion, SHARED)  # type: ignore[type-abstract]  # only a base
            return shared.reader(table_path(options), schema)
        if HASHES in options:
            from pyspark_paimon.spark.read.hash_index_reader import HashReader  # noqa: PLC0415  # see test_imports

            return HashReader(table_path(options), parse_hash_scan(options[HASHES]).snapshot_id, schema)
        scan_options = {SCAN: options[SCAN], "path": table_path(options)} if SCAN in options else read_options(options, schema)
        path = table_path(scan_options)
        form = form_of(options)
        with explain_stale_columns(schema):
            request = scan_request(local_engine(path), scan_options, tuple(schema.names) if form == "rows" else None)
        return PaimonReader(path, request.model_dump_json(), schema, form, None if FORM in options else {**scan_options, **options})
