"""What a catalog's server answers instead of what was asked for. None of it shows the token that was sent."""

from __future__ import annotations

import errno

from fileindex.base.public import public
from fileindex.base.redaction import redacted
from manifest.io.errors import CatalogRefused, StorageError


@public
class NotAuthorized(CatalogRefused):
    """The server does not take the token (401): wrong or expired; with another one the same call may be made again."""


@public
class NotPermitted(CatalogRefused):
    """The server knows who asks, and does not allow it (403)."""


@public
class NotOffered(CatalogRefused):
    """The server has no such operation (501, 405, or a path that it does not know)."""


class _Named(CatalogRefused):
    """An answer about one thing: ``kind`` is the API's word for it (``TABLE``, ``TAG``...) and ``name`` its name; either may be empty."""

    def __init__(self, message: str, kind: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name

    def __reduce__(self) -> tuple[type[_Named], tuple[str, str, str]]:
        return type(self), (str(self), self.kind, self.name)


class ResourceMissing(_Named):
    """The server has no such thing (404)."""


class ResourceTaken(_Named):
    """The server has one of that name already (409)."""


@public
class CatalogUnavailable(StorageError, ConnectionError):
    """The server does not answer, or failed (5xx): whether it did what it was asked to is not known unless the message says so."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EIO, message)

    def __str__(self) -> str:
        return redacted(str(self.strerror))

    def __reduce__(self) -> tuple[type[CatalogUnavailable], tuple[str]]:
        return type(self), (str(self.strerror),)


__all__ = ["CatalogUnavailable", "NotAuthorized", "NotOffered", "NotPermitted", "ResourceMissing", "ResourceTaken"]
