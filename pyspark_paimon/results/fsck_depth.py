"""Depth of a table check.

A module without imports of the check, which most programs never load.
"""

from __future__ import annotations

from enum import StrEnum


class Depth(StrEnum):
    """Depth of a check. Each value includes the previous ones.

    ``QUICK`` checks metadata and file sizes. ``FOOTERS`` checks footers, indexes and deletion vectors. ``DEEP`` checks all rows.
    """

    QUICK = "quick"
    FOOTERS = "footers"
    DEEP = "deep"
