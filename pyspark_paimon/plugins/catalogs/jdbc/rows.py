"""Rows of a JDBC catalog, as Paimon's Java engine writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from manifest.io.catalog_errors import CatalogUnavailable
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.plugins.catalogs.jdbc.options import JdbcOptions

_MISSING: Final = "a JDBC catalog needs SQLAlchemy; run: pip install 'pyspark-paimon[jdbc]'"
_BUSY_SECONDS = 30
"""How long SQLite waits for another process that writes."""
_EXISTS: Final = "exists"
"""Property that each database has, so that it has a row."""


class RowTaken(Exception):
    """Another process wrote the row."""


class CatalogRows:
    """Databases and tables of one catalog key.

    Creates missing tables of the catalog. Each call has its own connection and transaction. Primary keys decide races.
    Raises ``CatalogUnavailable`` if the database fails, ``UnsupportedOption`` without SQLAlchemy or a driver.
    """

    def __init__(self, options: JdbcOptions) -> None:
        try:
            import sqlalchemy as sa  # noqa: PLC0415  # optional dependency of this catalog only
        except ImportError as error:
            raise UnsupportedOption("metastore", _MISSING) from error
        self._options, self._sa = options, sa
        metadata = sa.MetaData()
        keys = ("catalog_key", "database_name", "table_name")

        def table(name: str, keys: Sequence[str], *more: Any) -> Any:
            return sa.Table(name, metadata, *(sa.Column(key, sa.String(255), primary_key=True) for key in keys), *more)

        # The key of a database's property is nullable in Java's definition.
        nullable = sa.Column("property_key", sa.String(255), primary_key=True, nullable=True)
        self._tables = table("paimon_tables", keys)
        self._databases = table("paimon_database_properties", keys[:2], nullable, sa.Column("property_value", sa.String(1000)))
        self._options_of_tables = table("paimon_table_properties", (*keys, "property_key"), sa.Column("property_value", sa.String(1000)))
        self._engine = self._connect()
        try:
            self._create_missing(metadata)
        except RowTaken:  # PostgreSQL: another process creates the same table, and is done now
            self._create_missing(metadata)

    def __reduce__(self) -> tuple[type[CatalogRows], tuple[JdbcOptions]]:
        return type(self), (self._options,)

    def _connect(self) -> Any:
        options = self._options
        url = self._sa.URL.create(
            options.database.dialect, options.user, options.password, options.host, options.port, options.place, dict(options.arguments)
        )
        more = {"timeout": _BUSY_SECONDS} if options.database.dialect == "sqlite" else {}
        try:
            # No pool: a catalog is asked rarely, and no connection is held by a fork or grows stale.
            return self._sa.create_engine(url, poolclass=self._sa.NullPool, hide_parameters=True, connect_args=more)
        except ImportError as error:
            raise UnsupportedOption("uri", f"this database needs {options.database.driver}; run: {options.database.install}") from error

    def _create_missing(self, metadata: Any) -> None:
        with self._connection() as connection:
            table_names = set(self._sa.inspect(connection).get_table_names())
            for table in metadata.sorted_tables:
                if table.name not in table_names:
                    connection.execute(self._sa.schema.CreateTable(table, if_not_exists=True))

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Open a connection for one transaction.

        Raises ``RowTaken`` if a primary key exists.
        """
        outcome = "nothing was changed"
        try:
            with self._engine.connect() as connection, connection.begin():
                outcome = "whether a change was made is unknown"
                yield connection
        except self._sa.exc.IntegrityError as error:
            raise RowTaken from error
        except self._sa.exc.SQLAlchemyError as error:
            reason = getattr(error, "orig", None) or error
            # The cause may show the address.
            raise CatalogUnavailable(f"catalog '{self._options.catalog_key}': the database failed ({reason}); {outcome}") from None

    def _of(self, table: Any, *names: str) -> Any:
        """Return the condition of a database's or table's rows."""
        columns = list(table.columns)[: len(names) + 1]
        pairs = zip(columns, (self._options.catalog_key, *names), strict=True)
        return self._sa.and_(*(column == value for column, value in pairs))

    def _texts(self, column: Any, condition: Any) -> list[str]:
        with self._connection() as connection:
            return [text for (text,) in connection.execute(self._sa.select(column).where(condition).distinct())]

    def databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        # As in Java a database exists if it has a property or a table.
        tables = (self._tables, self._databases)
        return sorted({name for table in tables for name in self._texts(table.c.database_name, self._of(table))})

    def has_database(self, name: str) -> bool:
        """Return whether a database exists."""
        return any(self._texts(table.c.database_name, self._of(table, name)) for table in (self._databases, self._tables))

    def create_database(self, name: str, properties: Mapping[str, str]) -> bool:
        """Write the rows of a new database.

        Returns False if there are some already.
        """
        try:
            with self._connection() as connection:
                connection.execute(self._databases.insert().values(self._rows([name], {_EXISTS: "true", **properties})))
        except RowTaken:
            return False
        return True

    def properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database."""
        table = self._databases
        with self._connection() as connection:
            rows = connection.execute(self._sa.select(table.c.property_key, table.c.property_value).where(self._of(table, name)))
            return {key: value for key, value in rows if key != _EXISTS}

    def change_properties(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set properties of a database; None removes one."""
        table = self._databases
        with self._connection() as connection:
            connection.execute(table.delete().where(self._of(table, name), table.c.property_key.in_(list(changes))))
            values = self._rows([name], {key: value for key, value in changes.items() if value is not None})
            if values:
                connection.execute(table.insert().values(values))

    def delete_database(self, name: str) -> None:
        """Delete the rows of a database without tables."""
        # Not the rows of tables: one that is created meanwhile keeps its database.
        with self._connection() as connection:
            for table in (self._databases, self._options_of_tables):
                connection.execute(table.delete().where(self._of(table, name)))

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables, sorted."""
        return sorted(self._texts(self._tables.c.table_name, self._of(self._tables, database)))

    def has_table(self, database: str, name: str) -> bool:
        """Return whether a table has a row."""
        return bool(self._texts(self._tables.c.table_name, self._of(self._tables, database, name)))

    def insert_table(self, database: str, name: str, properties: Mapping[str, str]) -> bool:
        """Write the row of a table, and rows of its properties.

        Returns False if there is one already.
        """
        more = self._options_of_tables
        try:
            with self._connection() as connection:
                connection.execute(self._tables.insert().values(self._row(database, name)))
                if properties and self._options.sync_properties:
                    # Engines that do not synchronize properties leave those of a dropped table.
                    connection.execute(more.delete().where(self._of(more, database, name)))
                    connection.execute(more.insert().values(self._rows([database, name], properties)))
        except RowTaken:
            return False
        return True

    def delete_table(self, database: str, name: str, *, properties: bool = True) -> bool:
        """Delete the row of a table, and rows of its properties.

        Returns whether there was one.
        """
        more = self._options_of_tables
        with self._connection() as connection:
            deleted_rows = connection.execute(self._tables.delete().where(self._of(self._tables, database, name))).rowcount
            if properties:
                connection.execute(more.delete().where(self._of(more, database, name)))
        return bool(deleted_rows)

    @contextmanager
    def moving(self, source: tuple[str, str], target: tuple[str, str]) -> Iterator[None]:
        """Write the row of a moved table, whose old row is deleted.

        Both names are locked inside the context, which moves the table's directory. An exception there writes nothing.
        Raises ``RowTaken`` if one of the names has a row.
        """
        renamed = {"database_name": target[0], "table_name": target[1]}
        more = self._options_of_tables
        with self._connection() as connection:
            connection.execute(self._tables.insert().values(self._row(*source)))
            connection.execute(self._tables.update().where(self._of(self._tables, *source)).values(renamed))
            connection.execute(more.delete().where(self._of(more, *target)))
            connection.execute(more.update().where(self._of(more, *source)).values(renamed))
            yield

    def _row(self, database: str, name: str) -> dict[str, str]:
        return {"catalog_key": self._options.catalog_key, "database_name": database, "table_name": name}

    def _rows(self, names: Sequence[str], properties: Mapping[str, str]) -> list[dict[str, str]]:
        keys = dict(zip(("database_name", "table_name"), names, strict=False))
        return [
            {"catalog_key": self._options.catalog_key, **keys, "property_key": key, "property_value": value}
            for key, value in properties.items()
        ]
