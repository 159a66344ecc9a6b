"""Entry point of ``python -m pyspark_paimon.plugins.cli``."""

from __future__ import annotations

from pyspark_paimon.plugins.cli import main

if __name__ == "__main__":
    main()
