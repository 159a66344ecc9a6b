"""Views of a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from manifest.io.catalog_errors import ResourceMissing, ResourceTaken
from manifest.io.errors import TableExists, TableNotFound
from manifest.types.data_type import DataField
from paimon_base.errors import InvalidArgument
from pyspark_paimon.catalog.catalog_base import DatabaseNotFound, split_name
from pyspark_paimon.catalog.view import View, ViewChanges
from pyspark_paimon.plugins.catalogs.rest.api import RestApi
from pyspark_paimon.plugins.catalogs.rest.messages import Identifier, ViewDefinition


@dataclass(frozen=True)
class RestViews:
    """The views on a server. Implements ``ViewStore``."""

    api: RestApi

    def names(self, database: str) -> list[str]:
        """See ``ViewStore``, also for the other methods."""
        with raise_catalog_errors():
            return self.api.views(database)

    def get(self, database: str, name: str) -> View:  # noqa: D102  # as above
        with raise_catalog_errors():
            stored_view = self.api.view(Identifier(database=database, object=name))
        fields = tuple(map(DataField.from_json, stored_view.fields))
        return View(f"{database}.{name}", fields, stored_view.query, stored_view.dialects, stored_view.comment, stored_view.options)

    def create(self, view: View) -> None:  # noqa: D102  # as above
        fields = [field.to_json() for field in view.fields]
        definition = ViewDefinition(
            fields=fields, query=view.query, dialects=dict(view.dialects), comment=view.comment, options=dict(view.options)
        )
        with raise_catalog_errors():
            self.api.create_view(_identifier(view), definition)

    def alter(self, view: View, changes: ViewChanges) -> None:  # noqa: D102  # as above
        actions = list(_actions(view, changes))
        if actions:
            with raise_catalog_errors():
                self.api.alter_view(_identifier(view), actions)

    def rename(self, source: tuple[str, str], target: tuple[str, str]) -> None:  # noqa: D102  # as above
        before, after = (Identifier(database=database, object=name) for database, name in (source, target))
        with raise_catalog_errors():
            self.api.rename_view(before, after)

    def drop(self, database: str, name: str) -> None:  # noqa: D102  # as above
        with raise_catalog_errors():
            self.api.drop_view(Identifier(database=database, object=name))


def _identifier(view: View) -> Identifier:
    database, name = split_name(view.name)
    return Identifier(database=database, object=name)


def _actions(view: View, changes: ViewChanges) -> Iterator[dict[str, str | None]]:
    """Yield the changes in the API's form."""
    for dialect, query in changes.dialects.items():
        if query is not None:
            yield {"action": "updateDialect" if dialect in view.dialects else "addDialect", "dialect": dialect, "query": query}
        elif dialect in view.dialects:
            yield {"action": "dropDialect", "dialect": dialect}
    if changes.comment is not None:
        yield {"action": "updateComment", "comment": changes.comment or None}
    for key, value in changes.options.items():
        if value is not None:
            yield {"action": "setOption", "key": key, "value": value}
        elif key in view.options:
            yield {"action": "removeOption", "key": key}


@contextmanager
def raise_catalog_errors() -> Iterator[None]:
    """Translate server errors to catalog errors."""
    try:
        yield
    except ResourceMissing as error:
        match error.kind:
            case "DATABASE":
                raise DatabaseNotFound(str(error)) from error
            case "DIALECT":
                raise InvalidArgument(f"{error}; another process changed the view, repeat the call") from error
            case _:
                raise TableNotFound(str(error)) from error
    except ResourceTaken as error:
        if error.kind == "DIALECT":
            raise InvalidArgument(f"{error}; another process changed the view, repeat the call") from error
        raise TableExists(str(error)) from error
