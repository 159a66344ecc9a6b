"""Resolution of table names in SQL statements.

A name is a path, a table of the given catalog, or a name of Spark's catalog for a Paimon table.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from manifest.io.catalog_errors import NotOffered
from manifest.io.errors import TableNotFound
from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon.catalog.catalog_base import DEFAULT_DATABASE, AnyCatalog, DatabaseNotFound
from pyspark_paimon.catalog.view import View
from pyspark_paimon.frames.spark_functions import quote_name
from pyspark_paimon.plugins.sql.text.words import NameParts
from pyspark_paimon.spark.driver.options import BRANCH_OPTION, PATH, stored_options
from pyspark_paimon.table.table import Table

SOURCES = ("paimon", "pyspark_paimon")
"""Prefixes of a path (paimon.`/warehouse/t`), allowed before a database name too."""
_USED: WeakKeyDictionary[AnyCatalog, str] = WeakKeyDictionary()
"""Databases that USE named, by catalog."""


@dataclass(frozen=True)
class KnownTables:
    """Tables known to a Spark session and an optional catalog.

    common: Text of the statement's WITH clause, whose queries may be named as tables. '' if absent.
    """

    spark: Any
    catalog: AnyCatalog | None = None
    common: str = ""
    _known_views: dict[str, View | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    _known_temporary: dict[str, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def table(self, name: NameParts) -> Table:
        """Return the table of a name.

        Raises ``TableNotFound``, whose text explains how to name tables.
        """
        table = self.find(name)
        if table is None:
            raise TableNotFound(
                f"{'.'.join(name)} is not a Paimon table: give its path, paimon.`/warehouse/db.db/t`, give a catalog, "
                "sql(spark, text, catalog=Catalog('/warehouse')), or register it, CREATE TABLE t USING paimon OPTIONS (path '...')"
            )
        return table

    def find(self, name: NameParts) -> Table | None:
        """Return the Paimon table of a name, or None.

        Raises ``TableNotFound`` for a view of the catalog.
        """
        path = self.path(name)
        if path is not None:
            return Table.open(path, self.spark)
        table = self.of_catalog(name) or self._of_spark(name)
        if table is None and (view := self.view(name)) is not None:
            raise TableNotFound(f"{view.name} is a view, which only queries read; give the name of a table")
        return table

    @staticmethod
    def path(name: NameParts) -> str | None:
        """Return the path of paimon.`/path`; None for other names."""
        return name[1] if len(name) == 2 and name[0].lower() in SOURCES and "/" in name[1] else None

    def of_catalog(self, name: NameParts, *, hidden: bool = False) -> Table | None:
        """Return a table of the catalog, or None.

        hidden: Also one whose name means a temporary view, for statements that make tables.
        """
        catalog_name = self.catalog_name(name)
        return (
            self.catalog.table(catalog_name, self.spark)
            if self.catalog is not None and catalog_name is not None and self.has_table(name, hidden=hidden)
            else None
        )

    def has_table(self, name: NameParts, *, hidden: bool = False) -> bool:
        """Return whether the catalog has a table of that name. ``hidden``: as for ``of_catalog``."""
        catalog_name = self.catalog_name(name)
        # A quoted part with a dot may name something of Spark's, and nothing of the catalog.
        if self.catalog is None or catalog_name is None or any("." in part.partition("$")[0] for part in name):
            return False
        return self.catalog.table_exists(catalog_name.split("$")[0]) and (hidden or not self._is_temporary(name))

    def _is_temporary(self, name: NameParts) -> bool:
        """Return whether a name without a database is a temporary view, which comes before a table, as in Spark."""
        if len(name) > 1:
            return False
        if name[0] not in self._known_temporary:
            quoted = quote_name(name[0])
            self._known_temporary[name[0]] = False
            with suppress(Exception):  # Spark knows no such name. This costs a tenth of ``catalog.tableExists``, which runs a query
                self._known_temporary[name[0]] = bool(self.spark.table(quoted).columns) and bool(
                    self.spark.catalog.getTable(quoted).isTemporary
                )
        return self._known_temporary[name[0]]

    def view(self, name: NameParts) -> View | None:
        """Return a view of the catalog, or None."""
        catalog_name = self.catalog_name(name)
        if self.catalog is None or catalog_name is None or not self.catalog.has_views:
            return None
        if catalog_name not in self._known_views:
            self._known_views[catalog_name] = None
            with suppress(DatabaseNotFound, TableNotFound, NotOffered, InvalidArgument):  # InvalidArgument: no name of a view
                view = self.catalog.view(catalog_name)
                self._known_views[catalog_name] = None if self._is_temporary(name) else view
        return self._known_views[catalog_name]

    @property
    def database(self) -> str:
        """Database of names without one: that of the last USE, or the catalog's default."""
        return DEFAULT_DATABASE if self.catalog is None else _USED.get(self.catalog, self.catalog.default_database)

    def use(self, database: str | None) -> None:
        """Set the database of names without one. None: the catalog's default."""
        if self.catalog is not None and database is not None:
            _USED[self.catalog] = database
        elif self.catalog is not None:
            _USED.pop(self.catalog, None)

    def catalog_name(self, name: NameParts) -> str | None:
        """Return the name within the catalog, or None."""
        parts = name[1:] if len(name) > 1 and name[0].lower() in SOURCES and self.path(name) is None else name
        if self.catalog is None or len(parts) > 2 or any("/" in part for part in parts):
            return None
        return ".".join((self.database, *parts) if len(parts) == 1 else parts)

    def require_catalog_name(self, name: NameParts, statement: str) -> tuple[AnyCatalog, str]:
        """Return the catalog and the name within it.

        Raises ``InvalidArgument`` if there is no catalog, or the name cannot be in one.
        """
        catalog_name = self.catalog_name(name)
        if self.catalog is None or catalog_name is None:
            raise InvalidArgument(
                f"{statement} {'.'.join(name)}: this is not a name in a catalog of Paimon tables; give a catalog, "
                "sql(spark, text, catalog=Catalog('/warehouse')), or a path, CREATE TABLE paimon.`/warehouse/db.db/t` (...)"
            )
        return self.catalog, catalog_name

    def renew(self, name: NameParts) -> None:
        """Update the columns that Spark's catalog stores for a table.

        Nothing happens for other names. Raises ``PaimonError`` if Spark's catalog lost the name.
        """
        if self.path(name) is not None or self.of_catalog(name) is not None:
            return
        quoted = ".".join(map(quote_name, name))
        if self.spark.catalog.getTable(quoted).isTemporary:
            return
        options = stored_options(self.spark.table(quoted).schema) or {}
        option_texts = ", ".join(f"{text_literal(key)} {text_literal(value)}" for key, value in options.items())
        create = f"CREATE TABLE {quoted} USING {SOURCES[1]} OPTIONS ({option_texts})"
        # Check that the table loads before the name is dropped.
        if not options or not self.spark.read.format(SOURCES[1]).options(**options).load().columns:
            raise InvalidArgument(f"{'.'.join(name)}: Spark's catalog has no options of this table, so it keeps the old columns")
        self.spark.sql(f"DROP TABLE {quoted}")
        try:
            self.spark.sql(create)
        except Exception as error:
            problem = f"the Paimon table is changed, but Spark's catalog lost its name ({error}); register it again: {create}"
            raise PaimonError(f"{'.'.join(name)}: {problem}") from error

    def _of_spark(self, name: NameParts) -> Table | None:
        """Find a Paimon table or temporary view in Spark's catalog."""
        *database_parts, last = name
        plain, _, system = last.partition("$")
        options: dict[str, str] | None = None
        with suppress(Exception):  # Spark does not know the name; callers that need the table raise
            # Our data source stores its options in the metadata of the columns.
            options = stored_options(self.spark.table(".".join(map(quote_name, [*database_parts, plain]))).schema)
        if options is None or PATH not in options:
            return None
        path = options[PATH] + (f"${system}" if system else "")
        branch = options.get(BRANCH_OPTION)
        return Table.open(path, self.spark) if branch is None else Table.open(path, self.spark, branch=branch)


def text_literal(text: str) -> str:
    """Return a text as a SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
