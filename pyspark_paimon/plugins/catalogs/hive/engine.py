"""In-process engine for tables of a Hive catalog: changes of the schema reach the metastore."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar, cast

from manifest.io.catalog_errors import CatalogUnavailable
from manifest.io.errors import CatalogRefused
from manifest.io.file_io import FileIO
from manifest.io.paths import MAIN_BRANCH, split_branch
from manifest.options.catalog_options import CatalogOptions
from manifest.schema.change import AddColumn, RenameColumn, ReplaceColumns, SchemaChange
from manifest.schema.table_schema import TableSchema
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.operations.alter import AlterSchema
from pyspark_paimon.operations.history.branches import FastForward
from pyspark_paimon.plugins.catalogs.hive.metastore import Metastore
from pyspark_paimon.plugins.catalogs.hive.options import HiveOptions
from pyspark_paimon.plugins.catalogs.hive.tables import refreshed
from pyspark_paimon.request.operation import Operation

A = TypeVar("A")


class HiveEngine(LocalEngine):
    """``LocalEngine`` of the table ``(database, name)`` at ``path``."""

    def __init__(
        self, metastore: Metastore, options: HiveOptions, table: tuple[str, str], path: str, *, settings: CatalogOptions, file_io: FileIO
    ) -> None:
        super().__init__(path, file_io=file_io)
        self._metastore, self._hive, self._table, self._settings = metastore, options, table, settings

    def run(self, operation: Operation[A]) -> A:
        """Run an operation. A change of the main branch's schema is written to the metastore, too."""
        if not isinstance(operation, AlterSchema | FastForward) or split_branch(self._root)[1] != MAIN_BRANCH:
            return super().run(operation)
        before = self.schema()
        if isinstance(operation, AlterSchema):
            for name in _new_names(operation.changes):
                if name not in before.names:
                    self._settings.check_name(name, "column")
        result = operation.run(self)
        shown = before
        # Another process may have written a newer schema meanwhile, but its entry before this one's.
        while (after := self.schema()) != shown:
            self._show(after, {name: value for name, value in before.options.items() if name not in after.options})
            shown = after
        return cast("A", result)

    def _show(self, schema: TableSchema, removed: Mapping[str, str]) -> None:
        """Write columns and options of a schema to the metastore."""
        try:
            entry = refreshed(self._metastore.table(*self._table), schema, self._hive, removed)
            self._metastore.alter_table(*self._table, entry)
        except (CatalogRefused, CatalogUnavailable) as error:
            database, name = self._table
            raise CatalogUnavailable(
                f"{self._root}: schema {schema.id} is written, and counts; but the metastore may show the columns of before ({error}). Call "
                f"repair_table('{database}.{name}') of the catalog"
            ) from error


def _new_names(changes: Iterable[SchemaChange]) -> Iterator[str]:
    for change in changes:
        match change:
            case AddColumn(path=path):
                yield path[-1]
            case RenameColumn(name=name):
                yield name
            case ReplaceColumns(columns=columns):
                yield from (str(column["name"]) for column in columns)
