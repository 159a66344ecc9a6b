"""Command ``fsck``.

Exit codes: 0 if the table is clean, 1 if there are problems, 2 if the check could not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.lazy import LazyModule
from pyspark_paimon.plugins.cli.all_tables import All, AllTables, Prometheus, Threads, refuse_without_all
from pyspark_paimon.plugins.cli.output import print_grid, print_json, print_line
from pyspark_paimon.plugins.cli.target import TableOption, destructive

if TYPE_CHECKING:
    from pyspark_paimon.catalog import catalog_base
    from pyspark_paimon.results import fsck_depth as depths
    from pyspark_paimon.results import results
    from pyspark_paimon.results.fsck_problem import Problem
    from pyspark_paimon.results.state_results import FsckResult
else:  # help needs none of them
    catalog_base = LazyModule("pyspark_paimon.catalog.catalog_base")
    depths = LazyModule("pyspark_paimon.results.fsck_depth")
    results = LazyModule("pyspark_paimon.results.results")

FOUND, CANNOT = 1, 2

Quick = Annotated[bool, typer.Option("--quick", help="Check only metadata, and that files exist with their sizes.")]
Deep = Annotated[bool, typer.Option("--deep", help="Also check all rows: keys, statistics, buckets, contents of indexes.")]
ProblemLimit = Annotated[int, typer.Option("--limit", "-n", help="Largest number of problems to show.")]
RepairFlag = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Repair what can be repaired without losing rows, then check again. Copies of changed files are in the table's folder _repair.",
    ),
]


@destructive
def run_fsck(
    target: TableOption,
    *,
    quick: Quick = False,
    deep: Deep = False,
    limit: ProblemLimit = 1000,
    repair: RepairFlag = False,
    every: All = False,
    threads: Threads = 2,
    prometheus: Prometheus = None,
) -> None:
    """Check the integrity of a table.

    The check covers snapshots, manifests, data files and indexes.
    Exit codes: 0: clean, 1: problems, 2: could not check.
    """
    try:
        if quick and deep:
            raise InvalidArgument("--quick and --deep cannot be used together; remove one of them")
        depth = depths.Depth.QUICK if quick else depths.Depth.DEEP if deep else depths.Depth.FOOTERS
        if every and repair:
            raise InvalidArgument("--repair is of one table; repair each that --all names")
        if every:
            AllTables(target, threads, prometheus).run(catalog_base.AnyCatalog.fsck, depth=depth)
            return
        refuse_without_all(prometheus)
        table = target.open()
        result = table.fsck(depth, limit=limit, repair=repair, dry_run=repair)
        if result.repairs and target.confirm(f"make {len(result.repairs)} repairs of {table.path}"):
            result = table.fsck(depth, limit=limit, repair=True)
    except (PaimonError, OSError) as error:
        typer.echo(f"{type(error).__name__}: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(CANNOT) from error
    if target.as_json:
        print_json({**results.repr_fields(result), "clean": result.clean})
    else:
        _print(result)
    if not result.clean:
        raise typer.Exit(FOUND)


def _print(result: FsckResult) -> None:
    if result.repairs:
        repairs = [(repair.kind, repair.path, repair.message) for repair in result.repairs]
        print_grid("would be repaired" if result.dry_run else "repaired", ("kind", "file", "problem and repair"), repairs)
    if result.copies:
        print_line(f"copies of the changed files: {result.copies}")
    if result.problems:
        rows = [(problem.kind, problem.path, _where(problem), problem.message, problem.advice) for problem in result.problems]
        print_grid("problems", ("kind", "file", "needed by", "problem", "advice"), rows)
    print_line(str(result))


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
