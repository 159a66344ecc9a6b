"""``Table.follow``: a stream for a process without Spark, batch by batch as Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fileindex.base.errors import InvalidArgument
from fileindex.base.public import public
from fileindex.predicate.tree import Predicate
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import arrow_schema
from pyspark_paimon.jobs.incremental import scan_fields
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.stream.options import StreamOptions, offset_of, position_of
from pyspark_paimon.stream.table_stream import TableStream


@public
@dataclass(frozen=True)
class StreamBatch:
    """Rows with their kinds in ``_row_kind``, those of a key in order; ``offset`` is where the stream goes on after them."""

    rows: pa.Table
    offset: str


def asked_for(
    schema: TableSchema,
    start: str,
    *,
    snapshot: int | None,
    millis: int | None,
    max_rows: int | None,
    consumer: str | None,
    overwrites: bool,
) -> StreamOptions:
    """What ``Table.follow`` was asked for, as the options of a stream. Raises as ``StreamOptions.of`` does."""
    given = {
        "scan.mode": start,
        "scan.snapshot-id": snapshot,
        "scan.timestamp-millis": millis,
        "read.stream.maxrowspertrigger": max_rows,
        "consumer-id": consumer,
    }
    asked = StreamOptions.of({key: str(value) for key, value in given.items() if value is not None}, schema.options)
    return asked.model_copy(update={"kinds": True, "overwrites": overwrites or asked.overwrites})


def _parsed(offset: str) -> dict[str, Any]:
    try:
        found = json.loads(offset)
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"an offset is what a batch of follow() had, not {offset!r}") from error
    if not isinstance(found, dict):
        raise InvalidArgument(f"an offset is what a batch of follow() had, not {offset!r}")
    return found


def followed(
    path: str, asked: StreamOptions, predicate: Predicate | None, columns: tuple[str, ...] | None, offset: str | None
) -> Iterator[StreamBatch]:
    """The batches from ``offset`` (None: from the start that is asked for) to the newest snapshot there is now.

    The consumer moves on when the next batch is asked for.
    """
    stream = TableStream.of(path, asked, predicate, columns)
    schema = arrow_schema(scan_fields(LocalBackend(path).schema(stream.request.schema_id), stream.request.columns))
    at = stream.start() if offset is None else position_of(_parsed(offset))
    last = stream.newest()
    while (end := stream.advance(at, last=last)) != at:
        plan, _ = stream.plan(at, end)
        rows = pa.Table.from_batches((batch for split in plan.splits for batch in stream.rows(split)), schema)
        yield StreamBatch(rows, json.dumps(offset_of(end)))
        stream.done(end)
        at = end


__all__ = ["StreamBatch", "asked_for", "followed"]
