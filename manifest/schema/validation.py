"""Creation and validation of schemas (Paimon's ``SchemaValidation``).

The rules are checked at create and at every change.

Primary keys without all partition columns may move between partitions, and have rules of their own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from fileindex.build.options import FileIndexOptions, index_option
from manifest.io.errors import InvalidSchema, UnsupportedTable
from manifest.options.aggregate_functions import GROUP_REMOVE, check_field_columns
from manifest.options.core_options import CoreOptions, option_texts
from manifest.options.merge_engine import AGGREGATE_REMOVE, PARTIAL_REMOVE
from manifest.options.secondary_indexes import is_index_option
from manifest.options.support import check_alter, check_settable
from manifest.options.tag_periods import check_tags
from manifest.schema.clustering import check_clustering
from manifest.schema.merge_options import MergeOptions
from manifest.schema.partition_time import PartitionExpiration, check_record_expiry
from manifest.schema.secondary_index import check_secondary_indexes
from manifest.schema.table_schema import BucketMode, TableSchema
from manifest.types.data_type import MAX_LENGTH, DataField, DataType, default_scalar, from_arrow, highest_id, number_fields
from manifest.types.ddl import parse_table_ddl
from paimon_base.errors import UnsupportedOption, not_a_column
from sparkexpr.values.column_type import STRINGS, TIMESTAMPS, Kind

_OWN = frozenset(
    [
        AGGREGATE_REMOVE,
        PARTIAL_REMOVE,
        GROUP_REMOVE,
        "merge-engine",
        "ignore-delete",
        "rowkind.field",
        "sequence.field",
        "delete.time-retained",
        "changelog-producer",
        "deletion-vectors.enabled",
    ]
)


def changes_merging(key: str) -> bool:
    """Return whether an option affects the merging of versions."""
    return key in _OWN or key.startswith("fields.")


def check_merging(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for invalid merge options.

    They may contradict each other or the columns.
    """
    options = schema.core
    if not schema.is_primary_key_table:
        if not options.engine.newest_replaces:
            raise UnsupportedOption("merge-engine", "applies only to primary-key tables")
        if options.rowkind_field is not None:
            raise UnsupportedOption("rowkind.field", "applies only to primary-key tables")
    if options.delete_time_retained is not None and (reason := _retention_problem(options)) is not None:
        raise UnsupportedOption("delete.time-retained", reason)
    if not schema.is_primary_key_table:
        return
    check_field_columns(schema.options, schema.names)
    MergeOptions.of(schema)
    if options.engine.first_row_wins and options.deletion_vectors_enabled:
        raise UnsupportedOption("deletion-vectors.enabled", f"cannot be combined with merge-engine '{options.engine.name}'")
    if options.rowkind_field is not None:
        if options.rowkind_field not in schema.names:
            raise UnsupportedOption("rowkind.field", not_a_column(options.rowkind_field, schema.names))
        column = schema.field(options.rowkind_field)
        if column.type.kind not in STRINGS:
            raise UnsupportedOption("rowkind.field", f"column '{column.name}' is {column.type} instead of a string")


def _retention_problem(options: CoreOptions) -> str | None:
    """Return why retained deletes would not keep keys deleted."""
    if not options.sequence_field:  # refused in append tables
        return "needs 'sequence.field': without it the last event to arrive wins, so none is late"
    if not options.engine.newest_replaces:
        # A later row of the key takes the place of its delete, and an older event is then merged into that row.
        return f"cannot be combined with merge-engine '{options.engine.name}', which merges late events into newer rows; use 'deduplicate'"
    return "cannot be combined with 'ignore-delete', which stores no deletes" if options.ignore_delete else None


_PRODUCER, _IGNORED = "changelog-producer", "changelog-producer.row-deduplicate-ignore-fields"


