"""Known keys without effect in this package, with reasons.

They do not change rows. They are kept verbatim, because engines share table definitions. See ``Table.option_effects``.
"""

from __future__ import annotations

_OTHERS = "tunes another engine's sources, sinks and jobs"
_LOOKUP = "tunes another engine's lookups; here older versions are found by merging"
_THREADS = "the caller that opens the table sets the number of threads"
_MEMORY = "memory is bounded by write-buffer-size"
_POSTPONE = "writes assign rows to the partition's existing buckets at once"
_CALLED = "expire_partitions() checks on every call"
_BATCHES = "batches are limited by bytes"
_CLUSTERED = "compact() clusters, with full=True completely in the given partitions"
_EMPTY = "a write without rows creates no snapshot"
_BLOBS = "BLOB columns have their values in files of the table, which are written and read as a whole"
_CHAIN = "applies only with chain-table.enabled"
_FORMAT_TABLES = "applies to tables of plain files, which are not supported"
_GLOBAL_INDEX = "is for indexes of append tables, of texts and of vectors, which are not used or written"
_ICEBERG_CATALOG = "applies only where tables are registered in a catalog of Iceberg, which is not supported"
_LAYOUT = "only orders rows within files"
_MATERIALIZED = "is kept for the engine that fills the table"
_ROW_IDS = "updates and compactions keep row ids, and repeat a lost race at once"
_SHREDDING = "a VARIANT is written unshredded"
_VISIBILITY = "a commit returns when its rows can be read"

