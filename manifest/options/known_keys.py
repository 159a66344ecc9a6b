"""Known option keys, and unsupported keys and values, for ``support``.

Names are from Paimon's ``CoreOptions``. A supported key has a field in ``manifest.options.core_options.CoreOptions``.
"""

from __future__ import annotations

from collections.abc import Callable

from fileindex.sorted_index.build_options import SortedIndexKind
from manifest.options.aggregate_functions import GROUP_REMOVE
from manifest.options.core_options import FALLBACK_BRANCH, PRIMARY_BRANCH, CoreOptions
from manifest.options.former_keys import PRESENT_KEYS
from manifest.options.merge_engine import AGGREGATE_REMOVE, ENGINES, PARTIAL_REMOVE
from manifest.options.parquet_options import CODECS, PARQUET_HONOURED, PARQUET_WITHOUT_EFFECT
from manifest.options.tag_periods import TAG_EXPIRES, TAG_MODE, TAG_MODES, TAG_OPTIONS
from manifest.options.without_effect import PREFIXES_WITHOUT_EFFECT, WITHOUT_EFFECT

Refusal = Callable[[str], str | None]

BY_FILES = "selects files by creation time, which is not a state of the table: read 'from-timestamp', or later changes with 'incremental'"
"""Reason for refusing modes and times that select files."""


def _only(*allowed: str, why: str) -> Refusal:
    return lambda value: None if value.strip().lower() in allowed else f"'{value}' {why}; use one of: {', '.join(allowed)}"


def _refuse_outside(value: str) -> str | None:
    """Return why a directory is refused. None: it is below the table."""
    is_below = {"", ".", ".."}.isdisjoint(value.removesuffix("/").split("/")) and ":" not in value and "\\" not in value
    return None if is_below else f"'{value}' is not a directory below the table; write a relative path with plain names"


def _never(why: str) -> Refusal:
    return lambda value: f"'{value}' {why}"


_OFF = _only("false", why="is not supported")
_UNBUILT = _never("is not supported")
_PER_SCAN = _never("applies to a single scan, not to a table or a write; pass it to the scan")

_NEEDS_CATALOG = "registers tables in a catalog of Iceberg, which is not supported"

STREAM_LIMITS = {
    "read.stream.maxfilespertrigger": "max_files",
    "read.stream.maxrowspertrigger": "max_rows",
    "read.stream.maxbytespertrigger": "max_bytes",
}
"""Limits of a stream batch, in lower case as Spark passes options."""

STREAM_ONLY = frozenset({"consumer-id", "read.changelog", *STREAM_LIMITS})
"""Keys of a single streaming read."""

BY_KEY = frozenset(
    [
        AGGREGATE_REMOVE,
        PARTIAL_REMOVE,
        GROUP_REMOVE,
        "add-column-before-partition",
        "alter-column-null-to-not-null.disabled",
        "changelog-file.prefix",
        "changelog-file.stats-mode",
        "consumer.expiration-time",
        "consumer.ignore-progress",
        "disable-explicit-type-casting",
        "dynamic-bucket.assigner-parallelism",
        FALLBACK_BRANCH,
        PRIMARY_BRANCH,
        "metadata.iceberg.compaction.max.file-num",
        "metadata.iceberg.compaction.min.file-num",
        "metadata.iceberg.delete-after-commit.enabled",
        "metadata.iceberg.manifest-legacy-version",
        "metadata.iceberg.previous-versions-max",
        "owner",
        "spill-compression",
        "spill-compression.zstd-level",
        "streaming-read-overwrite",
        "tag.default-time-retained",
        TAG_EXPIRES,
        TAG_MODE,
        *TAG_OPTIONS,
        *(kind.columns_option for kind in SortedIndexKind),
    ]
)
"""Supported keys that are read by name, without a field of ``CoreOptions``."""

BY_CALL = {
    "partition.mark-done-action": "used by mark_partitions_done(), which writes success files only",
    **dict.fromkeys(
        [
            "partition.expiration-time",
            "partition.expiration-strategy",
            "partition.expiration-max-num",
            "partition.timestamp-formatter",
            "partition.timestamp-pattern",
        ],
        "used by expire_partitions(); no partition expires automatically",
    ),
}
"""Keys that a call uses, but no commit."""

PREFIXES = ("file-index.", "ngram-filter.", *(kind.prefix for kind in SortedIndexKind), *PREFIXES_WITHOUT_EFFECT)
"""Prefixes of keys that other modules check or that have no effect."""

ROWS: dict[str, Refusal] = {
    "type": _only("table", why="tables are not supported"),
    "branch": _only("main", why="is selected when the table is opened, not stored in it"),
    **dict.fromkeys(["sequence.snapshot-ordering", "pk-clustering-override", "chain-table.enabled", "postpone.merge-on-read"], _OFF),
    "query-auth.enabled": _only("false", why="lets the catalog restrict rows and values per user, which is not supported"),
    **dict.fromkeys(
        ["blob-descriptor-field", "blob-view-field", "blob-external-storage-field"],
        _never("stores references as values, which is not supported"),
    ),
    "blob-as-descriptor": _only("false", why="returns references instead of values, which is not supported"),
    "legacy-timestamp-mapping.enabled": _only("false", why="changes the type of timestamps, which is not supported"),
    "read.allow.fullScan": _only("true", why="refuses scans without a partition filter, which is not supported"),
    "batch-scan-mode": _only("none", why="applies only to jobs of other engines"),
    "scan.mode": _only("default", "full", "latest-full", "latest", why="is not a mode of a batch scan"),
    **dict.fromkeys(["scan.ignore-corrupt-files", "scan.ignore-lost-files"], _OFF),
    **dict.fromkeys(["scan.creation-time-millis", "scan.file-creation-time-millis"], _never(BY_FILES)),
    **dict.fromkeys(["scan.snapshot-id", "scan.tag-name", "scan.timestamp-millis", "scan.timestamp"], _PER_SCAN),
    **dict.fromkeys(["scan.watermark", "scan.version", "scan.bucket"], _PER_SCAN),
    **dict.fromkeys(["incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"], _PER_SCAN),
    "incremental-between-scan-mode": _PER_SCAN,
    "incremental-between-tag-to-snapshot": _OFF,
}
"""Known keys that change the rows of a scan in unsupported ways."""

