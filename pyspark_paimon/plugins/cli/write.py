"""Commands ``write``, ``delete`` and ``update``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text
from pyspark_paimon.plugins.cli.target import STANDARD_INPUT, TableOption, destructive, options_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lsm.rows_in import policy as policies
    from lsm.rows_in import requested_cast
    from manifest.schema.table_schema import TableSchema
    from pyspark_paimon.plugins.cli import rows_of_files as inputs
else:  # help needs none of them
    pa = LazyModule("pyarrow")
    inputs = LazyModule("pyspark_paimon.plugins.cli.rows_of_files")
    policies = LazyModule("lsm.rows_in.policy")
    requested_cast = LazyModule("lsm.rows_in.requested_cast")

_MODES = ("upsert", "append", "overwrite")
_REASONS = 10
"""Number of rejected rows whose reasons are printed."""
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Parquet, CSV or JSON lines, by extension; - is standard input.")]
InputFormat = Annotated[str | None, typer.Option("--format", help="Format of all files: parquet, csv or jsonl.")]
CommitName = Annotated[str | None, typer.Option("--commit-id", help="UUID of the write. Repeating it with the same UUID writes nothing.")]
BatchNumber = Annotated[int | None, typer.Option("--batch-id", help="Number of the batch in the job --commit-id, from 0 up.")]
MergeSchema = Annotated[bool, typer.Option("--merge-schema", help="Add columns that only the files have.")]
Missing = Annotated[
    str,
    typer.Option("--missing", help="Columns that the files lack in an upsert: refuse, null, or keep their stored values."),
]
Errors = Annotated[
    str, typer.Option("--errors", help="Texts of CSV and JSON that do not fit: raise, null, or collect their rows without writing them.")
]
Properties = Annotated[
    list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="Text to store with the snapshot; repeatable.")
]


@destructive
def write_files(
    target: TableOption,
    files: Files,
    *,
    form: InputFormat = None,
    mode: Annotated[str | None, typer.Option("--mode", help=f"{', '.join(_MODES)}; default: upsert or append.")] = None,
    commit_id: CommitName = None,
    properties: Properties = None,
    missing: Missing = "refuse",
    errors: Errors = "raise",
    batch_id: BatchNumber = None,
    merge_schema: MergeSchema = False,
    widen: Annotated[bool, typer.Option("--widen-types", help="Give columns of numbers the wider type that values need.")] = False,
) -> None:
    """Write the rows of files in one commit.

    The rows are streamed and never held whole. Columns are matched by name. Only --mode overwrite asks for confirmation.
    """
    if mode not in {None, *_MODES}:
        raise InvalidArgument(f"unknown mode '{mode}'; use one of {', '.join(_MODES)}")
    if STANDARD_INPUT in files and mode == "overwrite" and not (target.yes or target.dry_run):
        raise InvalidArgument("the command reads rows from standard input and cannot ask for confirmation: add --yes or --dry-run")
    table = target.open()
    options = {"write.merge-schema": "true"} if merge_schema or widen else {}
    options |= {"write.merge-schema.type-widening": "true"} if widen else {}
    policy = row_policy(table.table_schema, options, errors, missing)
    rows = inputs.rows_of_files(files, form, table.table_schema, policy)
    if target.dry_run or (mode == "overwrite" and not target.confirm(f"replace rows of {table.path}")):
        rows = rows.without_numbers()
        names, counted = rows.schema.names, sum(batch.num_rows for batch in rows.reader)
        result = {"dry_run": target.dry_run, "rows": counted, "columns": names}
        target.report(result, f"nothing written: {count_text(counted, 'row')} can be read, with the columns {', '.join(names)}")
        return
    written = table.write(
        rows,
        mode,  # type: ignore[arg-type]  # checked above
        commit_id=commit_id,
        batch_id=batch_id,
        properties=options_of(properties, "--property"),
        missing=missing,  # type: ignore[arg-type]  # checked there
        options=options,
    )
    target.report(written)
    print_rejected(rows.rejected)


def row_policy(schema: TableSchema, options: Mapping[str, str], errors: str, missing: str) -> policies.RowPolicy:
    """Return the policy for rows of files. Raises ``InvalidArgument``."""
    if errors not in get_args(policies.CastErrors):
        raise InvalidArgument(f"--errors takes {', '.join(get_args(policies.CastErrors))}, not '{errors}'")
    return policies.RowPolicy.of(schema, options, cast=True, errors=errors, missing=missing)  # type: ignore[arg-type]  # checked by write


def print_rejected(rejected: Sequence[pa.Table]) -> None:
    """Print the reasons of the first rejected rows on standard error."""
    reasons = [reason for rows in rejected for reason in rows.column(requested_cast.ERROR).to_pylist()]
    for reason in reasons[:_REASONS]:
        typer.echo(f"rejected: {reason}", err=True)
    if len(reasons) > _REASONS:
        typer.echo(f"rejected: {count_text(len(reasons) - _REASONS, 'more row', 'more rows')}", err=True)


@destructive
def run_delete(
    target: TableOption,
    *,
    filter_: Annotated[str, typer.Option("--filter", "-f", help='SQL as after WHERE; "TRUE" deletes all rows.')],
    properties: Properties = None,
) -> None:
    """Delete the rows for which a filter is true."""
    table = target.open()
    would_delete = table.delete(filter_, dry_run=True).rows
    noted = options_of(properties, "--property")
    confirmed = would_delete and target.confirm(f"delete {count_text(would_delete, 'row')} of {table.path}")
    deleted = table.delete(filter_, properties=noted) if confirmed else None
    result = {"dry_run": target.dry_run, "would_delete": would_delete, **({} if deleted is None else deleted.model_dump(mode="json"))}
    if deleted is None:
        target.report(result, f"{count_text(would_delete, 'row')} would be deleted" if target.dry_run else "no row was deleted")
    else:
        target.report(result, f"{count_text(deleted.rows, 'row')} deleted, snapshot {deleted.snapshot_id}")


@destructive
def run_purge(
    target: TableOption,
    *,
    filter_: Annotated[str, typer.Option("--filter", "-f", help='SQL as after WHERE; "TRUE" purges all rows.')],
    properties: Properties = None,
) -> None:
    """Delete rows, and every file of the table that stores them.

    All snapshots expire. Exit code 1 if a tag, a branch or a consumer still holds such rows; the answer names them.
    """
    table = target.open()
    noted = options_of(properties, "--property")
    preview = table.purge(filter_, dry_run=True)
    confirmed = target.confirm(f"delete {count_text(preview.rows, 'row')} of {table.path} for ever, and expire all snapshots")
    purged = table.purge(filter_, properties=noted) if confirmed else preview
    target.report(purged)
    if confirmed and not purged.gone:
        raise typer.Exit(1)


@destructive
def run_update(
    target: TableOption,
    *,
    filter_: Annotated[str, typer.Option("--filter", "-f", help='SQL as after WHERE; "TRUE" updates all rows.')],
    expressions: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=SQL", help="New value as SQL, such as n=n+1 or s=upper(s); repeatable.")
    ] = None,
    values: Annotated[list[str] | None, typer.Option("--value", metavar="COLUMN=TEXT", help="New value as text; repeatable.")] = None,
    properties: Properties = None,
) -> None:
    """Set columns of the rows for which a filter is true."""
    table = target.open()
    noted, texts_by_column = options_of(properties, "--property"), options_of(values, "--value", empty=True)
    constants = cast_values(texts_by_column, table.table_schema)
    expressions_by_column = options_of(expressions, "--set")
    would = table.update(filter_, expressions_by_column, values=constants, dry_run=True).rows
    confirmed = would and target.confirm(f"update {count_text(would, 'row')} of {table.path}")
    updated = table.update(filter_, expressions_by_column, values=constants, properties=noted) if confirmed else None
    result = {"dry_run": target.dry_run, "would_update": would, **({} if updated is None else updated.model_dump(mode="json"))}
    if updated is None:
        target.report(result, f"{count_text(would, 'row')} would be updated" if target.dry_run else "no row was updated")
    else:
        target.report(result, f"{count_text(updated.rows, 'row')} updated, snapshot {updated.snapshot_id}")


def cast_values(texts: Mapping[str, str], schema: TableSchema) -> dict[str, object]:
    """Return texts in the types of their columns."""
    row = pa.table({name: [text] for name, text in texts.items()}) if texts else pa.table({})
    cast = requested_cast.cast_texts(row, schema)
    return {name: cast.column(name)[0].as_py() for name in cast.column_names}
