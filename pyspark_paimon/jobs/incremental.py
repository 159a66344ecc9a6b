"""Incremental scans between two snapshots.

A range is resolved when the scan is created: tags become snapshot ids, and the mode is chosen.
So every read of the scan returns the same rows, in this process and in Spark tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from lsm.arrow.row_kind import ROW_KIND
from manifest.io.errors import SnapshotExpired
from manifest.schema.metadata_columns import metadata_fields, metadata_names
from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import CommitKind, Snapshot, SnapshotKey
from manifest.types.data_type import DataField, DataType
from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.requests import IncrementalModeName, IncrementalRange, ScanRequest, TravelRequest
from pyspark_paimon.request.state import Pin, SchemaOf, Snapshots
from pyspark_paimon.request.validate import projection, travel_of
from sparkexpr.values.column_type import Kind

if TYPE_CHECKING:
    from lsm.incremental.planner import IncrementalSplit
    from lsm.read.metrics import ReadReport
    from lsm.scan.plan import ScanPlan
    from manifest.store import FileStore

Point: TypeAlias = int | str | date
"""A snapshot id (0: before the first), the name of a tag, or a time."""

MODES: tuple[IncrementalModeName, ...] = ("delta", "changelog", "diff")
_KIND_FIELD = DataField(-1, ROW_KIND, DataType(Kind.VARCHAR, nullable=False, length=2**31 - 1))


def range_of(engine: Engine, schema: TableSchema, start: Point, end: Point | None, mode: IncrementalModeName | None) -> IncrementalRange:
    """Return the range after ``start`` up to ``end``, inclusive.

    ``end`` None: the newest snapshot.
    ``mode`` None: ``diff`` between two tags. Otherwise ``changelog`` if the table has a changelog producer, else ``delta``.
    Raises ``InvalidArgument`` for an invalid range, ``SnapshotNotFound`` and ``SnapshotExpired`` for missing snapshots.
    """
    if mode is not None and mode not in MODES:
        raise InvalidArgument(f"the mode of an incremental scan must be one of {', '.join(MODES)}, not {mode!r}")
    if ROW_KIND in schema.names:
        raise InvalidArgument(f"the table has a column '{ROW_KIND}', the name for row kinds: rename it to read changes")
    last, last_delta = _end(engine, end)
    first = start if type(start) is int else _end(engine, start)[0]
    if not 0 <= first <= last:
        raise InvalidArgument(f"changes are read forward in time, not from snapshot {first} to {last}")
    tags = [point if isinstance(point, str) else None for point in (start, end)]
    natural: IncrementalModeName = "diff" if all(tags) else "delta" if schema.core.changelog_producer == "none" else "changelog"
    return IncrementalRange(
        start_id=first,
        start_tag=tags[0],
        end_id=last,
        end_delta=last_delta,
        end_tag=tags[1],
        mode=mode or natural,
    )


def exact_mode(engine: Engine, schema: TableSchema, snapshot_range: IncrementalRange) -> IncrementalModeName:
    """Return the mode that reports all changes of a range.

    For tables without a primary key it is ``delta``. Two tags are two states: ``diff``, whatever the changelog producer.
    Otherwise it is ``changelog``, or ``diff`` where a part of the range has no changelog.
    Snapshots before the table had its producer, and overwrites, have no changelog.
    """
    if not schema.is_primary_key_table:
        return "delta"
    if schema.core.changelog_producer == "none" or (snapshot_range.start_tag is not None and snapshot_range.end_tag is not None):
        return "diff"
    snapshots = [snapshot for snapshot in engine.ask(Snapshots()) if snapshot_range.start_id < snapshot.id <= snapshot_range.end_id]
    producers = {engine.ask(SchemaOf(id=schema_id)).core.changelog_producer for schema_id in {snapshot.schema_id for snapshot in snapshots}}
    overwritten = any(snapshot.commit_kind is CommitKind.OVERWRITE for snapshot in snapshots)
    return "diff" if overwritten or producers - {schema.core.changelog_producer} else "changelog"


def _pin(engine: Engine, point: object) -> Snapshot | None:
    if point is None:
        return engine.ask(Pin(travel=TravelRequest()))
    if isinstance(point, str):
        return engine.ask(Pin(travel=TravelRequest(tag=point)))
    if isinstance(point, date) and point == point:  # noqa: PLR0124  # pandas' NaT is a date that equals nothing
        return engine.ask(Pin(travel=travel_of(None, None, point)))
    if type(point) is not int:
        raise InvalidArgument(f"a range is given by snapshot ids, names of tags, dates or datetimes, not by {point!r}")
    return engine.ask(Pin(travel=TravelRequest(snapshot_id=point))) if point else None


def _end(engine: Engine, point: object) -> tuple[int, str | None]:
    """Return the id and delta manifest list of a snapshot of a range.

    An expired snapshot may still have a changelog. Planning checks that.
    """
    try:
        snapshot = _pin(engine, point)
    except SnapshotExpired:
        if type(point) is not int:
            raise
        return point, None
    return (0, None) if snapshot is None else (snapshot.id, snapshot.delta_manifest_list)


def change_columns(columns: Sequence[str] | None, schema: TableSchema) -> tuple[str, ...]:
    """Return the columns of a scan of changes.

    Adds the row kind as last column unless ``columns`` names it.
    """
    if columns is None or isinstance(columns, str):
        return (*projection(columns, schema), ROW_KIND)
    named = [name for name in columns if name != ROW_KIND]
    resolved = iter(projection(named, schema) if named else ())
    ordered = tuple(name if name == ROW_KIND else next(resolved) for name in columns)
    return ordered if ROW_KIND in ordered else (*ordered, ROW_KIND)


def scan_fields(schema: TableSchema, columns: Sequence[str]) -> list[DataField]:
    """Return the fields of ``columns``, including the row kind and metadata columns."""
    metadata_by_name: dict[str, DataField] = {}
    if ROW_KIND in columns or metadata_names(columns, schema):
        metadata_by_name = {ROW_KIND: _KIND_FIELD, **metadata_fields(schema)}
    return [schema.field(name) if name in schema.names or name not in metadata_by_name else metadata_by_name[name] for name in columns]


def plan_changes(store: FileStore, request: ScanRequest, snapshot_range: IncrementalRange) -> ScanPlan:
    """Plan a scan of changes."""
    from lsm.incremental import planner as incremental  # noqa: PLC0415  # a client of a server needs no storage engine

    last = None if snapshot_range.end_delta is None else SnapshotKey(snapshot_range.end_id, snapshot_range.end_delta)
    planner = incremental.IncrementalPlanner(
        store, snapshot_range.start_id, snapshot_range.end_id, snapshot_range.start_tag, snapshot_range.end_tag, last
    )
    return planner.plan(incremental.IncrementalMode(snapshot_range.mode), request.predicate, exact=snapshot_range.exact)


def read_changes(store: FileStore, split: IncrementalSplit, request: ScanRequest, report: ReadReport | None) -> Iterator[pa.RecordBatch]:
    """Return the rows of one split of ``plan_changes``."""
    from lsm.incremental.read import read_incremental  # noqa: PLC0415  # as above

    return read_incremental(store, split, columns=request.columns, predicate=request.predicate, limit=request.limit, report=report)
