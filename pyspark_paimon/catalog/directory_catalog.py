"""Catalog with directories in Paimon's layout: ``<warehouse>/<database>.db/<table>``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from manifest.io.errors import TableExists, TableNotFound
from manifest.io.file_io import FileIO
from manifest.io.paths import TablePaths, split_branch, split_system, with_branch
from manifest.options.catalog_options import CatalogOptions
from manifest.schema.manager import SchemaManager
from manifest.storage.resolve import file_io_for
from paimon_base.errors import InvalidArgument
from pyspark_paimon.catalog.catalog_base import (
    DATABASE_SUFFIX,
    AnyCatalog,
    DatabaseExists,
    check_name,
    missing_database,
)
from pyspark_paimon.table.engine_choice import engine_for
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import SparkSession

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema


class DirectoryCatalog(AnyCatalog):
    """Base class of catalogs whose tables lie below one directory."""

    def __init__(self, warehouse: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        self._settings, rest = CatalogOptions.of(options or {})
        self._options = None if options is None else rest
        file_io, self._root = file_io_for(warehouse, storage_options=self._options)
        self._file_io: FileIO = file_io

    @property
    def warehouse(self) -> str:
        """Directory of the catalog.

        >>> from pyspark_paimon import Catalog
        >>> Catalog("/data/warehouse").warehouse
        '/data/warehouse'
        """
        return self._root

    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> Catalog(tempfile.mkdtemp()).list_databases()
        []
        """
        return sorted(
            s.name.removesuffix(DATABASE_SUFFIX) for s in self._file_io.list(self._root) if s.is_dir and s.name.endswith(DATABASE_SUFFIX)
        )

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        """Create a database.

        Raises:
            DatabaseExists: There is such a database, and ``ignore_if_exists`` is False.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> catalog.create_database("sales")
        >>> catalog.list_databases()
        ['sales']
        """
        self._settings.check_name(name, "database")
        if self._file_io.is_directory(self._database(name)):
            if ignore_if_exists:
                return
            raise DatabaseExists(f"{self._root}: database '{name}' exists")
        self._file_io.mkdirs(self._database(name))

    def _drop_empty(self, database: str) -> None:
        self._file_io.delete_directory(self._database(database), recursive=True)

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of a database's tables, sorted.

        Directories that are not tables are left out. ``database`` None: the default database.

        Raises:
            DatabaseNotFound: There is no such database.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> table = catalog.create_table("orders", "id BIGINT")
        >>> catalog.list_tables()
        ['orders']
        """
        database = self.default_database if database is None else database
        self._require(database)
        directory = self._database(database)
        return sorted(s.name for s in self._file_io.list(directory) if s.is_dir and self._is_table(f"{directory}/{s.name}"))

    def _create_table(self, name: str, schema: TableSchema, path: str | None) -> None:
        if path is not None:
            raise InvalidArgument(f"'{name}': tables of this catalog are below {self._root}; Table.create(path) makes a table elsewhere")
        self._write_files(self._new_place(name), schema)

    def _write_files(self, path: str, schema: TableSchema) -> None:
        """Write the files of a new table. Raises ``TableExists``."""
        from pyspark_paimon.operations.create import CreateTable  # noqa: PLC0415  # loads what opening a table does not need

        engine_for(path, None, storage_options=self._options).run(CreateTable(table_schema=schema))

    def table(self, name: str, spark: SparkSession | None = None) -> Table:
        """Open a table.

        Args:
            name: Table name; ``database.table$branch_name`` is a branch, ``database.table$files`` a system table.
            spark: Session whose server reads and writes the table. A Connect server uses the options of this catalog, or its
                own environment if the catalog has none. The server of a classic session always uses its own environment.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such table.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> created = catalog.create_table("orders", "id BIGINT")
        >>> catalog.table("orders").count(), catalog.table("orders$snapshots").count()
        (0, 0)
        """
        named = split_system(name)
        table_name, suffix = (named[0], f"${named[1]}") if named is not None and name.endswith(f"${named[1]}") else (name, "")
        plain, branch = split_branch(table_name)
        path = self._existing_path(plain)
        options = self._options
        if spark is not None and options is not None:
            from pyspark_paimon.spark.wire.session_storage import is_connect  # noqa: PLC0415  # needed with Spark only

            options = options if is_connect(spark) else None
        return Table.open(f"{with_branch(path, branch)}{suffix}", spark, storage_options=options)

    def table_exists(self, name: str) -> bool:
        """Return whether there is such a table.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> Catalog(tempfile.mkdtemp()).table_exists("orders")
        False
        """
        return self._is_table(self._path(name))

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table, or move it to another database.

        Processes that have it open can no longer use it.

        Raises:
            TableNotFound: There is no such table.
            TableExists: The new name exists.
            InvalidArgument: The new name is not one of a table.
            UnsupportedOption: The catalog is on an object store, which cannot rename directories.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> table = catalog.create_table("orders", "id BIGINT")
        >>> catalog.rename_table("orders", "purchases")
        >>> catalog.list_tables()
        ['purchases']
        """
        target = self._path(new_name)
        self._require_table(name)
        self._require(self._new_name(new_name)[0])
        if self._file_io.is_directory(target) or self._file_io.exists(target):
            raise TableExists(f"{target}: a table or something else is here already")
        self._move_table(name, new_name)

    def _move_table(self, name: str, new_name: str) -> None:
        """Move a table, whose names are checked."""
        target = self._path(new_name)
        try:
            self._file_io.rename_directory(self._path(name), target)
        except FileExistsError as error:
            raise TableExists(f"{target}: a table or something else is here already") from error

    def _new_place(self, name: str) -> str:
        self._require(self._new_name(name)[0])
        return self._path(name)

    def _drop_table(self, name: str) -> None:
        self._require_table(name)
        self._delete_files(name)

    def _delete_files(self, name: str) -> None:
        path = self._path(name)
        schemas = SchemaManager(self._file_io, path)
        self._file_io.retire_directory(path, [TablePaths(path).schema_file(schema_id) for schema_id in reversed(schemas.ids())])

    def _database(self, name: str) -> str:
        return f"{self._root}/{check_name(name, 'database')}{DATABASE_SUFFIX}"

    def _path(self, name: str) -> str:
        database, table = self._split(name)
        return f"{self._database(database)}/{check_name(table, 'table')}"

    def _existing_path(self, name: str) -> str:
        """Return the directory of a table to open."""
        self._require(self._split(name)[0])
        return self._path(name)

    def _is_table(self, path: str) -> bool:
        return bool(SchemaManager(self._file_io, path).ids())

    def _require(self, database: str) -> None:
        if not self._file_io.is_directory(self._database(database)):
            raise missing_database(database, self.list_databases(), self._root)

    def _require_table(self, name: str) -> None:
        if not self.table_exists(name):
            raise TableNotFound(f"{self._path(name)}: no Paimon table is here")
