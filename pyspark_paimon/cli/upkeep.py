"""Commands ``compact``, ``analyze``, ``expire-snapshots``, ``orphans`` and ``maintain``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from pyspark_paimon.cli.output import print_grid, print_json, print_line
from pyspark_paimon.cli.scan import Columns, column_names
from pyspark_paimon.cli.target import TableOption, destructive, on_table
from pyspark_paimon.request.results import MaintenanceResult, repr_fields
from pyspark_paimon.views.explain import size_text

Full = Annotated[bool, typer.Option("--full", help="Merge all files, not only those that universal compaction picks.")]
OlderThan = Annotated[str | None, typer.Option("--older-than", help="Date or time: 2024-01-31T10:00:00.")]


@on_table
def run_compact(target: TableOption, *, full: Full = False) -> None:
    """Compact sorted runs, or small files of an append table."""
    result = target.open().compact(full=full)
    target.report(
        result,
        "nothing to compact"
        if result.snapshot_id is None
        else f"{result.files_before} files became {result.files_after}: {size_text(result.bytes_read)} read, "
        f"{size_text(result.bytes_written)} written in {result.seconds:.2f} s, snapshot {result.snapshot_id}",
    )


@on_table
def analyze_columns(target: TableOption, *, columns: Columns = None) -> None:
    """Compute, store and show statistics of columns.

    The statistics are row count, distinct values, minimum, maximum, nulls and lengths.
    """
    opened = target.open()
    result = opened.analyze(column_names(columns))
    found = opened.statistics()
    if target.as_json:
        print_json({**result.model_dump(mode="json"), "statistics": found.to_pylist()})
        return
    shown = ("column", "distinct_count", "min", "max", "null_count", "avg_len", "max_len")
    rows = [tuple(row[name] for name in shown) for row in found.to_pylist()]
    print_grid(f"{result.rows:,} rows, {size_text(result.bytes)}", shown, rows)


@destructive
def expire_old_snapshots(
    target: TableOption,
    *,
    retain: Annotated[int | None, typer.Option("--retain", help="Number of snapshots to keep; default: the table's options.")] = None,
    older_than: OlderThan = None,
) -> None:
    """Delete old snapshots and the files that only they need."""
    opened = target.open()
    expire = partial(opened.expire_snapshots, retain_min=retain, retain_max=retain, older_than=older_than)
    would = expire(dry_run=True).snapshots
    done = expire() if would and target.confirm(f"remove {would} snapshots of {opened.path}") else None
    result = {"dry_run": target.dry_run, "would_expire": would, **({} if done is None else repr_fields(done))}
    if done is None:
        target.report(result, f"{would} snapshots would be deleted" if target.dry_run else "nothing to do")
    else:
        target.report(result, f"deleted {done.snapshots} snapshots, {done.data_files} data files and {done.manifests} manifests")


@destructive
def show_orphans(
    target: TableOption, *, remove: Annotated[bool, typer.Option("--remove", help="Delete them.")] = False, older_than: OlderThan = None
) -> None:
    """Show orphan files; with --remove delete them.

    Orphan files are those that no snapshot, tag or branch refers to, older than a day.
    """
    opened = target.open()
    found = opened.list_orphan_files(older_than)
    removed = bool(found) and remove and target.confirm(f"delete {len(found)} files of {opened.path}")
    shown = opened.remove_orphan_files(older_than) if removed else found
    if target.as_json:
        print_json({"removed": removed, "files": [file.model_dump(mode="json") for file in shown]})
        return
    print_grid(None, ("file", "size"), [(file.path, size_text(file.size)) for file in shown])
    print_line(f"{len(shown)} deleted" if removed else f"{len(shown)} found")


@destructive
def maintain(target: TableOption, *, full: Full = False) -> None:
    """Run all maintenance steps that the table's options require.

    The steps are partitions, compaction, indexes, tags, snapshots and orphan files. Run the command periodically, for example
    by cron. Exit code 1 if a step failed; the other steps still run.
    """
    table = target.open()
    dry = target.dry_run or not target.confirm(f"compact {table.path} and delete what has expired by its options")
    done = table.maintenance(full=full, dry_run=dry)
    if target.as_json:
        print_json(repr_fields(done))
    else:
        print_grid("would be deleted" if dry else "maintenance", ("step", "seconds", "result"), _steps(done))
    if done.errors:
        raise typer.Exit(1)


def _steps(done: MaintenanceResult) -> list[tuple[object, ...]]:
    results = {
        "partitions": None if done.partitions is None else ", ".join(done.partitions) or "none",
        "compacted": None if done.compacted is None else f"{done.compacted.files_before} files became {done.compacted.files_after}",
        "indexes": None if done.indexes is None else f"{done.indexes.rewritten} of {done.indexes.files} files have new indexes",
        "tags": None if done.tags is None else ", ".join(done.tags) or "none",
        "expired": None if done.expired is None else f"{done.expired.snapshots} snapshots, {done.expired.data_files} data files",
        "orphans": None if done.orphans is None else f"{done.orphans} files, {size_text(done.orphan_bytes)}",
    }
    return [(name, f"{seconds:.2f}", done.errors.get(name) or results[name]) for name, seconds in done.seconds.items()]


__all__ = ["analyze_columns", "expire_old_snapshots", "maintain", "run_compact", "show_orphans"]
