"""Typed core options with Paimon's names and defaults (``CoreOptions``).

``CoreOptions.of`` parses the options it knows and keeps all of them in ``raw``, with former keys also under their present names.
``support`` checks whether keys are known and values are supported, at create, alter and call.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any

from pydantic import AliasGenerator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from manifest.options.durations import parse_duration_millis
from manifest.options.former_keys import with_present_keys
from manifest.options.merge_engine import DEDUPLICATE, EngineTraits, engine_traits
from manifest.options.parquet_options import ParquetOptions, StatsMode
from paimon_base.errors import InvalidArgument, UnsupportedOption
from paimon_base.memory_size import parse_memory_size

_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1
_MIB = 1 << 20
_KINDS = {"int_parsing": "must be a whole number", "int_type": "must be a whole number", "float_parsing": "must be a number"}
"""Error texts for Pydantic's error types."""
FALLBACK_BRANCH, PRIMARY_BRANCH = "scan.fallback-branch", "scan.primary-branch"
OWN_BRANCH = {FALLBACK_BRANCH: "", PRIMARY_BRANCH: ""}
"""Options of a read that sees only the table's own branch. Every change of rows uses them, because it writes to that branch only."""


def _size(value: object) -> object:
    return parse_memory_size(value, "") if isinstance(value, str) else value


def _millis(value: object) -> object:
    return parse_duration_millis(value, "") if isinstance(value, str) else value


def _boolean(value: object) -> object:
    if isinstance(value, str):
        lowered = value.strip().lower()
        if lowered not in {"true", "false"}:
            raise ValueError(f"'{value}' is neither true nor false")
        return lowered == "true"
    return value


