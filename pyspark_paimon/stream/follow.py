"""Streaming reads without Spark, for ``Table.follow``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from fileindex.predicate.tree import Predicate
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import arrow_schema
from paimon_base.errors import InvalidArgument
from paimon_base.public import public
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.request.operation import OpenTable
from pyspark_paimon.stream.options import StreamOptions, offset_of, position_of
from pyspark_paimon.stream.table_stream import TableStream


@public
@dataclass(frozen=True)
class StreamBatch:
    """A batch of a stream.

    The kinds of the rows are in the column ``_row_kind``; rows of a key are in order of time. ``offset`` is the position after
    the batch.
    """

    rows: pa.Table
    offset: str


def follow_options(
    schema: TableSchema,
    start: str,
    *,
    snapshot: int | None,
    millis: int | None,
    max_rows: int | None,
    consumer: str | None,
    overwrites: bool,
) -> StreamOptions:
    """Return the stream options of the arguments of ``Table.follow``.

    Raises the errors of ``StreamOptions.of``.
    """
    options_of_call = {
        "scan.mode": start,
        "scan.snapshot-id": snapshot,
        "scan.timestamp-millis": millis,
        "read.stream.maxrowspertrigger": max_rows,
        "consumer-id": consumer,
    }
    options = StreamOptions.of({key: str(value) for key, value in options_of_call.items() if value is not None}, schema.options)
    return options.model_copy(update={"kinds": True, "overwrites": overwrites or options.overwrites})


def _parse(offset: str) -> dict[str, Any]:
    try:
        parsed = json.loads(offset)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"offset must be the offset of a batch of follow(), not {offset!r}") from error
    if not isinstance(parsed, dict):
        raise InvalidArgument(f"offset must be the offset of a batch of follow(), not {offset!r}")
    return parsed


def follow_table(
    table: OpenTable, options: StreamOptions, predicate: Predicate | None, columns: tuple[str, ...] | None, offset: str | None
) -> Iterator[StreamBatch]:
    """Yield the batches from ``offset`` to the newest snapshot.

    The newest snapshot is determined at the start. The consumer's progress is recorded when the next batch is requested. A stream of
    all columns gets the columns of the newest schema with each batch.

    offset: None: start where the options say.
    """
    stream = replace(TableStream.of(table, options, predicate, columns), every=None)  # new columns end no stream
    position = stream.start() if offset is None else position_of(_parse(offset))
    last = stream.newest()
    while True:
        stream = stream.refreshed() if columns is None else stream
        if (end := stream.advance(position, last=last)) == position:
            return
        plan, _ = stream.plan(position, end)
        schema = arrow_schema(scan_fields(table.schema(stream.request.schema_id), stream.request.columns))
        rows = pa.Table.from_batches((batch for split in plan.splits for batch in stream.rows(split)), schema)
        yield StreamBatch(rows, json.dumps(offset_of(end)))
        stream.done(end)
        position = end
