"""Errors of a catalog's server. Never contain the token."""

from __future__ import annotations

import errno

from manifest.io.errors import CatalogRefused, StorageError
from paimon_base.public import public
from paimon_base.redaction import redact


@public
class NotAuthorized(CatalogRefused):
    """The server rejects the token (401).

    It is wrong or expired. Repeat the call with another one.
    """


@public
class NotPermitted(CatalogRefused):
    """The server denies this user the operation (403)."""


@public
class NotOffered(CatalogRefused):
    """The server has no such operation (501, 405, unknown path)."""


class _Named(CatalogRefused):
    """An error about one resource.

    ``kind`` is the API's type (``TABLE``, ``TAG``...) and ``name`` its name. Either may be empty.
    """

    def __init__(self, message: str, kind: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name

    def __reduce__(self) -> tuple[type[_Named], tuple[str, str, str]]:
        return type(self), (str(self), self.kind, self.name)


class ResourceMissing(_Named):
    """The server has no such resource (404)."""


class ResourceTaken(_Named):
    """The server already has a resource of that name (409)."""


@public
class CatalogUnavailable(StorageError, ConnectionError):
    """The server does not answer, or failed (5xx).

    It is unknown whether it executed the request, unless the message says so.
    """

    def __init__(self, message: str) -> None:
        super().__init__(errno.EIO, message)

    def __str__(self) -> str:
        return redact(str(self.strerror))

    def __reduce__(self) -> tuple[type[CatalogUnavailable], tuple[str]]:
        return type(self), (str(self.strerror),)