def _names(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _keyword(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _level_map(value: object) -> object:
    if not isinstance(value, str):
        return value
    pairs = [entry.split(":", 1) for entry in value.split(",") if entry.strip()]
    if not all(len(pair) == 2 and pair[0].strip().isdigit() for pair in pairs):
        raise ValueError(f"'{value}' is not a map such as '0:lz4,5:zstd'")
    return {int(level): text.strip() for level, text in pairs}


Size = Annotated[int, BeforeValidator(_size)]
Millis = Annotated[int, BeforeValidator(_millis)]
Flag = Annotated[bool, BeforeValidator(_boolean)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
Keyword = Annotated[str, BeforeValidator(_keyword)]
LevelMap = Annotated[dict[int, str], BeforeValidator(_level_map)]


def _alias(name: str) -> str:
    return _DOTTED.get(name, name.replace("_", "-"))


_DOTTED = {
    "num_sorted_run_compaction_trigger": "num-sorted-run.compaction-trigger",
    "num_sorted_run_stop_trigger": "num-sorted-run.stop-trigger",
    "compaction_max_size_amplification_percent": "compaction.max-size-amplification-percent",
    "compaction_size_ratio": "compaction.size-ratio",
    "compaction_force_up_level_0": "compaction.force-up-level-0",
    "compaction_force_rewrite_all_files": "compaction.force-rewrite-all-files",
    "compaction_optimization_interval": "compaction.optimization-interval",
    "compaction_total_size_threshold": "compaction.total-size-threshold",
    "compaction_incremental_size_threshold": "compaction.incremental-size-threshold",
    "compaction_offpeak_start_hour": "compaction.offpeak.start.hour",
    "compaction_offpeak_end_hour": "compaction.offpeak.end.hour",
    "compaction_offpeak_ratio": "compaction.offpeak-ratio",
    "compaction_min_file_num": "compaction.min.file-num",
    "compaction_small_file_ratio": "compaction.small-file-ratio",
    "bucket_function_type": "bucket-function.type",
    "dynamic_bucket_target_row_num": "dynamic-bucket.target-row-num",
    "dynamic_bucket_max_buckets": "dynamic-bucket.max-buckets",
    "partition_default_name": "partition.default-name",
    "partition_legacy_name": "partition.legacy-name",
    "data_file_prefix": "data-file.prefix",
    "data_file_path_directory": "data-file.path-directory",
    "data_file_thin_mode": "data-file.thin-mode",
    "file_suffix_include_compression": "file.suffix.include.compression",
    "blob_target_file_size": "blob.target-file-size",
    "blob_field": "blob-field",
    "file_format": "file.format",
    "file_format_per_level": "file.format.per.level",
    "file_compression": "file.compression",
    "file_compression_per_level": "file.compression.per.level",
    "zstd_level": "file.compression.zstd-level",
    "file_block_size": "file.block-size",
    "stats_mode": "metadata.stats-mode",
    "stats_mode_per_level": "metadata.stats-mode.per.level",
    "stats_dense_store": "metadata.stats-dense-store",
    "stats_keep_first_n_columns": "metadata.stats-keep-first-n-columns",
    "iceberg_storage": "metadata.iceberg.storage",
    "sequence_field": "sequence.field",
    "sequence_field_sort_order": "sequence.field.sort-order",
    "rowkind_field": "rowkind.field",
    "deletion_vectors_enabled": "deletion-vectors.enabled",
    "write_merge_schema": "write.merge-schema",
    "write_merge_schema_type_widening": "write.merge-schema.type-widening",
    "write_merge_schema_explicit_cast": "write.merge-schema.explicit-cast",
    "data_evolution_enabled": "data-evolution.enabled",
    "postpone_default_bucket_num": "postpone.default-bucket-num",
    "row_tracking_enabled": "row-tracking.enabled",
    "deletion_vectors_merge_on_read": "deletion-vectors.merge-on-read",
    "deletion_vectors_bitmap64": "deletion-vectors.bitmap64",
    "deletion_vector_index_file_target_size": "deletion-vector.index-file.target-size",
    "lookup_compact_max_interval": "lookup-compact.max-interval",
    "changelog_row_deduplicate": "changelog-producer.row-deduplicate",
    "changelog_row_deduplicate_ignore_fields": "changelog-producer.row-deduplicate-ignore-fields",
    "compaction_delete_ratio_threshold": "compaction.delete-ratio-threshold",
    "manifest_target_file_size": "manifest.target-file-size",
    "manifest_merge_min_count": "manifest.merge-min-count",
    "manifest_full_compaction_threshold_size": "manifest.full-compaction-threshold-size",
    "manifest_format": "manifest.format",
    "manifest_compression": "manifest.compression",
    "commit_max_retries": "commit.max-retries",
    "commit_timeout": "commit.timeout",
    "commit_id_time_retained": "commit-id.time-retained",
    "commit_min_retry_wait": "commit.min-retry-wait",
    "commit_max_retry_wait": "commit.max-retry-wait",
    "snapshot_num_retained_min": "snapshot.num-retained.min",
    "snapshot_num_retained_max": "snapshot.num-retained.max",
    "snapshot_time_retained": "snapshot.time-retained",
    "changelog_num_retained_min": "changelog.num-retained.min",
    "changelog_num_retained_max": "changelog.num-retained.max",
    "changelog_time_retained": "changelog.time-retained",
    "snapshot_expire_limit": "snapshot.expire.limit",
    "snapshot_clean_empty_directories": "snapshot.clean-empty-directories",
    "source_split_target_size": "source.split.target-size",
    "source_split_open_file_cost": "source.split.open-file-cost",
    "file_index_read_enabled": "file-index.read.enabled",
    "global_index_enabled": "global-index.enabled",
    "full_compaction_delta_commits": "full-compaction.delta-commits",
    "clustering_columns": "clustering.columns",
    "clustering_strategy": "clustering.strategy",
    "clustering_incremental": "clustering.incremental",
    "record_level_expire_time": "record-level.expire-time",
    "record_level_time_field": "record-level.time-field",
    "delete_time_retained": "delete.time-retained",
}


PARQUET = "parquet"
"""Format of data files that the core reads and writes. Plugins have the others."""
RUNS_BEFORE_STOP = 3
"""Sorted runs between the trigger of compaction and the default of ``num-sorted-run.stop-trigger``."""


class CoreOptions(BaseModel):
    """Options that affect this package.

    Sizes are in bytes, durations in milliseconds. None means unset.

    >>> options = CoreOptions.of({"bucket": "4", "write-buffer-size": "64 mb", "made.by": "someone"})
    >>> options.bucket, options.write_buffer_size, options.raw["made.by"]
    (4, 67108864, 'someone')
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=AliasGenerator(validation_alias=_alias), arbitrary_types_allowed=True, defer_build=True
    )

    raw: dict[str, str] = Field(default_factory=dict, validation_alias="\0raw")

    bucket: int = -1
    bucket_key: Annotated[tuple[str, ...], BeforeValidator(lambda text: tuple(text.split(",")))] = ()
    bucket_function_type: Keyword = "default"
    partition_default_name: str = "__DEFAULT_PARTITION__"
    partition_legacy_name: Flag = True
    data_file_prefix: str = "data-"
    data_file_path_directory: str | None = None
    data_file_thin_mode: Flag = False
    file_suffix_include_compression: Flag = False
    branch: str = "main"

    file_format: Keyword = PARQUET
    file_format_per_level: LevelMap = Field(default_factory=dict)
    file_compression: Keyword = "zstd"
    file_compression_per_level: LevelMap = Field(default_factory=dict)
    zstd_level: int = 1
    file_block_size: Size | None = None
    target_file_size: Size | None = None
    blob_target_file_size: Size | None = None
    blob_field: Names = ()
    target_file_row_num: int = _MAX_LONG
    stats_mode: str = "truncate(16)"
    stats_mode_per_level: LevelMap = Field(default_factory=dict)
    stats_dense_store: Flag = True
    stats_keep_first_n_columns: int = -1

    iceberg_storage: Keyword = "disabled"
    write_only: Flag = False
    write_buffer_size: Size = 256 * _MIB
    merge_engine: Keyword = DEDUPLICATE
    sequence_field: Names = ()
    sequence_field_sort_order: Keyword = "ascending"
    rowkind_field: str | None = None
    ignore_delete: Flag = False
    ignore_update_before: Flag = False
    changelog_producer: Keyword = "none"
    changelog_row_deduplicate: Flag = False
    changelog_row_deduplicate_ignore_fields: Names = ()
    deletion_vectors_enabled: Flag = False
    data_evolution_enabled: Flag = False
    postpone_default_bucket_num: int = 1
    row_tracking_enabled: Flag = False
    deletion_vectors_merge_on_read: Flag = True
    deletion_vectors_bitmap64: Flag = False
    deletion_vector_index_file_target_size: Size = 2 * _MIB
    force_lookup: Flag = False
    lookup_compact: Keyword = "radical"
    lookup_compact_max_interval: int | None = None
    dynamic_bucket_target_row_num: int = Field(default=2_000_000, ge=1)
    dynamic_bucket_max_buckets: int = Field(default=-1, ge=-1)

    num_sorted_run_compaction_trigger: int = 5
    num_sorted_run_stop_trigger: int | None = None
    num_levels: int | None = None
    compaction_max_size_amplification_percent: int = 200
    compaction_size_ratio: int = 1
    compaction_force_up_level_0: Flag = False
    compaction_force_rewrite_all_files: Flag = False
    compaction_optimization_interval: Millis | None = None
    compaction_total_size_threshold: Size | None = None
    compaction_incremental_size_threshold: Size | None = None
    compaction_offpeak_start_hour: int = -1
    compaction_offpeak_end_hour: int = -1
    compaction_offpeak_ratio: int = 0
    compaction_min_file_num: int = 5
    compaction_delete_ratio_threshold: float = 0.2
    compaction_small_file_ratio: float = 0.7
    full_compaction_delta_commits: int | None = None
    clustering_columns: Names = ()
    clustering_strategy: Keyword = "auto"
    clustering_incremental: Flag = False
    record_level_expire_time: Millis | None = None
    record_level_time_field: str | None = None
    delete_time_retained: Millis | None = None

    manifest_target_file_size: Size = 8 * _MIB
    manifest_merge_min_count: int = 30
    manifest_full_compaction_threshold_size: Size = 16 * _MIB
    manifest_format: Keyword = "avro"
    manifest_compression: Keyword = "zstd"
    commit_max_retries: int = 10
    commit_timeout: Millis | None = None
    commit_id_time_retained: Millis = 30 * 86_400_000
    commit_min_retry_wait: Millis = 10
    commit_max_retry_wait: Millis = 10_000
    dynamic_partition_overwrite: Flag = True
    write_merge_schema: Flag = False
    write_merge_schema_type_widening: Flag = False
    write_merge_schema_explicit_cast: Flag = False
    overwrite_upgrade: Flag = True
    snapshot_num_retained_min: int = Field(default=10, ge=1)
    snapshot_num_retained_max: int = _MAX_INT
    snapshot_time_retained: Millis = 3_600_000
    snapshot_expire_limit: int = 50
    changelog_num_retained_min: int | None = Field(default=None, ge=1)
    changelog_num_retained_max: int | None = None
    changelog_time_retained: Millis | None = None
    snapshot_clean_empty_directories: Flag = False

    source_split_target_size: Size = 128 * _MIB
    source_split_open_file_cost: Size = 4 * _MIB
    file_index_read_enabled: Flag = True
    global_index_enabled: Flag = True

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> CoreOptions:
        """Parse the options ``raw``.

        Raises ``UnsupportedOption`` with the key of an invalid value.
        """
        present = with_present_keys(raw)
        values: dict[str, Any] = {key: value for key, value in present.items() if key in _KEYS}
        try:
            return cls.model_validate({**values, "\0raw": present})
        except ValidationError as error:
            first = error.errors()[0]
            cause = first.get("ctx", {}).get("error")
            text = _KINDS.get(first["type"], str(cause or first["msg"]))
            reason = (
                cause.reason
                if isinstance(cause, UnsupportedOption)
                else text
                if repr(first["input"]) in text
                else f"{first['input']!r}: {text}"
            )
            raise UnsupportedOption(str(first["loc"][0]), reason) from error

    @classmethod
    def keys(cls) -> frozenset[str]:
        """Return the option keys with a typed value."""
        return _KEYS

    @cached_property
    def max_level(self) -> int:
        """Highest LSM level."""
        return (self.num_levels or self.num_sorted_run_compaction_trigger + 1) - 1

    @property
    def has_compaction_trigger(self) -> bool:
        """Whether the number of runs that starts a compaction is set."""
        return _alias("num_sorted_run_compaction_trigger") in self.raw

    @property
    def has_iceberg_metadata(self) -> bool:
        """Whether commits write metadata for readers of Iceberg."""
        return self.iceberg_storage != "disabled"

    @property
    def stop_trigger(self) -> int:
        """Number of sorted runs at which writers wait for compaction."""
        trigger = self.num_sorted_run_compaction_trigger
        return max(trigger, trigger + RUNS_BEFORE_STOP if self.num_sorted_run_stop_trigger is None else self.num_sorted_run_stop_trigger)

    @cached_property
    def parquet(self) -> ParquetOptions:
        """Parquet options."""
        return ParquetOptions.of(self.raw)

    @cached_property
    def engine(self) -> EngineTraits:
        """Traits of the merge engine."""
        return engine_traits(self.merge_engine)

    @property
    def compacts_fully_at_commit(self) -> bool:
        """Whether a batch write fully compacts every bucket it touches."""
        return bool(self.full_compaction_delta_commits) or self.changelog_producer == "full-compaction"

    @property
    def changelog_retention(self) -> tuple[int, int, int]:
        """Retention of changelogs: minimum, maximum, milliseconds.

        Defaults to the retention of snapshots.
        """
        min_retained, max_retained, millis = self.changelog_num_retained_min, self.changelog_num_retained_max, self.changelog_time_retained
        return (
            self.snapshot_num_retained_min if min_retained is None else min_retained,
            self.snapshot_num_retained_max if max_retained is None else max_retained,
            self.snapshot_time_retained if millis is None else millis,
        )

    @property
    def retention_text(self) -> str:
        """How long snapshots are kept.

        >>> CoreOptions.of({}).retention_text
        'snapshots expire after 1:00:00, except the newest 10'
        """
        most = f", and are at most {self.snapshot_num_retained_max:,}" if self.snapshot_num_retained_max < _MAX_INT else ""
        after = timedelta(milliseconds=self.snapshot_time_retained)
        return f"snapshots expire after {after}, except the newest {self.snapshot_num_retained_min:,}{most}"

    @property
    def changelogs_outlive_snapshots(self) -> bool:
        """Whether changelogs outlive their snapshots ("decoupled" changelogs)."""
        of_snapshots = (self.snapshot_num_retained_min, self.snapshot_num_retained_max, self.snapshot_time_retained)
        return any(of_changelogs > expires for of_changelogs, expires in zip(self.changelog_retention, of_snapshots, strict=True))

    @property
    def needs_lookup(self) -> bool:
        """Whether compaction of level 0 looks up older versions.

        As Paimon's ``LookupStrategy``. The older versions are on levels below its output.
        """
        return self.deletion_vectors_enabled or self.force_lookup or self.engine.first_row_wins or self.changelog_producer == "lookup"

    @property
    def sequence_descending(self) -> bool:
        """Whether the smaller value of ``sequence.field`` wins."""
        return self.sequence_field_sort_order == "descending"

    def format_at(self, level: int) -> str:
        """Return the format of new files of a level."""
        return self.file_format_per_level.get(level, self.file_format)

    def compression_at(self, level: int) -> str:
        """Return the codec of new files of a level."""
        return self.file_compression_per_level.get(level, self.file_compression)

    def stats_modes(self, names: tuple[str, ...], level: int = 0) -> dict[str, StatsMode]:
        """Return the statistics mode of each column at ``level``."""
        default = StatsMode.parse(self.stats_mode_per_level.get(level, self.stats_mode), "metadata.stats-mode")
        first = len(names) if self.stats_keep_first_n_columns < 0 else self.stats_keep_first_n_columns
        modes = {}
        for i, name in enumerate(names):
            option = f"fields.{name}.stats-mode"
            column_mode = self.raw.get(option)
            cut = StatsMode.parse("none", option) if i >= first else default
            modes[name] = cut if column_mode is None or i >= first else StatsMode.parse(column_mode, option)
        return modes


def option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Return options as stored text.

    Raises ``UnsupportedOption`` for values other than text, numbers and booleans, ``InvalidArgument`` unless given a mapping.

    >>> option_texts({"bucket": 4, "write-only": True})
    {'bucket': '4', 'write-only': 'true'}
    """
    texts: dict[str, str] = {}
    if not isinstance(options, Mapping | None):
        raise InvalidArgument(f"options must be a mapping of keys to values, not {options!r}")
    for key, value in (options or {}).items():
        if not isinstance(value, str | int | float):
            raise UnsupportedOption(str(key), f"a value must be text, a number or a boolean, not {value!r}")
        texts[str(key)] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


_KEYS = frozenset(_alias(name) for name in CoreOptions.model_fields) - {"raw"}
