"""Which option keys exist, and which keys and values are not built: the tables that ``support`` looks into.

The names are those of Paimon's ``CoreOptions``. A key that we honour has a field in ``manifest.options.core_options.CoreOptions``.
"""

from __future__ import annotations

from collections.abc import Callable

from manifest.options.core_options import CoreOptions
from manifest.options.former_keys import PRESENT_KEYS
from manifest.options.merge_engine import AGGREGATE_REMOVE, ENGINES, PARTIAL_REMOVE
from manifest.options.merge_keys import GROUP_REMOVE
from manifest.options.own_branch import FALLBACK_BRANCH, PRIMARY_BRANCH
from manifest.options.parquet_options import PARQUET_HONOURED, PARQUET_WITHOUT_EFFECT
from manifest.options.tag_periods import TAG_EXPIRES, TAG_MODE, TAG_MODES, TAG_OPTIONS
from manifest.options.without_effect import PREFIXES_WITHOUT_EFFECT, WITHOUT_EFFECT

Refusal = Callable[[str], str | None]

BY_FILES = "chooses files by when they were made, which is no state of the table: read 'from-timestamp', or what came since then with 'incremental'"
"""Why modes and times that choose files are refused."""


def _only(*allowed: str, why: str) -> Refusal:
    return lambda value: None if value.strip().lower() in allowed else f"'{value}' {why}; possible: {', '.join(allowed)}"


def _never(why: str) -> Refusal:
    return lambda value: f"'{value}' {why}"


_OFF = _only("false", why="is not built")
_UNBUILT = _never("is not built")
_PER_SCAN = _never("belongs to one scan, not to a table or a write; give it to the scan")

STREAM_LIMITS = {
    "read.stream.maxfilespertrigger": "max_files",
    "read.stream.maxrowspertrigger": "max_rows",
    "read.stream.maxbytespertrigger": "max_bytes",
}
"""Limits of a batch of a stream, in the lower case in which Spark hands options over."""

STREAM_ONLY = frozenset({"consumer-id", "read.changelog", *STREAM_LIMITS})
"""Keys of one streaming read."""

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
        "owner",
        "spill-compression",
        "spill-compression.zstd-level",
        "streaming-read-overwrite",
        "tag.default-time-retained",
        TAG_EXPIRES,
        TAG_MODE,
        *TAG_OPTIONS,
    ]
)
"""Keys that are honoured where they are looked up by name, without a member of ``CoreOptions``."""

BY_CALL = dict.fromkeys(
    [
        "partition.expiration-time",
        "partition.expiration-strategy",
        "partition.expiration-max-num",
        "partition.timestamp-formatter",
        "partition.timestamp-pattern",
    ],
    "expire_partitions() goes by it; nothing expires by itself",
)
"""Keys that a call honours, and no commit."""

PREFIXES = ("file-index.", *PREFIXES_WITHOUT_EFFECT)
"""Beginnings of keys that are looked at elsewhere or mean nothing here."""

ROWS: dict[str, Refusal] = {
    "type": _only("table", why="tables are not built"),
    "branch": _only("main", why="is chosen when the table is opened, not kept in it"),
    **dict.fromkeys(["sequence.snapshot-ordering", "pk-clustering-override", "chain-table.enabled", "postpone.merge-on-read"], _OFF),
    "query-auth.enabled": _only("false", why="makes the catalog choose the rows and values that each user may see, which is not built"),
    **dict.fromkeys(
        ["blob-descriptor-field", "blob-view-field", "blob-external-storage-field"], _never("keeps references as values: not built")
    ),
    "blob-as-descriptor": _only("false", why="makes references of values, which is not built"),
    "legacy-timestamp-mapping.enabled": _only("false", why="gives moments another type, which is not built"),
    "read.allow.fullScan": _only("true", why="refuses scans without a filter on partitions, which is not built"),
    "batch-scan-mode": _only("none", why="is for the jobs of other engines"),
    "scan.mode": _only("default", "full", "latest-full", "latest", why="is no mode of a batch scan here"),
    **dict.fromkeys(["scan.ignore-corrupt-files", "scan.ignore-lost-files"], _OFF),
    **dict.fromkeys(["scan.creation-time-millis", "scan.file-creation-time-millis"], _never(BY_FILES)),
    **dict.fromkeys(["scan.snapshot-id", "scan.tag-name", "scan.timestamp-millis", "scan.timestamp"], _PER_SCAN),
    **dict.fromkeys(["scan.watermark", "scan.version", "scan.bucket"], _PER_SCAN),
    **dict.fromkeys(["incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"], _PER_SCAN),
    "incremental-between-scan-mode": _PER_SCAN,
    "incremental-between-tag-to-snapshot": _OFF,
}
"""Known keys that change which rows a scan returns, in ways that are not built."""

