"""Former names of option keys.

A former key applies if the present key is absent.
"""

from __future__ import annotations

from collections.abc import Mapping

FORMER_KEYS: dict[str, tuple[str, ...]] = {
    "blob-descriptor-field": ("blob.stored-descriptor-fields",),
    "clustering.columns": ("sink.clustering.by-columns",),
    "clustering.strategy": ("sink.clustering.strategy",),
    "file-operation.thread-num": ("delete-file.thread-num",),
    "ignore-delete": ("first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"),
    "lookup-wait": ("changelog-producer.lookup-wait",),
    "precommit-compact": ("changelog.precommit-compact",),
    "read.shuffle-bucket-with-partition": ("streaming-read.shuffle-bucket-with-partition",),
    "scan.mode": ("log.scan",),
    "scan.partitions": ("lookup.dynamic-partition",),
    "scan.remove-normalize": ("log.scan.remove-normalize",),
    "scan.timestamp-millis": ("log.scan.timestamp-millis",),
    "snapshot.clean-empty-directories": ("snapshot.expire.clean-empty-directories",),
    "variant.shreddingSchema": ("parquet.variant.shreddingSchema",),
    "write-only": ("write.compaction-skip",),
    "write.batch-size": ("orc.write.batch-size",),
}
"""Former keys by present key. The first one that is set applies."""

PRESENT_KEYS: dict[str, str] = {former: present for present, formers in FORMER_KEYS.items() for former in formers}
"""Present keys by former key."""


def with_present_keys(options: Mapping[str, str]) -> dict[str, str]:
    """Add the present key of each former key.

    A present key that is already set wins.

    >>> with_present_keys({"write.compaction-skip": "true"})
    {'write.compaction-skip': 'true', 'write-only': 'true'}
    """
    if PRESENT_KEYS.keys().isdisjoint(options):
        return dict(options)
    added: dict[str, str] = {}
    for present, formers in FORMER_KEYS.items():
        former = next((key for key in formers if key in options), None)
        if former is not None and present not in options:
            added[present] = options[former]
    return {**options, **added}
