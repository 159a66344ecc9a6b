"""How far a check of a table goes, a module of its own because every table has the word and few are checked."""

from __future__ import annotations

from enum import StrEnum


class Depth(StrEnum):
    """How far a check goes; each goes on where the one before ends.

    ``QUICK`` looks at metadata, and at the sizes of files; ``FOOTERS`` at footers, indexes and deletion vectors; ``DEEP`` at all rows.
    """

    QUICK = "quick"
    FOOTERS = "footers"
    DEEP = "deep"


__all__ = ["Depth"]
