"""Entry point of ``python -m pyspark_paimon.cli``."""

from __future__ import annotations

from pyspark_paimon.cli import main

if __name__ == "__main__":
    main()
