"""Locations of a catalog's tables: texts that each process of a session opens."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self
from urllib.parse import quote, unquote, urlsplit

from manifest.storage.session_options import session_catalog
from paimon_base.errors import InvalidArgument
from pyspark_paimon.plugins.catalogs.rest.api import RestApi
from pyspark_paimon.plugins.catalogs.rest.messages import Identifier
from pyspark_paimon.plugins.catalogs.rest.options import RestOptions

SCHEME: Final = "rest"
_SUFFIX: Final = ".db"
_MOST_HELD: Final = 16
_FORM: Final = re.compile(r"rest://([^/]+)/(?:([^/]+)/)?([^/]+)\.db/([^/]+)")


@dataclass(frozen=True)
class TableLocation:
    """A table of a catalog: ``rest://<catalog>/<table id>/<database>.db/<table>``.

    ``catalog`` is the result of ``catalog_key``. ``table_id`` None: any table of that name.
    """

    catalog: str
    table: Identifier
    table_id: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a location. Raises ``InvalidArgument``.

        >>> TableLocation.parse("rest://c-1f/an%20id/sales.db/orders$branch_b").table.object
        'orders$branch_b'
        """
        match = _FORM.fullmatch(text.rstrip("/"))
        if match is None:
            raise InvalidArgument(
                f"{text}: a table of a catalog is rest://<catalog>/<database>.db/<table>; use the path of catalog.table(...)"
            )
        catalog, table_id, database, name = match.groups()
        return cls(catalog, Identifier(database=database, object=name), None if table_id is None else unquote(table_id))

    @property
    def text(self) -> str:
        """The location as text.

        >>> TableLocation("c-1f", Identifier(database="sales", object="orders"), "an id").text
        'rest://c-1f/an%20id/sales.db/orders'
        """
        steps = (self.catalog, *(() if self.table_id is None else (quote(self.table_id, safe=""),)), self.table.database + _SUFFIX)
        return f"{SCHEME}://{'/'.join(steps)}/{self.table.object}"

    def api(self) -> RestApi:
        """Connect to the catalog with the options that a client sent to this process's session.

        Raises ``InvalidArgument`` if the session has no such catalog.
        """
        catalog_options = session_catalog(self.catalog)
        if catalog_options is None:
            raise InvalidArgument(
                f"{self.text}: the process that opens this path has no options of that catalog; open the table by "
                "Catalog.create({'metastore': 'rest', ...}).table(name, spark), which gives them to the session"
            )
        return _connect(tuple(sorted(catalog_options.items())))


def catalog_key(options: RestOptions) -> str:
    """Return the name of a catalog in locations: its host, and a hash of address, warehouse and prefix.

    It contains no secret: a session that renews its token has the same catalog.

    >>> catalog_key(RestOptions.of({"uri": "http://catalog:8080", "warehouse": "main", "token": "secret"}))
    'catalog-...'
    """
    host = urlsplit(options.uri).hostname or ""
    names = "\0".join((options.uri, options.warehouse, options.given.get("prefix", "")))
    return f"{quote(host, safe='')}-{hashlib.sha256(names.encode()).hexdigest()[:16]}"


@lru_cache(_MOST_HELD)
def _connect(options: tuple[tuple[str, str], ...]) -> RestApi:
    return RestApi.connect(RestOptions.of(dict(options)).for_session())
