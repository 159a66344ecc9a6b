"""The command ``fsck``: exit code 0 if the table is clean, 1 if something is wrong, 2 if it could not be checked."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fileindex.base.errors import InvalidArgument, PaimonError
from manifest.fsck.problem import Depth, Problem
from pyspark_paimon.cli.output import console, print_grid, print_json
from pyspark_paimon.request.results import FsckResult, repr_fields
from pyspark_paimon.table.table import Table

FOUND, CANNOT = 1, 2

FsckPath = Annotated[str, typer.Argument(metavar="TABLE", help="Path of a table's directory.")]
Quick = Annotated[bool, typer.Option("--quick", help="Metadata only, and whether files are there with their sizes.")]
Deep = Annotated[bool, typer.Option("--deep", help="Read every row too: keys, statistics, buckets, the truth of indexes.")]
ProblemLimit = Annotated[int, typer.Option("--limit", "-n", help="Problems to show at most.")]
FsckJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def fsck(table: FsckPath, *, quick: Quick = False, deep: Deep = False, limit: ProblemLimit = 1000, as_json: FsckJson = False) -> None:
    """Check that a table is whole: snapshots, manifests, data files, indexes. Exit code 0: clean, 1: problems, 2: could not check."""
    try:
        if quick and deep:
            raise InvalidArgument("--quick and --deep exclude each other")
        depth = Depth.QUICK if quick else Depth.DEEP if deep else Depth.FOOTERS
        result = Table.open(table, progress=sys.stderr.isatty() and not as_json).fsck(depth, limit=limit)
    except (PaimonError, OSError) as error:
        typer.echo(f"{type(error).__name__}: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(CANNOT) from error
    if as_json:
        print_json({**repr_fields(result), "clean": result.clean})
    else:
        _print(result)
    if not result.clean:
        raise typer.Exit(FOUND)


def _print(result: FsckResult) -> None:
    if result.problems:
        rows = [(problem.kind, problem.path, _where(problem), problem.message, problem.advice) for problem in result.problems]
        print_grid("problems", ("kind", "file", "needed by", "what is wrong", "what to do"), rows)
    counted = ", ".join(f"{count:,} {what}" for what, count in result.counts.items() if count)
    left = ", ".join(f"{count:,} {what}" for what, count in result.unchecked.items())
    told = "clean" if result.clean else f"{result.problem_count:,} problems"
    console.print(f"{told} ({result.depth}, {result.seconds:.2f} s): {counted}", highlight=False, markup=False)
    if left:
        console.print(f"not looked into: {left}", highlight=False, markup=False)


def _where(problem: Problem) -> str:
    origin = problem.origin
    parts = [f"branch {origin.branch}"] if origin.branch != "main" else []
    for what, value in (
        ("snapshot", origin.snapshot),
        ("tag", origin.tag),
        ("changelog", origin.changelog),
        ("manifest", problem.manifest),
        ("partition", problem.partition or None),
        ("bucket", problem.bucket),
    ):
        if value is not None:
            parts.append(f"{what} {value}")
    return ", ".join(parts)


def add_command(app: typer.Typer) -> None:
    """Make it a command of ``app``."""
    app.command()(fsck)


__all__ = ["add_command"]
