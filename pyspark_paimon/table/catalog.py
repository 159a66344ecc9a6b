"""A file-system catalog on any storage, laid out as Paimon's own: ``<warehouse>/<database>.db/<table>``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fileindex.base.errors import InvalidArgument
from fileindex.base.public import public
from manifest.io.errors import TableExists, TableNotFound
from manifest.io.file_io import FileIO
from manifest.io.paths import TablePaths, split_branch, with_branch
from manifest.io.system_names import split_system
from manifest.schema.manager import SchemaManager
from manifest.storage.resolve import file_io_for
from pyspark_paimon.table.catalog_base import (
    DATABASE_SUFFIX,
    DEFAULT_DATABASE,
    AnyCatalog,
    DatabaseExists,
    DatabaseNotFound,
    checked_name,
    split_name,
)
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import Schema, SparkSession


@public
class Catalog(AnyCatalog):
    """The databases and tables below one directory, in process.

    Tables are named ``database.table``; a name without database is in ``default``, and ``database.table$branch_name`` is a branch.
    ``options`` say how an object store is reached, as ``storage_options`` of ``Table.open``.

    >>> import tempfile
    >>> catalog = Catalog(tempfile.mkdtemp())
    >>> catalog.create_database("sales")
    >>> orders = catalog.create_table("sales.orders", "id BIGINT, total DECIMAL(10, 2)", primary_keys=["id"], options={"bucket": "1"})
    >>> catalog.rename_table("sales.orders", "sales.purchases")
    >>> catalog.list_databases(), catalog.list_tables("sales"), catalog.table("sales.purchases").primary_keys
    (['sales'], ['purchases'], ('id',))
    """

    def __init__(self, warehouse: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        self._options = options
        found, self._root = file_io_for(warehouse, storage_options=options)
        self._file_io: FileIO = found

    @classmethod
    def create(cls, options: Mapping[str, Any]) -> AnyCatalog:
        """The catalog that ``options`` describe, by Paimon's names: ``metastore`` is ``filesystem`` (its default, in ``warehouse``) or ``rest``.

        A REST catalog takes ``uri``, ``warehouse``, ``token``, ``token.provider`` (``bear``), ``prefix``, ``data-token.enabled``, ``header.*``;
        other names are options of stores. Raises ``UnsupportedOption`` for one that is none, ``InvalidArgument`` for what is missing.

        >>> import tempfile
        >>> Catalog.create({"warehouse": tempfile.mkdtemp()}).list_databases()
        []
        """
        told = dict(options)
        if told.get("metastore", "filesystem") != "filesystem":
            from pyspark_paimon.table.rest_catalog import RestCatalog  # noqa: PLC0415  # who has files alone needs no HTTP

            return RestCatalog(told)
        told.pop("metastore", None)
        if "warehouse" not in told:
            raise InvalidArgument("a catalog on a file system lies in a directory: {'warehouse': '/path', ...}")
        return cls(told.pop("warehouse"), told)

    @property
    def warehouse(self) -> str:
        """The directory."""
        return self._root

    def list_databases(self) -> list[str]:
        """Names of the databases, in order."""
        return sorted(
            s.name.removesuffix(DATABASE_SUFFIX) for s in self._file_io.list(self._root) if s.is_dir and s.name.endswith(DATABASE_SUFFIX)
        )

    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        """Create a database. Raises ``DatabaseExists``."""
        if self._file_io.is_directory(self._database(name)):
            if ignore_if_exists:
                return
            raise DatabaseExists(f"{self._root}: database '{name}' exists")
        self._file_io.mkdirs(self._database(name))

    def _drop_empty(self, database: str) -> None:
        self._file_io.delete_directory(self._database(database), recursive=True)

    def list_tables(self, database: str = DEFAULT_DATABASE) -> list[str]:
        """Names of a database's tables, in order; directories that hold no table are left out. Raises ``DatabaseNotFound``."""
        self._require(database)
        directory = self._database(database)
        return sorted(s.name for s in self._file_io.list(directory) if s.is_dir and self._is_table(f"{directory}/{s.name}"))

    def create_table(
        self,
        name: str,
        schema: Schema,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        *,
        comment: str | None = None,
    ) -> Table:
        """Create a table, as ``Table.create`` does. Raises ``DatabaseNotFound`` (``default`` is created), ``TableExists``."""
        database, _ = split_name(name)
        if database == DEFAULT_DATABASE:
            self.create_database(database, ignore_if_exists=True)
        self._require(database)
        path = self._path(name)
        return Table.create(
            path,
            schema,
            primary_keys=primary_keys,
            partition_keys=partition_keys,
            options=options,
            comment=comment,
            storage_options=self._options,
        )

    def table(self, name: str, spark: SparkSession | None = None) -> Table:
        """Open a table, with ``database.table$branch_name`` a branch, with ``database.table$files`` a system table; with ``spark`` that session's server reads and writes it.

        The server sees the same paths, and reaches stores by this catalog's options or, without any, by its own environment; the server of
        a classic session always does. Raises ``DatabaseNotFound``, ``TableNotFound``.
        """
        named = split_system(name)
        whole, suffix = (named[0], f"${named[1]}") if named is not None and name.endswith(f"${named[1]}") else (name, "")
        plain, branch = split_branch(whole)
        self._require(split_name(plain)[0])
        options = self._options if spark is None or hasattr(spark, "client") else None
        return Table.open(f"{with_branch(self._path(plain), branch)}{suffix}", spark, storage_options=options)

    def create_views(self, spark: SparkSession, database: str = DEFAULT_DATABASE) -> list[str]:
        """Make a temporary view of every table of a database in a session, by the table's name, for SQL; their names, in order.

        A view reads the snapshot that was newest when it was made. Raises ``DatabaseNotFound``.
        """
        names = self.list_tables(database)
        for name in names:
            self.table(f"{database}.{name}", spark).scan().to_spark().createOrReplaceTempView(name)
        return names

    def table_exists(self, name: str) -> bool:
        """Whether there is such a table."""
        return self._is_table(self._path(name))

    def rename_table(self, name: str, new_name: str) -> None:
        """Move a table, also to another database; whoever has it open loses it.

        Raises ``TableNotFound``, ``TableExists``, ``UnsupportedOption`` on an object store, which renames nothing.
        """
        source, target = self._path(name), self._path(new_name)
        self._require_table(name)
        self._require(split_name(new_name)[0])
        if self._file_io.is_directory(target) or self._file_io.exists(target):
            raise TableExists(f"{target}: a table or something else is here already")
        try:
            self._file_io.rename_directory(source, target)
        except FileExistsError as error:
            raise TableExists(f"{target}: a table or something else is here already") from error

    def _drop_table(self, name: str) -> None:
        self._require_table(name)
        path = self._path(name)
        schemas = SchemaManager(self._file_io, path)
        self._file_io.retire_directory(path, [TablePaths(path).schema_file(schema_id) for schema_id in reversed(schemas.ids())])

    def __repr__(self) -> str:
        return f"Catalog({self._root})"

    def _database(self, name: str) -> str:
        return f"{self._root}/{checked_name(name, 'database')}{DATABASE_SUFFIX}"

    def _path(self, name: str) -> str:
        database, table = split_name(name)
        return f"{self._database(database)}/{checked_name(table, 'table')}"

    def _is_table(self, path: str) -> bool:
        return bool(SchemaManager(self._file_io, path).ids())

    def _require(self, database: str) -> None:
        if not self._file_io.is_directory(self._database(database)):
            known = ", ".join(self.list_databases()) or "none"
            raise DatabaseNotFound(f"{self._root}: no database '{database}'; there are: {known}")

    def _require_table(self, name: str) -> None:
        if not self.table_exists(name):
            raise TableNotFound(f"{self._path(name)}: no Paimon table is here")


__all__ = ["Catalog"]
