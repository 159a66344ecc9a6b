"""``python -m pyspark_paimon``: the command line."""

from __future__ import annotations

from paimon_base.plugins import plugin


def main() -> None:
    """Run one command. An exit code other than 0 raises ``SystemExit``."""
    plugin("command", "pyspark-paimon")()


if __name__ == "__main__":
    main()
