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
from types import ModuleType
from typing import TYPE_CHECKING

from paimon_base.siblings import check_siblings

check_siblings(__file__)

from paimon_base.plugins import plugin  # noqa: E402  # ours, now that nothing shadows us
from paimon_base.process import gc_paused  # noqa: E402  # as above
from paimon_base.public import public  # noqa: E402  # as above
from pyspark_paimon._version import __version__  # noqa: E402  # as above

if TYPE_CHECKING:
    from manifest.io.catalog_errors import CatalogUnavailable, NotAuthorized, NotOffered, NotPermitted
    from manifest.io.errors import (
        CastFailed,
        CatalogRefused,
        CommitConflict,
        CommitGaveUp,
        CommitReplayed,
        CredentialsRefused,
        EncodeFailed,
        FileMissing,
        FileReplaced,
        FileTaken,
        HistoryBusy,
        InvalidSchema,
        NotARegularFile,
        NullInKey,
        OutOfDisk,
        OutOfMemory,
        OutOfThreads,
        PathNotAllowed,
        PathNotOwned,
        SchemaMismatch,
        SnapshotExpired,
        SnapshotNotFound,
        StorageDenied,
        StorageError,
        SystemTableReadOnly,
        TableExists,
        TableNotFound,
        UnknownSystemTable,
        UnmergeableRows,
        UnsafeFileIO,
        UnsupportedTable,
    )
    from paimon_base.errors import (
        CorruptFile,
        CorruptVariant,
        FilterFailed,
        InvalidArgument,
        InvalidFilter,
        OutOfRange,
        PaimonError,
        UnknownColumn,
        UnsupportedOption,
        UnsupportedType,
    )
    from paimon_base.plugins import PluginFailed
    from pyspark_paimon.cache import CacheInfo, CacheUse, cache_clear, cache_info
    from pyspark_paimon.catalog.catalog import Catalog
    from pyspark_paimon.catalog.catalog_base import AnyCatalog, DatabaseExists, DatabaseNotFound
    from pyspark_paimon.catalog.view import View
    from pyspark_paimon.plugins.catalogs.hive.catalog import HiveCatalog
    from pyspark_paimon.plugins.catalogs.jdbc.catalog import JdbcCatalog
    from pyspark_paimon.plugins.catalogs.rest.catalog import RestCatalog
    from pyspark_paimon.plugins.feeds.batches import ChangeBatch, InvalidMessage
    from pyspark_paimon.plugins.feeds.debezium import from_debezium
    from pyspark_paimon.plugins.feeds.mysql import from_canal, from_maxwell
    from pyspark_paimon.plugins.page.html.ipython import load_ipython_extension, unload_ipython_extension
    from pyspark_paimon.plugins.sql.run import sql
    from pyspark_paimon.request.requests import OrphanFile
    from pyspark_paimon.results.counters import CompactCounters, ScanCounters, WriteCounters
    from pyspark_paimon.results.results import (
        AnalyzeResult,
        CompactResult,
        ExpireResult,
        FunnelStage,
        IndexRewriteResult,
        MaintenanceResult,
        MergeResult,
        ProgressEvent,
        Removal,
        WriteResult,
    )
    from pyspark_paimon.results.state_results import (
        CopyResult,
        FsckResult,
        Holder,
        MissingFilesResult,
        PurgeResult,
        TableChangeResult,
        TypeChangeResult,
    )
    from pyspark_paimon.results.tables_result import TableOutcome, TablesResult
    from pyspark_paimon.results.tree_report import TreeAdvice, TreeBox, TreeBucket, TreeIndex, TreeReport, TreeSnapshot
    from pyspark_paimon.spark.client.session import spark_session, warm
    from pyspark_paimon.spark.install import InstallResult, install
    from pyspark_paimon.spark.source import PaimonDataSource as DefaultSource
    from pyspark_paimon.spark.wire.errors import InstallRefused, RemoteError, SessionLost, SourceMissing, SparkUnavailable
    from pyspark_paimon.stream.follow import StreamBatch
    from pyspark_paimon.table.merge import Merge
    from pyspark_paimon.table.reader import TableReader
    from pyspark_paimon.table.scan import Scan
    from pyspark_paimon.table.table import Table
    from pyspark_paimon.table.writer import TableWriter
    from pyspark_paimon.views.explain import Explanation
    from sparkexpr.values.time_zone import time_zone
    from sparkexpr.variant.values import Variant

