"""The commands that name states and go back to them: ``history``, ``tag``, ``branch``, ``rollback``, ``restore``, and those of partitions."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from fileindex.base.errors import InvalidArgument
from manifest.io.errors import SnapshotNotFound
from pyspark_paimon.cli.output import print_grid, print_json
from pyspark_paimon.cli.target import TableOption, destroys, on_table, options_of
from pyspark_paimon.request.backend import View
from pyspark_paimon.request.state_results import TableChangeResult
from pyspark_paimon.table.table import Table

Name = Annotated[str, typer.Argument(metavar="NAME")]
Delete = Annotated[bool, typer.Option("--delete", help="Forget it, and delete the files that only it uses.")]
SnapshotId = Annotated[int | None, typer.Option("--snapshot", help="Id of a snapshot.")]
TagName = Annotated[str | None, typer.Option("--tag", help="Name of a tag.")]
_VIEWS = ("snapshots", *get_args(View))


@on_table
def show_history(target: TableOption, view: Annotated[str, typer.Argument(metavar="VIEW", help=", ".join(_VIEWS))] = "snapshots") -> None:
    """Show snapshots, tags, branches, schemas, partitions or consumers."""
    if view not in _VIEWS:
        raise InvalidArgument(f"'{view}' is no view; there are: {', '.join(_VIEWS)}")
    rows = getattr(target.open(), view)()
    if target.as_json:
        print_json(rows.to_pylist(maps_as_pydicts="lossy"))
        return
    print_grid(None, rows.column_names, [tuple(row.values()) for row in rows.to_pylist(maps_as_pydicts="lossy")])


@destroys
def tag_snapshot(target: TableOption, name: Name, *, snapshot: SnapshotId = None, delete: Delete = False) -> None:
    """Name a snapshot, so that it can be read after it has expired; or forget the name."""
    table = target.open()
    if not delete:
        if target.dry_run:
            told = table.scan(snapshot=snapshot).snapshot_id
            target.tell({"dry_run": True, "snapshot_id": told}, f"tag {name} would name snapshot {told}")
        else:
            _tell(target, table.create_tag(name, snapshot))
        return
    _known(table, "tags", "tag_name", name)
    if target.confirmed(f"delete tag {name} of {table.path}"):
        _tell(target, table.delete_tag(name))
    else:
        _left(target, f"tag {name} would go")


@destroys
def branch_off(
    target: TableOption,
    name: Name,
    *,
    tag: TagName = None,
    delete: Delete = False,
    fast_forward: Annotated[bool, typer.Option("--fast-forward", help="Make the branch's history the table's.")] = False,
) -> None:
    """Branch off at a tag; or forget a branch, or make it the table."""
    table = target.open()
    if delete and fast_forward:
        raise InvalidArgument("--delete and --fast-forward exclude each other")
    if not (delete or fast_forward):
        if not target.dry_run:
            table.create_branch(name, tag)
        target.tell(
            {"dry_run": target.dry_run, "branch": name, "tag": tag},
            f"branch {name} {'would start' if target.dry_run else 'starts'} at {tag or 'nothing'}",
        )
        return
    _known(table, "branches", "branch_name", name)
    what = f"delete branch {name} of {table.path}" if delete else f"delete what {table.path} committed since branch {name} left it"
    if target.confirmed(what):
        _tell(target, table.delete_branch(name) if delete else table.fast_forward(name))
    else:
        _left(target, f"this would {what}")


@destroys
def roll_back(
    target: TableOption,
    *,
    snapshot: SnapshotId = None,
    tag: TagName = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", help="A date or time: the newest snapshot until then.")] = None,
) -> None:
    """Make an older state the newest one; what is newer is deleted for good."""
    table = target.open()
    would = table.rollback_to(snapshot, tag=tag, timestamp=timestamp, dry_run=True)
    tags = f" and tags {', '.join(would.tags)}" if would.tags else ""
    if target.confirmed(f"delete {would.snapshots} snapshots{tags} of {table.path}"):
        _tell(target, table.rollback_to(snapshot, tag=tag, timestamp=timestamp))
    else:
        _tell(target, would, "would go: ")


@destroys
def run_restore(
    target: TableOption,
    *,
    snapshot: SnapshotId = None,
    tag: TagName = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", help="A date or time: the newest snapshot then.")] = None,
) -> None:
    """Make an older state the newest one, by a new snapshot: nothing is deleted."""
    if sum(wish is not None for wish in (snapshot, tag, timestamp)) != 1:
        raise InvalidArgument("restore goes to a snapshot, a tag or a time: give one of --snapshot, --tag and --timestamp")
    table = target.open()
    wanted = table.scan(snapshot=snapshot, tag=tag, timestamp=timestamp)
    rows, now = wanted.count(), table.count()
    if not target.confirmed(f"restore snapshot {wanted.snapshot_id} of {table.path}: {rows:,} rows for the {now:,} of now"):
        told = {"dry_run": target.dry_run, "would_restore": wanted.snapshot_id, "rows": rows, "rows_now": now}
        target.tell(told, f"snapshot {wanted.snapshot_id} with {rows:,} rows would be restored, for the {now:,} of now")
        return
    done = table.restore(snapshot, tag=tag, timestamp=timestamp)
    same = done.snapshot_id is None
    target.tell(done, "nothing to do: the states are the same" if same else f"restored by snapshot {done.snapshot_id}")


@destroys
def run_drop_partitions(target: TableOption, columns: Annotated[list[str], typer.Argument(metavar="COLUMN=VALUE...")]) -> None:
    """Remove all rows of the partitions with these values."""
    spec = options_of(columns, "drop-partitions")
    if len(spec) < len(columns):
        raise InvalidArgument(f"drop-partitions takes each column once: {' '.join(columns)}")
    table = target.open()
    would = table.drop_partitions([spec], dry_run=True)
    if would.partitions and target.confirmed(f"drop {len(would.partitions)} partitions of {table.path}: {', '.join(would.partitions)}"):
        _tell(target, table.drop_partitions([spec]))
    else:
        _tell(target, would, "would go: ")


@destroys
def run_expire_partitions(target: TableOption) -> None:
    """Remove the partitions that the table's options call too old."""
    table = target.open()
    would = table.expire_partitions(dry_run=True)
    if would.partitions and target.confirmed(f"drop {len(would.partitions)} partitions of {table.path}: {', '.join(would.partitions)}"):
        _tell(target, table.expire_partitions())
    else:
        _tell(target, would, "would go: ")


def _known(table: Table, view: str, column: str, name: str) -> None:
    """Before anybody is asked. Raises ``SnapshotNotFound``."""
    names = getattr(table, view)()[column].to_pylist()
    if name not in names:
        raise SnapshotNotFound(f"{table.path}: no {column.partition('_')[0]} '{name}'; there are: {', '.join(names) or 'none'}")


def _left(target: TableOption, text: str) -> None:
    target.tell({"dry_run": target.dry_run, "done": False}, text)


def _tell(target: TableOption, done: TableChangeResult, before: str = "") -> None:
    told = {name: value for name, value in done.model_dump().items() if value}
    text = ", ".join(f"{name}: {value}" for name, value in told.items())
    target.tell(done, f"{before}{text}" if text else "nothing to do")


__all__ = ["branch_off", "roll_back", "run_drop_partitions", "run_expire_partitions", "run_restore", "show_history", "tag_snapshot"]
