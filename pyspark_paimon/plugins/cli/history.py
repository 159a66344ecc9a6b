"""Commands for tags, branches, rollback, restore and partitions."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from manifest.io.errors import SnapshotNotFound
from paimon_base.errors import InvalidArgument
from paimon_base.texts import count_text
from pyspark_paimon.plugins.cli.output import print_grid, print_json, rows_to_file
from pyspark_paimon.plugins.cli.scan import Form, Output, format_of
from pyspark_paimon.plugins.cli.target import TableOption, destructive, on_table, options_of

if TYPE_CHECKING:
    from pyspark_paimon.table.table import Table

Name = Annotated[str, typer.Argument(metavar="NAME")]
Delete = Annotated[bool, typer.Option("--delete", help="Delete it, and the files that only it needs.")]
SnapshotId = Annotated[int | None, typer.Option("--snapshot", help="Snapshot id.")]
TagName = Annotated[str | None, typer.Option("--tag", help="Tag name.")]
_VIEWS = ("history", "snapshots", "tags", "branches", "schemas", "partitions", "consumers")


@on_table
def show_history(
    target: TableOption,
    view: Annotated[str, typer.Argument(metavar="VIEW", help=", ".join(_VIEWS))] = "history",
    *,
    form: Form = None,
    output: Output = None,
) -> None:
    """Show commits, snapshots, tags, branches, schemas, partitions or consumers."""
    file_format = format_of(form, output, as_json=False)
    if view not in _VIEWS:
        raise InvalidArgument(f"unknown view '{view}'; use one of {', '.join(_VIEWS)}")
    table = target.open()
    rows = getattr(table, view)()
    if target.as_json:
        print_json(rows.to_pylist(maps_as_pydicts="lossy"))
        return
    if file_format != "table":
        rows_to_file(rows, file_format, output)
        return
    print_grid(None, rows.column_names, [tuple(row.values()) for row in rows.to_pylist(maps_as_pydicts="lossy")])
    if view in {"history", "snapshots"}:
        typer.echo(table.table_schema.core.retention_text)


@destructive
def tag_snapshot(target: TableOption, name: Name, *, snapshot: SnapshotId = None, delete: Delete = False) -> None:
    """Create or delete a tag.

    A tagged snapshot can be read after it has expired.
    """
    table = target.open()
    if not delete:
        if target.dry_run:
            snapshot_id = table.scan(snapshot=snapshot).snapshot_id
            target.report({"dry_run": True, "snapshot_id": snapshot_id}, f"tag {name} would be created for snapshot {snapshot_id}")
        else:
            target.report(table.create_tag(name, snapshot))
        return
    _check_exists(table, "tags", "tag_name", name)
    if target.confirm(f"delete tag {name} of {table.path}"):
        target.report(table.delete_tag(name))
    else:
        _report_skipped(target, f"tag {name} would be deleted")


@destructive
def branch_off(
    target: TableOption,
    name: Name,
    *,
    tag: TagName = None,
    delete: Delete = False,
    empty: Annotated[bool, typer.Option("--empty", help="Create it without rows.")] = False,
    fast_forward: Annotated[bool, typer.Option("--fast-forward", help="Replace the table's history by that of the branch.")] = False,
) -> None:
    """Create, delete or fast-forward a branch.

    A new branch has the newest state of the table, or that of the tag.
    """
    if empty and tag is not None:
        raise InvalidArgument("--empty and --tag cannot be used together; remove one of them")
    table = target.open()
    if delete and fast_forward:
        raise InvalidArgument("--delete and --fast-forward cannot be used together; remove one of them")
    if not (delete or fast_forward):
        snapshot_id = None if empty else table.scan(tag=tag).snapshot_id
        if not target.dry_run:
            _create_branch(target, table, name, tag, snapshot_id)
        start = "empty" if snapshot_id is None else f"from snapshot {snapshot_id}"
        target.report(
            {"dry_run": target.dry_run, "branch": name, "tag": tag, "snapshot_id": snapshot_id},
            f"branch {name} {'would be' if target.dry_run else 'is'} created {start}",
        )
        return
    _check_exists(table, "branches", "branch_name", name)
    what = f"delete branch {name} of {table.path}" if delete else f"delete the commits of {table.path} since branch {name} was created"
    if target.confirm(what):
        target.report(table.delete_branch(name) if delete else table.fast_forward(name))
    else:
        _report_skipped(target, f"this would {what}")


def _create_branch(target: TableOption, table: Table, name: str, tag: str | None, snapshot_id: int | None) -> None:
    """Create a branch from a tag, a snapshot, or an empty one."""
    if tag is not None or snapshot_id is None:
        table.create_branch(name, tag)
        return
    # Paimon makes branches of tags: this one lasts as long as the command.
    passing = f"branch-{uuid.uuid4()}"
    table.create_tag(passing, snapshot_id)
    try:
        table.create_branch(name, passing)
        replace(target, branch=name).open().delete_tag(passing)
    finally:
        table.delete_tag(passing)


@destructive
def roll_back(
    target: TableOption,
    *,
    snapshot: SnapshotId = None,
    tag: TagName = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", help="A date or time: the newest snapshot until then.")] = None,
) -> None:
    """Roll back to an older state and delete newer snapshots.

    The deletion cannot be undone; ``restore`` deletes nothing.
    """
    table = target.open()
    would = table.rollback_to(snapshot, tag=tag, timestamp=timestamp, dry_run=True)
    tags = f" and tags {', '.join(would.tags)}" if would.tags else ""
    if target.confirm(f"delete {count_text(would.snapshots, 'snapshot')}{tags} of {table.path}"):
        target.report(table.rollback_to(snapshot, tag=tag, timestamp=timestamp))
    else:
        target.report(would)


@destructive
def run_restore(
    target: TableOption,
    *,
    snapshot: SnapshotId = None,
    tag: TagName = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", help="A date or time: the newest snapshot then.")] = None,
) -> None:
    """Restore an older state as a new snapshot.

    Nothing is deleted.
    """
    if sum(wish is not None for wish in (snapshot, tag, timestamp)) != 1:
        raise InvalidArgument("restore needs exactly one of --snapshot, --tag and --timestamp")
    table = target.open()
    earlier_state = table.scan(snapshot=snapshot, tag=tag, timestamp=timestamp)
    rows, now = earlier_state.count(), table.count()
    if not target.confirm(
        f"restore snapshot {earlier_state.snapshot_id} of {table.path}: {count_text(rows, 'row')} replace {count_text(now, 'row')}"
    ):
        result = {"dry_run": target.dry_run, "would_restore": earlier_state.snapshot_id, "rows": rows, "rows_now": now}
        target.report(
            result,
            f"snapshot {earlier_state.snapshot_id} with {count_text(rows, 'row')} would be restored; the table now has {count_text(now, 'row')}",
        )
        return
    restored = table.restore(snapshot, tag=tag, timestamp=timestamp)
    same = restored.snapshot_id is None
    target.report(restored, "nothing to do: the states are the same" if same else f"restored by snapshot {restored.snapshot_id}")


@destructive
def run_drop_partitions(target: TableOption, columns: Annotated[list[str], typer.Argument(metavar="COLUMN=VALUE...")]) -> None:
    """Delete all rows of the partitions with these values."""
    spec = options_of(columns, "drop-partitions")
    if len(spec) < len(columns):
        raise InvalidArgument(f"drop-partitions: a column is given twice: {' '.join(columns)}")
    table = target.open()
    would = table.drop_partitions([spec], dry_run=True)
    if would.partitions and target.confirm(
        f"drop {count_text(len(would.partitions), 'partition')} of {table.path}: {', '.join(would.partitions)}"
    ):
        target.report(table.drop_partitions([spec]))
    else:
        target.report(would)


@destructive
def run_expire_partitions(target: TableOption) -> None:
    """Delete partitions that have expired by the table's options."""
    table = target.open()
    would = table.expire_partitions(dry_run=True)
    if would.partitions and target.confirm(
        f"drop {count_text(len(would.partitions), 'partition')} of {table.path}: {', '.join(would.partitions)}"
    ):
        target.report(table.expire_partitions())
    else:
        target.report(would)


def _check_exists(table: Table, view: str, column: str, name: str) -> None:
    """Raise ``SnapshotNotFound`` before the user is asked to confirm."""
    names = getattr(table, view)()[column].to_pylist()
    if name not in names:
        raise SnapshotNotFound(f"{table.path}: no {column.partition('_')[0]} '{name}'; known: {', '.join(names) or 'none'}")


def _report_skipped(target: TableOption, text: str) -> None:
    target.report({"dry_run": target.dry_run, "done": False}, text)
