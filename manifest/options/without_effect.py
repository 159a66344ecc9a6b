"""Keys that a table may carry for other engines' sake and that change nothing here, each with the reason: none changes rows.

They are kept verbatim, for definitions of tables are shared between engines; ``Table.option_effects`` lists those of a table.
"""

from __future__ import annotations

_OTHERS = "tunes another engine's sources, sinks and jobs"
_LOOKUP = "tunes another engine's lookups; here older versions are found by merging"
_THREADS = "threads are chosen by whoever opens the table"
_MEMORY = "memory is bounded by write-buffer-size"
_POSTPONE = "writes give rows their buckets at once, as many as the partition has"
_CALLED = "expire_partitions() looks whenever it is called"
_BATCHES = "batches are cut by bytes"
_CLUSTERED = "compact() clusters, with full=True all of the partitions that it names"
_EMPTY = "a write without rows makes no snapshot"

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
            "partition.mark-done-action",
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
        ],
        _OTHERS,
    ),
    **dict.fromkeys(
        [
            "scan.parallelism",
            "scan.infer-parallelism",
            "scan.infer-parallelism.max",
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
            "lookup.dynamic-partition",
            "lookup.dynamic-partition.refresh-interval",
            "lookup.hash-load-factor",
            "lookup.merge-buffer-size",
            "lookup.merge-records-threshold",
            "lookup.refresh.async",
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
            "delete-file.thread-num",
            "async-file-write",
        ],
        _THREADS,
    ),
    **dict.fromkeys(
        [
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
    **dict.fromkeys(["postpone.batch-write-fixed-bucket", "postpone.target-size-per-bucket"], _POSTPONE),
    **dict.fromkeys(["partition.expiration-check-interval", "end-input.check-partition-expire"], _CALLED),
    "cross-partition-upsert.index-ttl": "a key is found however old its files are",
    "cross-partition-upsert.bootstrap-parallelism": _THREADS,
    **dict.fromkeys(["commit.force-create-snapshot", "snapshot.ignore-empty-commit"], _EMPTY),
    **dict.fromkeys(
        ["clustering.history-partition.limit", "clustering.history-partition.idle-to-full-sort", "clustering.incremental.optimize-write"],
        _CLUSTERED,
    ),
    "clustering.incremental.mode": "what is clustered together is in order over all its files",
    "commit.force-compact": "whether a write compacts is write-only's to say",
    "compaction.skip-expired-partitions": "a partition is compacted for as long as it is there",
    "dynamic-bucket.initial-buckets": "buckets are made as rows need them",
    "manifest-sort.max-rewrite-size": "manifests are not sorted",
    "manifest.delete-file-drop-stats": "entries of deleted files keep their statistics, which is always allowed",
    "manifest.merge-optimize.enabled": "manifests are merged by size and number",
    "snapshot.expire.execution-mode": "a commit expires snapshots before it returns",
    "write-buffer-spill.tmp-dirs": "spills go to the machine's temporary directory (TMPDIR)",
}
"""Whole keys."""

PREFIXES_WITHOUT_EFFECT = {
    "sink.": _OTHERS,
    "orc.": "the ORC encoder here has settings of its own",
    "avro.": "the Avro encoder here has settings of its own",
    "comment": "is kept for people",
}
"""Beginnings of keys."""


__all__ = ["PREFIXES_WITHOUT_EFFECT", "WITHOUT_EFFECT"]
