"""The options by which another branch is read beside a table's own, and how an operation leaves it out."""

from __future__ import annotations

FALLBACK_BRANCH, PRIMARY_BRANCH = "scan.fallback-branch", "scan.primary-branch"
OWN_BRANCH = {FALLBACK_BRANCH: "", PRIMARY_BRANCH: ""}
"""Options of a read that sees the table's own branch alone, as every change of rows does: it writes to no other."""


__all__ = ["FALLBACK_BRANCH", "OWN_BRANCH", "PRIMARY_BRANCH"]
