"""The in-process engine of a table by its location: a path, or the location of a catalog's table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from manifest.storage.schemes import scheme_of
from pyspark_paimon.local.backend import LocalBackend
from pyspark_paimon.request.backend import Progress

_CATALOG_SCHEME = "rest"
"""``pyspark_paimon.plugins.catalogs.rest.location.SCHEME``, which most processes do not load."""


def is_catalog_location(location: str | os.PathLike[str]) -> bool:
    """Return whether a catalog has to be asked for the table's path."""
    return scheme_of(os.fspath(location)) == _CATALOG_SCHEME


def open_backend(
    location: str | os.PathLike[str], *, progress: Progress | None = None, storage_options: Mapping[str, Any] | None = None
) -> LocalBackend:
    """Return the backend of a table or branch.

    ``storage_options``: settings of a path's storage. Raises ``TableNotFound`` for a name that its catalog does not have.
    """
    if not is_catalog_location(location):
        return LocalBackend(location, progress=progress, storage_options=storage_options)
    from pyspark_paimon.plugins.catalogs.rest.backend import ServerBackend, raise_table_errors  # noqa: PLC0415  # as above
    from pyspark_paimon.plugins.catalogs.rest.location import TableLocation  # noqa: PLC0415  # loads HTTP

    named = TableLocation.parse(os.fspath(location))
    with raise_table_errors():
        return ServerBackend.open(named.api(), named, progress=progress)