ROWS_OF_STREAMS: dict[str, Refusal] = {
    "scan.bounded.watermark": _never("ends a stream, which is not built: stop the query instead"),
    "stream-scan-mode": _only("none", why="is for the jobs of other engines"),
    "streaming-read-append-overwrite": _only("false", why="is not built; possible for all tables: streaming-read-overwrite"),
}
"""Known keys that change which rows a stream returns, in ways that are not built."""

REFUSED: dict[str, Refusal] = {
    **ROWS,
    "merge-engine": _only(*ENGINES, why="is no merge engine"),
    "changelog-producer": _only("none", "input", "lookup", "full-compaction", why="is no changelog producer"),
    "changelog-file.format": _only("parquet", "orc", "avro", why="is no format of data files here"),
    "file.format": _only("parquet", "orc", "avro", why="is no format of data files here"),
    "bucket-function.type": _only("default", "mod", why="is not built"),
    **dict.fromkeys(
        [
            "index-file-in-data-file-dir",
            "manifest-sort.enabled",
            "primary-key.nullable",
            "commit.discard-duplicate-files",
            "partition.timestamp-format.strict",
            "branch-merge.enabled",
            "write.merge-schema",
            "write.merge-schema.explicit-cast",
            "write.merge-schema.type-widening",
            "write.hive-style-dynamic-partition.enabled",
        ],
        _OFF,
    ),
    "write.sequence-number-init-mode": _only("scan", why="is not built"),
    "commit.strict-mode.last-safe-snapshot": _UNBUILT,
    "upsert-key": _never("makes INSERT a merge, which is not built: use MERGE INTO"),
    **dict.fromkeys(["commit.callbacks", "tag.callbacks"], _never("names Java classes, which cannot be called from here")),
    "metadata.iceberg.storage": _only("disabled", why="is not built"),
    TAG_MODE: _only(*TAG_MODES, why="is no way to make tags"),
    "data-file.external-paths": _UNBUILT,
    "data-file.external-paths.strategy": _only("none", why="is not built"),
    **dict.fromkeys(STREAM_ONLY, _never("belongs to one streaming read; give it to spark.readStream")),
    **dict.fromkeys(
        ["read.stream.minrowspertrigger", "read.stream.maxtriggerdelayms"],
        _never("is not built: Spark tells a Python source no time to wait for; let the trigger's interval collect rows"),
    ),
    **dict.fromkeys(["pk-btree.index.columns", "blob-field", "vector-field", "vector.file.format"], _UNBUILT),
    "manifest.format": _only("avro", "orc", "parquet", why="is no manifest format here"),
    "manifest.compression": _only(
        "zstd", "zstandard", "null", "deflate", "snappy", "bzip2", why="is no manifest codec that every engine reads"
    ),
    **dict.fromkeys(
        ["file.compression", "changelog-file.compression"], _only("zstd", "none", "snappy", "lz4", "gzip", why="is no Parquet codec here")
    ),
}
"""Known keys whose values we cannot all honour."""

REFUSED_PREFIXES = ("pk-bitmap", "pk-vector", "pk-full-text", "pk-multivalue")
"""Beginnings of keys of secondary indexes, which are not built."""

AT_CREATION = frozenset({"primary-key", "partition", "path"})
"""Keys that stand for arguments of the table's creation and never reach its options."""

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
    ]
)
"""Keys that must stay as they were when the table was made."""

ONE_WAY = frozenset({"ignore-delete", "ignore-update-before"})
"""Flags that may be set on an existing table but not taken back."""

RIGHTS = frozenset({"query-auth.enabled"})
"""Keys of a table by which its catalog guards rows: no read may set them."""

LAYOUT = (
    IMMUTABLE
    | RIGHTS
    | {
        "bucket",
        "sequence.field",
        "sequence.field.sort-order",
        "ignore-delete",
        "file.format",
        "file.format.per.level",
        "data-file.thin-mode",
        "partition.default-name",
        "partition.legacy-name",
        "branch",
    }
)
"""Keys on which all files and all writers of a table must agree, so that one call cannot have its own."""

CORE = CoreOptions.keys()
HONOURED = (CORE | BY_KEY) - frozenset(REFUSED)
_EVERY = [*BY_CALL, *REFUSED, *ROWS_OF_STREAMS, *WITHOUT_EFFECT, *PARQUET_WITHOUT_EFFECT, *PARQUET_HONOURED, *PRESENT_KEYS]
KNOWN = HONOURED | frozenset(_EVERY)


__all__ = [
    "AT_CREATION",
    "BY_CALL",
    "BY_FILES",
    "BY_KEY",
    "HONOURED",
    "IMMUTABLE",
    "KNOWN",
    "LAYOUT",
    "ONE_WAY",
    "PREFIXES",
    "REFUSED",
    "REFUSED_PREFIXES",
    "RIGHTS",
    "ROWS",
    "ROWS_OF_STREAMS",
    "STREAM_LIMITS",
    "STREAM_ONLY",
]
