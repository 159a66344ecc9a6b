"""Which table a name in SQL means: a path, a table of the catalog that was given, or one that Spark's catalog knows by its path."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fileindex.base.errors import InvalidArgument, PaimonError
from manifest.io.errors import TableNotFound
from pyspark_paimon.spark.client.binary_row_expr import quoted_name
from pyspark_paimon.spark.driver.options import BRANCH_OPTION, PATH, stored_options
from pyspark_paimon.statements.words import NameParts
from pyspark_paimon.table.catalog_base import AnyCatalog
from pyspark_paimon.table.table import Table

SOURCES = ("paimon", "pyspark_paimon")
"""What stands before a path, paimon.`/warehouse/t`, and may stand before the name of a database."""


@dataclass(frozen=True)
class KnownTables:
    """The tables that a session and, if it is given, a catalog know; ``common`` is the WITH of a statement, whose queries it may name."""

    spark: Any
    catalog: AnyCatalog | None = None
    common: str = ""

    def table(self, name: NameParts) -> Table:
        """The table that a name means. Raises ``TableNotFound`` with the ways to name one."""
        found = self.find(name)
        if found is None:
            raise TableNotFound(
                f"{'.'.join(name)} is no Paimon table: name one by its path, paimon.`/warehouse/db.db/t`, in a catalog, "
                "sql(spark, text, catalog=Catalog('/warehouse')), or in Spark's, CREATE TABLE t USING paimon OPTIONS (path '...')"
            )
        return found

    def find(self, name: NameParts) -> Table | None:
        """The table that a name means; None for one that is none of ours."""
        path = self.path(name)
        if path is not None:
            return Table.open(path, self.spark)
        return self.of_catalog(name) or self._of_spark(name)

    @staticmethod
    def path(name: NameParts) -> str | None:
        """The path in paimon.`/path`."""
        return name[1] if len(name) == 2 and name[0].lower() in SOURCES and "/" in name[1] else None

    def of_catalog(self, name: NameParts) -> Table | None:
        """A table of the catalog."""
        known = self.catalog_name(name)
        if self.catalog is None or known is None or not self.catalog.table_exists(known.split("$")[0]):
            return None
        return self.catalog.table(known, self.spark)

    def catalog_name(self, name: NameParts) -> str | None:
        """A name as the catalog takes it; None if it cannot be one of its names."""
        parts = name[1:] if len(name) > 1 and name[0].lower() in SOURCES and self.path(name) is None else name
        if self.catalog is None or len(parts) > 2 or any("/" in part for part in parts):
            return None
        return ".".join(parts)

    def needed_name(self, name: NameParts, statement: str) -> tuple[AnyCatalog, str]:
        """The catalog and a name in it, for what makes or drops tables. Raises ``InvalidArgument`` with the way."""
        known = self.catalog_name(name)
        if self.catalog is None or known is None:
            raise InvalidArgument(
                f"{statement} {'.'.join(name)}: that is no name of a catalog of Paimon tables; give one, "
                "sql(spark, text, catalog=Catalog('/warehouse')), or a path, CREATE TABLE paimon.`/warehouse/db.db/t` (...)"
            )
        return self.catalog, known

    def renew(self, name: NameParts) -> None:
        """Have Spark's catalog, if the name is one of its, copy the columns of the table again.

        What it would copy is looked at before the name is dropped; raises ``PaimonError`` that says so where the name is gone all the same.
        """
        if self.path(name) is not None or self.of_catalog(name) is not None:
            return
        quoted = ".".join(map(quoted_name, name))
        if self.spark.catalog.getTable(quoted).isTemporary:
            return
        options = stored_options(self.spark.table(quoted).schema) or {}
        said = ", ".join(f"{escaped_text(key)} {escaped_text(value)}" for key, value in options.items())
        created = f"CREATE TABLE {quoted} USING {SOURCES[1]} OPTIONS ({said})"
        if not options or not self.spark.read.format(SOURCES[1]).options(**options).load().columns:
            raise InvalidArgument(f"{'.'.join(name)}: Spark's catalog has no options of this table, so its columns stay as they were there")
        self.spark.sql(f"DROP TABLE {quoted}")
        try:
            self.spark.sql(created)
        except Exception as error:
            told = f"the Paimon table is changed, and Spark's catalog has lost its name ({error}); name it again: {created}"
            raise PaimonError(f"{'.'.join(name)}: {told}") from error

    def _of_spark(self, name: NameParts) -> Table | None:
        """A table of Spark's catalog, or a temporary view: our source leaves its options with the columns."""
        *place, last = name
        plain, _, system = last.partition("$")
        options: dict[str, str] | None = None
        with suppress(Exception):  # Spark knows no such name; whoever needs one says so
            options = stored_options(self.spark.table(".".join(map(quoted_name, [*place, plain]))).schema)
        if options is None or PATH not in options:
            return None
        path = options[PATH] + (f"${system}" if system else "")
        branch = options.get(BRANCH_OPTION)
        return Table.open(path, self.spark) if branch is None else Table.open(path, self.spark, branch=branch)


def escaped_text(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


__all__ = ["SOURCES", "KnownTables", "escaped_text"]
