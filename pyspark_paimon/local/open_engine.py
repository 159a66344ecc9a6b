"""The in-process engine of a table by its location: a path, or the location of a catalog's table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from manifest.storage.schemes import FAMILIES, scheme_of
from paimon_base.plugins import has_plugin, plugin
from pyspark_paimon.local.engine import LocalEngine
from pyspark_paimon.request.requests import Progress


def is_catalog_location(location: str | os.PathLike[str]) -> bool:
    """Return whether a catalog has to be asked for the table's path."""
    scheme = scheme_of(os.fspath(location))
    return scheme is not None and scheme != "file" and scheme not in FAMILIES and has_plugin("location", scheme)


def open_engine(
    location: str | os.PathLike[str], *, progress: Progress | None = None, storage_options: Mapping[str, Any] | None = None
) -> LocalEngine:
    """Return the engine of a table or branch.

    ``storage_options``: settings of a path's storage. Raises ``TableNotFound`` for a name that its catalog does not have.
    """
    if not is_catalog_location(location):
        return LocalEngine(location, progress=progress, storage_options=storage_options)
    text = os.fspath(location)
    opened: LocalEngine = plugin("location", str(scheme_of(text)))(text, progress=progress)
    return opened
