"""Steps of a maintenance round, and removal of index options."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.build.options import option_key
from fileindex.format.container import ROW_BLOCKS
from manifest.entry.data_file import wall_clock_millis
from manifest.schema.iceberg_schema import shows_compacted_rows_only
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.log import logger_of
from paimon_base.texts import count_text
from pyspark_paimon.operations.listings import ListFiles, ListIndexes
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.requests import TravelRequest
from pyspark_paimon.request.state import Pin, SchemaOf
from pyspark_paimon.results.results import IndexRewriteResult, MaintenanceResult, Removal

_LOG = logger_of(__name__)
_MINUTE = 60
_BLOOM = "bloom-filter"


def run_steps(steps: Mapping[str, tuple[bool, Callable[[], object]]], *, dry_run: bool) -> MaintenanceResult:
    """Run the enabled steps in order.

    ``steps``: (is enabled, function) by member of the result. An error is recorded and the next step runs.
    """
    results: dict[str, Any] = {}
    errors: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name, (is_enabled, step) in steps.items():
        if not is_enabled:
            continue
        started = time.perf_counter()
        try:
            results[name] = step()
        except (PaimonError, OSError) as error:
            _LOG.warning("maintenance: %s failed", name, exc_info=True)
            errors[name] = f"{type(error).__name__}: {error}"
        seconds[name] = round(time.perf_counter() - started, 3)
    orphans = results.pop("orphans", None)
    if orphans is not None:
        results |= {"orphans": len(orphans), "orphan_bytes": sum(orphan.size for orphan in orphans)}
    return MaintenanceResult(dry_run=dry_run, errors=errors, seconds=seconds, **results)


def iceberg_step(engine: Engine) -> tuple[bool, Callable[[], str]]:
    """Return whether readers of Iceberg wait for compactions, and the step that says how long."""
    schema = engine.ask(SchemaOf())
    return shows_compacted_rows_only(schema), lambda: _iceberg_delay(engine, schema)


def _iceberg_delay(engine: Engine, schema: TableSchema) -> str:
    pinned = engine.ask(Pin(travel=TravelRequest()))
    files = engine.ask(ListFiles(snapshot_id=None if pinned is None else pinned.id))
    unseen = files.filter(pc.less(files["level"], schema.kind.top_level))
    if not unseen.num_rows:
        return "Iceberg readers see all rows"
    oldest = pc.min(unseen["creation_time"].cast(pa.int64())).as_py()
    seconds = max(0, wall_clock_millis() - oldest) // 1000
    age = f"{seconds} s" if seconds < _MINUTE else str(timedelta(seconds=seconds))
    return f"Iceberg readers do not see the rows of {count_text(unseen.num_rows, 'file')}, written up to {age} ago; call compact(full=True)"


def without_index(schema: TableSchema, column: str, index_type: str | None) -> dict[str, str | None]:
    """Return option changes that remove a column's indexes.

    ``index_type`` None: all types. Raises ``InvalidArgument`` if the column has no such index.

    >>> from manifest.schema.validation import build_schema
    >>> schema = build_schema("a INT, b INT", options={"file-index.bitmap.columns": "a, b", "file-index.bitmap.a.version": "1"})
    >>> without_index(schema, "a", None)
    {'file-index.bitmap.columns': 'b', 'file-index.bitmap.a.version': None}
    """
    changes: dict[str, str | None] = {}
    indexes = {spec.index_type for spec in schema.file_index.specs if str(spec.column) == column and index_type in {None, spec.index_type}}
    if not indexes:
        index_names = sorted(f"{spec.column} ({spec.index_type})" for spec in schema.file_index.specs)
        raise InvalidArgument(
            f"column '{column}' has no {index_type or 'file'} index; indexes are on: {', '.join(index_names) or 'no column'}"
        )
    for kind in sorted(indexes):
        key = option_key(kind, "columns")
        rest = [name for name in (part.strip() for part in schema.options.get(key, "").split(",")) if name and name != column]
        changes[key] = ", ".join(rest) or None
        bare = column.partition("[")[0]
        option_prefix = () if any(name.partition("[")[0] == bare for name in rest) else (option_key(kind, bare, ""),)
        changes |= {option: None for option in schema.options if option.startswith(option_prefix)} if option_prefix else {}
    return changes


def indexes_of_column(engine: Engine, column: str, index_type: str | None) -> IndexRewriteResult:
    """Return a column's indexes in the newest snapshot as removal.

    Reads only the index headers.
    """
    pinned = engine.ask(Pin(travel=TravelRequest()))
    rows = engine.ask(ListIndexes(view="file_indexes", snapshot_id=None if pinned is None else pinned.id)).to_pylist()
    types = {index_type, ROW_BLOCKS} if index_type == _BLOOM else {index_type}
    index_rows = [row for row in rows if row["column_name"] == column and (index_type is None or row["index_type"] in types)]
    files = {row["file_path"] for row in index_rows}
    removal = Removal(files=len(files), bytes=sum(row["index_size_in_bytes"] for row in index_rows))
    looked_at = len({row["file_path"] for row in rows})
    return IndexRewriteResult(files=looked_at, rewritten=len(files), bytes_read=0, bytes_written=0, snapshot_id=None, removal=removal)
