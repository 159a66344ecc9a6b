"""Names of system tables.

``<table>$files``, or ``<table>$branch_b$files`` for a branch.
"""

from __future__ import annotations

from typing import Final, NoReturn

from fileindex.base.errors import did_you_mean
from manifest.io.errors import SystemTableReadOnly, UnknownSystemTable
from manifest.io.paths import MAIN_BRANCH, split_branch, with_branch

SYSTEM_TABLES: Final = tuple(
    sorted(
        (
            "audit_log",
            "binlog",
            "ro",
            "aggregation_fields",
            "branches",
            "buckets",
            "consumers",
            "file_key_ranges",
            "files",
            "manifests",
            "options",
            "partitions",
            "row_tracking",
            "schemas",
            "snapshots",
            "statistics",
            "table_indexes",
            "tags",
        )
    )
)
_MARK = "$"
_BRANCH = "branch_"


def split_system(path: str) -> tuple[str, str] | None:
    """Split a path into table and system table name.

    The table may be a branch. The name follows the last ``$``, or precedes ``$branch_<name>``. Returns None if there is no such name. The
    caller must check that the system table exists, and that no table has the whole path.

    >>> split_system("/w/t$branch_dev$files"), split_system("/w/t$files$branch_dev"), split_system("/w/t$branch_dev")
    (('/w/t$branch_dev', 'files'), ('/w/t$branch_dev', 'files'), None)
    """
    path = str(path).rstrip("/")
    table, mark, name = path.rpartition(_MARK)
    if not mark or "/" in name or not table or table.endswith("/"):
        return None
    if not name.startswith(_BRANCH):
        return table, name
    root, branch = split_branch(path)
    inner = split_system(root)
    return None if inner is None or branch == MAIN_BRANCH or inner[1] not in SYSTEM_TABLES else (with_branch(inner[0], branch), inner[1])


def refuse_system(table: str, name: str) -> NoReturn:
    """Raise an error for using a system table as table.

    Raises ``SystemTableReadOnly`` or ``UnknownSystemTable``.
    """
    if name in SYSTEM_TABLES:
        raise SystemTableReadOnly(f"{table}${name}: a system table can only be scanned, and nothing was done; the table itself is {table}")
    raise UnknownSystemTable(
        f"{table}: there is no system table '{name}'{did_you_mean(name, SYSTEM_TABLES)}; there are: {', '.join(SYSTEM_TABLES)}"
    )


__all__ = ["SYSTEM_TABLES", "refuse_system", "split_system"]
