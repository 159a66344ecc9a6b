"""Creation of local engines for any path."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from manifest.io.paths import MAIN_BRANCH, SYSTEM_TABLES, refuse_system, split_branch, split_system
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.local.open_engine import is_catalog_location, open_engine
from pyspark_paimon.request.engine import LocalTable
from pyspark_paimon.request.requests import Progress

if TYPE_CHECKING:
    from pyspark_paimon.system.engine import SystemTable


def local_engine(
    path: str | os.PathLike[str], *, progress: Progress | None = None, storage_options: Mapping[str, Any] | None = None
) -> LocalTable:
    """Return the engine of a table, branch or system table.

    A directory with a ``$`` in its own name that contains a table is opened as that table.
    Raises ``TableNotFound`` and ``UnknownSystemTable`` for an unknown suffix after the name of a branch.
    """
    if is_catalog_location(path):
        return named_engine(os.fspath(path), partial(open_engine, progress=progress))
    engine = open_engine(path, progress=progress, storage_options=storage_options)
    named = split_system(engine.path)
    if named is None:
        return engine
    table, name = named
    base = LocalEngine(table, progress=progress, file_io=engine.file_io)
    if name in SYSTEM_TABLES and not engine.exists() and base.exists():
        return system_table(engine.path, base, name)
    if engine.path.endswith(name) and split_branch(table)[1] != MAIN_BRANCH:  # cannot be a directory: branch names have no '$'
        base.schema()
        refuse_system(table, name)
    return engine


def named_engine(name: str, opened: Callable[[str], LocalEngine]) -> LocalTable:
    """Return the engine of a table, branch or system table of a catalog.

    ``opened`` returns the engine of a table or branch by its name. Raises ``UnknownSystemTable``.
    """
    named = split_system(name)
    if named is None:
        return opened(name)
    base = opened(named[0])
    if named[1] not in SYSTEM_TABLES:
        refuse_system(*named)
    return system_table(f"{base.path}${named[1]}", base, named[1])


def system_table(path: str, base: LocalEngine, name: str) -> SystemTable:
    """Return the system table ``name``.

    path: Name of the system table.
    base: Engine of the table that it describes.
    name: One of ``SYSTEM_TABLES``.
    """
    from pyspark_paimon.system.engine import MetadataTable  # noqa: PLC0415  # opening a table does not need it
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
