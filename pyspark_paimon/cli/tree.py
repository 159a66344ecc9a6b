"""The commands that show a table's tree: ``report`` as a file, ``ui`` in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyspark_paimon.cli.output import console, print_json
from pyspark_paimon.table.table import Table

TreePath = Annotated[str, typer.Argument(metavar="TABLE", help="Path of a table's directory.")]
TreeFilter = Annotated[str | None, typer.Option("--filter", "-f", help="Show what of the tree this SQL, as after WHERE, keeps.")]
TreeSnapshotOption = Annotated[int | None, typer.Option("--snapshot", help="Snapshot to show; the newest by default.")]


def report(
    table: TreePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    filter_: TreeFilter = None,
    *,
    snapshot: TreeSnapshotOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what the page shows as JSON, and write no file.")] = False,
) -> None:
    """Write a page that shows the tree: levels, key ranges, what a filter keeps, history, advice."""
    opened = Table.open(table)
    if as_json:
        print_json(opened.tree(filter_, snapshot=snapshot).model_dump(mode="json"))
        return
    console.print(str(opened.report(output, filter_, snapshot=snapshot)), highlight=False, markup=False, soft_wrap=True)


def ui(
    table: TreePath,
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; a free one by default.")] = 0,
    browse: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Serve that page to a browser on this machine: filters are planned while they are typed. Ctrl-C ends it."""
    import webbrowser  # noqa: PLC0415  # only here

    from pyspark_paimon.ui.server import TreeServer  # noqa: PLC0415  # loads an HTTP server

    with TreeServer(Table.open(table), port=port) as server:
        told = f"{server.url}\nOnly this machine, and only who has that address, can see the page. Ctrl-C ends it."
        console.print(told, soft_wrap=True, highlight=False, markup=False)
        if browse:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("ended")


def add_tree_commands(app: typer.Typer) -> None:
    """Make these commands of ``app``."""
    app.command()(report)
    app.command()(ui)


__all__ = ["add_tree_commands", "report", "ui"]
