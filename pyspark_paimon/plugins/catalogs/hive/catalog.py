"""Catalog whose databases and tables a Hive metastore names; schemas and snapshots are files, as everywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from manifest.io.catalog_errors import CatalogUnavailable, ResourceMissing, ResourceTaken
from manifest.io.errors import CatalogRefused, TableExists, TableNotFound, UnsupportedTable
from manifest.io.file_io import FileIO
from manifest.io.paths import TablePaths, split_branch, split_system, with_branch
from manifest.schema.manager import SchemaManager
from manifest.storage.resolve import file_io_for
from manifest.storage.schemes import FAMILIES, StoreFamily, scheme_of
from paimon_base.errors import InvalidArgument, PaimonError
from paimon_base.public import public
from pyspark_paimon.catalog.catalog_base import DATABASE_SUFFIX, DatabaseExists, check_name, missing_database
from pyspark_paimon.catalog.view import ViewStore
from pyspark_paimon.plugins.catalogs.hive.catalog_views import HiveViews
from pyspark_paimon.plugins.catalogs.hive.locked import LockedFileIO, LockOptions
from pyspark_paimon.plugins.catalogs.hive.metastore import Metastore
from pyspark_paimon.plugins.catalogs.hive.options import HiveOptions
from pyspark_paimon.plugins.catalogs.hive.tables import (
    DATABASE_DESCRIPTION,
    DATABASE_LOCATION,
    DATABASE_OWNER,
    DATABASE_PARAMETERS,
    LOCATION_PROPERTY,
    NAME,
    is_external,
    is_paimon,
    is_same,
    location_of,
    refreshed,
    registered,
    relocated,
)
from pyspark_paimon.plugins.catalogs.hive.wire import Struct, properties, text, value_of
from pyspark_paimon.plugins.catalogs.registered import RegisteredCatalog
from pyspark_paimon.results.results import Removal
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import SparkSession

_LOCATION, _COMMENT, _OWNER = "location", "comment", "owner"
_FIELDS = {_LOCATION: DATABASE_LOCATION, _COMMENT: DATABASE_DESCRIPTION, _OWNER: DATABASE_OWNER}


@public
class HiveCatalog(RegisteredCatalog):
    """Catalog of Paimon's option ``metastore`` = ``hive``.

    ``Catalog(warehouse, {"metastore": "hive", "uri": "thrift://host:9083"})`` returns it. The metastore has names, locations and columns of
    tables. A new table lies in the location of its database, which is ``<warehouse>/<database>.db`` unless another one is given. Every method
    raises ``CatalogUnavailable`` if the metastore does not answer.

    >>> from pyspark_paimon import Catalog
    >>> Catalog("/warehouse", {"metastore": "hive", "uri": "thrift://metastore:9083"}).list_databases()  # doctest: +SKIP
    ['default']
    """

    has_views: ClassVar[bool] = True
    _registry = "the metastore"

    def __init__(self, warehouse: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        catalog_options = dict(options or {})
        catalog_options.pop("metastore", None)
        self._hive, rest = HiveOptions.of(catalog_options)
        self._lock, rest = LockOptions.of(rest)
        super().__init__(warehouse, rest)
        self._metastore = Metastore(self._hive)

    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        return sorted(self._metastore.databases())

    def create_database(self, name: str, *, ignore_if_exists: bool = False, options: Mapping[str, str] | None = None) -> None:
        """Create a database.

        Args:
            name: Database name.
            ignore_if_exists: Whether an existing database is no error.
            options: Properties of the database. ``location``, ``comment`` and ``owner`` are its own.

        Raises:
            DatabaseExists: There is such a database, and ``ignore_if_exists`` is False.
        """
        self._settings.check_name(check_name(name, "database"), "database")
        parameters = {key: str(value) for key, value in (options or {}).items()}
        files, location = file_io_for(parameters.pop(_LOCATION, f"{self._root}/{name}{DATABASE_SUFFIX}"), storage_options=self._options)
        if self._hive.location_in_properties:
            parameters[LOCATION_PROPERTY] = location
            files.mkdirs(location)
        else:
            parameters[_LOCATION] = location
        try:
            self._metastore.create_database(_database(name, parameters))
        except ResourceTaken:
            if not ignore_if_exists:
                raise DatabaseExists(f"{self._root}: database '{name}' exists in the metastore") from None

    def database_options(self, name: str) -> dict[str, str]:
        """Return the properties of a database, and its location.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        database = self._known_database(name)
        field_values = {key: value for key, field in _FIELDS.items() if (value := value_of(database, field)) is not None}
        return {**value_of(database, DATABASE_PARAMETERS, {}), **field_values}

    def alter_database(self, name: str, changes: Mapping[str, Any]) -> None:
        """Set properties of a database; None removes one. Its location stays, and it keeps a comment.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        if _LOCATION in changes or LOCATION_PROPERTY in changes:
            raise InvalidArgument(f"database '{name}': its location cannot be changed; create another database")
        before = self._known_database(name)
        if _COMMENT in changes and not str(changes[_COMMENT] or "").strip() and value_of(before, DATABASE_DESCRIPTION):
            # Hive ignores an empty one.
            raise InvalidArgument(f"database '{name}': the metastore cannot remove a comment; set another one")
        merged = {**self.database_options(name), **{key: None if value is None else str(value) for key, value in changes.items()}}
        remaining_options = {key: value for key, value in merged.items() if value is not None}
        unchanged_fields = {field: value for field, value in before.items() if field not in _FIELDS.values()}
        self._metastore.alter_database(name, {**unchanged_fields, **_database(name, remaining_options)})

    def _drop_empty(self, database: str) -> None:
        # The directory stays: it may have tables that are not registered.
        try:
            self._metastore.drop_database(database)
        except CatalogRefused as error:
            raise InvalidArgument(f"database '{database}' cannot be dropped: it may have tables of other kinds ({error})") from error

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of a database's Paimon tables, sorted.

        ``database`` None: the default database.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        database = self.default_database if database is None else database
        self._require(database)
        entries = self._metastore.tables(database, self._metastore.table_names(database))
        return sorted(value_of(table, NAME) for table in entries if is_paimon(table))

    def table(self, name: str, spark: SparkSession | None = None) -> Table:
        """Open a table.

        Args:
            name: Table name; ``database.table$branch_name`` is a branch, ``database.table$files`` a system table.
            spark: As for a file-system catalog. The metastore is asked here, never by Spark: after a change of the schema by such a table
                call ``repair_table``.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such table.
        """
        if spark is not None or split_system(name) is not None:
            return super().table(name, spark)
        from pyspark_paimon.plugins.catalogs.hive.engine import HiveEngine  # noqa: PLC0415  # loads the storage engine
        from pyspark_paimon.request.state import SchemaOf  # noqa: PLC0415  # as above

        plain, branch = split_branch(name)
        names = self._split(plain)
        file_io, path = file_io_for(self._existing_path(plain), storage_options=self._options)
        if self._locks(path):
            file_io = LockedFileIO(file_io, self._metastore, names, self._lock)
        engine = HiveEngine(self._metastore, self._hive, names, with_branch(path, branch), settings=self._settings, file_io=file_io)
        engine.ask(SchemaOf())
        return Table(engine)

    def _locks(self, path: str) -> bool:
        """Return whether commits to a table hold the metastore's lock."""
        if self._lock.enabled is not None:
            return self._lock.enabled
        # Renames of file systems and HDFS fail if the name exists. Those that other engines make on object stores do not.
        scheme = scheme_of(path)
        return scheme is not None and FAMILIES[scheme] is not StoreFamily.HDFS

    def table_exists(self, name: str) -> bool:
        """Return whether the metastore has such a Paimon table."""
        entry = self._entry(name)
        return entry is not None and is_paimon(entry)

    def _is_registered(self, name: str) -> bool:
        entry = self._entry(name)
        if entry is not None and not is_paimon(entry):
            raise TableExists(f"'{name}' is another kind of table in the metastore; choose another name")
        return entry is not None

    def repair_table(self, name: str) -> bool:
        """Write the newest schema of a table to the metastore, as Paimon's ``sys.repair`` does.

        Registers a table whose directory lies in the location of its database. Returns whether anything was changed.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such database or table.
        """
        self._require(self._split(name)[0])
        stored_entry = self._entry(name)
        if stored_entry is None:
            if not self._is_table(self._path(name)):
                raise TableNotFound(f"{self._path(name)}: no table '{name}' in the metastore, and no Paimon table is here")
            self._check_unshared(name)
            self._register(name, new=False)
            return True
        if not is_paimon(stored_entry):
            raise UnsupportedTable(f"'{name}' is another kind of table in the metastore")
        entry = refreshed(stored_entry, SchemaManager(self._files(name), self._path(name)).require(), self._hive)
        if is_same(stored_entry, entry):
            return False
        self._metastore.alter_table(*self._split(name), entry)
        return True

    def drop_table(self, name: str, *, dry_run: bool = False) -> Removal | None:
        """Delete a table and all its files. Of an external table only the entry in the metastore.

        Args:
            name: Table name.
            dry_run: Return what would be deleted, and change nothing.

        Raises:
            TableNotFound: There is no such table.
        """
        if dry_run and (entry := self._entry(name)) is not None and is_paimon(entry) and is_external(entry):
            return Removal()
        return super().drop_table(name, dry_run=dry_run)

    @property
    def _views(self) -> ViewStore:
        return HiveViews(self._metastore, self._require)

    def _register(self, name: str, *, new: bool = True) -> None:
        path, names = self._path(name), self._split(name)
        entry = registered(*names, SchemaManager(self._files(name), path).require(), path, self._hive)
        try:
            self._metastore.create_table(entry)
        except ResourceTaken:
            raise TableExists(f"{path}: another process registered '{name}' in the metastore meanwhile; open it by its name") from None
        except CatalogRefused as error:
            if not new or self._entry(name) is not None:
                raise
            self._retire(file_io_for(path, storage_options=self._options)[0], path)
            raise CatalogRefused(f"'{name}' was not created: {error}") from error
        except CatalogUnavailable as error:
            if self._is_registered_at(names, path):
                return  # only the answer was lost
            raise CatalogUnavailable(
                f"{path}: the table was created here, but perhaps not registered ({error}); repair_table('{name}') registers it"
            ) from error

    def _check_unshared(self, name: str) -> None:
        path = self._path(name)
        for database in self._metastore.databases():
            for table in self._metastore.tables(database, self._metastore.table_names(database)):
                location = location_of(table) if is_paimon(table) else None
                if location is not None and self._is_place(location, path):
                    raise TableExists(f"{path}: the files belong to table '{database}.{value_of(table, NAME)}'; open it by that name")

    def _is_place(self, location: str, path: str) -> bool:
        try:
            return file_io_for(location, storage_options=self._options)[1] == path
        except PaimonError:  # a store that this package does not know
            return False

    def _move_table(self, name: str, new_name: str) -> None:
        source, target = self._split(name), self._split(new_name)
        entry = self._metastore.table(*source)
        renamed = {**entry, **{field: text(value) for field, value in zip((NAME, NAME + 1), reversed(target), strict=True)}}
        old_path, new_path = self._path(name), self._path(new_name)
        if self._entry(new_name) is not None:
            raise TableExists(f"'{new_name}': the metastore has a table or view of that name already")
        moves = not is_external(entry)
        files = file_io_for(old_path, storage_options=self._options)[0]
        if moves:
            if scheme_of(old_path) != scheme_of(new_path):
                raise UnsupportedTable(f"'{name}' cannot be moved from {old_path} to {new_path}, another store; copy it with copy_table")
            # The files first: with another location in its entry, the metastore leaves them alone.
            try:
                files.rename_directory(old_path, new_path)
            except FileExistsError as error:
                raise TableExists(f"{new_path}: a table or something else is here already") from error
            renamed = relocated(renamed, new_path, self._hive)
        try:
            self._metastore.alter_table(*source, renamed)
        except (CatalogRefused, CatalogUnavailable) as error:
            if self._is_registered_at(target, new_path if moves else old_path):
                return  # only the answer was lost
            file_location = old_path
            if moves:
                try:
                    files.rename_directory(new_path, old_path)
                except OSError:
                    file_location = f"{new_path}, and could not be moved back to {old_path}"
            perhaps = "was not" if isinstance(error, CatalogRefused) else "was perhaps not"
            raise CatalogUnavailable(f"'{name}' {perhaps} renamed to '{new_name}' ({error}); its files are at {file_location}") from error

    def _is_registered_at(self, names: tuple[str, str], path: str) -> bool:
        """Return whether the metastore surely has a table at ``path``."""
        try:
            location = location_of(self._metastore.table(*names))
        except (CatalogRefused, CatalogUnavailable):
            return False
        return location is not None and self._is_place(location, path)

    def _drop_table(self, name: str) -> None:
        # The entry goes first: no crash leaves an entry without files.
        self._require_table(name)
        path, files, names = self._path(name), self._files(name), self._split(name)
        external = is_external(self._metastore.table(*names))
        try:
            self._metastore.drop_table(*names)
        except CatalogUnavailable:
            if self._entry(name) is not None:
                raise
        if not external and files.is_directory(path):
            self._retire(files, path)

    @staticmethod
    def _retire(files: FileIO, path: str) -> None:
        schemas = SchemaManager(files, path)
        files.retire_directory(path, [TablePaths(path).schema_file(schema_id) for schema_id in reversed(schemas.ids())])

    def __repr__(self) -> str:
        addresses = ",".join(f"thrift://{host}:{port}" for host, port in self._hive.addresses)
        return f"HiveCatalog({self._root}, {addresses})"

    def _entry(self, name: str) -> Struct | None:
        """Return the metastore's entry of a table, None if there is none."""
        database, table = self._split(name)
        check_name(table, "table")
        try:
            return self._metastore.table(check_name(database, "database"), table)
        except ResourceMissing:
            return None

    def _files(self, name: str) -> FileIO:
        return file_io_for(self._path(name), storage_options=self._options)[0]

    def _path(self, name: str) -> str:
        entry = self._entry(name)
        location = None if entry is None else location_of(entry)
        if location is None:
            database, table = self._split(name)
            location = f"{self._database(database)}/{table}"
        return file_io_for(location, storage_options=self._options)[1]

    def _database(self, name: str) -> str:
        database = self._known_database(name)
        location = value_of(database, DATABASE_PARAMETERS, {}).get(LOCATION_PROPERTY) or value_of(database, DATABASE_LOCATION)
        return str(location or f"{self._root}/{name}{DATABASE_SUFFIX}").rstrip("/")

    def _is_table(self, path: str) -> bool:
        return bool(SchemaManager(file_io_for(path, storage_options=self._options)[0], path).ids())

    def _existing_path(self, name: str) -> str:
        self._require_table(name)
        return self._path(name)

    def _known_database(self, name: str) -> Struct:
        try:
            return self._metastore.database(check_name(name, "database"))
        except ResourceMissing:
            raise missing_database(name, self.list_databases(), "the metastore") from None

    def _require(self, database: str) -> None:
        self._known_database(database)

    def _require_table(self, name: str) -> None:
        entry = self._entry(name)
        if entry is None:
            self._require(self._split(name)[0])
            raise TableNotFound(f"no table '{name}' in the metastore")
        if not is_paimon(entry):
            raise TableNotFound(f"'{name}' in the metastore is not a Paimon table, but another kind of table or a view")


def _database(name: str, parameters: Mapping[str, str]) -> Struct:
    field_values = {field: text(parameters[key]) for key, field in _FIELDS.items() if key in parameters}
    other_parameters = {key: value for key, value in parameters.items() if key not in _FIELDS}
    return {1: text(name), **field_values, DATABASE_PARAMETERS: properties(other_parameters)}
