"""How many examples a costly property is tried with: some in the quick tests, several times as many in the long ones."""

from __future__ import annotations

import os

TIMES = "PYSPARK_PAIMON_EXAMPLES"
"""The environment's variable that ``make test-long`` sets: how many times as many."""


def some(examples: int) -> int:
    """``examples``, or as many times that as the environment says."""
    return examples * int(os.environ.get(TIMES, "1"))


__all__ = ["TIMES", "some"]
