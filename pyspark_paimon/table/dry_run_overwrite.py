"""Dry run of an overwrite."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from manifest.schema.table_schema import TableSchema
from pyspark_paimon.operations.partitions import DropPartitions
from pyspark_paimon.request.backend import ArrowRows, Rows, WriteRequest
from pyspark_paimon.request.executor import Backend
from pyspark_paimon.request.partition_spec import Spec, spec_of
from pyspark_paimon.request.results import WriteResult


def dry_run_overwrite(backend: Backend, schema: TableSchema, request: WriteRequest, rows: Rows) -> WriteResult:
    """Report what an overwrite with ``rows`` would delete.

    Only partition columns of ``rows`` are read, and only if they select the partitions.
    """
    start = time.perf_counter()
    specs: Sequence[Spec] = ({},) if request.partition is None else (request.partition,)
    if request.partition is None and request.dynamic:
        specs = _touched_partitions(schema, rows)
    wanted = DropPartitions(commit_id=request.commit_id, partitions=tuple(dict(spec) for spec in specs), dry_run=True)
    removal = backend.run(wanted).removal
    return WriteResult(rows=0, files=0, snapshot_id=None, removal=removal, seconds=time.perf_counter() - start)


def _touched_partitions(schema: TableSchema, rows: Rows) -> list[Spec]:
    """Return the partitions of the rows."""
    keys = list(schema.partition_keys)
    found = pa.schema([schema.arrow.field(name) for name in keys]).empty_table()
    parts = rows.reader if isinstance(rows, ArrowRows) else rows.frame.select(*keys).distinct().toArrow().to_batches()
    for batch in parts:
        some = pa.Table.from_batches([batch]).select(keys).cast(found.schema)
        found = pa.concat_tables([found, some]).group_by(keys).aggregate([]).select(keys)
    return [spec_of(row, schema) for row in found.to_pylist()]


__all__ = ["dry_run_overwrite"]
