"""The command line: ``pyspark-paimon inspect | scan | explain | compact | analyze | indexes | rewrite-index | fsck | alter ... TABLE``.

Tables are for people, ``--json`` for programs. Needs the extra ``cli``. A typed error is one line on standard error and exit code 1 (of ``fsck`` 2).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

try:
    import rich  # noqa: F401  # asked for here, used where things are printed
    import typer
except ImportError:
    sys.exit("the command line needs typer and rich: pip install 'pyspark-paimon[cli]'")

import pyarrow as pa

from fileindex.base.errors import PaimonError
from pyspark_paimon._version import __version__
from pyspark_paimon.cli import fsck
from pyspark_paimon.cli.history import add_commands
from pyspark_paimon.cli.output import console, json_value, print_grid, print_json
from pyspark_paimon.cli.tree import add_tree_commands
from pyspark_paimon.cli.upkeep import add_upkeep_commands
from pyspark_paimon.table.table import Table
from pyspark_paimon.views.explain import size_text

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
add_commands(app)
fsck.add_command(app)
add_tree_commands(app)
add_upkeep_commands(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"pyspark-paimon {__version__}")
        raise typer.Exit


@app.callback()
def _all_commands(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Commands for Paimon tables; each takes ``--help``."""


TablePath = Annotated[str, typer.Argument(metavar="TABLE", help="Path of a table's directory.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
FilterOption = Annotated[str | None, typer.Option("--filter", "-f", help="SQL as after WHERE: \"city = 'Oslo' AND attrs['clicks'] > 3\".")]
Columns = Annotated[str | None, typer.Option("--columns", "-c", help="Columns to read, separated by commas.")]
OrderBy = Annotated[str | None, typer.Option("--order-by", "-o", help='Sort, as in "price DESC NULLS LAST, id".')]
RowLimit = Annotated[int, typer.Option("--limit", "-n", help="Rows to show at most.")]
SnapshotOption = Annotated[int | None, typer.Option("--snapshot", help="Snapshot to read; the newest by default.")]


@app.command()
def inspect(table: TablePath, as_json: JsonFlag = False) -> None:
    """Show a table's columns, options, snapshots and LSM levels."""
    opened = Table.open(table)
    schema, snapshots, files = opened.table_schema, opened.snapshots(), opened.files()
    levels = _levels(files)
    if as_json:
        print_json(
            {
                "path": opened.path,
                "schema_id": schema.id,
                "columns": [field.to_json() for field in schema.fields],
                "primary_keys": list(schema.primary_keys),
                "partition_keys": list(schema.partition_keys),
                "options": schema.options,
                "option_effects": opened.option_effects().to_pylist(),
                "comment": schema.comment,
                "snapshots": snapshots.to_pylist(),
                "levels": levels,
            }
        )
        return
    console.print(f"[bold]{opened.path}[/bold]  schema {schema.id}{f', {schema.comment}' if schema.comment else ''}", highlight=False)
    keys = {**dict.fromkeys(schema.partition_keys, "partition"), **dict.fromkeys(schema.primary_keys, "key")}
    both = set(schema.partition_keys) & set(schema.primary_keys)
    keys |= dict.fromkeys(both, "key, partition")
    print_grid(
        "columns",
        ("name", "type", "role", "comment"),
        [(f.name, str(f.type), keys.get(f.name, ""), f.description or "") for f in schema.fields],
    )
    effects = [(row["option"], row["value"], row["effect"], row["note"]) for row in opened.option_effects().to_pylist()]
    print_grid("options", ("key", "value", "effect", "note"), effects)
    shown = snapshots.slice(max(snapshots.num_rows - 10, 0)).to_pylist()
    print_grid(
        f"last {len(shown)} of {snapshots.num_rows} snapshots",
        ("id", "kind", "time (UTC)", "rows", "change", "user"),
        [
            (row["snapshot_id"], row["commit_kind"], f"{row['commit_time']:%Y-%m-%d %H:%M:%S}", *_counts(row), row["commit_user"])
            for row in shown
        ],
    )
    print_grid(
        "LSM levels",
        ("level", "files", "rows", "size"),
        [(row["level"], row["files"], f"{row['rows']:,}", size_text(row["bytes"])) for row in levels],
    )


@app.command()
def scan(
    table: TablePath,
    filter_: FilterOption = None,
    columns: Columns = None,
    limit: RowLimit = 20,
    *,
    order_by: OrderBy = None,
    snapshot: SnapshotOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show rows, merged and filtered; with --json a line of JSON for each."""
    wanted = Table.open(table).scan(filter_, columns=_names(columns), limit=limit, order_by=order_by, snapshot=snapshot)
    rows = wanted.to_arrow()
    if as_json:
        for row in rows.to_pylist(maps_as_pydicts="lossy"):
            typer.echo(json.dumps(row, default=json_value))
        return
    print_grid(None, rows.column_names, [tuple(map(_cell, row.values())) for row in rows.to_pylist(maps_as_pydicts="lossy")])
    console.print(
        f"[dim]{rows.num_rows:,} rows of snapshot {wanted.snapshot_id}{' (limit reached)' if rows.num_rows == limit else ''}[/dim]"
    )


@app.command()
def explain(
    table: TablePath, filter_: FilterOption = None, columns: Columns = None, snapshot: SnapshotOption = None, as_json: JsonFlag = False
) -> None:
    """Read what a filter asks for and show what every pruning stage kept and dropped."""
    explanation = Table.open(table).scan(filter_, columns=_names(columns), snapshot=snapshot).explain()
    if as_json:
        print_json(explanation.to_dict())
        return
    console.print(str(explanation), highlight=False, markup=False, soft_wrap=True)


@app.command()
def compact(
    table: TablePath,
    full: Annotated[bool, typer.Option("--full", help="Merge everything, not only what universal compaction picks.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Merge sorted runs, or the small files of an append table."""
    result = Table.open(table).compact(full=full)
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    if result.snapshot_id is None:
        console.print("nothing to compact")
        return
    console.print(
        f"{result.files_before} files became {result.files_after}: {size_text(result.bytes_read)} read, "
        f"{size_text(result.bytes_written)} written in {result.seconds:.2f} s, snapshot {result.snapshot_id}",
        highlight=False,
    )


@app.command()
def analyze(table: TablePath, columns: Columns = None, as_json: JsonFlag = False) -> None:
    """Count rows, distinct values, extremes and nulls, keep them with the table, and show them."""
    opened = Table.open(table)
    result = opened.analyze(_names(columns))
    found = opened.statistics()
    if as_json:
        print_json({**result.model_dump(mode="json"), "statistics": found.to_pylist()})
        return
    shown = ("column", "distinct_count", "min", "max", "null_count", "avg_len", "max_len")
    print_grid(
        f"{result.rows:,} rows, {size_text(result.bytes)}", shown, [tuple(_cell(row[name]) for name in shown) for row in found.to_pylist()]
    )


@app.command()
def indexes(
    table: TablePath,
    health: Annotated[bool, typer.Option("--health", help="Read the indexes, and tell how well each serves.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show which file indexes the options ask for, and what the live files have."""
    opened = Table.open(table)
    specs: list[dict[str, Any]] = [
        {"column": str(spec.column), "type": spec.index_type, "options": dict(spec.options)}
        for spec in opened.table_schema.file_index.specs
    ]
    places: Counter[str] = Counter(_place(name) for name in opened.files()["file_index"].to_pylist())
    from pyspark_paimon.views.index_views import built_indexes, health_summary  # noqa: PLC0415  # loads every format

    judged = opened.index_health() if health else None
    built = built_indexes(opened.file_indexes()) if judged is None else health_summary(judged)
    if as_json:
        whole = {} if judged is None else {"health": judged.to_pylist()}
        print_json({"indexes": specs, "files": dict(places), "built": built, **whole})
        return
    print_grid(
        "indexes asked for",
        ("column", "type", "options"),
        [(s["column"], s["type"], ", ".join(f"{k}={v}" for k, v in s["options"].items())) for s in specs],
    )
    print_grid("index of live files", ("where", "files"), sorted(places.items()))
    if judged is None:
        print_grid(
            "built indexes",
            ("column", "type", "storage", "files", "size"),
            [(*list(row.values())[:4], size_text(row["bytes"])) for row in built],
        )
    else:
        print_grid("health", ("column", "type", "files", "size", "distinct", "false positives", "note"), _healths(built))


@app.command("rewrite-index")
def rewrite_index(
    table: TablePath,
    partition: Annotated[
        list[str] | None, typer.Option("--partition", "-p", help="Only this one: day=2024-01-31/hour=7; repeatable.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Give the files that exist the indexes that the table's options ask for."""
    chosen = [dict(part.partition("=")[::2] for part in text.split("/")) for text in partition] if partition else None
    result = Table.open(table).rewrite_file_index(chosen)
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    if result.snapshot_id is None:
        console.print(f"nothing to do: the indexes of {result.files} files are as the options ask for", highlight=False)
        return
    console.print(
        f"{result.rewritten} of {result.files} files got other indexes: {size_text(result.bytes_read)} read, "
        f"{size_text(result.bytes_written)} written in {result.seconds:.2f} s, snapshot {result.snapshot_id}",
        highlight=False,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; the entry point of the script ``pyspark-paimon``."""
    with _errors_shown():
        app(args=None if arguments is None else list(arguments), prog_name="pyspark-paimon")


@contextmanager
def _errors_shown() -> Iterator[None]:
    try:
        yield
    except PaimonError as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(1)


def _place(index: str | None) -> str:
    return "none" if index is None else "embedded" if index == "embedded" else "sidecar"


def _healths(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            row["column_name"] or "",
            row["index_type"] or "",
            f"{row['files']:,}",
            size_text(row["index_bytes"]) + ("" if row["column_bytes"] is None else f" of {size_text(row['column_bytes'])}"),
            "" if row["distinct_values"] is None else f"{row['distinct_values']:,}",
            "" if row["false_positive_rate"] is None else f"{row['false_positive_rate']:.2%}",
            row["note"],
        )
        for row in rows
    ]


def _levels(files: pa.Table) -> list[dict[str, Any]]:
    grouped = files.group_by("level").aggregate([("file_name", "count"), ("row_count", "sum"), ("file_size", "sum")]).sort_by("level")
    return [
        {"level": row["level"], "files": row["file_name_count"], "rows": row["row_count_sum"], "bytes": row["file_size_sum"]}
        for row in grouped.to_pylist()
    ]


def _counts(row: dict[str, Any]) -> tuple[str, str]:
    return f"{row['total_record_count']:,}", f"{row['delta_record_count']:+,}"


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]


def _cell(value: object) -> str:
    return "" if value is None else str(value)


__all__ = ["app", "main"]
