"""The command line ``pyspark-paimon``, also ``python -m pyspark_paimon``.

Knows tables, grids and JSON on standard output, exit codes; not how anything is done: each command calls one method of ``Table``.
Public: ``main``.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; its exit code, unless 0, leaves as ``SystemExit``."""
    from pyspark_paimon.cli.app import main as run  # noqa: PLC0415  # importing the folder must not need the extra

    run(arguments)


__all__ = ["main"]
