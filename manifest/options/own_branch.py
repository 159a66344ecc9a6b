"""Options that read another branch too."""

from __future__ import annotations

FALLBACK_BRANCH, PRIMARY_BRANCH = "scan.fallback-branch", "scan.primary-branch"
OWN_BRANCH = {FALLBACK_BRANCH: "", PRIMARY_BRANCH: ""}
"""Options of a read that sees only the table's own branch. Every change of rows uses them, because it writes to that branch only."""


__all__ = ["FALLBACK_BRANCH", "OWN_BRANCH", "PRIMARY_BRANCH"]