WITHOUT_EFFECT: dict[str, str] = {
    **dict.fromkeys(
        [
            "auto-create",
            "local-merge-buffer-size",
            "precommit-compact",
            "continuous.discovery-interval",
            "scan.max-splits-per-task",
            "scan.plan-sort-partition",
            "streaming-read-mode",
            "streaming.read.snapshot.delay",
            "partition.time-interval",
            "partition.idle-time-to-done",
            "partition.mark-done.recover-from-state",
            "snapshot.watermark-idle-timeout",
            "consumer.mode",
            "metastore.partitioned-table",
            "deletion-vectors.modifiable",
            "delete.force-produce-changelog",
            "data-file.external-paths.specific-fs",
            "commit.user-prefix",
            "unaware-bucket.compaction.parallelism",
            "unaware-bucket.no-shuffle",
            "blob-descriptor.source-table",
            "bucket-append-ordered",
            "changelog-producer.compaction-interval",
            "changelog.precommit-compact.buffer-size",
            "changelog.precommit-compact.thread-num",
            "commit.custom-listeners",
            "compaction.bucket-distribution-strategy",
            "compaction.file-num-limit",
            "consumer.changelog-only",
            "data-file.external-paths.weights",
            "end-input.watermark",
            "filesystem.job-level-settings.enabled",
            "metastore.tag-to-partition",
            "metastore.tag-to-partition.preview",
            "partition.end-input-to-done",
            "partition.idle-time-to-report-statistic",
            "partition.mark-done-action.custom.class",
            "partition.mark-done-action.http.params",
            "partition.mark-done-action.http.url",
            "partition.mark-done-action.mode",
            "partition.sink-strategy",
            "requiredSparkConfsCheck.enabled",
            "source.split.target-size-with-column-pruning",
            "tag.create-success-file",
            "vector-search.lateral-join.parallelism",
            "write.use-v2-write",
        ],
        _OTHERS,
    ),
    **dict.fromkeys(
        [
            "scan.parallelism",
            "read.shuffle-bucket-with-partition",
            "scan.bounded",
            "scan.infer-parallelism",
            "scan.infer-parallelism.max",
            "scan.partitions",
            "scan.plan-auto-tag-for-read.time-retained",
            "scan.remove-normalize",
            "scan.split-enumerator.batch-size",
            "scan.split-enumerator.mode",
            "scan.max-snapshot.count",
            "scan.dedicated-split-generation",
            "scan.watermark.alignment.group",
            "scan.watermark.alignment.max-drift",
            "scan.watermark.alignment.update-interval",
            "scan.watermark.emit.strategy",
            "scan.watermark.idle-timeout",
            "source.checkpoint-align.enabled",
            "source.checkpoint-align.timeout",
            "source.operator-uid.suffix",
        ],
        _OTHERS,
    ),
    **dict.fromkeys(
        [
            "lookup-wait",
            "lookup.async",
            "lookup.async-thread-number",
            "lookup.bootstrap-parallelism",
            "lookup.cache",
            "lookup.cache-max-memory-size",
            "lookup.cache-max-disk-size",
            "lookup.cache-file-retention",
            "lookup.cache-spill-compression",
            "lookup.cache.bloom.filter.enabled",
            "lookup.cache.bloom.filter.fpp",
            "lookup.cache.high-priority-pool-ratio",
            "lookup.blob-as-descriptor",
            "lookup.cache-rows",
            "lookup.continuous.discovery-interval",
            "lookup.dynamic-partition.refresh-interval",
            "lookup.dynamic-partition.refresh.async",
            "lookup.hash-load-factor",
            "lookup.merge-buffer-size",
            "lookup.merge-records-threshold",
            "local-kv-db.block-size",
            "lookup.refresh.async",
            "lookup.remote-file.enabled",
            "lookup.remote-file.level-threshold",
            "lookup.refresh.async.pending-snapshot-count",
            "lookup.refresh.full-load-threshold",
            "lookup.refresh.time-periods-blacklist",
        ],
        _LOOKUP,
    ),
    **dict.fromkeys(
        [
            "scan.manifest.parallelism",
            "file-operation.thread-num",
            "file-reader-async-threshold",
            "async-file-write",
        ],
        _THREADS,
    ),
    **dict.fromkeys(
        [
            "cache-page-size",
            "page-size",
            "local-sort.max-num-file-handles",
            "sort-engine",
            "sort-spill-threshold",
            "sort-spill-buffer-size",
            "write-buffer-for-append",
            "write-buffer-spillable",
            "write-buffer-spill.max-disk-size",
            "write-max-writers-to-spill",
            "write.batch-memory",
        ],
        _MEMORY,
    ),
    **dict.fromkeys(["write.batch-size", "read.batch-size"], _BATCHES),
    **dict.fromkeys(
        [
            "postpone.batch-write-fixed-bucket",
            "postpone.batch-write-fixed-bucket.max-parallelism",
            "postpone.batch-write-fixed-bucket.rescale-load-factor",
            "postpone.target-row-num-per-bucket",
            "postpone.target-size-per-bucket",
        ],
        _POSTPONE,
    ),
    **dict.fromkeys(
        [
            "blob-compaction.enabled",
            "blob-external-storage-path",
            "blob-view.resolve.enabled",
            "blob-write-null-on-fetch-failure",
            "blob-write-null-on-missing-file",
            "blob.copy-buffer-size",
            "blob.split-by-file-size",
        ],
        _BLOBS,
    ),
    **dict.fromkeys(
        [
            "chain-table.chain-partition-keys",
            "chain-table.split.key-range-enabled",
            "chain-table.streaming.merge-snapshot",
            "scan.fallback-delta-branch",
            "scan.fallback-snapshot-branch",
        ],
        _CHAIN,
    ),
    **dict.fromkeys(
        [
            "data-evolution.compaction.rewrite-row-ids",
            "data-evolution.merge-into.file-pruning",
            "data-evolution.merge-into.source-persist",
            "data-evolution.reassign.skip-contiguous-row-count",
            "data-evolution.row-id-conflict-rewrite.max-size",
            "data-evolution.row-sidecar.enabled",
            "data-evolution.row-sidecar.max-selected-rows",
            "data-evolution.row-sidecar.max-selection-ratio",
            "write.data-evolution.update-conflict-retry.max-attempts",
            "write.data-evolution.update-conflict-retry.wait-ms",
        ],
        _ROW_IDS,
    ),
    **dict.fromkeys(
        [
            "metadata.iceberg.database",
            "metadata.iceberg.glue.skip-archive",
            "metadata.iceberg.hadoop-conf-dir",
            "metadata.iceberg.hive-client-class",
            "metadata.iceberg.hive-conf-dir",
            "metadata.iceberg.hive-skip-update-stats",
            "metadata.iceberg.table",
            "metadata.iceberg.uri",
        ],
        _ICEBERG_CATALOG,
    ),
    "row-tracking.partition-group-on-commit": "rows get ids in the order of their files",
    **dict.fromkeys(
        [
            "format-table.commit-hive-sync-url",
            "format-table.file.compression",
            "format-table.implementation",
            "format-table.partition-path-only-value",
            "format-table.repair.collect-statistics",
            "format-table.scan.list-parallelism",
            "format-table.statistics.parallelism",
        ],
        _FORMAT_TABLES,
    ),
    **dict.fromkeys(
        [
            "full-text-index.search-mode",
            "global-index.build.max-parallelism",
            "global-index.build.max-shard",
            "global-index.column-update-action",
            "global-index.external-path",
            "global-index.row-count-per-shard",
            "global-index.search-mode",
            "global-index.thread-num",
            "scalar-index.search-mode",
            "vector-index.search-mode",
            "vector-search.distribute.enabled",
            "vector-search.lateral-join.batch-size",
            "vector.target-file-size",
        ],
        _GLOBAL_INDEX,
    ),
    **dict.fromkeys(["key-value.sequence_number.enabled", "table-read.sequence-number.enabled"], "no system table shows sequence numbers"),
    **dict.fromkeys(
        [
            "materialized-table.definition-query",
            "materialized-table.interval-freshness",
            "materialized-table.interval-freshness.time-unit",
            "materialized-table.logical-refresh-mode",
            "materialized-table.refresh-handler-bytes",
            "materialized-table.refresh-handler-description",
            "materialized-table.refresh-mode",
            "materialized-table.refresh-status",
        ],
        _MATERIALIZED,
    ),
    **dict.fromkeys(
        ["sort-compaction.local-sample.magnification", "sort-compaction.range-strategy", "zorder.var-length-contribution"], _LAYOUT
    ),
    **dict.fromkeys(
        [
            "variant.inferShreddingSchema",
            "variant.shredding.adaptive.maxInferBufferRow",
            "variant.shredding.adaptive.retentionRatio",
            "variant.shredding.inferenceMode",
            "variant.shredding.maxInferBufferRow",
            "variant.shredding.maxSchemaDepth",
            "variant.shredding.maxSchemaWidth",
            "variant.shredding.minFieldCardinalityRatio",
            "variant.shreddingSchema",
        ],
        _SHREDDING,
    ),
    **dict.fromkeys(["visibility-callback.check-interval", "visibility-callback.enabled", "visibility-callback.timeout"], _VISIBILITY),
    "partition.expiration-batch-size": "all expired partitions are dropped in one commit",
    "scan.fallback-branch.read-fail-fast": "an error of either branch is always raised",
    **dict.fromkeys(["partition.expiration-check-interval", "end-input.check-partition-expire"], _CALLED),
    "cross-partition-upsert.index-ttl": "keys are found in files of any age",
    "cross-partition-upsert.bootstrap-parallelism": _THREADS,
    **dict.fromkeys(["commit.force-create-snapshot", "snapshot.ignore-empty-commit"], _EMPTY),
    **dict.fromkeys(
        ["clustering.history-partition.limit", "clustering.history-partition.idle-to-full-sort", "clustering.incremental.optimize-write"],
        _CLUSTERED,
    ),
    "clustering.incremental.mode": "clustered rows are sorted across all their files",
    "commit.force-compact": "write-only decides whether a write compacts",
    "compaction.skip-expired-partitions": "a partition is compacted as long as it exists",
    "dynamic-bucket.initial-buckets": "buckets are created on demand",
    **dict.fromkeys(["manifest-sort.max-rewrite-size", "manifest-sort.partition-field"], "manifests are not sorted"),
    "manifest.delete-file-drop-stats": "entries of deleted files keep their statistics, which is always allowed",
    "manifest.merge-optimize.enabled": "manifests are merged by size and number",
    "snapshot.expire.execution-mode": "a commit expires snapshots before it returns",
    "write-buffer-spill.tmp-dirs": "spills go to the machine's temporary directory (TMPDIR)",
}
"""Reason by key."""

PREFIXES_WITHOUT_EFFECT = {
    "sink.": _OTHERS,
    "orc.": "the ORC encoder has its own settings",
    "avro.": "the Avro encoder has its own settings",
    "comment": "is kept for readers of the schema",
    "commit.callback.": "applies only with commit.callbacks",
    "tag.callback.": "applies only with tag.callbacks",
}
"""Reason by prefix of keys."""
