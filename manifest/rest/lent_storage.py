# The methods of a FileIO are documented once, by the protocol.
# ruff: noqa: D102
"""Storage whose keys a catalog's server lends for a while: asked for when files are touched, and anew before they expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from manifest.io.errors import CredentialsRefused
from manifest.io.file_io import FileIO, Holder, RangeReader
from manifest.io.wrapped import WrappedFileIO
from manifest.rest.api import RestApi
from manifest.rest.messages import Identifier
from manifest.rest.options import of_stores
from manifest.storage.resolve import file_io_for

_SAFE_MILLIS = 3_600_000
"""Keys that end within the hour are exchanged, as other engines do: a file that is being read goes on with those it was opened with."""
_SHORT_LIFE = 0.2
"""Of keys that live for less than that from the start, the part of their life that is left when they are exchanged."""


class LentFileIO(WrappedFileIO):
    """The store of ``path``, reached by the keys that the server lends for ``table``, beside the options that the user gave."""

    def __init__(self, api: RestApi, table: Identifier, path: str) -> None:  # its inner store is made when it is asked for
        self._api, self._table, self._path = api, table, path
        self._lock = threading.Lock()
        self._found: tuple[FileIO, float] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._api, self._table, self._path)

    def __repr__(self) -> str:
        return f"LentFileIO({self._path})"

    @property
    def inner(self) -> FileIO:  # type: ignore[override]  # a wrapper holds it, this one is lent it
        """The store by keys that hold. Raises ``CredentialsRefused`` if the server lends expired ones."""
        with self._lock:
            if self._found is None or _now() >= self._found[1]:
                self._found = self._lent()
            return self._found[0]

    def _lent(self) -> tuple[FileIO, float]:
        lent, now = self._api.token(self._table), _now()
        left = lent.expires_at_millis - now
        if lent.expires_at_millis > 0 and left <= 0:
            raise CredentialsRefused(13, "the catalog's server lent keys that have expired; is a clock wrong?", self._path)
        until = float("inf") if lent.expires_at_millis <= 0 else lent.expires_at_millis - min(_SAFE_MILLIS, left * _SHORT_LIFE)
        store, _ = file_io_for(self._path, storage_options={**self._api.options.storage, **of_stores(lent.token)})
        return store, until

    def read_many(self, paths: Iterable[str]) -> Iterator[bytes]:
        return self.inner.read_many(paths)

    def identity(self, path: str) -> tuple[int, ...] | None:
        return self.inner.identity(path)

    def start_write(self, path: str, data: bytes) -> Callable[[], None]:
        return self.inner.start_write(path, data)

    def delete_many(self, paths: Sequence[str]) -> int:
        return self.inner.delete_many(paths)

    def open_ranges(self, path: str, held: Holder | None = None) -> RangeReader:
        return self.inner.open_ranges(path, held)


def _now() -> float:
    return time.time() * 1000


__all__ = ["LentFileIO"]
