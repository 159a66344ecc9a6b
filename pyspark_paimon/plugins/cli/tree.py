"""Commands ``report`` and ``ui``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from paimon_base.plugins import plugin
from pyspark_paimon.plugins.cli.output import print_json, print_line
from pyspark_paimon.plugins.cli.target import TableOption, on_table

TreeFilter = Annotated[str | None, typer.Option("--filter", "-f", help="SQL as after WHERE: show which files it keeps.")]
TreeSnapshotOption = Annotated[int | None, typer.Option("--snapshot", help="Snapshot to show; the newest by default.")]


@on_table
def write_report(
    target: TableOption,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path("report.html"),
    filter_: TreeFilter = None,
    snapshot: TreeSnapshotOption = None,
) -> None:
    """Write an HTML report of the LSM tree.

    The page shows levels, key ranges, what a filter keeps, history and advice. With --json the report is printed, and no file
    is written.
    """
    opened = target.open()
    if target.as_json:
        print_json(opened.tree(filter_, snapshot=snapshot).model_dump(mode="json"))
        return
    print_line(str(opened.report(output, filter_, snapshot=snapshot)))


@on_table
def serve_tree(
    target: TableOption,
    *,
    port: Annotated[int, typer.Option("--port", help="Port on 127.0.0.1; default: a free one.")] = 0,
    browse: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Show the LSM tree in a browser on this machine.

    Filters are planned while they are typed. Ctrl-C stops the server.
    """
    with plugin("page", "server").TreeServer(target.open(), port=port) as server:
        hint = "The page can be seen on this machine only, and only with this address. Ctrl-C stops the server."
        target.report({"url": server.url}, f"{server.url}\n{hint}")
        if browse:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            if not target.as_json:
                print_line("stopped")
