"""Storage with temporary keys from a catalog's server.

Keys are fetched on access and exchanged before they expire.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from manifest.io.errors import CredentialsRefused
from manifest.io.file_io import FileIO
from manifest.io.wrapped import ThinFileIO
from manifest.storage.resolve import file_io_for
from pyspark_paimon.plugins.catalogs.rest.api import RestApi
from pyspark_paimon.plugins.catalogs.rest.messages import Identifier

_SAFE_MILLIS = 3_600_000
"""Keys that expire within the hour are exchanged, as other engines do. An open file keeps the keys that it was opened with."""
_SHORT_LIFE = 0.2
"""Remaining part of their lifetime at which shorter-lived keys are exchanged."""


class VendedFileIO(ThinFileIO):
    """Storage of ``path`` with temporary keys for ``table``.

    Uses the user's store options too.
    """

    def __init__(self, api: RestApi, table: Identifier, path: str) -> None:  # the inner store is created on demand
        self._api, self._table, self._path = api, table, path
        self._lock = threading.Lock()
        self._found: tuple[FileIO, float] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._api, self._table, self._path)

    def __repr__(self) -> str:
        return f"VendedFileIO({self._path})"

    @property
    def inner(self) -> FileIO:  # type: ignore[override]  # a property instead of an attribute
        """The store with valid keys.

        Raises ``CredentialsRefused`` if the server returns expired ones.
        """
        with self._lock:
            if self._found is None or _now() >= self._found[1]:
                self._found = self._fetch()
            return self._found[0]

    def _fetch(self) -> tuple[FileIO, float]:
        keys, now = self._api.token(self._table), _now()
        left = keys.expires_at_millis - now
        if keys.expires_at_millis > 0 and left <= 0:
            raise CredentialsRefused(
                13, "the catalog's server returned keys that have expired; check the clocks of server and client", self._path
            )
        until = float("inf") if keys.expires_at_millis <= 0 else keys.expires_at_millis - min(_SAFE_MILLIS, left * _SHORT_LIFE)
        store, _ = file_io_for(self._path, storage_options=self._api.options.store_options(self._path, keys.token))
        return store, until


def _now() -> float:
    return time.time() * 1000