def check_changelog(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for an invalid changelog producer.

    >>> from manifest.schema.validation import build_schema
    >>> build_schema("id BIGINT", options={"changelog-producer": "input"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'changelog-producer': 'input' needs a primary key
    """
    core, producer = schema.core, schema.core.changelog_producer
    for name in core.changelog_row_deduplicate_ignore_fields:
        if name not in schema.names:
            raise UnsupportedOption(_IGNORED, not_a_column(name, schema.names))
    if producer == "none":
        return
    schema.require_primary_key(_PRODUCER, f"'{producer}' needs a primary key")
    if core.engine.first_row_wins and producer != "lookup":
        raise UnsupportedOption(
            _PRODUCER, f"'{producer}' cannot be combined with merge-engine '{core.engine.name}'; use 'lookup' or 'none'"
        )
    if producer == "full-compaction":
        for option, on in (("deletion-vectors.enabled", core.deletion_vectors_enabled), ("force-lookup", core.force_lookup)):
            if on:
                raise UnsupportedOption(_PRODUCER, f"'{producer}' cannot be combined with option '{option}'; use 'lookup'")
    if producer in {"lookup", "full-compaction"} and schema.options.get("streaming-read-overwrite", "").strip().lower() == "true":
        raise UnsupportedOption(_PRODUCER, f"'{producer}' cannot be combined with option 'streaming-read-overwrite'")


_SYSTEM_NAMES = frozenset({"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"})
_KEY_PREFIX = "_KEY_"
_BYTES = DataType(Kind.VARBINARY, length=MAX_LENGTH)
_NO_KEY = frozenset({Kind.ARRAY, Kind.MAP, Kind.ROW, Kind.MULTISET, Kind.VECTOR, Kind.VARIANT, Kind.BLOB, Kind.GEOMETRY, Kind.GEOGRAPHY})
_UNWRITABLE = {
    Kind.VECTOR: ": Paimon 1.4 stores it in no Parquet or ORC file. Use an ARRAY of its elements",
    Kind.GEOMETRY: "",
    Kind.GEOGRAPHY: "",
}
"""Types of columns that are read only, and what to use instead."""


def build_schema(
    columns: pa.Schema | str | Sequence[DataField],
    *,
    primary_keys: Sequence[str] = (),
    partition_keys: Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    comment: str | None = None,
) -> TableSchema:
    """Return the first schema of a new table.

    Accepts an Arrow schema, DDL text or fields, and assigns field ids. Raises ``InvalidSchema`` for a broken rule, ``UnsupportedType`` for a
    column, ``UnsupportedOption`` for an option. Directories of DATE partitions are named ``day=2024-01-31`` unless an option says otherwise.

    >>> build_schema("id BIGINT, name STRING", primary_keys=["id"], options={"bucket": "2"}).fields[0].type.nullable
    False
    """
    settings = option_texts(options)
    primary = _keys("primary-key", primary_keys, settings)
    partition = _keys("partition", partition_keys, settings)
    if isinstance(columns, str):
        ddl = parse_table_ddl(columns)
        fields, comment = ddl.fields, comment if comment is not None else ddl.comment
        primary = _either("primary key", primary, ddl.primary_keys)
        partition = _either("partition", partition, ddl.partition_keys)
    else:
        fields = from_arrow(columns) if isinstance(columns, pa.Schema) else number_fields(columns)
    required = frozenset(primary)
    fields = _with_blobs(fields, CoreOptions.of(settings))
    if _names_dates({field.type.kind for field in fields if field.name in partition}):
        settings.setdefault("partition.legacy-name", "false")
    fields = tuple(replace(field, type=field.type.with_nullable(nullable=False)) if field.name in required else field for field in fields)
    schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=highest_id(fields),
        partition_keys=partition,
        primary_keys=primary,
        options=settings,
        comment=comment,
        time_millis=int(time.time() * 1000),
    )
    check_schema(schema)
    return schema


def _with_blobs(fields: tuple[DataField, ...], options: CoreOptions) -> tuple[DataField, ...]:
    """Return the columns with the type BLOB for those of option ``blob-field``.

    Raises ``UnsupportedOption`` for a column that is not there, or is not of type BYTES.
    """
    type_by_name = {field.name: field.type for field in fields}
    for name in options.blob_field:
        if name not in type_by_name:
            raise UnsupportedOption("blob-field", not_a_column(name, type_by_name))
        if type_by_name[name].with_nullable(nullable=True) not in {_BYTES, DataType(Kind.BLOB)}:
            raise UnsupportedOption("blob-field", f"column '{name}' has type {type_by_name[name]}, but needs BYTES")
    blobs = frozenset(options.blob_field)
    return tuple(replace(field, type=DataType(Kind.BLOB, field.type.nullable)) if field.name in blobs else field for field in fields)


def _names_dates(kinds: Collection[Kind]) -> bool:
    """Return whether directories of new partitions have dates as text.

    Paimon's default is the number of days since 1970. Names of times stay: with the other spelling some depend on the zone of the process.
    """
    return Kind.DATE in kinds and TIMESTAMPS.isdisjoint(kinds) and Kind.TIME not in kinds


def _either(what: str, argument: tuple[str, ...], named: tuple[str, ...]) -> tuple[str, ...]:
    """Return key columns from the argument or the DDL text."""
    if argument and named and argument != named:
        raise InvalidSchema(f"the {what} is ({', '.join(named)}) in the DDL text, and ({', '.join(argument)}) as an argument")
    return argument or named


def _keys(option: str, argument: Sequence[str], settings: dict[str, str]) -> tuple[str, ...]:
    """Return key columns from the argument or the option.

    Removes the option from ``settings``.
    """
    text = settings.pop(option, None)
    if text is None:
        return (argument,) if isinstance(argument, str) else tuple(argument)
    if argument:
        raise UnsupportedOption(option, "is given both as an argument and as an option")
    return tuple(part.strip() for part in text.split(",") if part.strip())


def check_schema(schema: TableSchema) -> None:
    """Raise for the first rule that ``schema`` breaks."""
    check_settable(schema.options)
    _check_columns(schema)
    _check_variants(schema)
    _check_blobs(schema)
    _check_avro(schema)
    _check_keys(schema)
    _check_buckets(schema, schema.core)
    check_crossing_keys(schema)
    _check_row_tracking(schema, schema.core)
    _check_sequence(schema, schema.core)
    check_merging(schema)
    check_changelog(schema)
    check_record_expiry(schema)
    check_clustering(schema)
    check_secondary_indexes(schema)
    _check_limits(schema, schema.core)
    PartitionExpiration.of(schema.options)
    check_tags(schema.options)
    _check_iceberg(schema)
    FileIndexOptions.parse(schema.options, schema.column_types, strict=True)
    assert schema.arrow is not None


def check_altered(before: TableSchema, after: TableSchema) -> None:
    """Raise for a forbidden change or a broken rule.

    Unchanged options and columns are not checked, because they may belong to another engine.
    """
    check_alter(before.options, after.options)
    changed = {key for key in {*before.options, *after.options} if before.options.get(key) != after.options.get(key)}
    if after.fields != before.fields:
        _refuse_duplicates("column", after.names)
        for field in set(after.fields).difference(before.fields):
            _check_column(field)
            assert field.type.arrow is not None
        newly_impossible = [reason for reason in after.file_index.ignored if reason not in before.file_index.ignored]
        if newly_impossible:
            raise InvalidSchema(newly_impossible[0])
    _check_variants(after)
    if after.fields != before.fields:
        _check_blobs(after)
    if after.fields != before.fields or any("file.format" in key or "file.compression" in key for key in changed):
        _check_avro(after)
    if changed & {"bucket", "bucket-key"}:
        _check_buckets(after, after.core)
    if changed & {"bucket", "sequence.field", "ignore-delete", "merge-engine"}:
        check_crossing_keys(after)
    if after.fields != before.fields or changed & {"sequence.field", "sequence.field.sort-order"}:
        _check_sequence(after, after.core)
    if after.fields != before.fields or any(changes_merging(key) for key in changed):
        check_merging(after)
    if after.fields != before.fields or any(key.startswith("changelog-producer") for key in changed):
        check_changelog(after)
    if after.fields != before.fields or any(key.startswith("record-level.") for key in changed):
        check_record_expiry(after)
    if after.fields != before.fields or any("clustering." in key for key in changed):
        check_clustering(after)
    if any(key == "bucket" or is_index_option(key) for key in changed):
        check_secondary_indexes(after)
    _check_limits(after, after.core)
    if any(key.startswith("partition.") for key in changed):
        PartitionExpiration.of(after.options)
        check_tags(after.options)
    _check_iceberg(after, before)
    if any(index_option(key) is not None for key in changed):
        FileIndexOptions.parse(after.options, after.column_types, strict=True)


def _check_iceberg(schema: TableSchema, before: TableSchema | None = None) -> None:
    """Raise ``UnsupportedOption`` for what readers of Iceberg cannot see."""
    if not schema.core.has_iceberg_metadata:
        return
    from manifest.schema.iceberg_schema import check_iceberg, check_iceberg_change  # noqa: PLC0415  # few tables need it

    check_iceberg(schema)
    if before is not None:
        check_iceberg_change(before, schema)


def _check_columns(schema: TableSchema) -> None:
    if not schema.fields:
        raise InvalidSchema("a table needs at least one column")
    _refuse_duplicates("column", schema.names)
    for field in schema.fields:
        _check_column(field)


def _check_column(field: DataField) -> None:
    if field.name in _SYSTEM_NAMES or field.name.startswith(_KEY_PREFIX) or not field.name:
        raise InvalidSchema(f"column '{field.name}': the name is reserved")
    if (unwritable := _unwritable(field.type)) is not None:
        raise InvalidSchema(f"column '{field.name}': type {unwritable} is not supported{_UNWRITABLE[unwritable.kind]}")
    _check_nested(field.name, field.type)
    try:
        default_scalar(field)
    except UnsupportedTable as error:
        raise InvalidSchema(str(error)) from error


def check_written_columns(schema: TableSchema, table: str) -> None:
    """Raise ``UnsupportedTable`` for a read-only column type."""
    for field in schema.fields:
        if (unwritable := _unwritable(field.type)) is not None:
            raise UnsupportedTable(
                f"{table}: column '{field.name}': values of type {unwritable} can only be read. Write with another engine."
            )


def _unwritable(data_type: DataType) -> DataType | None:
    """Return the part of a type that cannot be written."""
    return data_type if data_type.kind in _UNWRITABLE else next(filter(None, map(_unwritable, data_type.children)), None)


def _check_blobs(schema: TableSchema) -> None:
    """Raise ``InvalidSchema`` for a BLOB where its values have no files of their own."""
    blobs = [field.name for field in schema.fields if field.type.kind is Kind.BLOB]
    for field in schema.fields:
        if any(_has_blob(child) for child in field.type.children):
            raise InvalidSchema(f"column '{field.name}': type {field.type} is not supported: a BLOB is a column, not a part of one")
    if blobs and not schema.core.data_evolution_enabled:
        raise InvalidSchema(f"column '{blobs[0]}': a BLOB needs options 'row-tracking.enabled' and 'data-evolution.enabled'")
    if blobs and len(blobs) == len(schema.fields):
        raise InvalidSchema(f"column '{blobs[0]}': a table of BLOB columns needs another column, too")


def _has_blob(data_type: DataType) -> bool:
    return data_type.kind is Kind.BLOB or any(map(_has_blob, data_type.children))


def _check_variants(schema: TableSchema) -> None:
    """Raise ``InvalidSchema`` for a VARIANT in an unsupported format."""
    formats = _formats(schema.core)
    for field in schema.fields:
        if formats != {"parquet"} and _has_variant(field.type):
            raise InvalidSchema(f"column '{field.name}': a VARIANT needs Parquet files, not {', '.join(sorted(formats))}")


def _check_avro(schema: TableSchema) -> None:
    """Raise for what Avro files cannot store.

    ``InvalidSchema`` names a time, ``UnsupportedOption`` a codec.
    """
    # Checked here, before a write or a compaction fails.
    if "avro" not in _formats(schema.core):
        return
    for field in schema.fields:
        if (too_precise := _too_precise(field.type)) is not None:
            raise InvalidSchema(
                f"column '{field.name}': {too_precise} cannot be stored in Avro files; choose another 'file.format' (also by level and for "
                "changelogs) or TIME(3), TIMESTAMP(6)"
            )
    from manifest.avro.codecs import data_codec_name  # noqa: PLC0415  # other tables need none

    for codec in sorted(_avro_codecs(schema.core)):
        data_codec_name(codec)


def _avro_codecs(core: CoreOptions) -> set[str]:
    """Return the codecs of new data and changelog files in Avro."""
    levels = {0, core.max_level, *core.file_format_per_level, *core.file_compression_per_level}
    by_level = {level: (core.format_at(level), core.compression_at(level)) for level in levels}
    # Changelog files take the options that they lack from data files. Flushes write them on level 0, compactions on others.
    changelog_values = [core.raw.get(key, "").strip().lower() for key in ("changelog-file.format", "changelog-file.compression")]
    logged = by_level.values() if core.changelog_producer in {"lookup", "full-compaction"} else [by_level[0]]
    pairs = [*by_level.values(), *((changelog_values[0] or file_format, changelog_values[1] or codec) for file_format, codec in logged)]
    return {codec for file_format, codec in pairs if file_format == "avro"}


def _too_precise(data_type: DataType) -> DataType | None:
    """Return the part of a type that exceeds Avro's precision."""
    max_precision = 3 if data_type.kind is Kind.TIME else 6 if data_type.kind in TIMESTAMPS else data_type.precision
    return data_type if data_type.precision > max_precision else next(filter(None, map(_too_precise, data_type.children)), None)


def _formats(core: CoreOptions) -> set[str]:
    """Return the formats of a table's data and changelog files."""
    return {core.file_format, *core.file_format_per_level.values(), core.raw.get("changelog-file.format", "parquet").strip().lower()}


def _has_variant(data_type: DataType) -> bool:
    return data_type.kind is Kind.VARIANT or any(_has_variant(child) for child in data_type.children)


def _check_nested(column: str, data_type: DataType) -> None:
    if data_type.kind is Kind.ROW:
        if not data_type.fields:
            raise InvalidSchema(f"column '{column}': a ROW needs at least one field")
        _refuse_duplicates(f"column '{column}': field", [field.name for field in data_type.fields])
    for child in data_type.children:
        _check_nested(column, child)


def _refuse_duplicates(what: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidSchema(f"{what} '{name}' is given {count} times")


def _check_keys(schema: TableSchema) -> None:
    for what, names in (("primary-key column", schema.primary_keys), ("partition column", schema.partition_keys)):
        _refuse_duplicates(what, names)
        for name in names:
            if name not in schema.names:
                raise InvalidSchema(f"{what} {not_a_column(name, schema.names)}")
            if schema.field(name).type.kind in _NO_KEY:
                raise InvalidSchema(f"{what} '{name}' has type {schema.field(name).type}, which cannot be in a key")
    for name in schema.partition_keys:
        if schema.field(name).type.kind in {Kind.BINARY, Kind.VARBINARY} and schema.core.partition_legacy_name:
            raise InvalidSchema(
                f"partition column '{name}' is binary: its directory names cannot be reproduced; set partition.legacy-name=false"
            )
    if schema.primary_keys and not schema.trimmed_primary_keys:
        raise InvalidSchema("the primary key needs a column that is not a partition column")


def _check_row_tracking(schema: TableSchema, options: CoreOptions) -> None:
    if options.row_tracking_enabled and schema.bucket_mode is not BucketMode.BUCKET_UNAWARE:
        raise UnsupportedOption("row-tracking.enabled", "needs a table without a primary key and without buckets ('bucket' = -1)")
    if options.data_evolution_enabled and not options.row_tracking_enabled:
        raise UnsupportedOption("data-evolution.enabled", "needs 'row-tracking.enabled' too")
    if options.data_evolution_enabled and options.deletion_vectors_enabled:
        raise UnsupportedOption("data-evolution.enabled", "cannot be combined with 'deletion-vectors.enabled'")


def _check_buckets(schema: TableSchema, options: CoreOptions) -> None:
    if options.bucket == -2:
        schema.require_primary_key("bucket", "-2 (postponed buckets) needs a primary key")
    if options.bucket == -2 and options.postpone_default_bucket_num < 1:
        raise UnsupportedOption("postpone.default-bucket-num", "must be 1 or more")
    if options.bucket == 0 or options.bucket < -2:
        raise UnsupportedOption("bucket", f"{options.bucket} is not a number of buckets; use 1 or more, or -1 for dynamic buckets")
    keys = options.bucket_key
    if options.bucket < 0 and keys:
        raise UnsupportedOption("bucket-key", "needs a fixed number of buckets in option 'bucket'")
    if options.bucket > 0 and not keys:
        schema.require_primary_key("bucket-key", "an append table with fixed buckets needs the columns to hash")
    for name in keys:
        if name not in schema.names:
            raise UnsupportedOption("bucket-key", not_a_column(name, schema.names))
        if name in schema.partition_keys or (schema.primary_keys and name not in schema.primary_keys):
            raise UnsupportedOption("bucket-key", f"'{name}' must be a primary-key column and not a partition column")
        if schema.field(name).type.kind in _NO_KEY:
            raise UnsupportedOption("bucket-key", f"'{name}' has type {schema.field(name).type}, which cannot be hashed")
    if options.bucket_function_type == "mod" and (
        len(schema.bucket_keys) != 1 or schema.field(schema.bucket_keys[0]).type.kind not in {Kind.INT, Kind.BIGINT}
    ):
        raise UnsupportedOption("bucket-function.type", "'mod' needs one bucket key of type INT or BIGINT")


def _check_sequence(schema: TableSchema, options: CoreOptions) -> None:
    if options.sequence_field:
        schema.require_primary_key("sequence.field", "applies only to primary-key tables")
    if options.sequence_field_sort_order not in {"ascending", "descending"}:
        raise UnsupportedOption("sequence.field.sort-order", f"'{options.sequence_field_sort_order}' is neither ascending nor descending")
    for name in options.sequence_field:
        if name not in schema.names:
            raise UnsupportedOption("sequence.field", not_a_column(name, schema.names))
        if options.sequence_field.count(name) > 1 or schema.field(name).type.kind in _NO_KEY:
            raise UnsupportedOption("sequence.field", f"'{name}' is listed twice or has a type without an order")


def _check_limits(schema: TableSchema, options: CoreOptions) -> None:
    if options.snapshot_num_retained_min > options.snapshot_num_retained_max:
        raise UnsupportedOption("snapshot.num-retained.min", "is greater than snapshot.num-retained.max")
    min_retained, max_retained, _ = options.changelog_retention
    if min_retained > max_retained:
        raise UnsupportedOption("changelog.num-retained.min", "is greater than changelog.num-retained.max")
    if options.num_levels is not None and options.num_levels < 2:
        raise UnsupportedOption("num-levels", "a merge tree has at least 2 levels")
    if options.num_sorted_run_compaction_trigger < 1:
        raise UnsupportedOption("num-sorted-run.compaction-trigger", "must be 1 or more")
    for key in schema.options:
        if key.startswith("fields.") and key.endswith(".stats-mode"):
            name = key[len("fields.") : -len(".stats-mode")]
            if name not in schema.names:
                raise UnsupportedOption(key, not_a_column(name, schema.names))
    options.stats_modes(schema.names)


def check_crossing_keys(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for options that would duplicate keys.

    With these, a key could exist in two partitions.

    >>> from manifest.schema.validation import build_schema
    >>> build_schema("id INT, day INT, v INT", primary_keys=["id"], partition_keys=["day"], options={"sequence.field": "v"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'sequence.field': cannot be combined with a primary key without partition column 'day': ...
    """
    if not schema.is_primary_key_table or schema.keys_have_partitions:
        return
    missing = next(name for name in schema.partition_keys if name not in schema.primary_keys)
    why = f"cannot be combined with a primary key without partition column '{missing}'"
    options = schema.core
    if options.bucket != -1:
        raise UnsupportedOption(
            "bucket", f"{options.bucket} {why}: a key would be unique in its partition only; add the column to the key, or use -1"
        )
    if options.sequence_field:
        raise UnsupportedOption("sequence.field", f"{why}: versions in two partitions are not compared")
    if options.ignore_delete and options.engine.newest_replaces:
        raise UnsupportedOption("ignore-delete", f"{why}: a key that moves is deleted from the partition where it was")
