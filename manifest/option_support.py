"""Which option keys exist, and which keys and values we cannot honour: refused by name, where it matters.

Three questions, by strictness: ``check_settable`` at create, alter and in arguments refuses what is unknown or not built;
``check_writable`` refuses to write a table whose rows we would get wrong; ``check_readable`` refuses to read one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping

from manifest.errors import UnsupportedOption, UnsupportedTable
from manifest.options import CoreOptions

_TUNING = [
    "type",
    "auto-create",
    "file.suffix.include.compression",
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
    "deletion-vectors.merge-on-read",
    "deletion-vector.index-file.target-size",
    "dynamic-bucket.target-row-num",
    "dynamic-bucket.max-buckets",
    "dynamic-bucket.assigner-parallelism",
    "commit.callbacks",
    "tag.callbacks",
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
    "manifest.format",
    "manifest.merge-optimize.enabled",
    "delete-file.thread-num",
    "delete.force-produce-changelog",
    "compaction.delete-ratio-threshold",
    "compaction.skip-expired-partitions",
    "changelog-producer.row-deduplicate",
    "changelog-producer.row-deduplicate-ignore-fields",
    "changelog-file.format",
    "changelog-file.compression",
    "changelog-file.stats-mode",
    "changelog-file.prefix",
    "write-buffer-spill.tmp-dirs",
    "local-merge-buffer-size",
    "full-compaction.delta-commits",
    "partition.mark-done-action",
    "partition.timestamp-formatter",
    "partition.timestamp-pattern",
    "snapshot.watermark-idle-timeout",
    "precommit-compact",
    "end-input.check-partition-expire",
    "force-lookup",
    "metadata.iceberg.storage",
    "owner",
    "metastore.partitioned-table",
]
"""Keys that tune how another engine works, or features that stay off unless an option of ``_REFUSED`` turns them on."""

_PREFIXES = ("parquet.", "orc.", "avro.", "fields.", "file-index.", "comment")

_BUILT_ENGINES = frozenset({"deduplicate"})
Refusal = Callable[[str], str | None]


def _only(*allowed: str, why: str) -> Refusal:
    return lambda value: None if value.strip().lower() in allowed else f"'{value}' {why}; possible: {', '.join(allowed)}"


def _never(why: str) -> Refusal:
    return lambda _: why


_REFUSED: dict[str, Refusal] = {
    "merge-engine": _only("deduplicate", why="is not built yet"),
    "changelog-producer": _only("none", why="is not built yet"),
    "deletion-vectors.enabled": _only("false", why="cannot be written yet"),
    "rowkind.field": _never("is not built yet; give the kind of a row in the input column '_row_kind'"),
    "ignore-update-before": _only("false", why="is not built yet"),
    "file.format": _only("parquet", why="is not written or read here"),
    "bucket-function.type": _only("default", "mod", why="is not built"),
    "branch": _only("main", why="is not built yet"),
    "row-tracking.enabled": _only("false", why="is not built"),
    "data-evolution.enabled": _only("false", why="is not built"),
    "sequence.snapshot-ordering": _only("false", why="is not built"),
    "write.sequence-number-init-mode": _only("scan", why="is not built"),
    "primary-key.nullable": _only("false", why="is not built"),
    "pk-clustering-override": _only("false", why="is not built"),
    "index-file-in-data-file-dir": _only("false", why="is not built"),
    "manifest-sort.enabled": _only("false", why="is not built"),
    "partition.expiration-time": _never("is not built yet"),
    "record-level.expire-time": _never("is not built"),
    "record-level.time-field": _never("is not built"),
    "tag.automatic-creation": _only("none", why="is not built yet"),
    "data-file.external-paths": _never("is not built"),
    "clustering.columns": _never("is not built yet"),
    "consumer-id": _never("belongs to streaming reads, which are not built yet"),
    "type": _only("table", why="tables are not built"),
    "manifest.compression": _only("zstd", "null", "none", "deflate", "snappy", why="is no manifest codec here"),
    "file.compression": _only("zstd", "none", "snappy", "lz4", "gzip", why="is no Parquet codec"),
}
"""Known keys whose values we cannot all honour."""

_IMMUTABLE = frozenset(
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
        "pk-clustering-override",
    ]
)
_CORE = frozenset(CoreOptions.keys())
_KNOWN = frozenset(_TUNING) | frozenset(_REFUSED) | _CORE
_FIELD_OPTION = re.compile(r"fields\.(?P<columns>.+)\.(?P<option>[a-z-]+)")


def check_settable(options: Mapping[str, object]) -> None:
    """Raise ``UnsupportedOption`` for a key that is unknown, or a key or value that is not built.

    >>> check_settable({"bukcet": "4"})
    Traceback (most recent call last):
    ...
    fileindex.errors.UnsupportedOption: option 'bukcet': is unknown; did you mean 'bucket'?
    """
    texts: dict[str, str] = {}
    for key, value in options.items():
        if not isinstance(value, str):
            raise UnsupportedOption(key, f"options are text, but this is {value!r}")
        texts[key] = value
        if key in _KNOWN:
            reason = _REFUSED[key](value) if key in _REFUSED else None
        elif key.startswith("fields."):
            reason = _field_reason(key)
        else:
            reason = None if key.startswith(_PREFIXES) else _unknown(key)
        if reason is not None:
            raise UnsupportedOption(key, reason)
    _check_levels(CoreOptions.of(texts))


def _check_levels(options: CoreOptions) -> None:
    if any(name.lower() != "parquet" for name in options.file_format_per_level.values()):
        raise UnsupportedOption("file.format.per.level", "only Parquet is written or read here")


def _field_reason(key: str) -> str | None:
    match = _FIELD_OPTION.fullmatch(key)
    if match is not None and match["option"] == "stats-mode":
        return None
    return "per-field options other than 'stats-mode' belong to merge engines that are not built yet"


def _unknown(key: str) -> str:
    close = difflib.get_close_matches(key, _KNOWN, n=1)
    return f"is unknown; did you mean '{close[0]}'?" if close else "is unknown"


def check_alter(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise ``UnsupportedOption`` if an option changes that must stay as it was when the table was made."""
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            if key in _IMMUTABLE:
                raise UnsupportedOption(key, "cannot change once the table exists")
            if key == "bucket" and "-1" in {before.get(key, "-1"), after.get(key, "-1")}:
                raise UnsupportedOption(key, "cannot change to or from -1")
            if key == "num-levels" and int(after.get(key, "6")) < int(before.get(key, "6")):
                raise UnsupportedOption(key, "cannot become smaller: files may already stand on the levels above")


