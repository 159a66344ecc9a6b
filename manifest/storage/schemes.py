"""Schemes of paths, their store families, and parsing of paths."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from enum import StrEnum

from paimon_base.errors import InvalidArgument, UnsupportedOption
from paimon_base.redaction import redact


class StoreFamily(StrEnum):
    """Stores with the same protocol."""

    S3 = "s3"
    AZURE = "azure"
    GOOGLE = "gcs"
    MEMORY = "memory"
    HDFS = "hdfs"


FAMILIES = {
    "s3": StoreFamily.S3,
    "s3a": StoreFamily.S3,
    "oss": StoreFamily.S3,
    "abfss": StoreFamily.AZURE,
    "abfs": StoreFamily.AZURE,
    "az": StoreFamily.AZURE,
    "gs": StoreFamily.GOOGLE,
    "memory": StoreFamily.MEMORY,
    "hdfs": StoreFamily.HDFS,
    "viewfs": StoreFamily.HDFS,
}
"""Family by scheme. ``memory`` is a store in this process, for experiments."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)", re.DOTALL)
_CREDENTIALS = re.compile(r"[^/]*:[^/]*@")


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """Path of an object or a prefix.

    ``bucket`` may be a container, ``account`` its account if the path has one. On HDFS ``bucket`` is the name node or nameservice; empty:
    that of ``fs.defaultFS``.
    """

    scheme: str
    bucket: str
    key: str
    account: str = ""

    @property
    def family(self) -> StoreFamily:
        """Family of the store."""
        return FAMILIES[self.scheme]

    @property
    def root(self) -> str:
        """URI of the bucket."""
        return f"{self.scheme}://{self.bucket}{'@' + self.account if self.account else ''}"

    @property
    def uri(self) -> str:
        """Whole normalised path, without double or trailing slashes."""
        return f"{self.root}/{self.key}" if self.key else self.root


def scheme_of(path: str) -> str | None:
    """Return the scheme of a path in lower case.

    None for a local path without scheme.

    >>> scheme_of("S3://bucket/t"), scheme_of("file:/w/t"), scheme_of("/w/a:b")
    ('s3', 'file', None)
    """
    match = _SCHEME.fullmatch(path)
    return match[1].lower() if match else None


def object_place(path: str) -> ObjectPlace:
    """Parse a path on an object store.

    Raises ``UnsupportedOption`` for another scheme, ``InvalidArgument`` without a bucket.

    >>> object_place("s3a://bucket//warehouse/./db.db/t/").uri
    's3a://bucket/warehouse/db.db/t'
    >>> object_place("abfss://data@acme.dfs.core.windows.net/w/t").account
    'acme.dfs.core.windows.net'
    >>> object_place("hdfs:/warehouse/t").uri, object_place("hdfs://nn:8020/w/t").bucket
    ('hdfs:///warehouse/t', 'nn:8020')
    """
    scheme = scheme_of(path)
    if scheme is None or scheme not in FAMILIES:
        supported = ", ".join(f"{name}:" for name in ("file", *FAMILIES) if name != "memory")
        raise UnsupportedOption("path", f"scheme '{scheme}:' is not supported; use a local path or one of {supported}")
    rest = path.partition(":")[2]
    if FAMILIES[scheme] is StoreFamily.HDFS:
        rest = rest if rest.startswith("//") else f"//{rest}"  # as in Hadoop hdfs:/path is hdfs:///path
    elif not rest.startswith("//") or rest[2:3] in {"/", ""}:
        raise InvalidArgument(f"{redact(path)}: a path on an object store must be {scheme}://bucket/path")
    if _CREDENTIALS.match(rest[2:]):
        raise UnsupportedOption("path", f"{redact(path)}: credentials in a path would be visible; pass storage_options instead")
    authority, _, tail = rest[2:].partition("/")
    bucket, _, account = authority.partition("@")
    if account and FAMILIES[scheme] is not StoreFamily.AZURE:
        raise InvalidArgument(f"{redact(path)}: a bucket name cannot contain '@'")
    normal = posixpath.normpath("/" + tail).strip("/")
    return ObjectPlace(scheme, bucket, normal, account)
