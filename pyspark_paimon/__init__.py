"""Apache Paimon tables from Python and Spark Connect.

>>> import tempfile, pyarrow as pa
>>> from pyspark_paimon import Table
>>> table = Table.create(f"{tempfile.mkdtemp()}/cities", "id BIGINT, city STRING", primary_keys=["id"], options={"bucket": "1"})
>>> table.write(pa.table({"id": [1, 2], "city": ["Oslo", "Lima"]})).snapshot_id
1
>>> table.scan("city = 'Oslo'").to_arrow().to_pylist()
[{'id': 1, 'city': 'Oslo'}]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import fileindex

if not hasattr(fileindex, "check_siblings"):  # not ours: the check itself is shadowed
    raise ImportError(
        f"{fileindex.__file__ or fileindex.__path__} shadows the package 'fileindex' of pyspark-paimon: rename that file or folder if it "
        "is yours (or run from another directory); if another distribution brought it, install pyspark-paimon into an environment of its own",
        name="fileindex",
    )
fileindex.check_siblings(__file__)

from pyspark_paimon._version import __version__  # noqa: E402  # ours, now that nothing shadows us

if TYPE_CHECKING:
    from fileindex.base.errors import (
        CorruptFile,
        FilterFailed,
        InvalidArgument,
        InvalidFilter,
        OutOfRange,
        PaimonError,
        UnknownColumn,
        UnsupportedOption,
        UnsupportedType,
    )
    from fileindex.base.time_zone import time_zone
    from manifest.io.errors import (
        CastFailed,
        CatalogRefused,
        CommitConflict,
        CommitGaveUp,
        CommitReplayed,
        InvalidSchema,
        NullInKey,
        OutOfDisk,
        OutOfMemory,
        PathNotAllowed,
        SchemaMismatch,
        SnapshotExpired,
        SnapshotNotFound,
        StorageError,
        SystemTableReadOnly,
        TableExists,
        TableNotFound,
        UnknownSystemTable,
        UnmergeableRows,
        UnsafeFileIO,
        UnsupportedTable,
    )
    from manifest.rest.errors import CatalogUnavailable, NotAuthorized, NotOffered, NotPermitted
    from pyspark_paimon.html.ipython import load_ipython_extension, unload_ipython_extension
    from pyspark_paimon.request.results import (
        CompactResult,
        ExpireResult,
        IndexRewriteResult,
        MergeResult,
        ProgressEvent,
        WriteResult,
    )
    from pyspark_paimon.request.state_results import TableChangeResult
    from pyspark_paimon.spark.client.session import spark_session
    from pyspark_paimon.spark.client.warm import warm
    from pyspark_paimon.spark.install import InstallResult, install
    from pyspark_paimon.spark.source import PaimonDataSource as DefaultSource
    from pyspark_paimon.spark.wire.errors import InstallRefused, RemoteError, SourceMissing, SparkUnavailable
    from pyspark_paimon.statements.run import sql
    from pyspark_paimon.table.catalog import Catalog
    from pyspark_paimon.table.catalog_base import DatabaseExists, DatabaseNotFound
    from pyspark_paimon.table.scan import Scan
    from pyspark_paimon.table.table import Table

_BASE_ERRORS = (
    "InvalidArgument",
    "InvalidFilter",
    "FilterFailed",
    "OutOfRange",
    "PaimonError",
    "UnknownColumn",
    "UnsupportedOption",
    "UnsupportedType",
    "CorruptFile",
)
_ERRORS = (
    "CastFailed",
    "CatalogRefused",
    "CommitConflict",
    "CommitGaveUp",
    "CommitReplayed",
    "InvalidSchema",
    "NullInKey",
    "OutOfDisk",
    "OutOfMemory",
    "PathNotAllowed",
    "SchemaMismatch",
    "SnapshotExpired",
    "SnapshotNotFound",
    "StorageError",
    "SystemTableReadOnly",
    "TableExists",
    "TableNotFound",
    "UnknownSystemTable",
    "UnmergeableRows",
    "UnsafeFileIO",
    "UnsupportedTable",
)
_SERVER_ERRORS = ("CatalogUnavailable", "NotAuthorized", "NotOffered", "NotPermitted")
_RESULTS = ("CompactResult", "ExpireResult", "IndexRewriteResult", "MergeResult", "ProgressEvent", "WriteResult")

_HOMES: dict[str, tuple[str, str]] = {
    **{name: ("fileindex.base.errors", name) for name in _BASE_ERRORS},
    **{name: ("manifest.io.errors", name) for name in _ERRORS},
    **{name: ("pyspark_paimon.request.results", name) for name in _RESULTS},
    "TableChangeResult": ("pyspark_paimon.request.state_results", "TableChangeResult"),
    "Catalog": ("pyspark_paimon.table.catalog", "Catalog"),
    **{name: ("manifest.rest.errors", name) for name in _SERVER_ERRORS},
    "DatabaseExists": ("pyspark_paimon.table.catalog_base", "DatabaseExists"),
    "DatabaseNotFound": ("pyspark_paimon.table.catalog_base", "DatabaseNotFound"),
    "DefaultSource": ("pyspark_paimon.spark.source", "PaimonDataSource"),
    "InstallRefused": ("pyspark_paimon.spark.wire.errors", "InstallRefused"),
    "InstallResult": ("pyspark_paimon.spark.install", "InstallResult"),
    "RemoteError": ("pyspark_paimon.spark.wire.errors", "RemoteError"),
    "Scan": ("pyspark_paimon.table.scan", "Scan"),
    "SourceMissing": ("pyspark_paimon.spark.wire.errors", "SourceMissing"),
    "SparkUnavailable": ("pyspark_paimon.spark.wire.errors", "SparkUnavailable"),
    "Table": ("pyspark_paimon.table.table", "Table"),
    "install": ("pyspark_paimon.spark.install", "install"),
    "load_ipython_extension": ("pyspark_paimon.html.ipython", "load_ipython_extension"),
    "sql": ("pyspark_paimon.statements.run", "sql"),
    "time_zone": ("fileindex.base.time_zone", "time_zone"),
    "spark_session": ("pyspark_paimon.spark.client.session", "spark_session"),
    "unload_ipython_extension": ("pyspark_paimon.html.ipython", "unload_ipython_extension"),
    "warm": ("pyspark_paimon.spark.client.warm", "warm"),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: ``import pyspark_paimon`` costs next to nothing, and never imports Spark."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted({*globals(), *_HOMES})


__all__ = [
    "CastFailed",
    "Catalog",
    "CatalogRefused",
    "CatalogUnavailable",
    "CommitConflict",
    "CommitGaveUp",
    "CommitReplayed",
    "CompactResult",
    "CorruptFile",
    "DatabaseExists",
    "DatabaseNotFound",
    "DefaultSource",
    "ExpireResult",
    "FilterFailed",
    "IndexRewriteResult",
    "InstallRefused",
    "InstallResult",
    "InvalidArgument",
    "InvalidFilter",
    "InvalidSchema",
    "MergeResult",
    "NotAuthorized",
    "NotOffered",
    "NotPermitted",
    "NullInKey",
    "OutOfDisk",
    "OutOfMemory",
    "OutOfRange",
    "PaimonError",
    "PathNotAllowed",
    "ProgressEvent",
    "RemoteError",
    "Scan",
    "SchemaMismatch",
    "SnapshotExpired",
    "SnapshotNotFound",
    "SourceMissing",
    "SparkUnavailable",
    "StorageError",
    "SystemTableReadOnly",
    "Table",
    "TableChangeResult",
    "TableExists",
    "TableNotFound",
    "UnknownColumn",
    "UnknownSystemTable",
    "UnmergeableRows",
    "UnsafeFileIO",
    "UnsupportedOption",
    "UnsupportedTable",
    "UnsupportedType",
    "WriteResult",
    "__version__",
    "install",
    "load_ipython_extension",
    "spark_session",
    "sql",
    "time_zone",
    "unload_ipython_extension",
    "warm",
]
