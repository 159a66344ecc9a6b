"""Commands ``compact``, ``analyze``, ``expire-snapshots``, ``orphans``, ``copy`` and ``maintain``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text, size_text
from pyspark_paimon.plugins.cli.all_tables import All, AllTables, Prometheus, Threads, refuse_without_all
from pyspark_paimon.plugins.cli.output import print_grid, print_json, print_line
from pyspark_paimon.plugins.cli.scan import Columns, column_names
from pyspark_paimon.plugins.cli.target import TableOption, destructive, on_table, options_of
from pyspark_paimon.plugins.cli.write import Properties

if TYPE_CHECKING:
    from pyspark_paimon.catalog import catalog_base
    from pyspark_paimon.results import results
else:  # help needs neither
    catalog_base = LazyModule("pyspark_paimon.catalog.catalog_base")
    results = LazyModule("pyspark_paimon.results.results")

Full = Annotated[bool, typer.Option("--full", help="Merge all files, not only those that universal compaction picks.")]
OlderThan = Annotated[str | None, typer.Option("--older-than", help="Date or time: 2024-01-31T10:00:00.")]


@on_table
def run_compact(target: TableOption, *, full: Full = False, properties: Properties = None) -> None:
    """Compact sorted runs, or small files of an append table."""
    result = target.open().compact(full=full, properties=options_of(properties, "--property"))
    target.report(result)


@on_table
def analyze_columns(target: TableOption, *, columns: Columns = None) -> None:
    """Compute, store and show statistics of columns.

    The statistics are row count, distinct values, minimum, maximum, nulls and lengths.
    """
    opened = target.open()
    result = opened.analyze(column_names(columns))
    statistics = opened.statistics()
    if target.as_json:
        print_json({**result.model_dump(mode="json"), "statistics": statistics.to_pylist()})
        return
    shown = ("column", "distinct_count", "min", "max", "null_count", "avg_len", "max_len")
    rows = [tuple(row[name] for name in shown) for row in statistics.to_pylist()]
    print_grid(f"{count_text(result.rows, 'row')}, {size_text(result.bytes)}", shown, rows)


@destructive
def expire_old_snapshots(
    target: TableOption,
    *,
    retain: Annotated[int | None, typer.Option("--retain", help="Number of snapshots to keep; default: the table's options.")] = None,
    older_than: OlderThan = None,
    every: All = False,
    threads: Threads = 2,
    prometheus: Prometheus = None,
) -> None:
    """Delete old snapshots and the files that only they need."""
    if every:
        expire_all = catalog_base.AnyCatalog.expire_snapshots
        AllTables(target, threads, prometheus).run(expire_all, changes="remove old snapshots", retain=retain, older_than=older_than)
        return
    refuse_without_all(prometheus)
    opened = target.open()
    expire = partial(opened.expire_snapshots, retain_min=retain, retain_max=retain, older_than=older_than)
    would = expire(dry_run=True).snapshots
    expired = expire() if would and target.confirm(f"remove {count_text(would, 'snapshot')} of {opened.path}") else None
    result = {"dry_run": target.dry_run, "would_expire": would, **({} if expired is None else results.repr_fields(expired))}
    if expired is None:
        target.report(result, f"{count_text(would, 'snapshot')} would be deleted" if target.dry_run else "nothing to do")
    else:
        target.report(
            result,
            f"deleted {count_text(expired.snapshots, 'snapshot')}, {count_text(expired.data_files, 'data file')} and {count_text(expired.manifests, 'manifest')}",
        )


@destructive
def show_orphans(
    target: TableOption, *, remove: Annotated[bool, typer.Option("--remove", help="Delete them.")] = False, older_than: OlderThan = None
) -> None:
    """Show orphan files; with --remove delete them.

    Orphan files are those that no snapshot, tag or branch refers to, older than a day.
    """
    opened = target.open()
    orphans = opened.list_orphan_files(older_than)
    removed = bool(orphans) and remove and target.confirm(f"delete {count_text(len(orphans), 'file')} of {opened.path}")
    shown = opened.remove_orphan_files(older_than) if removed else orphans
    if target.as_json:
        print_json({"removed": removed, "files": [file.model_dump(mode="json") for file in shown]})
        return
    print_grid(None, ("file", "size"), [(file.path, size_text(file.size)) for file in shown])
    print_line(f"{len(shown)} deleted" if removed else f"{len(shown)} found")


@on_table
def copy_files(
    target: TableOption,
    path: Annotated[str, typer.Argument(metavar="PATH", help="Directory of the copy, on any storage.")],
    *,
    whole: Annotated[
        bool, typer.Option("--history", help="Copy snapshots, tags and branches, too. A repeat copies what is new: a backup.")
    ] = False,
) -> None:
    """Copy the newest rows, or the whole table with its history, to another directory."""
    target.report(target.open().copy_to(path, history=whole, storage_options=target.storage or None))


@destructive
def maintain(target: TableOption, *, full: Full = False, every: All = False, threads: Threads = 2, prometheus: Prometheus = None) -> None:
    """Run all maintenance steps that the table's options require.

    The steps are partitions, compaction, indexes, tags, snapshots and orphan files. Run the command periodically, for example
    by cron. Exit code 1 if a step failed; the other steps still run.
    """
    if every:
        changes = "compact, and delete what has expired by its options,"
        AllTables(target, threads, prometheus).run(catalog_base.AnyCatalog.maintenance, changes=changes, full=full)
        return
    refuse_without_all(prometheus)
    table = target.open()
    dry = target.dry_run or not target.confirm(f"compact {table.path} and delete what has expired by its options")
    maintained = table.maintenance(full=full, dry_run=dry)
    if target.as_json:
        print_json(results.repr_fields(maintained))
    else:
        print_grid(
            "would be deleted" if dry else "maintenance",
            ("step", "seconds", "result"),
            [(name, f"{maintained.seconds[name]:.2f}", text) for name, text in maintained.steps.items()],
        )
    if maintained.errors:
        raise typer.Exit(1)