def check_readable(options: CoreOptions, *, has_primary_key: bool, table: str) -> None:
    """Raise ``UnsupportedTable`` if reading would give other rows than Paimon's."""
    if has_primary_key and options.merge_engine not in _BUILT_ENGINES:
        raise UnsupportedTable(f"{table}: merge-engine '{options.merge_engine}' is not built yet, so its rows cannot be merged")
    if options.raw.get("sequence.snapshot-ordering", "false").lower() == "true":
        raise UnsupportedTable(f"{table}: sequence.snapshot-ordering is not built, so its rows cannot be merged")


def check_writable(options: CoreOptions, *, has_primary_key: bool, table: str) -> None:
    """Raise ``UnsupportedTable`` if what we would write breaks a promise that the table's options make."""
    check_readable(options, has_primary_key=has_primary_key, table=table)
    for key, refusal in _REFUSED.items():
        value = options.raw.get(key)
        if value is not None and (reason := refusal(value)) is not None:
            raise UnsupportedTable(f"{table}: option '{key}': {reason}")
    if any(name.lower() != "parquet" for name in options.file_format_per_level.values()):
        raise UnsupportedTable(f"{table}: option 'file.format.per.level': only Parquet is written")
    if has_primary_key and options.bucket < 1:
        raise UnsupportedTable(
            f"{table}: option 'bucket' = {options.bucket}: a primary-key table is written with fixed buckets (1 or more) only"
        )
