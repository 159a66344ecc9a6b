"""What the core asks of its plugins: one protocol for each kind in ``paimon_base/plugins.py`` that others may add, or that several share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from lsm.data_files.writer import FileEncoder
    from lsm.formats.open_data_file import OpenDataFile
    from lsm.parquet.expected_footer import ExpectedFooter
    from manifest.io.file_cache import FileCache
    from manifest.io.file_io import FileIO, FileStatus
    from manifest.options.core_options import CoreOptions
    from manifest.store import FileStore
    from manifest.types.data_type import DataField
    from pyspark_paimon.catalog.catalog_base import AnyCatalog
    from pyspark_paimon.local.engine import LocalEngine
    from pyspark_paimon.request.requests import Progress


class AfterCommit(Protocol):
    """Kind ``after-commit``: called after each commit or rollback of a table whose options ask for it.

    It never raises: the commit stands. ``anew``: what was published before is not to be referred to.
    """

    def __call__(self, store: FileStore, *, anew: bool = False) -> None:
        """Publish the newest snapshot."""


class OrphanFiles(Protocol):
    """Kind ``orphans``: files of a plugin in the table's directories, which the removal of orphans must leave."""

    def list_files(self, store: FileStore) -> tuple[str, list[FileStatus]]:
        """Return the plugin's directory and its files. Called before the metadata are read."""

    def needed_names(self, store: FileStore) -> set[str]:
        """Return the names that are in use."""


class CatalogPlugin(Protocol):
    """Kind ``catalog``: called by ``Catalog.create`` with all options, ``metastore`` included.

    Our own catalogs of directories (``hive``, ``jdbc``) take the warehouse first, as ``Catalog`` does.
    """

    def __call__(self, options: Mapping[str, Any]) -> AnyCatalog:
        """Return the catalog."""


class LocationPlugin(Protocol):
    """Kind ``location``, by scheme: opens a table whose location is no path (``rest://...``)."""

    def __call__(self, location: str, *, progress: Progress | None = None) -> LocalEngine:
        """Return the engine of the table or branch."""


class FileFormat(Protocol):
    """Kind ``file-format``, by the extension of data files. Parquet is the core's own."""

    def open_file(self, file_io: FileIO, path: str, expected: ExpectedFooter | None, files: FileCache | None) -> OpenDataFile:
        """Open a file. Raises ``CorruptFile``."""

    def create_file(
        self,
        file_io: FileIO,
        path: str,
        fields: tuple[DataField, ...],
        schema: pa.Schema,
        options: CoreOptions,
        *,
        compression: str,
        target: int,
    ) -> FileEncoder:
        """Return the writer of a file of about ``target`` bytes."""


class CommandLine(Protocol):
    """Kind ``command``: the program ``pyspark-paimon``."""

    def __call__(self, arguments: Iterable[str] | None = None) -> None:
        """Run one command. An exit code other than 0 raises ``SystemExit``."""


SEAMS: dict[str, type] = {
    "after-commit": AfterCommit,
    "catalog": CatalogPlugin,
    "command": CommandLine,
    "file-format": FileFormat,
    "location": LocationPlugin,
    "orphans": OrphanFiles,
}
"""Protocols by kind. The other kinds (``page``, ``request``, ``scheme``, ``statement``) have one plugin each, which is its own description."""