_NAMES_BY_MODULE = {
    "paimon_base.errors": (
        "CorruptFile",
        "CorruptVariant",
        "FilterFailed",
        "InvalidArgument",
        "InvalidFilter",
        "OutOfRange",
        "PaimonError",
        "UnknownColumn",
        "UnsupportedOption",
        "UnsupportedType",
    ),
    "paimon_base.plugins": ("PluginFailed",),
    "sparkexpr.values.time_zone": ("time_zone",),
    "sparkexpr.variant.values": ("Variant",),
    "manifest.io.errors": (
        "BranchExists",
        "CastFailed",
        "CatalogRefused",
        "CommitConflict",
        "CommitGaveUp",
        "CommitReplayed",
        "CredentialsRefused",
        "EncodeFailed",
        "FileMissing",
        "FileReplaced",
        "FileTaken",
        "HistoryBusy",
        "InvalidSchema",
        "NotARegularFile",
        "NullInKey",
        "OutOfDisk",
        "OutOfMemory",
        "OutOfThreads",
        "PathNotAllowed",
        "PathNotOwned",
        "SchemaMismatch",
        "SnapshotExpired",
        "SnapshotNotFound",
        "StorageDenied",
        "StorageError",
        "SystemTableReadOnly",
        "TableExists",
        "TableNotFound",
        "TagExists",
        "UnknownSystemTable",
        "UnmergeableRows",
        "UnsafeFileIO",
        "UnsupportedTable",
    ),
    "manifest.io.catalog_errors": ("CatalogUnavailable", "NotAuthorized", "NotOffered", "NotPermitted"),
    "pyspark_paimon.request.requests": ("OrphanFile",),
    "pyspark_paimon.results.counters": ("CompactCounters", "ScanCounters", "WriteCounters"),
    "pyspark_paimon.results.results": (
        "AnalyzeResult",
        "CompactResult",
        "ExpireResult",
        "FunnelStage",
        "IndexRewriteResult",
        "MaintenanceResult",
        "MergeResult",
        "ProgressEvent",
        "Removal",
        "WriteResult",
    ),
    "pyspark_paimon.results.state_results": (
        "CopyResult",
        "FsckResult",
        "Holder",
        "MissingFilesResult",
        "PurgeResult",
        "TableChangeResult",
        "TypeChangeResult",
    ),
    "pyspark_paimon.results.tables_result": ("TableOutcome", "TablesResult"),
    "pyspark_paimon.results.tree_report": ("TreeAdvice", "TreeBox", "TreeBucket", "TreeIndex", "TreeReport", "TreeSnapshot"),
    "pyspark_paimon.spark.client.session": ("spark_session", "warm"),
    "pyspark_paimon.spark.install": ("InstallResult", "install"),
    "pyspark_paimon.spark.wire.errors": ("InstallRefused", "RemoteError", "SessionLost", "SourceMissing", "SparkUnavailable"),
    "pyspark_paimon.stream.follow": ("StreamBatch",),
    "pyspark_paimon.cache": ("CacheInfo", "CacheUse", "cache_clear", "cache_info"),
    "pyspark_paimon.catalog.catalog": ("Catalog",),
    "pyspark_paimon.catalog.catalog_base": ("AnyCatalog", "DatabaseExists", "DatabaseNotFound"),
    "pyspark_paimon.table.merge": ("Merge",),
    "pyspark_paimon.table.scan": ("Scan",),
    "pyspark_paimon.table.table": ("Table",),
    "pyspark_paimon.table.reader": ("TableReader",),
    "pyspark_paimon.catalog.view": ("View",),
    "pyspark_paimon.table.writer": ("TableWriter",),
    "pyspark_paimon.views.explain": ("Explanation",),
}
"""Public names by the module that defines them."""
_PLUGIN_OF = {
    "ChangeBatch": ("feed", "batches"),
    "HiveCatalog": ("catalog", "hive"),
    "InvalidMessage": ("feed", "batches"),
    "JdbcCatalog": ("catalog", "jdbc"),
    "RestCatalog": ("catalog", "rest"),
    "from_canal": ("feed", "canal"),
    "from_debezium": ("feed", "debezium"),
    "from_maxwell": ("feed", "maxwell"),
    "load_ipython_extension": ("page", "notebook"),
    "sql": ("statement", "sql"),
    "unload_ipython_extension": ("page", "notebook"),
}
"""Kind and name of the plugins that have public names."""
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name at its first use."""
    # Importing the package costs next to nothing, and never imports Spark. A value is not kept here, or doctest would run its examples twice.
    if name in _MODULE_OF:
        with gc_paused():  # see LazyModule
            member = getattr(import_module(_MODULE_OF[name]), name)
        return public(member) if _MODULE_OF[name].startswith("sparkexpr.") else member  # which knows nothing of this package
    if name in _PLUGIN_OF:
        member = plugin(*_PLUGIN_OF[name])
        return getattr(member, name) if isinstance(member, ModuleType) else member
    if name == "DefaultSource":  # Spark looks for this name.
        return import_module("pyspark_paimon.spark.source").PaimonDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted(__all__)


__all__ = [
    "AnalyzeResult",
    "AnyCatalog",
    "BranchExists",
    "CacheInfo",
    "CacheUse",
    "CastFailed",
    "Catalog",
    "CatalogRefused",
    "CatalogUnavailable",
    "ChangeBatch",
    "CommitConflict",
    "CommitGaveUp",
    "CommitReplayed",
    "CompactCounters",
    "CompactResult",
    "CopyResult",
    "CorruptFile",
    "CorruptVariant",
    "CredentialsRefused",
    "DatabaseExists",
    "DatabaseNotFound",
    "DefaultSource",
    "EncodeFailed",
    "ExpireResult",
    "Explanation",
    "FileMissing",
    "FileReplaced",
    "FileTaken",
    "FilterFailed",
    "FsckResult",
    "FunnelStage",
    "HistoryBusy",
    "HiveCatalog",
    "Holder",
    "IndexRewriteResult",
    "InstallRefused",
    "InstallResult",
    "InvalidArgument",
    "InvalidFilter",
    "InvalidMessage",
    "InvalidSchema",
    "JdbcCatalog",
    "MaintenanceResult",
    "Merge",
    "MergeResult",
    "MissingFilesResult",
    "NotARegularFile",
    "NotAuthorized",
    "NotOffered",
    "NotPermitted",
    "NullInKey",
    "OrphanFile",
    "OutOfDisk",
    "OutOfMemory",
    "OutOfRange",
    "OutOfThreads",
    "PaimonError",
    "PathNotAllowed",
    "PathNotOwned",
    "PluginFailed",
    "ProgressEvent",
    "PurgeResult",
    "RemoteError",
    "Removal",
    "RestCatalog",
    "Scan",
    "ScanCounters",
    "SchemaMismatch",
    "SessionLost",
    "SnapshotExpired",
    "SnapshotNotFound",
    "SourceMissing",
    "SparkUnavailable",
    "StorageDenied",
    "StorageError",
    "StreamBatch",
    "SystemTableReadOnly",
    "Table",
    "TableChangeResult",
    "TableExists",
    "TableNotFound",
    "TableOutcome",
    "TableReader",
    "TableWriter",
    "TablesResult",
    "TagExists",
    "TreeAdvice",
    "TreeBox",
    "TreeBucket",
    "TreeIndex",
    "TreeReport",
    "TreeSnapshot",
    "TypeChangeResult",
    "UnknownColumn",
    "UnknownSystemTable",
    "UnmergeableRows",
    "UnsafeFileIO",
    "UnsupportedOption",
    "UnsupportedTable",
    "UnsupportedType",
    "Variant",
    "View",
    "WriteCounters",
    "WriteResult",
    "__version__",
    "cache_clear",
    "cache_info",
    "from_canal",
    "from_debezium",
    "from_maxwell",
    "install",
    "load_ipython_extension",
    "spark_session",
    "sql",
    "time_zone",
    "unload_ipython_extension",
    "warm",
]
