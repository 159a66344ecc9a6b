"""What every catalog can do, how tables are named in it, and what it raises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from fileindex.base.errors import InvalidArgument, PaimonError
from fileindex.base.public import public
from pyspark_paimon.request.arguments import CheckedMethods
from pyspark_paimon.request.results import Removal
from pyspark_paimon.table.table import Table
from pyspark_paimon.typing import Schema, SparkSession

DATABASE_SUFFIX = ".db"
DEFAULT_DATABASE = "default"


@public
class DatabaseNotFound(PaimonError, LookupError):
    """The warehouse has no such database."""


@public
class DatabaseExists(PaimonError, FileExistsError):
    """The warehouse has a database of that name."""


@public
class AnyCatalog(CheckedMethods, ABC):
    """Databases and their tables, named ``database.table``; a name without database is in ``default``."""

    @abstractmethod
    def list_databases(self) -> list[str]:
        """Names of the databases, in order."""

    @abstractmethod
    def create_database(self, name: str, *, ignore_if_exists: bool = False) -> None:
        """Create a database. Raises ``DatabaseExists``."""

    def drop_database(self, name: str) -> None:
        """Remove an empty database. Raises ``DatabaseNotFound``, ``InvalidArgument`` if it holds tables."""
        tables = self.list_tables(name)
        if tables:
            raise InvalidArgument(f"database '{name}' holds tables: {', '.join(tables)}; drop them first")
        self._drop_empty(name)

    @abstractmethod
    def _drop_empty(self, database: str) -> None:
        """Remove a database that holds no table."""

    @abstractmethod
    def list_tables(self, database: str = DEFAULT_DATABASE) -> list[str]:
        """Names of a database's tables, in order. Raises ``DatabaseNotFound``."""

    @abstractmethod
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

    @abstractmethod
    def table(self, name: str, spark: SparkSession | None = None) -> Table:
        """Open a table, or with ``database.table$branch_name`` a branch. Raises ``DatabaseNotFound``, ``TableNotFound``."""

    def open(self, name: str, spark: SparkSession | None = None) -> Table:
        """As ``table``."""
        return self.table(name, spark)

    @abstractmethod
    def table_exists(self, name: str) -> bool:
        """Whether there is such a table."""

    @abstractmethod
    def rename_table(self, name: str, new_name: str) -> None:
        """Move a table, also to another database; whoever has it open loses it. Raises ``TableNotFound``, ``TableExists``."""

    def drop_table(self, name: str, *, dry_run: bool = False) -> Removal | None:
        """Delete a table with all its files, for good; of an external one a server forgets the name only. Raises ``TableNotFound``.

        ``dry_run`` tells what would go, and changes nothing.
        """
        if not dry_run:
            self._drop_table(name)
            return None
        from manifest.expire.would_go import table_losses  # noqa: PLC0415  # loads what deletes
        from pyspark_paimon.local.backend import LocalBackend  # noqa: PLC0415  # as above
        from pyspark_paimon.operations.removal import removal_of  # noqa: PLC0415  # as above

        backend = self.table(name)._backend  # noqa: SLF001  # catalogs make their tables
        assert isinstance(backend, LocalBackend), "without a session tables are this process's"
        store = backend.store()
        return removal_of(table_losses(store), snapshots=len(store.snapshots.ids()), tags=tuple(sorted(store.snapshots.tags())))

    @abstractmethod
    def _drop_table(self, name: str) -> None:
        """Delete a table with all its files."""


def split_name(name: str) -> tuple[str, str]:
    """Database and table of a name.

    >>> split_name("sales.orders"), split_name("orders")
    (('sales', 'orders'), ('default', 'orders'))
    """
    if not isinstance(name, str):
        raise InvalidArgument(f"a table is named by its text, not {name!r}")
    database, dot, table = name.rpartition(".")
    return (database, table) if dot else (DEFAULT_DATABASE, name)


def checked_name(name: object, what: str) -> str:
    """``name`` if it can be a directory's in a warehouse. Raises ``InvalidArgument``."""
    if (
        not isinstance(name, str)
        or not name
        or name.startswith(".")
        or any(letter in name for letter in "/\\.")
        or not name.isprintable()
        or name.endswith(DATABASE_SUFFIX)
    ):
        raise InvalidArgument(f"{name!r} is no name of a {what}")
    return name


__all__ = ["DATABASE_SUFFIX", "DEFAULT_DATABASE", "AnyCatalog", "DatabaseExists", "DatabaseNotFound", "checked_name", "split_name"]
