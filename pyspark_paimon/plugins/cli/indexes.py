"""Commands ``indexes``, ``index-advice`` and ``rewrite-index``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paimon_base.lazy import LazyModule
from paimon_base.texts import size_text
from pyspark_paimon.plugins.cli.output import print_grid, print_json, print_line
from pyspark_paimon.plugins.cli.target import TableOption, on_table, options_of

if TYPE_CHECKING:
    from pyspark_paimon.views import index_views
else:  # help needs none of them
    index_views = LazyModule("pyspark_paimon.views.index_views")


@on_table
def show_indexes(
    target: TableOption,
    *,
    health: Annotated[bool, typer.Option("--health", help="Read the indexes and report how well each works.")] = False,
) -> None:
    """Show configured and existing file indexes."""
    opened = target.open()
    specs: list[dict[str, Any]] = [
        {"column": str(spec.column), "type": spec.index_type, "options": dict(spec.options)}
        for spec in opened.table_schema.file_index.specs
    ]
    places: Counter[str] = Counter(_location(name) for name in opened.files()["file_index"].to_pylist())
    reported = opened.index_health() if health else None
    built = index_views.built_indexes(opened.file_indexes()) if reported is None else index_views.health_summary(reported)
    if target.as_json:
        details = {} if reported is None else {"health": reported.to_pylist()}
        print_json({"indexes": specs, "files": dict(places), "built": built, **details})
        return
    print_grid(
        "configured indexes",
        ("column", "type", "options"),
        [(s["column"], s["type"], ", ".join(f"{k}={v}" for k, v in s["options"].items())) for s in specs],
    )
    print_grid("index of live files", ("where", "files"), sorted(places.items()))
    if reported is None:
        print_grid(
            "built indexes",
            ("column", "type", "storage", "files", "size"),
            [(*list(row.values())[:4], size_text(row["bytes"])) for row in built],
        )
    else:
        print_grid("health", ("column", "type", "files", "size", "distinct", "false positives", "note"), _healths(built))


@on_table
def advise_indexes(
    target: TableOption,
    filters: Annotated[list[str], typer.Argument(metavar="FILTER...", help="Filters in SQL: \"city LIKE '%os%'\".")],
    *,
    most_bytes: Annotated[int, typer.Option("--bytes", min=0, help="Bytes of data files to read.")] = 64 << 20,
) -> None:
    """Measure which file indexes would serve filters.

    Indexes are built in memory for a sample of files. The best index of each filter comes first.
    """
    advice = target.open().index_advice(filters, most_bytes=most_bytes).to_pylist()
    if target.as_json:
        print_json({"advice": advice})
        return
    header = ("filter", "column", "index", "rows skipped", "pages skipped", "files skipped", "size", "bytes/row", "note")
    print_grid("index advice", header, [_advice(row) for row in advice])
    for row in advice[:1]:
        print_line(f"measured on {row['sampled_files']:,} files with {row['sampled_rows']:,} rows")


def _advice(row: dict[str, Any]) -> tuple[str, ...]:
    if row["index_type"] is None:
        return (row["filter"], *[""] * 7, "no index serves it")
    notes = [("declared", row["is_declared"]), ("counts without reading", row["is_exact"])]
    return (
        row["filter"],
        row["column_name"],
        row["index_type"],
        *(f"{row[name]:.1%}" for name in ("rows_skipped", "pages_skipped", "files_skipped")),
        size_text(row["estimated_bytes"]),
        f"{row['bytes_per_row']:.2f}",
        ", ".join(note for note, is_true in notes if is_true),
    )


@on_table
def rewrite_index(
    target: TableOption,
    *,
    partition: Annotated[
        list[str] | None, typer.Option("--partition", "-p", help="Only this partition: day=2024-01-31/hour=7; repeatable.")
    ] = None,
) -> None:
    """Build or drop file indexes of existing files.

    The files get the indexes that the table's options require.
    """
    partitions = [options_of(text.split("/"), "--partition") for text in partition] if partition else None
    result = target.open().rewrite_file_index(partitions)
    target.report(result)


def _location(index: str | None) -> str:
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
