"""Which schemes of paths there are, the one place that knows: what family of stores each is, and where bucket and key stand in it."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import StrEnum

from fileindex.base.errors import InvalidArgument, UnsupportedOption
from fileindex.base.redaction import redacted


class StoreFamily(StrEnum):
    """Stores that speak the same protocol."""

    S3 = "s3"
    AZURE = "azure"
    GOOGLE = "gcs"
    MEMORY = "memory"


FAMILIES = {
    "s3": StoreFamily.S3,
    "s3a": StoreFamily.S3,
    "oss": StoreFamily.S3,
    "abfss": StoreFamily.AZURE,
    "abfs": StoreFamily.AZURE,
    "az": StoreFamily.AZURE,
    "gs": StoreFamily.GOOGLE,
    "memory": StoreFamily.MEMORY,
}
"""By scheme; ``memory`` is this process' own, for trials: it ends with it."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)", re.DOTALL)
_CREDENTIALS = re.compile(r"[^/]*:[^/]*@")


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """An object or a prefix: ``bucket`` is a container's name, too, and ``account`` whose container it is if the path says that."""

    scheme: str
    bucket: str
    key: str
    account: str = ""

    @property
    def family(self) -> StoreFamily:
        """What kind of store it is on."""
        return FAMILIES[self.scheme]

    @property
    def root(self) -> str:
        """The URI of the bucket, as paths spell it."""
        return f"{self.scheme}://{self.bucket}{'@' + self.account if self.account else ''}"

    @property
    def uri(self) -> str:
        """The whole path, normal: one slash between names and none at the end."""
        return f"{self.root}/{self.key}" if self.key else self.root


def scheme_of(path: str) -> str | None:
    """The scheme of a path in lower case; None for a path of the local file system that has none.

    >>> scheme_of("S3://bucket/t"), scheme_of("file:/w/t"), scheme_of("/w/a:b")
    ('s3', 'file', None)
    """
    found = _SCHEME.fullmatch(path)
    return found[1].lower() if found else None


def object_place(path: str) -> ObjectPlace:
    """The place of a path on an object store. Raises ``UnsupportedOption`` for another scheme, ``InvalidArgument`` for what names no bucket.

    >>> object_place("s3a://bucket//warehouse/./db.db/t/").uri
    's3a://bucket/warehouse/db.db/t'
    >>> object_place("abfss://data@acme.dfs.core.windows.net/w/t").account
    'acme.dfs.core.windows.net'
    """
    scheme = scheme_of(path)
    if scheme is None or scheme not in FAMILIES:
        known = ", ".join(f"{name}:" for name in ("file", *FAMILIES) if name != "memory")
        raise UnsupportedOption("path", f"no file system is built in for '{scheme}:'; there are: a local path, {known}")
    rest = path.partition(":")[2]
    if not rest.startswith("//") or rest[2:3] in {"/", ""}:
        raise InvalidArgument(f"{redacted(path)}: a path on an object store is {scheme}://bucket/path")
    if _CREDENTIALS.match(rest[2:]):
        raise UnsupportedOption(
            "path", f"{redacted(path)}: credentials do not belong there, where they would be shown; give storage_options"
        )
    authority, _, tail = rest[2:].partition("/")
    bucket, _, account = authority.partition("@")
    if account and FAMILIES[scheme] is not StoreFamily.AZURE:
        raise InvalidArgument(f"{redacted(path)}: '@' stands in no bucket's name")
    normal = posixpath.normpath("/" + tail).strip("/")
    return ObjectPlace(scheme, bucket, normal, account)


__all__ = ["FAMILIES", "ObjectPlace", "StoreFamily", "object_place", "scheme_of"]
