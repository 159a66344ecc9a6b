"""A view of a catalog: a query that catalogs store under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from manifest.types.data_type import DataField
from paimon_base.public import public

SPARK: Final = "spark"
"""Paimon's name of Spark's dialect."""


@public
@dataclass(frozen=True)
class View:
    """A view of a catalog, returned by ``AnyCatalog.view``.

    ``query`` is the text for engines without an entry in ``dialects``. ``fields`` are the columns, in the order of the query.

    >>> View("sales.large", (), "SELECT id FROM orders", {"spark": "SELECT id FROM sales.orders"}).text("spark")
    'SELECT id FROM sales.orders'
    """

    name: str
    fields: tuple[DataField, ...]
    query: str
    dialects: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def text(self, dialect: str = SPARK) -> str:
        """Return the query in a dialect, or the default one.

        >>> View("sales.large", (), "SELECT id FROM orders").text("flink")
        'SELECT id FROM orders'
        """
        return self.dialects.get(dialect, self.query)


@dataclass(frozen=True)
class ViewChanges:
    """Changes of a view: texts by name, None for what is removed.

    comment: New comment; '' removes it. None: it stays.
    """

    dialects: Mapping[str, str | None]
    comment: str | None
    options: Mapping[str, str | None]


class ViewStore(Protocol):
    """Views of a catalog. Names are pairs of database and view.

    Every method raises ``DatabaseNotFound`` and, but ``names`` and ``create``, ``TableNotFound``.
    """

    def names(self, database: str) -> list[str]:
        """Return the names of a database's views, sorted."""

    def get(self, database: str, name: str) -> View:
        """Return a view."""

    def create(self, view: View) -> None:
        """Create a view. Raises ``TableExists``."""

    def alter(self, view: View, changes: ViewChanges) -> None:
        """Change a view, which is ``view`` now."""

    def rename(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Rename a view. Raises ``TableExists``."""

    def drop(self, database: str, name: str) -> None:
        """Delete a view."""
