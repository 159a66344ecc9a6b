"""The commands ``scan`` and ``explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fileindex.base.errors import InvalidArgument
from pyspark_paimon.cli.output import print_grid, print_line
from pyspark_paimon.cli.rows_out import FORMATS, rows_to_file
from pyspark_paimon.cli.target import TableOption, on_table
from pyspark_paimon.table.scan import Scan

FilterOption = Annotated[str | None, typer.Option("--filter", "-f", help="SQL as after WHERE: \"city = 'Oslo' AND attrs['clicks'] > 3\".")]
Columns = Annotated[str | None, typer.Option("--columns", "-c", help="Columns to read, separated by commas.")]
AtSnapshot = Annotated[int | None, typer.Option("--snapshot", help="Snapshot to read; the newest by default.")]
AtTag = Annotated[str | None, typer.Option("--tag", help="Tag to read.")]
AtTime = Annotated[str | None, typer.Option("--timestamp", help="A date or time: the newest snapshot then.")]
_SHOWN = 20


@on_table
def scan_rows(
    target: TableOption,
    *,
    filter_: FilterOption = None,
    columns: Columns = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, help=f"Rows at most; {_SHOWN} in a table on the screen, else all.")
    ] = None,
    order_by: Annotated[str | None, typer.Option("--order-by", help='Sort, as in "price DESC NULLS LAST, id".')] = None,
    snapshot: AtSnapshot = None,
    tag: AtTag = None,
    timestamp: AtTime = None,
    count: Annotated[bool, typer.Option("--count", help="Only the number of rows.")] = False,
    form: Annotated[str | None, typer.Option("--format", help=f"One of {', '.join(('table', *FORMATS))}; --json is jsonl.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, whole or not at all; its ending tells the format.")
    ] = None,
) -> None:
    """Show rows, merged and filtered, or write them to a file."""
    chosen = _format(form, output, as_json=target.as_json)
    shown = _SHOWN if limit is None and chosen == "table" and not count else limit
    wanted = target.open().scan(
        filter_, columns=column_names(columns), limit=shown, order_by=order_by, snapshot=snapshot, tag=tag, timestamp=timestamp
    )
    if count:
        rows = wanted.count()
        target.tell({"rows": rows, "snapshot_id": wanted.snapshot_id}, str(rows))
    elif chosen != "table":
        written = rows_to_file(wanted, chosen, output)
        if output is not None:
            print_line(f"{written:,} rows of snapshot {wanted.snapshot_id} in {output}")
    else:
        _show(wanted, shown)


@on_table
def explain_scan(
    target: TableOption,
    *,
    filter_: FilterOption = None,
    columns: Columns = None,
    snapshot: AtSnapshot = None,
    tag: AtTag = None,
    timestamp: AtTime = None,
) -> None:
    """Read what a filter asks for and show what every pruning stage kept and dropped."""
    wanted = target.open().scan(filter_, columns=column_names(columns), snapshot=snapshot, tag=tag, timestamp=timestamp)
    explanation = wanted.explain()
    target.tell(explanation.to_dict(), str(explanation))


def column_names(columns: str | None) -> list[str] | None:
    """Names that commas separate; None means all.

    >>> column_names("id, city")
    ['id', 'city']
    """
    return None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]


def _format(form: str | None, output: Path | None, *, as_json: bool) -> str:
    if as_json and form not in {None, "jsonl"}:
        raise InvalidArgument("--json is --format jsonl: give one of them")
    ending = None if output is None else output.suffix.removeprefix(".")
    chosen = "jsonl" if as_json else form or ending or "table"
    if chosen not in {"table", *FORMATS} or (output is not None and chosen == "table"):
        told = f"the ending of {output} tells no format" if form is None and output is not None else f"'{chosen}' is no format of a file"
        raise InvalidArgument(f"{told}; --format takes {', '.join(('table', *FORMATS))}, with --output no table")
    return chosen


def _show(wanted: Scan, limit: int | None) -> None:
    rows = wanted.to_arrow()
    print_grid(None, rows.column_names, [tuple(row.values()) for row in rows.to_pylist(maps_as_pydicts="lossy")])
    print_line(f"{rows.num_rows:,} rows of snapshot {wanted.snapshot_id}{' (limit reached)' if rows.num_rows == limit else ''}")


__all__ = ["AtSnapshot", "AtTag", "AtTime", "Columns", "FilterOption", "column_names", "explain_scan", "scan_rows"]