ROWS_OF_STREAMS: dict[str, Refusal] = {
    "scan.bounded.watermark": _never("ends a stream, which is not supported: stop the query instead"),
    "stream-scan-mode": _only("none", why="applies only to jobs of other engines"),
    "streaming-read-append-overwrite": _only("false", why="is not supported; for all tables, use streaming-read-overwrite"),
}
"""Known keys that change the rows of a stream in unsupported ways."""

REFUSED: dict[str, Refusal] = {
    **ROWS,
    "merge-engine": _only(*ENGINES, why="is not a merge engine"),
    "changelog-producer": _only("none", "input", "lookup", "full-compaction", why="is not a changelog producer"),
    "changelog-file.format": _only("parquet", "orc", "avro", why="is not a supported format of data files"),
    "file.format": _only("parquet", "orc", "avro", why="is not a supported format of data files"),
    "bucket-function.type": _only("default", "mod", why="is not supported"),
    **dict.fromkeys(
        [
            "index-file-in-data-file-dir",
            "manifest-sort.enabled",
            "primary-key.nullable",
            "commit.discard-duplicate-files",
            "partition.timestamp-format.strict",
            "branch-merge.enabled",
            "write.hive-style-dynamic-partition.enabled",
        ],
        _OFF,
    ),
    "write.sequence-number-init-mode": _only("scan", why="is not supported"),
    "commit.strict-mode.last-safe-snapshot": _UNBUILT,
    "upsert-key": _never("turns INSERT into a merge, which is not supported: use MERGE INTO"),
    **dict.fromkeys(["commit.callbacks", "tag.callbacks"], _never("names Java classes, which Python cannot call")),
    "metadata.iceberg.storage": _only("disabled", "table-location", "hadoop-catalog", why=_NEEDS_CATALOG),
    "metadata.iceberg.storage-location": _only("table-location", "catalog-location", why="is not a place of Iceberg metadata"),
    "metadata.iceberg.format-version": _only("2", "3", why="is not a supported format version of Iceberg metadata"),
    "metadata.iceberg.manifest-compression": _only(
        "snappy", "zstd", "zstandard", "null", "none", "deflate", "gzip", "bzip2", why="is not a codec of Iceberg manifests"
    ),
    TAG_MODE: _only(*TAG_MODES, why="is not a mode of tag creation"),
    "data-file.path-directory": _refuse_outside,
    "data-file.external-paths": _UNBUILT,
    "data-file.external-paths.strategy": _only("none", why="is not supported"),
    **dict.fromkeys(STREAM_ONLY, _never("applies to a single streaming read; pass it to spark.readStream")),
    **dict.fromkeys(
        ["read.stream.minrowspertrigger", "read.stream.maxtriggerdelayms"],
        _never("is not supported: Spark passes no waiting time to a Python source; collect rows by the trigger's interval"),
    ),
    **dict.fromkeys(["vector-field", "vector.file.format"], _UNBUILT),
    "manifest.format": _only("avro", "orc", "parquet", why="is not a supported manifest format"),
    "manifest.compression": _only(
        "zstd", "zstandard", "null", "deflate", "snappy", "bzip2", why="is not a manifest codec that every engine reads"
    ),
    **dict.fromkeys(
        ["file.compression", "changelog-file.compression"],
        _only(*CODECS, why="is not a supported Parquet codec"),
    ),
}
"""Known keys with unsupported values."""

AT_CREATION = frozenset({"primary-key", "partition", "path"})
"""Keys that are arguments of the table's creation and are not stored as options."""

IMMUTABLE = frozenset(
    [
        "type",
        "bucket-key",
        "bucket-function.type",
        "data-file.path-directory",
        "merge-engine",
        "sequence.snapshot-ordering",
        "aggregation.remove-record-on-delete",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "rowkind.field",
        "primary-key",
        "primary-key.nullable",
        "partition",
        "dynamic-bucket.initial-buckets",
        "force-lookup",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "pk-clustering-override",
        "deletion-vectors.enabled",
        "partition.default-name",
        "partition.legacy-name",
    ]
)
"""Keys that cannot change after the table was created."""

ONE_WAY = frozenset({"ignore-delete", "ignore-update-before"})
"""Flags that may be set on an existing table, but not unset."""

RIGHTS = frozenset({"query-auth.enabled"})
"""Keys by which a catalog restricts access to rows. A read cannot set them."""

LAYOUT = (
    IMMUTABLE
    | RIGHTS
    | {
        "bucket",
        "sequence.field",
        "sequence.field.sort-order",
        "delete.time-retained",
        "ignore-delete",
        "file.format",
        "file.format.per.level",
        "data-file.thin-mode",
        "branch",
    }
)
"""Keys that all files and writers of a table must share, so that a single call cannot set them."""

CORE = CoreOptions.keys()
HONOURED = (CORE | BY_KEY) - frozenset(REFUSED)
_EVERY = [*BY_CALL, *REFUSED, *ROWS_OF_STREAMS, *WITHOUT_EFFECT, *PARQUET_WITHOUT_EFFECT, *PARQUET_HONOURED, *PRESENT_KEYS]
KNOWN = HONOURED | frozenset(_EVERY)
