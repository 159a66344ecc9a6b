"""Commands that delete, for people and for cron: ``expire-snapshots``, ``orphans``, ``delete``, ``restore``, ``maintain``; each asks first, or runs dry."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.cli.output import console, print_grid, print_json
from pyspark_paimon.request.results import MaintenanceResult, repr_fields
from pyspark_paimon.table.table import Table
from pyspark_paimon.views.explain import size_text

UpkeepPath = Annotated[str, typer.Argument(metavar="TABLE", help="Path of a table's directory; TABLE$branch_NAME for a branch.")]
UpkeepJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would go, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
OlderThan = Annotated[str | None, typer.Option("--older-than", help="A date or time: 2024-01-31T10:00:00.")]
Retain = Annotated[int | None, typer.Option("--retain", help="Snapshots to keep; by default as the table's options say.")]
DeleteFilter = Annotated[str, typer.Option("--filter", "-f", help='SQL as after WHERE; "TRUE" means every row.')]
Remove = Annotated[bool, typer.Option("--remove", help="Delete them.")]
Full = Annotated[bool, typer.Option("--full", help="Merge everything, not only what universal compaction picks.")]
ToSnapshot = Annotated[int | None, typer.Option("--snapshot", help="Id of a snapshot.")]
ToTag = Annotated[str | None, typer.Option("--tag", help="Name of a tag.")]
ToTime = Annotated[str | None, typer.Option("--timestamp", help="A date or time: the newest snapshot then.")]


def expire_old_snapshots(
    table: UpkeepPath,
    *,
    retain: Retain = None,
    older_than: OlderThan = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: UpkeepJson = False,
) -> None:
    """Remove old snapshots and the files that only they reach."""
    opened = Table.open(table)
    expire = partial(opened.expire_snapshots, retain_min=retain, retain_max=retain, older_than=older_than)
    would = expire(dry_run=True).snapshots
    done = expire() if would and not dry_run and confirmed(f"remove {would} snapshots of {opened.path}", yes=yes) else None
    if as_json:
        print_json({"dry_run": dry_run, "would_expire": would, **({} if done is None else repr_fields(done))})
    elif done is None:
        console.print(f"{would} snapshots would go" if dry_run else "nothing to do", highlight=False)
    else:
        console.print(f"{done.snapshots} snapshots, {done.data_files} data files and {done.manifests} manifests are gone", highlight=False)


def orphans(
    table: UpkeepPath,
    *,
    remove: Remove = False,
    older_than: OlderThan = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: UpkeepJson = False,
) -> None:
    """Show the files that nothing refers to, older than a day; with --remove delete them."""
    opened = Table.open(table)
    found = opened.list_orphan_files(older_than)
    removed = bool(found) and remove and not dry_run and confirmed(f"delete {len(found)} files of {opened.path}", yes=yes)
    gone = opened.remove_orphan_files(older_than) if removed else []
    if as_json:
        print_json({"removed": removed, "files": [file.model_dump(mode="json") for file in (gone if removed else found)]})
        return
    print_grid(None, ("file", "size"), [(file.path, size_text(file.size)) for file in (gone if removed else found)])
    console.print(f"{len(gone)} deleted" if removed else f"{len(found)} found", highlight=False)


def delete(table: UpkeepPath, *, filter_: DeleteFilter, dry_run: DryRun = False, yes: Yes = False, as_json: UpkeepJson = False) -> None:
    """Delete the rows for which a filter is true."""
    opened = Table.open(table)
    would = opened.delete(filter_, dry_run=True).rows
    done = opened.delete(filter_) if would and not dry_run and confirmed(f"delete {would} rows of {opened.path}", yes=yes) else None
    if as_json:
        print_json({"dry_run": dry_run, "would_delete": would, **({} if done is None else repr_fields(done))})
    elif done is None:
        console.print(f"{would} rows would go" if dry_run else "no row was deleted", highlight=False)
    else:
        console.print(f"{done.rows} rows deleted, snapshot {done.snapshot_id}", highlight=False)


def restore(
    table: UpkeepPath, *, snapshot: ToSnapshot = None, tag: ToTag = None, timestamp: ToTime = None, as_json: UpkeepJson = False
) -> None:
    """Make an older state the newest one, by a new snapshot: nothing is deleted."""
    done = Table.open(table).restore(snapshot, tag=tag, timestamp=timestamp)
    if as_json:
        print_json(repr_fields(done))
        return
    console.print(
        "nothing to do: the states are the same" if done.snapshot_id is None else f"restored by snapshot {done.snapshot_id}",
        highlight=False,
    )


def maintain(table: UpkeepPath, *, full: Full = False, dry_run: DryRun = False, as_json: UpkeepJson = False) -> None:
    """One round of upkeep by the table's options, for cron: partitions, compaction, indexes, tags, snapshots, orphans. Exit code 1 if a step failed."""
    done = Table.open(table).maintenance(full=full, dry_run=dry_run)
    if as_json:
        print_json(repr_fields(done))
    else:
        print_grid("would go" if dry_run else "maintenance", ("step", "seconds", "what"), _steps(done))
    if done.errors:
        raise typer.Exit(1)


def _steps(done: MaintenanceResult) -> list[tuple[object, ...]]:
    told = {
        "partitions": None if done.partitions is None else ", ".join(done.partitions) or "none",
        "compacted": None if done.compacted is None else f"{done.compacted.files_before} files became {done.compacted.files_after}",
        "indexes": None if done.indexes is None else f"{done.indexes.rewritten} of {done.indexes.files} files got other indexes",
        "tags": None if done.tags is None else ", ".join(done.tags) or "none",
        "expired": None if done.expired is None else f"{done.expired.snapshots} snapshots, {done.expired.data_files} data files",
        "orphans": None if done.orphans is None else f"{done.orphans} files, {size_text(done.orphan_bytes)}",
    }
    return [(name, f"{seconds:.2f}", done.errors.get(name) or told[name]) for name, seconds in done.seconds.items()]


def confirmed(what: str, *, yes: bool) -> bool:
    """Whether it is to be done. Raises ``InvalidArgument`` where nobody can be asked."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidArgument(f"this would {what}, and nobody is there to ask: add --yes, or --dry-run")
    return typer.confirm(f"{what[0].upper()}{what[1:]}?", err=True)


def add_upkeep_commands(app: typer.Typer) -> None:
    """Make these commands of ``app``."""
    app.command("expire-snapshots")(expire_old_snapshots)
    for command in (orphans, delete, restore, maintain):
        app.command()(command)


__all__ = ["add_upkeep_commands", "confirmed"]
