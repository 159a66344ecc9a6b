"""Catalog of a REST server.

The server stores the table names, commits their snapshots and issues credentials for their storage. This process, or a Spark
server, reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from manifest.io.catalog_errors import NotOffered, ResourceMissing, ResourceTaken
from manifest.io.errors import TableExists, UnsupportedTable
from manifest.io.paths import split_branch
from manifest.options.catalog_options import CatalogOptions
from paimon_base.errors import InvalidArgument
from paimon_base.public import public
from pyspark_paimon.catalog.catalog_base import (
    AnyCatalog,
    DatabaseExists,
    check_name,
)
from pyspark_paimon.catalog.view import ViewStore
from pyspark_paimon.plugins.catalogs.rest.api import RestApi
from pyspark_paimon.plugins.catalogs.rest.engine import RestEngine
from pyspark_paimon.plugins.catalogs.rest.location import TableLocation, catalog_key
from pyspark_paimon.plugins.catalogs.rest.messages import Identifier
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions
from pyspark_paimon.plugins.catalogs.rest.views import RestViews, raise_catalog_errors
from pyspark_paimon.request.state import SchemaOf
from pyspark_paimon.system.opened import named_engine
from pyspark_paimon.table.engine_choice import check_session
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import SparkSession

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema


@public
class RestCatalog(AnyCatalog):
    """Catalog of the databases and tables of a REST server.

    ``Catalog.create({"metastore": "rest", "uri": ..., ...})`` returns it. Every method raises ``NotAuthorized`` (for the token),
    ``NotPermitted`` and ``CatalogUnavailable``. No error shows the token.

    >>> from pyspark_paimon import Catalog
    >>> options = {"metastore": "rest", "uri": "https://catalog:8080", "warehouse": "main", "token": "secret"}
    >>> Catalog.create(options).list_tables("sales")  # doctest: +SKIP
    ['orders']
    """

    has_views: ClassVar[bool] = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._settings, rest = CatalogOptions.of(options)
        self._api = RestApi.connect(RestOptions.of(rest))
        self._key = catalog_key(self._api.options)

    @property
    def warehouse(self) -> str:
        """Name of the warehouse on the server."""
        return self._api.options.warehouse

    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        return self._api.databases()

    def create_database(self, name: str, *, ignore_if_exists: bool = False, options: Mapping[str, str] | None = None) -> None:
        """Create a database.

        Raises:
            DatabaseExists: There is such a database, and ``ignore_if_exists`` is False.
        """
        self._settings.check_name(name, "database")
        try:
            self._api.create_database(check_name(name, "database"), options or {})
        except ResourceTaken as error:
            if not ignore_if_exists:
                raise DatabaseExists(str(error)) from error

    def database_options(self, name: str) -> dict[str, str]:
        """Return the options of a database.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        with raise_catalog_errors():
            return self._api.database(name).options

    def alter_database(self, name: str, changes: Mapping[str, Any]) -> None:
        """Set options of a database; None removes an option.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        updates = {key: str(value) for key, value in changes.items() if value is not None}
        with raise_catalog_errors():
            self._api.alter_database(name, updates, [key for key, value in changes.items() if value is None])

    def _drop_empty(self, database: str) -> None:
        with raise_catalog_errors():
            self._api.drop_database(database)

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of a database's tables, sorted.

        ``database`` None: the default database.

        Raises:
            DatabaseNotFound: There is no such database.
        """
        with raise_catalog_errors():
            return [
                name for name in self._api.tables(self.default_database if database is None else database) if split_branch(name)[0] == name
            ]

    def _create_table(self, name: str, schema: TableSchema, path: str | None) -> None:
        identifier = self._identifier(name)
        self._refuse_view(identifier)
        with raise_catalog_errors():
            self._api.create_table(identifier, schema, path)

    def _refuse_view(self, identifier: Identifier) -> None:
        with suppress(ResourceMissing, NotOffered):  # no such view, or a server without views
            self._api.view(identifier)
            raise TableExists(f"{identifier.full_name}: a view has this name; choose another one for the table")

    def table(self, name: str, spark: SparkSession | None = None) -> Table:
        """Open a table.

        Args:
            name: Table name; ``database.table$branch_name`` is a branch, ``database.table$files`` a system table.
            spark: Session of Spark Connect whose server reads and writes the table, with the options of this catalog. They
                reach the session as a file, never in a plan.

        Raises:
            DatabaseNotFound, TableNotFound, UnknownSystemTable: There is no such table.
            InvalidArgument: The session is a classic one, or an option names a file or a role of this machine.
            UnsupportedOption: The session's server takes no options of clients.
        """
        engine = named_engine(name, self._open_engine)
        if spark is None:
            return Table(engine)
        check_session(spark)
        from pyspark_paimon.spark.client.engine import SparkEngine  # noqa: PLC0415  # needs pyspark

        table = Table(SparkEngine(engine.location(spark), spark))
        table.table_schema  # noqa: B018  # asks the server
        return table

    def _open_engine(self, name: str) -> RestEngine:
        with raise_catalog_errors():
            engine = RestEngine.open(self._api, TableLocation(self._key, self._identifier(name)))
        engine.ask(SchemaOf())
        return engine

    def table_exists(self, name: str) -> bool:
        """Return whether there is such a table."""
        try:
            self._api.table(self._identifier(name))
        except ResourceMissing:
            return False
        return True

    @property
    def _views(self) -> ViewStore:
        return RestViews(self._api)

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table, or move it to another database.

        Processes that have it open can no longer use it.

        Raises:
            TableNotFound: There is no such table.
            TableExists: The new name exists.
        """
        source, target = self._identifier(name), self._identifier(new_name)
        _refuse_branch(source)
        _refuse_branch(target)
        self._new_name(new_name)
        self._refuse_view(target)
        with raise_catalog_errors():
            self._api.rename_table(source, target)

    def _new_place(self, name: str) -> str:
        raise UnsupportedTable(
            f"{name}: the server of a catalog creates the directories of its tables, so files cannot be copied into one; "
            "create the table and write the rows, or copy to a path by Table.copy_to"
        )

    def _drop_table(self, name: str) -> None:
        identifier = self._identifier(name)
        _refuse_branch(identifier)
        with raise_catalog_errors():
            self._api.drop_table(identifier)

    def _identifier(self, name: str) -> Identifier:
        database, table = self._split(name)
        check_name(split_branch(table)[0], "table")
        return Identifier(database=check_name(database, "database"), object=table)

    def __repr__(self) -> str:
        return f"RestCatalog({self._api.options.uri}, {self.warehouse!r})"


def _refuse_branch(identifier: Identifier) -> None:
    if "$" in identifier.object:
        raise InvalidArgument(f"{identifier.full_name}: this names a part of a table; create and delete branches with the methods of Table")
