"""Catalog whose databases and tables are rows of a database, with directories as in a file-system catalog."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from manifest.io.catalog_errors import CatalogUnavailable
from manifest.io.errors import TableExists, TableNotFound
from manifest.schema.manager import SchemaManager
from paimon_base.errors import InvalidArgument
from paimon_base.public import public
from pyspark_paimon.catalog.catalog_base import DatabaseExists, check_name, missing_database
from pyspark_paimon.plugins.catalogs.jdbc.options import JdbcOptions
from pyspark_paimon.plugins.catalogs.jdbc.rows import CatalogRows, RowTaken
from pyspark_paimon.plugins.catalogs.registered import RegisteredCatalog

_LOCATION = "location"
_OWN_PROPERTY = "exists"
_LONGEST_NAME, _LONGEST_VALUE = 255, 1000


@public
class JdbcCatalog(RegisteredCatalog):
    """Catalog of Paimon's option ``metastore`` = ``jdbc``.

    ``Catalog(warehouse, {"metastore": "jdbc", "uri": ...})`` returns it. A table is a row of the database, and a directory
    ``<warehouse>/<database>.db/<table>``. The database is asked here, never by Spark. Every method raises ``CatalogUnavailable`` if the database fails. No error shows its password.

    >>> import tempfile
    >>> from pyspark_paimon import Catalog
    >>> place = tempfile.mkdtemp()
    >>> options = {"metastore": "jdbc", "uri": f"jdbc:sqlite:{place}/catalog.db"}
    >>> Catalog(place, options).list_databases()  # doctest: +SKIP
    []
    """

    _rows: CatalogRows

    def __init__(self, warehouse: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        catalog_options = dict(options or {})
        catalog_options.pop("metastore", None)
        parsed, rest = JdbcOptions.of(catalog_options)
        super().__init__(warehouse, rest)
        self._key = parsed.catalog_key
        self._registry = f"catalog '{self._key}'"
        self._rows = CatalogRows(parsed)

    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        return self._rows.databases()

    def create_database(self, name: str, *, ignore_if_exists: bool = False, options: Mapping[str, str] | None = None) -> None:
        """Create a database.

        Args:
            name: Database name.
            ignore_if_exists: Whether an existing database is no error.
            options: Properties of the database.

        Raises:
            DatabaseExists: There is such a database, and ``ignore_if_exists`` is False.
        """
        self._settings.check_name(name, "database")
        properties = {_LOCATION: self._database(name), **_checked(options or {})}
        if (self._rows.has_database(name) or not self._rows.create_database(name, properties)) and not ignore_if_exists:
            raise DatabaseExists(f"{self._root}: database '{name}' exists in {self._registry}")

    def database_options(self, name: str) -> dict[str, str]:
        """Return the properties of a database.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        self._require(name)
        return {_LOCATION: self._database(name), **self._rows.properties(name)}

    def alter_database(self, name: str, changes: Mapping[str, Any]) -> None:
        """Set properties of a database; None removes one.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        self._require(name)
        _checked({key: value for key, value in changes.items() if value is not None})
        self._rows.change_properties(name, {key: None if value is None else str(value) for key, value in changes.items()})

    def _drop_empty(self, database: str) -> None:
        # As in Java the directory stays: it may have tables that are not registered.
        self._rows.delete_database(database)

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of a database's tables, sorted.

        ``database`` None: the default database.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        database = self.default_database if database is None else database
        self._require(database)
        return self._rows.tables(database)

    def table_exists(self, name: str) -> bool:
        """Return whether the table is registered."""
        self._path(name)
        return self._rows.has_table(*self._split(name))

    def _is_registered(self, name: str) -> bool:
        return self.table_exists(name)

    def _register(self, name: str, *, new: bool = True) -> None:  # noqa: ARG002  # a database refuses no entry, so files stay
        path, names = self._path(name), self._split(name)
        schema = SchemaManager(self._file_io, path).require()
        keys = {"primary-key": schema.primary_keys, "partition": schema.partition_keys, "bucket-key": schema.bucket_keys}
        properties = {**schema.options, **{key: ",".join(columns) for key, columns in keys.items() if columns}}
        if not self._rows.insert_table(*names, properties):
            raise TableExists(f"{path}: another process registered this table in {self._registry} meanwhile; open it by its name")
        if not self._is_table(path):  # dropped between the two
            self._rows.delete_table(*names)
            raise TableNotFound(
                f"{path}: another process dropped the table while it was registered; nothing is registered, create it again"
            )

    def _move_table(self, name: str, new_name: str) -> None:
        source, target = self._split(name), self._split(new_name)
        # The row is deleted first and written last: no crash leaves a row without a directory.
        if not self._rows.delete_table(*source, properties=False):
            raise TableNotFound(f"{self._path(name)}: another process dropped or renamed the table")
        try:
            with self._rows.moving(source, target):
                super()._move_table(name, new_name)
        except Exception as error:
            if self._is_table(self._path(name)):
                self._rows.insert_table(*source, {})
            elif isinstance(error, CatalogUnavailable):
                raise CatalogUnavailable(
                    f"{self._path(new_name)}: the table was moved here, but perhaps not registered ({error}); "
                    "create_table(..., if_not_exists=True) registers it"
                ) from error
            if isinstance(error, RowTaken):
                raise TableExists(
                    f"{self._path(new_name)}: another process created '{name}' or '{new_name}'; nothing is renamed"
                ) from error
            raise

    def _drop_table(self, name: str) -> None:
        # The row goes first: no crash leaves a row without a directory.
        if not self._rows.delete_table(*self._split(name)):
            raise TableNotFound(f"{self._path(name)}: no table '{name}' in {self._registry}")
        if self._file_io.is_directory(self._path(name)):  # another engine's crash may leave a row without one
            self._delete_files(name)

    def __repr__(self) -> str:
        return f"JdbcCatalog({self._root}, {self._key!r})"

    def _existing_path(self, name: str) -> str:
        path = super()._existing_path(name)
        self._require_table(name)
        return path

    def _require(self, database: str) -> None:
        if not self._rows.has_database(check_name(database, "database")):
            raise missing_database(database, self.list_databases(), f"{self._root}, {self._registry}")

    def _require_table(self, name: str) -> None:
        if not self.table_exists(name):
            raise TableNotFound(f"{self._path(name)}: no table '{name}' in {self._registry}")


def _checked(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return properties of a database as texts.

    Raises ``InvalidArgument`` for a property that the catalog's tables cannot hold.
    """
    texts = {key: str(value) for key, value in properties.items()}
    for key, value in texts.items():
        if key == _OWN_PROPERTY:
            raise InvalidArgument(f"property '{_OWN_PROPERTY}' of databases belongs to the catalog; choose another name")
        if not 0 < len(key) <= _LONGEST_NAME or len(value) > _LONGEST_VALUE:
            raise InvalidArgument(
                f"property '{key[:40]}' of a database: its name may have {_LONGEST_NAME} characters, its value {_LONGEST_VALUE}"
            )
    return texts
