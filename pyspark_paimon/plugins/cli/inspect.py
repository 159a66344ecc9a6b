"""Command ``inspect``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from paimon_base.errors import PaimonError
from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text, size_text
from pyspark_paimon.plugins.cli.all_tables import All, AllTables, Prometheus, Threads, refuse_without_all
from pyspark_paimon.plugins.cli.output import print_grid, print_json, print_line
from pyspark_paimon.plugins.cli.target import TableOption, on_table

if TYPE_CHECKING:
    import pyarrow as pa

    from manifest.io import paths
    from manifest.snapshot import manager as snapshot_managers
    from manifest.storage import resolve
    from pyspark_paimon.catalog import catalog_base
    from pyspark_paimon.table.table import Table
    from pyspark_paimon.views import table_views
else:  # help needs none of them
    paths = LazyModule("manifest.io.paths")
    snapshot_managers = LazyModule("manifest.snapshot.manager")
    catalog_base = LazyModule("pyspark_paimon.catalog.catalog_base")
    resolve = LazyModule("manifest.storage.resolve")
    table_views = LazyModule("pyspark_paimon.views.table_views")

_LAST = 10
_STATES = 100
"""Largest number of older snapshots to try if the newest cannot be read."""


@on_table
def inspect(target: TableOption, *, every: All = False, threads: Threads = 2, prometheus: Prometheus = None) -> None:
    """Show columns, options, snapshots and LSM levels of a table.

    Damaged parts are named, and the others are shown. Exit code 1 if a part cannot be read.
    """
    if every:
        AllTables(target, threads, prometheus).run(catalog_base.AnyCatalog.inspect)
        return
    refuse_without_all(prometheus)
    table, errors = target.open(), dict[str, str]()
    schema = table.table_schema
    snapshots = _try("snapshots", table.snapshots, errors)
    if snapshots is None:
        snapshots = _readable_snapshots(target, table, errors)
    state, files = _newest_files(table, snapshots, errors)
    facts = {
        "path": table.path,
        "schema_id": schema.id,
        "columns": [field.to_json() for field in schema.fields],
        "primary_keys": list(schema.primary_keys),
        "partition_keys": list(schema.partition_keys),
        "options": schema.options,
        "option_effects": table.option_effects().to_pylist(),
        "comment": schema.comment,
        "snapshots": snapshots.to_pylist(),
        "levels_of_snapshot": state,
        "levels": None if files is None else _levels(files),
        "unreadable": errors,
    }
    if target.as_json:
        print_json(facts)
    else:
        _show(facts, [(f.name, str(f.type), f.description or "") for f in schema.fields])
    if errors:
        raise typer.Exit(1)


def _try(what: str, look: Callable[[], pa.Table], errors: dict[str, str]) -> pa.Table | None:
    try:
        return look()
    except PaimonError as error:
        errors[what] = f"{type(error).__name__}: {error}"
        return None


def _readable_snapshots(target: TableOption, table: Table, errors: dict[str, str]) -> pa.Table:
    """Return the snapshots that can be read."""
    root, branch = paths.split_branch(table.path)
    file_io, table_root = resolve.file_io_for(root, storage_options=target.storage or None)
    manager = snapshot_managers.SnapshotManager(file_io, paths.TablePaths(table_root, branch=branch))
    readable = []
    try:
        ids = manager.ids()
    except PaimonError:
        return table_views.SNAPSHOTS.empty_table()
    for snapshot_id in ids:
        try:
            readable.append(manager.get(snapshot_id))
        except PaimonError as error:
            errors.pop("snapshots", None)
            errors[f"snapshot {snapshot_id}"] = f"{type(error).__name__}: {error}"
    return table_views.snapshots_table(readable)


def _newest_files(table: Table, snapshots: pa.Table, errors: dict[str, str]) -> tuple[int | None, pa.Table | None]:
    """Return the newest snapshot with readable files, and its files."""
    for snapshot_id in snapshots["snapshot_id"].to_pylist()[: -_STATES - 1 : -1]:
        files = _try(f"files of snapshot {snapshot_id}", lambda snapshot=snapshot_id: table.files(snapshot), errors)  # type: ignore[misc]
        if files is not None:
            return snapshot_id, files
    return None, None


def _show(facts: dict[str, Any], columns: Sequence[tuple[str, str, str]]) -> None:
    print_line(f"{facts['path']}  schema {facts['schema_id']}{', ' + facts['comment'] if facts['comment'] else ''}")
    print_grid(
        "columns", ("name", "type", "role", "comment"), [(name, kind, _role(facts, name), comment) for name, kind, comment in columns]
    )
    effects = [(row["option"], row["value"], row["effect"], row["note"]) for row in facts["option_effects"]]
    print_grid("options", ("key", "value", "effect", "note"), effects)
    snapshots = facts["snapshots"]
    shown = [
        (
            row["snapshot_id"],
            row["operation"] or row["commit_kind"],
            f"{row['commit_time']:%Y-%m-%d %H:%M:%S}",
            f"{row['total_record_count']:,}",
            f"{row['delta_record_count']:+,}",
            row["commit_user"],
        )
        for row in snapshots[-_LAST:]
    ]
    print_grid(
        f"last {len(shown)} of {count_text(len(snapshots), 'snapshot')}",
        ("id", "operation", "time (UTC)", "records", "change", "user"),
        shown,
    )
    if facts["levels"] is not None:
        levels = [(row["level"], row["files"], f"{row['rows']:,}", size_text(row["bytes"])) for row in facts["levels"]]
        newest = snapshots[-1]["snapshot_id"] if snapshots else None
        older = facts["unreadable"] or facts["levels_of_snapshot"] != newest
        state = f" of snapshot {facts['levels_of_snapshot']}" if older else ""
        print_grid(f"LSM levels{state}", ("level", "files", "rows", "size"), levels)
    if facts["unreadable"]:
        print_grid("cannot be read", ("what", "why"), list(facts["unreadable"].items()))
        print_line("run fsck for details and advice")


def _role(facts: dict[str, Any], name: str) -> str:
    return ", ".join(what for what, names in (("key", facts["primary_keys"]), ("partition", facts["partition_keys"])) if name in names)


def _levels(files: pa.Table) -> list[dict[str, Any]]:
    grouped = files.group_by("level").aggregate([("file_name", "count"), ("row_count", "sum"), ("file_size", "sum")]).sort_by("level")
    return [
        {"level": row["level"], "files": row["file_name_count"], "rows": row["row_count_sum"], "bytes": row["file_size_sum"]}
        for row in grouped.to_pylist()
    ]
