"""Command line ``pyspark-paimon``, also ``python -m pyspark_paimon``.

Each command calls one method of ``Table``. This package knows grids and JSON on standard output, and exit codes.
Public: ``main``.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command.

    An exit code other than 0 raises ``SystemExit``.
    """
    from pyspark_paimon.plugins.cli.app import main as run  # noqa: PLC0415  # importing this package must not need the extra 'cli'

    run(arguments)


__all__ = ["main"]
