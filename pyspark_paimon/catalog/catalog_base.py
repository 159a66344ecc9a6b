"""Base class of catalogs, catalog errors and table names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from manifest.io.catalog_errors import NotOffered
from manifest.io.errors import TableExists, TableNotFound
from manifest.options.catalog_options import CatalogOptions
from paimon_base.errors import InvalidArgument, PaimonError, UnsupportedOption, did_you_mean
from paimon_base.public import public
from pyspark_paimon.catalog.table_rounds import TableRounds
from pyspark_paimon.catalog.view import SPARK, View, ViewChanges, ViewStore
from pyspark_paimon.request.validate import CheckedMethods
from pyspark_paimon.results.results import Removal
from pyspark_paimon.results.state_results import CopyResult
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import Data, Filter, Schema, SparkSession

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema

DATABASE_SUFFIX = ".db"
DEFAULT_DATABASE = "default"


@public
class DatabaseNotFound(PaimonError, LookupError):
    """The catalog has no such database."""


def missing_database(name: str, database_names: Sequence[str], location: str) -> DatabaseNotFound:
    """Return the error for an unknown database.

    >>> print(missing_database("slaes", ["sales"], "/lake"))
    /lake: no database 'slaes', did you mean 'sales'; known databases: sales; create_database('slaes') of the catalog makes it
    """
    listed = ", ".join(database_names) or "none"
    return DatabaseNotFound(
        f"{location}: no database '{name}'{did_you_mean(name, database_names)}; known databases: {listed}; "
        f"create_database({name!r}) of the catalog makes it"
    )


@public
class DatabaseExists(PaimonError, FileExistsError):
    """The catalog already has a database of that name."""


@public
class AnyCatalog(TableRounds, CheckedMethods, ABC):
    """Base class of catalogs.

    Tables are named ``database.table``. A name without a database belongs to ``default``, or to that of the option ``default-database``.
    """

    has_views: ClassVar[bool] = False
    """Whether catalogs of this kind store views."""
    _settings: CatalogOptions = CatalogOptions()

    @property
    def default_database(self) -> str:
        """Database of names without one.

        >>> from pyspark_paimon import Catalog
        >>> Catalog("/warehouse", {"default-database": "sales"}).default_database
        'sales'
        """
        return self._settings.default_database

    def _split(self, name: str) -> tuple[str, str]:
        """Split a name into database and table."""
        return split_name(name, self._settings.default_database)

    @abstractmethod
    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted."""

    @abstractmethod
    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        """Create a database.

        Raises:
            DatabaseExists: There is such a database, and ``ignore_if_exists`` is False.
        """

    def drop_database(self, name: str) -> None:
        """Delete an empty database.

        Raises:
            DatabaseNotFound: There is no such database.
            InvalidArgument: The database has tables.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> catalog.create_database("sales")
        >>> catalog.drop_database("sales")
        >>> catalog.list_databases()
        []
        """
        for what, names in (("tables", self.list_tables(name)), ("views", self._views_of(name))):
            if names:
                raise InvalidArgument(f"database '{name}' has {what}: {', '.join(names)}; drop them first")
        self._drop_empty(name)

    def _views_of(self, database: str) -> list[str]:
        """Return the names of a database's views; none where there cannot be any."""
        try:
            return self.list_views(database) if self.has_views else []
        except NotOffered:
            return []

    @abstractmethod
    def _drop_empty(self, database: str) -> None:
        """Delete a database without tables."""

    @abstractmethod
    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of a database's tables, sorted.

        ``database`` None: the default database.

        Raises:
            DatabaseNotFound: There is no such database.
        """

    def create_table(
        self,
        name: str,
        schema: Schema | Data,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
        comment: str | None = None,
        path: str | None = None,
    ) -> Table:
        """Create a table, as ``Table.create`` does.

        The database ``default`` is created if needed. Hive and JDBC catalogs write the files first, then register the table: a crash
        between them leaves a table that is not registered. ``if_not_exists`` registers it, as it is.

        Args:
            name: Table name.
            schema: As for ``Table.create``.
            primary_keys: As for ``Table.create``.
            partition_keys: As for ``Table.create``.
            options: As for ``Table.create``. Missing ones are the catalog's ``table-default.*``.
            if_not_exists: Return the table of that name, if there is one, as it is.
            comment: As for ``Table.create``.
            path: Location of an external table of a REST catalog, whose files the server does not manage. None: the catalog chooses it.

        Raises:
            DatabaseNotFound: There is no such database.
            TableExists: There is such a table, or its directory, and ``if_not_exists`` is False.
            InvalidSchema, UnsupportedType, UnsupportedOption, InvalidArgument: The definition is not valid. Nothing is created.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> Catalog(tempfile.mkdtemp()).create_table("orders", "id BIGINT", primary_keys=["id"]).primary_keys
        ('id',)
        """
        from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # loads what opening a table does not need

        database, _ = self._new_name(name)
        built = new_schema(schema, primary_keys, partition_keys, {**self._settings.table_defaults, **(options or {})}, comment)
        for column in built.names:
            self._settings.check_name(column, "column")
        if database == self.default_database:
            self.create_database(database, ignore_if_exists=True)
        try:
            self._create_table(name, built, path)
            self._register(name)
        except TableExists:
            if not if_not_exists:
                raise
            self._complete(name, built)
        return self.table(name)

    def _new_name(self, name: str) -> tuple[str, str]:
        """Return database and table of a new name.

        Raises ``InvalidArgument`` for a name that no table may have.
        """
        database, table = self._split(name)
        check_name(database, "database")
        self._settings.check_name(check_name(table, "table"), "table")
        if "$" in table:
            raise InvalidArgument(f"'{name}': '$' names a branch or a system table; choose a name without it")
        return database, table

    @abstractmethod
    def _create_table(self, name: str, schema: TableSchema, path: str | None) -> None:
        """Create a table with a checked name and schema. Raises ``TableExists``, ``DatabaseNotFound``."""

    def _register(self, name: str, *, new: bool = True) -> None:
        """Write a table's entry to the registry, if the catalog has one.

        new: Whether this process wrote the files.
        """

    def _complete(self, name: str, schema: TableSchema) -> None:
        """Write what a crash left out of a table, if the catalog has a registry: its files or its entry."""

    @abstractmethod
    def table(self, name: str, spark: SparkSession | None = None) -> Table:
        """Open a table.

        Args:
            name: Table name; ``database.table$branch_name`` is a branch.
            spark: Session whose server reads and writes the table. None: this process does.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such table.
        """

    def open(self, name: str, spark: SparkSession | None = None) -> Table:
        """Open a table, as ``table`` does.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> created = catalog.create_table("orders", "id BIGINT")
        >>> catalog.open("orders").schema.names
        ['id']
        """
        return self.table(name, spark)

    @abstractmethod
    def table_exists(self, name: str) -> bool:
        """Return whether there is such a table."""

    @abstractmethod
    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table, or move it to another database.

        Processes that have it open can no longer use it.

        Raises:
            TableNotFound: There is no such table.
            TableExists: The new name exists.
        """

    def copy_table(
        self,
        name: str,
        new_name: str,
        *,
        filter: Filter = None,  # noqa: A002  # as in scan
        spark: SparkSession | None = None,
    ) -> CopyResult:
        """Copy a table into a new one, file by file, as ``Table.copy_to`` does.

        Args:
            name: Table name.
            new_name: Name of the new table.
            filter: Copy only partitions whose columns satisfy this filter.
            spark: Session whose server copies the files. None: this process does.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such database or table.
            TableExists: The new name exists.
            UnsupportedTable: A catalog server creates the directories of its tables.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> snapshot = catalog.create_table("orders", "id BIGINT").write({"id": [1, 2]}).snapshot_id
        >>> catalog.copy_table("orders", "orders_copy").rows, catalog.table("orders_copy").count()
        (2, 2)
        """
        result = self.table(name, spark).copy_to(self._new_place(new_name), filter=filter)
        self._register(new_name)
        return result

    @abstractmethod
    def _new_place(self, name: str) -> str:
        """Return the directory of a new table. Raises ``TableExists``, ``DatabaseNotFound``."""

    def drop_table(self, name: str, *, dry_run: bool = False) -> Removal | None:
        """Delete a table and all its files.

        A catalog server only removes the name of an external table.

        Args:
            name: Table name.
            dry_run: Return what would be deleted, and change nothing.

        Raises:
            TableNotFound: There is no such table.

        >>> import tempfile
        >>> from pyspark_paimon import Catalog
        >>> catalog = Catalog(tempfile.mkdtemp())
        >>> created = catalog.create_table("orders", "id BIGINT")
        >>> catalog.drop_table("orders")
        >>> catalog.list_tables()
        []
        """
        if not dry_run:
            self._drop_table(name)
            return None
        from manifest.expire.dry_run import table_removal  # noqa: PLC0415  # loads the code that deletes files
        from pyspark_paimon.local.engine import LocalEngine  # noqa: PLC0415  # as above
        from pyspark_paimon.operations.history.removal import removal_of  # noqa: PLC0415  # as above

        engine = self.table(name)._engine  # noqa: SLF001  # no public accessor
        assert isinstance(engine, LocalEngine), "a table without a session has a local engine"
        store = engine.store()
        return removal_of(table_removal(store), snapshots=len(store.snapshots.ids()), tags=tuple(sorted(store.snapshots.tags())))

    @abstractmethod
    def _drop_table(self, name: str) -> None:
        """Delete a table and all its files."""

    def create_views(self, spark: SparkSession, database: str | None = None) -> list[str]:
        """Create a temporary Spark view of each table.

        Views have the names of the tables, which are returned sorted. A view reads the snapshot that is the newest when it is
        created.

        Raises:
            DatabaseNotFound: There is no such database.

        >>> Catalog("/warehouse").create_views(spark, "sales")  # doctest: +SKIP
        ['orders']
        """
        database = self.default_database if database is None else database
        names = self.list_tables(database)
        for name in names:
            self.table(f"{database}.{name}", spark).scan().to_spark().createOrReplaceTempView(name)
        return names

    @property
    def _views(self) -> ViewStore:
        """The views of the catalog. Raises ``UnsupportedOption`` where catalogs of this kind have none."""
        raise UnsupportedOption(
            "metastore", f"{self!r} has no views; use a REST or Hive catalog, or CREATE TEMPORARY VIEW in a session of Spark"
        )

    def list_views(self, database: str | None = None) -> list[str]:
        """Return the names of a database's views, sorted.

        ``database`` None: the default database.

        Raises:
            DatabaseNotFound: There is no such database.
            UnsupportedOption: Catalogs of this kind have no views. All methods of views raise it.
            NotOffered: The catalog's server has no views. All methods of views raise it.
        """
        return self._views.names(self.default_database if database is None else database)

    def view(self, name: str) -> View:
        """Return a view.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such view.
        """
        return self._views.get(*self._view_name(name))

    def create_view(
        self,
        name: str,
        query: str,
        schema: Schema | Data,
        *,
        dialects: Mapping[str, str] | None = None,
        comment: str | None = None,
        options: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> View:
        """Store a query under a name. Nothing checks the query.

        Args:
            name: Name of the view.
            query: Text of the query.
            schema: Columns of the query, as for ``Table.create``.
            dialects: The query for engines that need another text, by Paimon's name of the engine. None: ``query`` is also
                that of ``spark``, as Paimon's Spark stores it.
            comment: Comment of the view.
            options: Properties of the view.
            if_not_exists: Return the view that has the name, if there is one, as it is.

        Raises:
            DatabaseNotFound: There is no such database.
            TableExists: A table has the name; or a view has it, and ``if_not_exists`` is False.
            InvalidSchema, UnsupportedType: The columns are not valid.
        """
        from pyspark_paimon.table.new_schema import new_schema  # noqa: PLC0415  # rarely needed

        views, (database, view) = self._views, self._view_name(name)
        self._settings.check_name(view, "view")
        fields = new_schema(schema, (), (), None, None).fields
        self._refuse_table(f"{database}.{view}")
        texts = {SPARK: query} if dialects is None else dict(dialects)
        try:
            views.create(View(f"{database}.{view}", fields, query, texts, comment, dict(options or {})))
        except TableExists:
            if not if_not_exists:
                raise
        return views.get(database, view)

    def alter_view(
        self,
        name: str,
        *,
        dialects: Mapping[str, str | None] | None = None,
        comment: str | None = None,
        options: Mapping[str, str | None] | None = None,
    ) -> None:
        """Change a view.

        Args:
            name: Name of the view.
            dialects: New queries by engine; None removes one.
            comment: New comment; '' removes it. None: it stays.
            options: New properties; None removes one.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such view.
        """
        self._views.alter(self.view(name), ViewChanges(dialects or {}, comment, options or {}))

    def rename_view(self, name: str, new_name: str) -> None:
        """Rename a view, or move it to another database.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such view.
            TableExists: The new name exists.
        """
        source, target = self._view_name(name), self._view_name(new_name)
        self._settings.check_name(target[1], "view")
        self._refuse_table(".".join(target))
        self._views.rename(source, target)

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Delete a view.

        Raises:
            DatabaseNotFound, TableNotFound: There is no such view, and ``if_exists`` is False.
        """
        try:
            self._views.drop(*self._view_name(name))
        except (DatabaseNotFound, TableNotFound):
            if not if_exists:
                raise

    def _refuse_table(self, name: str) -> None:
        """Raise ``TableExists`` if a table has the name of a new view."""
        if self.table_exists(name):
            raise TableExists(f"{name}: a table has this name; choose another one for the view")

    def _view_name(self, name: str) -> tuple[str, str]:
        """Split the name of a view into database and view. Raises ``InvalidArgument``."""
        database, view = self._split(name)
        if "$" in view:
            raise InvalidArgument(f"{name}: '$' names a part of a table; a view has none")
        return check_name(database, "database"), check_name(view, "view")


def split_name(name: str, default: str = DEFAULT_DATABASE) -> tuple[str, str]:
    """Split a name into database and table.

    ``default``: database of a name without one.

    >>> split_name("sales.orders"), split_name("orders")
    (('sales', 'orders'), ('default', 'orders'))
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"a table name must be a str, not {name!r}")
    database, dot, table = name.rpartition(".")
    return (database, table) if dot else (default, name)


def check_name(name: object, what: str) -> str:
    """Return ``name`` if it is valid as a directory name.

    Raises ``InvalidArgument``.
    """
    if (
        not isinstance(name, str)
        or not name
        or name.startswith(".")
        or any(letter in name for letter in "/\\.")
        or not name.isprintable()
        or name.endswith(DATABASE_SUFFIX)
    ):
        raise InvalidArgument(f"{name!r} is not a valid name of a {what}: it must be printable, without '.', '/' and '\\\\'")
    return name
