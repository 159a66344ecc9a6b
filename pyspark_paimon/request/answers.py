"""Answer types of questions, with their form in JSON."""

from __future__ import annotations

import base64
from typing import Annotated, TypeAlias

import pyarrow as pa
from pydantic import BeforeValidator, PlainSerializer, PlainValidator

from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.stats.table_stats import Statistics

_SOURCE = "the server's answer"


def _table_text(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return base64.b64encode(sink.getvalue()).decode()


def _table_of(text: str) -> pa.Table:
    with pa.ipc.open_stream(base64.b64decode(text)) as stream:
        return stream.read_all()


def _schema_of(value: TableSchema | str) -> TableSchema:
    return TableSchema.from_json(value) if isinstance(value, str) else value


def _snapshot_of(value: Snapshot | str) -> Snapshot:
    return Snapshot.from_json(value, _SOURCE) if isinstance(value, str) else value


def _statistics_of(value: Statistics | str) -> Statistics:
    return Statistics.from_json(value, _SOURCE) if isinstance(value, str) else value


ArrowTable: TypeAlias = Annotated[pa.Table, PlainValidator(_table_of), PlainSerializer(_table_text, return_type=str)]
"""An Arrow table, as an IPC stream in Base64."""
SchemaJson: TypeAlias = Annotated[TableSchema, PlainSerializer(TableSchema.to_json, return_type=str), BeforeValidator(_schema_of)]
"""A schema, as Paimon's JSON text."""
SnapshotJson: TypeAlias = Annotated[Snapshot, PlainSerializer(Snapshot.to_json, return_type=str), BeforeValidator(_snapshot_of)]
"""A snapshot, as Paimon's JSON text."""
StatisticsJson: TypeAlias = Annotated[Statistics, PlainSerializer(Statistics.to_json, return_type=str), BeforeValidator(_statistics_of)]
"""Table statistics, as Paimon's JSON text."""
