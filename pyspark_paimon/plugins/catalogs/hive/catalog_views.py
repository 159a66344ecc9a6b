"""Views of a Hive catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manifest.io.catalog_errors import ResourceMissing, ResourceTaken
from manifest.io.errors import TableExists, TableNotFound
from paimon_base.errors import UnsupportedOption
from pyspark_paimon.catalog.catalog_base import split_name
from pyspark_paimon.catalog.view import View, ViewChanges
from pyspark_paimon.plugins.catalogs.hive.metastore import Metastore
from pyspark_paimon.plugins.catalogs.hive.tables import DATABASE, NAME, PARAMETERS
from pyspark_paimon.plugins.catalogs.hive.views import (
    comment_and_options,
    fields_of_view,
    is_view,
    text_of_view,
    view_entry,
    view_parameters,
)
from pyspark_paimon.plugins.catalogs.hive.wire import Struct, text, value_of


@dataclass(frozen=True)
class HiveViews:
    """The views of a metastore, which keeps one text for all engines. Implements ``ViewStore``.

    ``require`` raises ``DatabaseNotFound`` for a name that no database has.
    """

    metastore: Metastore
    require: Callable[[str], None]

    def names(self, database: str) -> list[str]:
        """See ``ViewStore``, also for the other methods."""
        self.require(database)
        entries = self.metastore.tables(database, self.metastore.table_names(database))
        return sorted(str(value_of(table, NAME)) for table in entries if is_view(table))

    def get(self, database: str, name: str) -> View:  # noqa: D102  # as above
        entry = self._entry(database, name)
        comment, options = comment_and_options(entry)
        full_name = f"{value_of(entry, DATABASE)}.{value_of(entry, NAME)}"  # the metastore ignores the case of names
        return View(full_name, fields_of_view(entry), text_of_view(entry), {}, comment, options)

    def create(self, view: View) -> None:  # noqa: D102  # as above
        database, name = split_name(view.name)
        self.require(database)
        for dialect, query in view.dialects.items():
            if query != view.query:
                _refuse_dialect(dialect)
        try:
            self.metastore.create_table(view_entry((database, name), view.fields, view.query, view_parameters(view.comment, view.options)))
        except ResourceTaken as error:
            raise TableExists(f"'{view.name}': the metastore has a table or view of that name") from error

    def alter(self, view: View, changes: ViewChanges) -> None:  # noqa: D102  # as above
        for dialect in changes.dialects:
            _refuse_dialect(dialect)
        database, name = split_name(view.name)
        entry = self._entry(database, name)
        comment = view.comment if changes.comment is None else changes.comment or None
        options = {key: value for key, value in {**view.options, **changes.options}.items() if value is not None}
        self.metastore.alter_table(database, name, {**entry, PARAMETERS: view_parameters(comment, options)})

    def rename(self, source: tuple[str, str], target: tuple[str, str]) -> None:  # noqa: D102  # as above
        entry = self._entry(*source)
        try:
            self.metastore.table(*target)
        except ResourceMissing:
            self.require(target[0])
        else:
            raise TableExists(f"'{'.'.join(target)}': the metastore has a table or view of that name")
        self.metastore.alter_table(*source, {**entry, DATABASE: text(target[0]), NAME: text(target[1])})

    def drop(self, database: str, name: str) -> None:  # noqa: D102  # as above
        self._entry(database, name)
        self.metastore.drop_table(database, name)

    def _entry(self, database: str, name: str) -> Struct:
        try:
            entry = self.metastore.table(database, name)
        except ResourceMissing as error:
            self.require(database)
            raise TableNotFound(f"no view '{database}.{name}' in the metastore") from error
        if not is_view(entry):
            raise TableNotFound(f"'{database}.{name}' in the metastore is a table, not a view")
        return entry


def _refuse_dialect(dialect: str) -> None:
    raise UnsupportedOption("dialects", f"the metastore keeps one text for all engines, so '{dialect}' has no own; create the view again")
