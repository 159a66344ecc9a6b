"""Effects of options on the table that has them.

A supported option may need a kind of table, such as one with a primary key, or another option.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from manifest.options.aggregate_functions import DEFAULT_FUNCTION, FIELD_OPTION
from manifest.options.former_keys import PRESENT_KEYS
from manifest.options.support import effect_of
from manifest.options.tag_periods import TAG_MODE, TAG_OPTIONS
from manifest.schema.table_schema import BucketMode
from sparkexpr.values.column_type import Kind

if TYPE_CHECKING:
    from manifest.schema.table_schema import TableSchema


MERGE_FIELDS = "fields.*"


@dataclass(frozen=True)
class _Scope:
    """Tables on which some options have an effect.

    Attributes:
        reason: What a table outside the scope lacks.
        applies: Whether a table is in the scope.
        keys: Keys of the options. ``MERGE_FIELDS`` is any option that says how values of a column are merged.
    """

    reason: str
    applies: Callable[[TableSchema], bool]
    keys: frozenset[str]


def _clusters_incrementally(schema: TableSchema) -> bool:
    return schema.bucket_mode is BucketMode.BUCKET_UNAWARE and schema.core.clustering_incremental


_SCOPES = (
    _Scope(
        "applies only to append tables without buckets",
        lambda schema: schema.bucket_mode is BucketMode.BUCKET_UNAWARE,
        frozenset({"clustering.columns", "clustering.strategy", "clustering.incremental"}),
    ),
    _Scope(
        "applies only to append tables",
        lambda schema: not schema.is_primary_key_table,
        frozenset({"compaction.min.file-num", "compaction.delete-ratio-threshold"}),
    ),
    _Scope(
        "applies only to primary-key tables, and to incremental clustering",
        lambda schema: schema.is_primary_key_table or _clusters_incrementally(schema),
        frozenset(
            {
                "num-sorted-run.compaction-trigger",
                "num-levels",
                "compaction.max-size-amplification-percent",
                "compaction.size-ratio",
            }
        ),
    ),
    _Scope(
        "applies only to primary-key tables",
        lambda schema: schema.is_primary_key_table,
        frozenset(
            {
                MERGE_FIELDS,
                "aggregation.remove-record-on-delete",
                "changelog-producer.row-deduplicate",
                "changelog-producer.row-deduplicate-ignore-fields",
                "compaction.force-up-level-0",
                "compaction.force-rewrite-all-files",
                "compaction.incremental-size-threshold",
                "compaction.offpeak-ratio",
                "compaction.offpeak.end.hour",
                "compaction.offpeak.start.hour",
                "compaction.optimization-interval",
                "compaction.total-size-threshold",
                "data-file.thin-mode",
                "force-lookup",
                "full-compaction.delta-commits",
                "ignore-delete",
                "ignore-update-before",
                "lookup-compact",
                "lookup-compact.max-interval",
                "num-sorted-run.stop-trigger",
                "overwrite-upgrade",
                "partial-update.remove-record-on-delete",
                "partial-update.remove-record-on-sequence-group",
                "sequence.field.sort-order",
            }
        ),
    ),
    _Scope(
        "applies only to tables whose number of buckets is dynamic",
        lambda schema: schema.bucket_mode in {BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC},
        frozenset({"dynamic-bucket.target-row-num", "dynamic-bucket.max-buckets", "dynamic-bucket.assigner-parallelism"}),
    ),
    _Scope(
        "applies only to tables with 'bucket' = -2",
        lambda schema: schema.bucket_mode is BucketMode.POSTPONE_MODE,
        frozenset({"postpone.default-bucket-num"}),
    ),
    _Scope(
        "applies only to partitioned tables",
        lambda schema: bool(schema.partition_keys),
        frozenset(
            {
                "add-column-before-partition",
                "dynamic-partition-overwrite",
                "partition.default-name",
                "partition.expiration-max-num",
                "partition.expiration-strategy",
                "partition.expiration-time",
                "partition.legacy-name",
                "partition.mark-done-action",
                "partition.timestamp-formatter",
                "partition.timestamp-pattern",
            }
        ),
    ),
    _Scope(
        "applies only to tables with BLOB columns",
        lambda schema: any(field.type.kind is Kind.BLOB for field in schema.fields),
        frozenset({"blob.target-file-size"}),
    ),
    _Scope(
        "applies only to primary-key tables with deletion vectors or merge-engine 'first-row'",
        lambda schema: schema.is_primary_key_table and schema.kind.has_single_version,
        frozenset({"deletion-vectors.merge-on-read"}),
    ),
    _Scope(
        "applies only with metadata.iceberg.storage",
        lambda schema: schema.core.has_iceberg_metadata,
        frozenset(
            {
                "metadata.iceberg.compaction.max.file-num",
                "metadata.iceberg.compaction.min.file-num",
                "metadata.iceberg.delete-after-commit.enabled",
                "metadata.iceberg.format-version",
                "metadata.iceberg.manifest-compression",
                "metadata.iceberg.manifest-legacy-version",
                "metadata.iceberg.previous-versions-max",
                "metadata.iceberg.storage-location",
            }
        ),
    ),
    _Scope(
        "applies only with tag.automatic-creation",
        lambda schema: schema.options.get(TAG_MODE, "none").strip().lower() != "none",
        frozenset(TAG_OPTIONS) - {TAG_MODE},
    ),
    _Scope(
        "applies only with a changelog-producer",
        lambda schema: schema.core.changelog_producer != "none",
        frozenset({"changelog-file.compression", "changelog-file.format", "changelog-file.prefix", "changelog-file.stats-mode"}),
    ),
    _Scope(
        "applies only with deletion-vectors.enabled",
        lambda schema: schema.core.deletion_vectors_enabled,
        frozenset({"deletion-vectors.bitmap64", "deletion-vector.index-file.target-size"}),
    ),
)


def effect_in(schema: TableSchema, key: str, value: str) -> tuple[str, str]:
    """Return the effect of an option on the table of ``schema``, and a reason.

    As ``effect_of``, which judges an option alone.

    >>> from manifest.schema.validation import build_schema
    >>> keyed, append = build_schema("id INT", primary_keys=["id"]), build_schema("id INT")
    >>> effect_in(keyed, "clustering.columns", "id"), effect_in(append, "clustering.columns", "id")
    (('none', 'applies only to append tables without buckets'), ('honoured', ''))
    """
    effect, note = effect_of(key, value)
    if effect in {"honoured", "by call"}:
        name = _scoped_name(PRESENT_KEYS.get(key, key))
        for scope in _SCOPES:
            if name in scope.keys and not scope.applies(schema):
                return "none", scope.reason
    return effect, note


def _scoped_name(key: str) -> str:
    """Return the name of an option in a scope."""
    field = FIELD_OPTION.fullmatch(key)
    return MERGE_FIELDS if key == DEFAULT_FUNCTION or (field is not None and field["option"] != "stats-mode") else key


SCOPED_KEYS = frozenset(key for scope in _SCOPES for key in scope.keys)
"""Options whose effect depends on the table."""
