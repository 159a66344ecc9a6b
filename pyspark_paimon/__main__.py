"""``python -m pyspark_paimon``: the command line."""

from __future__ import annotations

from pyspark_paimon.plugins.cli import main

if __name__ == "__main__":
    main()
