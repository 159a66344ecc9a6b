"""The commands ``write`` and ``delete``."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.cli.rows_of_files import STANDARD_INPUT, rows_of_files
from pyspark_paimon.cli.target import TableOption, destroys
from pyspark_paimon.request.backend import Mode

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Parquet, CSV or JSON lines, by the ending; - is standard input.")]
InputFormat = Annotated[str | None, typer.Option("--format", help="parquet, csv or jsonl, whatever the endings.")]
CommitName = Annotated[str | None, typer.Option("--commit-id", help="Names the write: repeated with it, it is not done again.")]


@destroys
def write_files(
    target: TableOption,
    files: Files,
    *,
    form: InputFormat = None,
    mode: Annotated[str | None, typer.Option("--mode", help=f"{', '.join(get_args(Mode))}; upsert or append unless given.")] = None,
    commit_id: CommitName = None,
) -> None:
    """Write the rows of files in one commit.

    They are streamed, never held whole. Columns are matched by name. Only --mode overwrite asks first.
    """
    if mode not in {None, *get_args(Mode)}:
        raise InvalidArgument(f"'{mode}' is no mode; there are: {', '.join(get_args(Mode))}")
    if STANDARD_INPUT in files and mode == "overwrite" and not (target.yes or target.dry_run):
        raise InvalidArgument("standard input has the rows, so nobody can be asked: add --yes, or --dry-run")
    table = target.open()
    rows = rows_of_files(files, form, table.schema)
    if target.dry_run or (mode == "overwrite" and not target.confirmed(f"replace rows of {table.path}")):
        names, counted = rows.schema.names, sum(batch.num_rows for batch in rows)
        told = {"dry_run": target.dry_run, "rows": counted, "columns": names}
        target.tell(told, f"nothing written: {counted:,} rows can be read, with the columns {', '.join(names)}")
        return
    done = table.write(rows, mode, commit_id=commit_id)  # type: ignore[arg-type]  # checked above
    if done.replayed:
        target.tell(done, f"written before, by snapshot {done.snapshot_id}")
        return
    told_files = f"{done.files} files" if done.files != 1 else "1 file"
    target.tell(done, f"{done.rows:,} rows in {told_files}, {done.seconds:.2f} s, snapshot {done.snapshot_id}" if done.rows else "no rows")


@destroys
def run_delete(
    target: TableOption,
    *,
    filter_: Annotated[str, typer.Option("--filter", "-f", help='SQL as after WHERE; "TRUE" means every row.')],
) -> None:
    """Delete the rows for which a filter is true."""
    table = target.open()
    would = table.delete(filter_, dry_run=True).rows
    done = table.delete(filter_) if would and target.confirmed(f"delete {would} rows of {table.path}") else None
    told = {"dry_run": target.dry_run, "would_delete": would, **({} if done is None else done.model_dump(mode="json"))}
    if done is None:
        target.tell(told, f"{would} rows would go" if target.dry_run else "no row was deleted")
    else:
        target.tell(told, f"{done.rows} rows deleted, snapshot {done.snapshot_id}")


__all__ = ["CommitName", "Files", "InputFormat", "run_delete", "write_files"]
