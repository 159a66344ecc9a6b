"""Creation of local backends for any path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from manifest.io.paths import MAIN_BRANCH, SYSTEM_TABLES, refuse_system, split_branch, split_system
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.request.backend import Progress
from pyspark_paimon.request.executor import LocalTable

if TYPE_CHECKING:
    from pyspark_paimon.system.backend import SystemTable


def local_backend(
    path: str | os.PathLike[str], *, progress: Progress | None = None, storage_options: Mapping[str, Any] | None = None
) -> LocalTable:
    """Return the backend of a table, branch or system table.

    A directory with a ``$`` in its own name that contains a table is opened as that table.
    Raises ``TableNotFound`` and ``UnknownSystemTable`` for an unknown suffix after the name of a branch.
    """
    backend = LocalBackend(path, progress=progress, storage_options=storage_options)
    named = split_system(backend.path)
    if named is None:
        return backend
    table, name = named
    base = LocalBackend(table, progress=progress, file_io=backend.file_io)
    if name in SYSTEM_TABLES and not backend.exists() and base.exists():
        return system_table(backend.path, base, name)
    if backend.path.endswith(name) and split_branch(table)[1] != MAIN_BRANCH:  # cannot be a directory: branch names have no '$'
        base.schema()
        refuse_system(table, name)
    return backend


def system_table(path: str, base: LocalBackend, name: str) -> SystemTable:
    """Return the system table ``name``.

    path: Name of the system table.
    base: Backend of the table that it describes.
    name: One of ``SYSTEM_TABLES``.
    """
    from pyspark_paimon.system.backend import MetadataTable  # noqa: PLC0415  # opening a table does not need it
    from pyspark_paimon.system.rows import (  # noqa: PLC0415  # as above
        AuditTable,
        BinlogTable,
        ReadOptimizedTable,
        RowTrackingTable,
    )

    match name:
        case "audit_log":
            return AuditTable(path, base, name)
        case "binlog":
            return BinlogTable(path, base, name)
        case "ro":
            return ReadOptimizedTable(path, base, name)
        case "row_tracking":
            return RowTrackingTable(path, base, name)
        case _:
            return MetadataTable(path, base, name)


__all__ = ["local_backend", "system_table"]
