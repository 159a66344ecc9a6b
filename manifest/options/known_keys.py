"""Which option keys exist, and which keys and values are not built: the tables that ``option_support`` asks.

The names are those of Paimon's ``CoreOptions``. A key that we honour has a field in ``manifest.options.core_options.CoreOptions``.
"""

from __future__ import annotations

from collections.abc import Callable

from manifest.options.core_options import FORMER_KEYS, CoreOptions
from manifest.options.merge_engine import AGGREGATE_REMOVE, ENGINES, PARTIAL_REMOVE
from manifest.options.merge_keys import GROUP_REMOVE

Refusal = Callable[[str], str | None]


def _only(*allowed: str, why: str) -> Refusal:
    return lambda value: None if value.strip().lower() in allowed else f"'{value}' {why}; possible: {', '.join(allowed)}"


def _never(why: str) -> Refusal:
    return lambda _: why


_OFF = _only("false", why="is not built")
_PER_SCAN = _never("belongs to one scan, not to a table or a write; give it to the scan")

STREAM_LIMITS = {
    "read.stream.maxfilespertrigger": "max_files",
    "read.stream.maxrowspertrigger": "max_rows",
    "read.stream.maxbytespertrigger": "max_bytes",
}
"""Limits of a batch of a stream, in the lower case in which Spark hands options over."""

STREAM_ONLY = frozenset({"consumer-id", "read.changelog", *STREAM_LIMITS})
"""Keys of one streaming read."""

TUNING = frozenset(
    [
        "auto-create",
        "page-size",
        "local-sort.max-num-file-handles",
        "spill-compression",
        "spill-compression.zstd-level",
        "sort-spill-threshold",
        "sort-spill-buffer-size",
        "sort-engine",
        "write-max-writers-to-spill",
        "async-file-write",
        "write.batch-size",
        "write.batch-memory",
        "write-buffer-for-append",
        "lookup-wait",
        "lookup-compact",
        "lookup-compact.max-interval",
        "lookup.cache-max-memory-size",
        "lookup.cache-max-disk-size",
        "lookup.cache-file-retention",
        "lookup.merge-records-threshold",
        "lookup.merge-buffer-size",
        "lookup.cache-spill-compression",
        "lookup.hash-load-factor",
        "lookup.cache.bloom.filter.enabled",
        "lookup.cache.bloom.filter.fpp",
        "lookup.cache.high-priority-pool-ratio",
        "deletion-vectors.modifiable",
        "deletion-vectors.bitmap64",
        "deletion-vector.index-file.target-size",
        "dynamic-bucket.assigner-parallelism",
        "commit.force-compact",
        "commit.force-create-snapshot",
        "snapshot.ignore-empty-commit",
        "snapshot.expire.execution-mode",
        "changelog.num-retained.min",
        "changelog.num-retained.max",
        "changelog.time-retained",
        "consumer.expiration-time",
        "consumer.ignore-progress",
        "scan.manifest.parallelism",
        "file-operation.thread-num",
        "file-reader-async-threshold",
        "read.batch-size",
        "scan.plan-sort-partition",
        "scan.max-splits-per-task",
        "continuous.discovery-interval",
        "streaming-read-overwrite",
        "streaming-read-mode",
        "streaming.read.snapshot.delay",
        "alter-column-null-to-not-null.disabled",
        "disable-explicit-type-casting",
        "add-column-before-partition",
        "manifest.merge-optimize.enabled",
        "delete-file.thread-num",
        "delete.force-produce-changelog",
        "compaction.delete-ratio-threshold",
        "compaction.skip-expired-partitions",
        "changelog-producer.row-deduplicate",
        "changelog-producer.row-deduplicate-ignore-fields",
        "changelog-file.stats-mode",
        "changelog-file.prefix",
        "write-buffer-spill.tmp-dirs",
        "local-merge-buffer-size",
        "partition.mark-done-action",
        "partition.expiration-time",
        "partition.timestamp-formatter",
        "partition.timestamp-pattern",
        "snapshot.watermark-idle-timeout",
        "precommit-compact",
        "end-input.check-partition-expire",
        "force-lookup",
        "owner",
        "metastore.partitioned-table",
        "consumer.mode",
        "cross-partition-upsert.index-ttl",
        "cross-partition-upsert.bootstrap-parallelism",
        "dynamic-bucket.initial-buckets",
        "postpone.default-bucket-num",
        "postpone.batch-write-fixed-bucket",
        "postpone.target-size-per-bucket",
        "tag.creation-period",
        "tag.creation-delay",
        "tag.num-retained-max",
        "tag.default-time-retained",
        "manifest-sort.max-rewrite-size",
        "partition.expiration-check-interval",
        "partition.expiration-strategy",
        "partition.expiration-max-num",
        "data-file.external-paths.specific-fs",
    ]
)
"""Keys that tune how another engine works, or features that stay off unless an option of ``REFUSED`` turns them on."""

