"""Base class of catalogs that register their tables outside of the warehouse."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from manifest.io.errors import TableExists
from pyspark_paimon.catalog.directory_catalog import DirectoryCatalog

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema


class RegisteredCatalog(DirectoryCatalog):
    """Catalog of directories that are tables once a registry has their names.

    Files are written before the entry, and deleted after it: no crash leaves an entry without files.
    """

    _registry: str
    """The registry, in errors."""

    def __init__(self, warehouse: str | os.PathLike[str], options: Mapping[str, Any]) -> None:
        super().__init__(warehouse, {"case-sensitive": "false", **options})
        self._options = self._options or None

    @abstractmethod
    def _is_registered(self, name: str) -> bool:
        """Return whether the registry has a Paimon table. Raises ``TableExists`` if it has something else of that name."""

    @abstractmethod
    def _register(self, name: str, *, new: bool = True) -> None:
        """Write a table's entry. Raises ``TableExists`` if there is one."""

    def _new_place(self, name: str) -> str:
        path = super()._new_place(name)
        if self._is_registered(name):
            raise TableExists(f"{path}: {self._registry} has this table already; open it with catalog.table('{name}')")
        if self._is_table(path):
            raise TableExists(
                f"{path}: a table is here that {self._registry} does not list; create_table(..., if_not_exists=True) registers it as it is"
            )
        return path

    def _complete(self, name: str, schema: TableSchema) -> None:
        registered, path = self._is_registered(name), self._path(name)
        with suppress(TableExists):  # another process did the same meanwhile
            if not self._is_table(path):
                self._write_files(path, schema)
        if not registered:
            self._check_unshared(name)
            with suppress(TableExists):
                self._register(name, new=False)

    def _check_unshared(self, name: str) -> None:
        """Raise ``TableExists`` if another entry has the directory of a table."""
