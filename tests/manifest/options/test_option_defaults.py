"""Options that a table does not set have the values that Paimon documents."""

from __future__ import annotations

from typing import Any

import pytest

from manifest.options.core_options import CoreOptions

MB = 1 << 20
DEFAULTS: dict[str, Any] = {
    "bucket": -1,
    "partition.default-name": "__DEFAULT_PARTITION__",
    "partition.legacy-name": True,
    "data-file.prefix": "data-",
    "data-file.thin-mode": False,
    "file.suffix.include.compression": False,
    "file.format": "parquet",
    "file.compression": "zstd",
    "file.compression.zstd-level": 1,
    "metadata.stats-mode": "truncate(16)",
    "metadata.stats-dense-store": True,
    "metadata.stats-keep-first-n-columns": -1,
    "write-only": False,
    "write-buffer-size": 256 * MB,
    "merge-engine": "deduplicate",
    "sequence.field.sort-order": "ascending",
    "ignore-delete": False,
    "ignore-update-before": False,
    "changelog-producer": "none",
    "changelog-producer.row-deduplicate": False,
    "deletion-vectors.enabled": False,
    "deletion-vectors.bitmap64": False,
    "deletion-vector.index-file.target-size": 2 * MB,
    "data-evolution.enabled": False,
    "row-tracking.enabled": False,
    "postpone.default-bucket-num": 1,
    "force-lookup": False,
    "lookup-compact": "radical",
    "dynamic-bucket.target-row-num": 2_000_000,
    "dynamic-bucket.max-buckets": -1,
    "num-sorted-run.compaction-trigger": 5,
    "compaction.max-size-amplification-percent": 200,
    "compaction.size-ratio": 1,
    "compaction.force-up-level-0": False,
    "compaction.force-rewrite-all-files": False,
    "compaction.offpeak.start.hour": -1,
    "compaction.offpeak.end.hour": -1,
    "compaction.offpeak-ratio": 0,
    "compaction.min.file-num": 5,
    "compaction.delete-ratio-threshold": 0.2,
    "clustering.incremental": False,
    "manifest.target-file-size": 8 * MB,
    "manifest.merge-min-count": 30,
    "manifest.full-compaction-threshold-size": 16 * MB,
    "manifest.format": "avro",
    "manifest.compression": "zstd",
    "commit.max-retries": 10,
    "commit.min-retry-wait": 10,
    "commit.max-retry-wait": 10_000,
    "dynamic-partition-overwrite": True,
    "snapshot.num-retained.min": 10,
    "snapshot.num-retained.max": 2**31 - 1,
    "snapshot.time-retained": 60 * 60 * 1000,
    "snapshot.expire.limit": 50,
    "snapshot.clean-empty-directories": False,
    "source.split.target-size": 128 * MB,
    "source.split.open-file-cost": 4 * MB,
    "file-index.read.enabled": True,
}


FIELDS = {
    "file.compression.zstd-level": "zstd_level",
    "metadata.stats-mode": "stats_mode",
    "metadata.stats-dense-store": "stats_dense_store",
    "metadata.stats-keep-first-n-columns": "stats_keep_first_n_columns",
    "changelog-producer.row-deduplicate": "changelog_row_deduplicate",
}
"""Fields that are not named as their option."""


@pytest.mark.parametrize("key", DEFAULTS)
def test_an_option_that_is_not_set_has_paimons_default(key: str) -> None:
    assert getattr(CoreOptions.of({}), FIELDS.get(key, key.replace(".", "_").replace("-", "_"))) == DEFAULTS[key]
