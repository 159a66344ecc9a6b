"""Commands ``scan`` and ``explain``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paimon_base.errors import InvalidArgument
from paimon_base.texts import count_text
from pyspark_paimon.plugins.cli.output import FORMATS, print_grid, print_line, rows_to_file
from pyspark_paimon.plugins.cli.target import TableOption, on_table

if TYPE_CHECKING:
    from pyspark_paimon.table.scan import Scan

FilterOption = Annotated[str | None, typer.Option("--filter", "-f", help="SQL as after WHERE: \"city = 'Oslo' AND attrs['clicks'] > 3\".")]
Columns = Annotated[str | None, typer.Option("--columns", "-c", help="Columns and parts of columns, separated by commas: id,s.a.")]
AtSnapshot = Annotated[int | None, typer.Option("--snapshot", help="Snapshot to read; the newest by default.")]
AtTag = Annotated[str | None, typer.Option("--tag", help="Tag to read.")]
AtTime = Annotated[str | None, typer.Option("--timestamp", help="Date or time: read the newest snapshot until then.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=0, help="Largest number of rows; default: 20 for the table on the screen, else all."),
]
Form = Annotated[str | None, typer.Option("--format", help=f"One of {', '.join(('table', *FORMATS))}; --json is jsonl.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write. Its extension selects the format.")]
_SHOWN = 20
_NAME = re.compile(r"(?:\[[^\]]*\]|`[^`]*`|[^,])+")


@on_table
def scan_rows(
    target: TableOption,
    *,
    filter_: FilterOption = None,
    columns: Columns = None,
    limit: Limit = None,
    order_by: Annotated[str | None, typer.Option("--order-by", help='Sort order: "price DESC NULLS LAST, id".')] = None,
    snapshot: AtSnapshot = None,
    tag: AtTag = None,
    timestamp: AtTime = None,
    count: Annotated[bool, typer.Option("--count", help="Show only the number of rows.")] = False,
    form: Form = None,
    output: Output = None,
) -> None:
    """Show merged and filtered rows, or write a file."""
    file_format = format_of(form, output, as_json=target.as_json)
    shown = _SHOWN if limit is None and file_format == "table" and not count else limit
    scan = target.open().scan(
        filter_, columns=column_names(columns), limit=shown, order_by=order_by, snapshot=snapshot, tag=tag, timestamp=timestamp
    )
    if count:
        rows = scan.count()
        target.report({"rows": rows, "snapshot_id": scan.snapshot_id}, str(rows))
    else:
        _show(scan, file_format, output, shown)


@on_table
def show_changes(
    target: TableOption,
    start: Annotated[str, typer.Argument(metavar="FROM", help="Snapshot id or tag after which changes are shown; 0: all.")],
    end: Annotated[str | None, typer.Argument(metavar="[TO]", help="Last snapshot id or tag; the newest by default.")] = None,
    *,
    filter_: FilterOption = None,
    columns: Columns = None,
    limit: Limit = None,
    form: Form = None,
    output: Output = None,
) -> None:
    """Show the changes of rows between two snapshots."""
    file_format = format_of(form, output, as_json=target.as_json)
    shown = _SHOWN if limit is None and file_format == "table" else limit
    scan = target.open().changelog(_point(start), None if end is None else _point(end), filter_, column_names(columns))
    _show(scan if shown is None else scan.limited(shown), file_format, output, shown)


def _point(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


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
    """Run a filter and show what each pruning stage kept."""
    scan = target.open().scan(filter_, columns=column_names(columns), snapshot=snapshot, tag=tag, timestamp=timestamp)
    explanation = scan.explain()
    target.report(explanation.to_dict(), str(explanation))


def column_names(columns: str | None) -> list[str] | None:
    """Split names at commas; None means all columns.

    >>> column_names("id, s.a, m['k,1'], `x, y`")
    ['id', 's.a', "m['k,1']", '`x, y`']
    >>> column_names("id[s")  # the error of a name shows all of it
    ['id[s']
    """
    return None if columns is None else [name.strip() for name in _NAME.findall(columns) if name.strip()]


def format_of(form: str | None, output: Path | None, *, as_json: bool) -> str:
    """Return the format of rows: ``table``, or one of ``FORMATS``.

    Raises ``InvalidArgument`` for other formats, and for options that exclude each other.
    """
    if as_json and form not in {None, "jsonl"}:
        raise InvalidArgument("--json means --format jsonl: remove one of them")
    ending = None if output is None else output.suffix.removeprefix(".")
    file_format = "jsonl" if as_json else form or ending or "table"
    if file_format not in {"table", *FORMATS} or (output is not None and file_format == "table"):
        problem = (
            f"the extension of {output} is not a known format"
            if form is None and output is not None
            else f"'{file_format}' is not a file format"
        )
        raise InvalidArgument(f"{problem}; --format takes {', '.join(('table', *FORMATS))}; 'table' cannot be used with --output")
    return file_format


def _show(scan: Scan, form: str, output: Path | None, limit: int | None) -> None:
    snapshot = f"of snapshot {scan.snapshot_id}"
    if form != "table":
        written = rows_to_file(scan, form, output)
        if output is not None:
            print_line(f"{count_text(written, 'row')} {snapshot} in {output}")
        return
    rows = scan.to_arrow()
    print_grid(None, rows.column_names, [tuple(row.values()) for row in rows.to_pylist(maps_as_pydicts="lossy")])
    print_line(f"{count_text(rows.num_rows, 'row')} {snapshot}{' (limit reached)' if rows.num_rows == limit else ''}")
