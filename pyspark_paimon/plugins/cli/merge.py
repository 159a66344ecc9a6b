"""Command ``merge``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paimon_base.errors import InvalidArgument
from paimon_base.lazy import LazyModule
from paimon_base.texts import count_text
from pyspark_paimon.plugins.cli.scan import column_names
from pyspark_paimon.plugins.cli.target import STANDARD_INPUT, TableOption, destructive, options_of
from pyspark_paimon.plugins.cli.write import (
    BatchNumber,
    CommitName,
    Errors,
    Files,
    InputFormat,
    MergeSchema,
    Missing,
    Properties,
    print_rejected,
    row_policy,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_paimon.plugins.cli import rows_of_files as inputs
    from pyspark_paimon.table.merge import Merge
    from pyspark_paimon.table.table import Table
else:  # help does not need it
    pa = LazyModule("pyarrow")
    inputs = LazyModule("pyspark_paimon.plugins.cli.rows_of_files")

_MATCHED, _NOT_MATCHED = ("update", "delete", "ignore"), ("insert", "ignore")


@destructive
def merge_files(
    target: TableOption,
    files: Files,
    *,
    on: Annotated[str | None, typer.Option("--on", help="Columns of the primary key, separated by commas. Only checked.")] = None,
    when_matched: Annotated[
        str, typer.Option("--when-matched", help=f"{', '.join(_MATCHED)}: action for rows whose key exists.")
    ] = "update",
    when_not_matched: Annotated[
        str, typer.Option("--when-not-matched", help=f"{', '.join(_NOT_MATCHED)}: action for rows whose key does not exist.")
    ] = "insert",
    form: InputFormat = None,
    commit_id: CommitName = None,
    properties: Properties = None,
    missing: Missing = "refuse",
    errors: Errors = "raise",
    batch_id: BatchNumber = None,
    merge_schema: MergeSchema = False,
) -> None:
    """Merge rows of files into a primary-key table by key.

    Without options the command upserts: the table's merge engine receives the streamed rows, and the last row of a key wins.
    Otherwise the rows are held in memory and matched with the table. Two rows that match one row, or are inserted with one key,
    are an error. Concurrent commits are taken into account. Deleting asks for confirmation.
    """
    table, noted = target.open(), options_of(properties, "--property")
    _check(table, on, when_matched, when_not_matched)
    if STANDARD_INPUT in files and when_matched == "delete" and not (target.yes or target.dry_run):
        raise InvalidArgument("the command reads rows from standard input and cannot ask for confirmation: add --yes or --dry-run")
    options = {"write.merge-schema": "true"} if merge_schema else {}
    policy = row_policy(table.table_schema, options, errors, missing)
    rows = inputs.rows_of_files(files, form, table.table_schema, policy)
    if keys := [name for name in table.primary_keys if name not in rows.schema.names]:
        raise InvalidArgument(f"the files have no column '{keys[0]}', which is part of the primary key; add it")
    asks = when_matched == "delete" and not target.dry_run
    if target.dry_run or (asks and not target.confirm(f"delete the rows of {table.path} whose keys the files have")):
        matched, unmatched = _count_matches(table, rows.reader)
        counts = f"{matched:,} keys match ({when_matched}), {unmatched:,} do not ({when_not_matched})"
        target.report({"dry_run": target.dry_run, "matched": matched, "not_matched": unmatched}, f"nothing merged: {counts}")
        return
    if (when_matched, when_not_matched) == ("update", "insert"):
        result = table.write(rows, commit_id=commit_id, batch_id=batch_id, properties=noted, missing=missing, options=options)  # type: ignore[arg-type]  # checked there
        summary = f"{count_text(result.rows, 'row')} updated or inserted by their keys"
    else:
        if batch_id is not None:
            raise InvalidArgument("--batch-id is for merges without --when-matched and --when-not-matched: leave it out")
        source = rows.without_numbers().reader.read_all()
        merge = table.merge(source, on=list(table.primary_keys), commit_id=commit_id, properties=noted, options=options)
        result = merged = _clauses(merge, when_matched, when_not_matched).execute()
        summary = f"{count_text(merged.updated, 'row')} updated, {merged.deleted:,} deleted, {merged.inserted:,} inserted"
    target.report(
        result.model_dump(mode="json"),
        f"nothing to commit: {summary}" if result.snapshot_id is None else f"{summary}, snapshot {result.snapshot_id}",
    )
    print_rejected(rows.rejected)


def _clauses(merge: Merge, when_matched: str, when_not_matched: str) -> Merge:
    if when_matched == "update":
        merge = merge.when_matched_update_all()
    elif when_matched == "delete":
        merge = merge.when_matched_delete()
    return merge.when_not_matched_insert_all() if when_not_matched == "insert" else merge


def _count_matches(table: Table, rows: pa.RecordBatchReader) -> tuple[int, int]:
    """Count the keys that the table has and lacks."""
    names = list(table.primary_keys)
    keys = rows.read_all().select(names).group_by(names).aggregate([])
    matches = len(table.lookup(keys, columns=names))
    return matches, len(keys) - matches


def _check(table: Table, on: str | None, when_matched: str, when_not_matched: str) -> None:
    if not table.primary_keys:
        raise InvalidArgument(f"{table.path} has no primary key, which merge needs: use delete and write")
    if on is not None and set(column_names(on) or ()) != set(table.primary_keys):
        raise InvalidArgument(f"merge matches by the primary key: give --on {','.join(table.primary_keys)}, not {on}")
    for option, word, allowed in (
        ("--when-matched", when_matched, _MATCHED),
        ("--when-not-matched", when_not_matched, _NOT_MATCHED),
    ):
        if word not in allowed:
            raise InvalidArgument(f"{option} takes {', '.join(allowed)}, not '{word}'")
    if (when_matched, when_not_matched) == ("ignore", "ignore"):
        raise InvalidArgument("--when-matched and --when-not-matched are both 'ignore', so there is nothing to do; change one of them")