PREFIXES = ("parquet.", "orc.", "avro.", "file-index.", "comment")
"""Beginnings of keys that are looked at elsewhere or handed to a format library."""

ROWS: dict[str, Refusal] = {
    "type": _only("table", why="tables are not built"),
    "branch": _only("main", why="is chosen when the table is opened, not kept in it"),
    "data-evolution.enabled": _OFF,
    "sequence.snapshot-ordering": _OFF,
    "pk-clustering-override": _OFF,
    "scan.mode": _only("default", "full", "latest-full", "latest", why="is no mode of a batch scan here"),
    **dict.fromkeys(["scan.fallback-branch", "scan.primary-branch"], _never("is not built")),
    **dict.fromkeys(["scan.ignore-corrupt-files", "scan.ignore-lost-files"], _OFF),
    **dict.fromkeys(["scan.snapshot-id", "scan.tag-name", "scan.timestamp-millis", "scan.timestamp"], _PER_SCAN),
    **dict.fromkeys(["scan.watermark", "scan.version", "scan.bucket", "log.scan"], _PER_SCAN),
    **dict.fromkeys(["incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"], _PER_SCAN),
    "incremental-between-scan-mode": _PER_SCAN,
}
"""Known keys that change which rows a batch scan returns, in ways that are not built."""

REFUSED: dict[str, Refusal] = {
    **ROWS,
    "merge-engine": _only(*ENGINES, why="is no merge engine"),
    "changelog-producer": _only("none", "input", "lookup", "full-compaction", why="is no changelog producer"),
    "changelog-file.format": _only("parquet", why="is not written or read here"),
    "file.format": _only("parquet", why="is not written or read here"),
    "bucket-function.type": _only("default", "mod", why="is not built"),
    **dict.fromkeys(["row-tracking.enabled", "index-file-in-data-file-dir", "manifest-sort.enabled", "primary-key.nullable"], _OFF),
    **dict.fromkeys(["commit.discard-duplicate-files", "query-auth.enabled"], _OFF),
    "write.sequence-number-init-mode": _only("scan", why="is not built"),
    "commit.strict-mode.last-safe-snapshot": _never("is not built"),
    **dict.fromkeys(["commit.callbacks", "tag.callbacks"], _never("names Java classes, which cannot be called from here")),
    "metadata.iceberg.storage": _only("disabled", why="is not built"),
    **dict.fromkeys(["record-level.expire-time", "record-level.time-field"], _never("is not built")),
    "tag.automatic-creation": _only("none", why="is not built yet"),
    "data-file.external-paths": _never("is not built"),
    "data-file.external-paths.strategy": _only("none", why="is not built"),
    "clustering.columns": _never("is not built yet"),
    **dict.fromkeys(STREAM_ONLY, _never("belongs to one streaming read; give it to spark.readStream")),
    **dict.fromkeys(
        ["read.stream.minrowspertrigger", "read.stream.maxtriggerdelayms"],
        _never("is not built: Spark tells a Python source no time to wait for; let the trigger's interval collect rows"),
    ),
    **dict.fromkeys(["pk-btree.index.columns", "blob-field", "blob-descriptor-field", "blob-view-field"], _never("is not built")),
    "manifest.format": _only("avro", why="is no manifest format here"),
    "manifest.compression": _only(
        "zstd", "zstandard", "null", "deflate", "snappy", "bzip2", why="is no manifest codec that every engine reads"
    ),
    **dict.fromkeys(
        ["file.compression", "changelog-file.compression"], _only("zstd", "none", "snappy", "lz4", "gzip", why="is no Parquet codec here")
    ),
}
"""Known keys whose values we cannot all honour."""

REFUSED_PREFIXES = ("pk-bitmap", "pk-vector", "pk-full-text")
"""Beginnings of keys of secondary indexes, which are not built."""

AT_CREATION = frozenset({"primary-key", "partition"})
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

LAYOUT = IMMUTABLE | {
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
"""Keys on which all files and all writers of a table must agree, so that one call cannot have its own."""

CORE = CoreOptions.keys()
KNOWN = TUNING | frozenset(REFUSED) | CORE | frozenset([*FORMER_KEYS.values(), AGGREGATE_REMOVE, PARTIAL_REMOVE, GROUP_REMOVE])


__all__ = [
    "AT_CREATION",
    "IMMUTABLE",
    "KNOWN",
    "LAYOUT",
    "ONE_WAY",
    "PREFIXES",
    "REFUSED",
    "REFUSED_PREFIXES",
    "ROWS",
    "STREAM_LIMITS",
    "STREAM_ONLY",
]
