"""Secondary indexes of a primary-key table, as its options define them (``pk-btree.index.columns``, ``pk-bitmap.index.columns``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from manifest.schema.table_schema import BucketMode, TableSchema
from paimon_base.errors import UnsupportedOption, not_a_column
from sparkexpr.values.column_type import ColumnType

_BUCKET_MODES = frozenset({BucketMode.HASH_FIXED, BucketMode.POSTPONE_MODE})


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """The definition of an index of one column."""

    column: str
    field_id: int
    kind: SortedIndexKind
    type: ColumnType
    options: SortedIndexOptions | None
    """How payloads are built. None: by other engines only, and read here."""


def secondary_indexes(schema: TableSchema) -> tuple[SecondaryIndex, ...]:
    """Return the indexes of a table, without those that cannot be built here.

    Another engine may have defined them. They are advice, so a definition that is not understood means no index.
    """
    if "secondary indexes" not in schema.derived:
        schema.derived["secondary indexes"] = _defined(schema)
    indexes: tuple[SecondaryIndex, ...] = schema.derived["secondary indexes"]
    return indexes


def _defined(schema: TableSchema) -> tuple[SecondaryIndex, ...]:
    indexes: dict[str, SecondaryIndex] = {}
    if not any(kind.columns_option in schema.options for kind in SortedIndexKind):
        return ()
    from fileindex.sorted_index.key_codec import supports  # noqa: PLC0415  # few tables need it

    if not schema.is_primary_key_table or not schema.core.deletion_vectors_enabled:
        return ()
    for kind, column in _named(schema):
        field = schema.by_name.get(column)
        if column in indexes or field is None or not supports(field.type.column_type):
            continue
        try:
            options = SortedIndexOptions.parse(kind, column, schema.options)
        except UnsupportedOption:
            options = None
        indexes[column] = SecondaryIndex(column, field.id, kind, field.type.column_type, options)
    return tuple(indexes.values())


def can_have_secondary_indexes(schema: TableSchema) -> bool:
    """Return whether the table's other options allow such indexes."""
    return schema.is_primary_key_table and schema.core.deletion_vectors_enabled and schema.bucket_mode in _BUCKET_MODES


def check_secondary_indexes(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for an index that the table cannot have.

    >>> from manifest.schema.validation import build_schema
    >>> build_schema("id INT, v INT", primary_keys=["id"], options={"bucket": "1", "pk-btree.index.columns": "v"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'pk-btree.index.columns': needs 'deletion-vectors.enabled' = 'true'
    """
    from fileindex.sorted_index.key_codec import supports  # noqa: PLC0415  # few tables need it

    seen: dict[str, str] = {}
    for kind, column in _named(schema):
        option = kind.columns_option
        schema.require_primary_key(option, "applies only to primary-key tables")
        if schema.core.raw.get("deletion-vectors.merge-on-read", "").strip().lower() == "true":
            raise UnsupportedOption(option, "cannot be combined with 'deletion-vectors.merge-on-read' = 'true'")
        if not schema.core.deletion_vectors_enabled:
            raise UnsupportedOption(option, "needs 'deletion-vectors.enabled' = 'true'")
        if schema.bucket_mode not in _BUCKET_MODES:
            raise UnsupportedOption(option, "needs a fixed number of buckets, or -2 (option 'bucket')")
        if column not in schema.by_name:
            raise UnsupportedOption(option, not_a_column(column, schema.names))
        if column in seen:
            raise UnsupportedOption(option, f"column '{column}' is named twice, here and by '{seen[column]}'; a column has one index")
        if not supports(schema.field(column).type.column_type):
            raise UnsupportedOption(option, f"column '{column}' is {schema.field(column).type}, which no index orders")
        seen[column] = option
        SortedIndexOptions.parse(kind, column, schema.options)
    for kind in SortedIndexKind:
        for name in schema.names:
            if kind.column_option(name) in schema.options and seen.get(name) != kind.columns_option:
                raise UnsupportedOption(kind.column_option(name), f"column '{name}' is not named by option '{kind.columns_option}'")


def _named(schema: TableSchema) -> Iterator[tuple[SortedIndexKind, str]]:
    for kind in SortedIndexKind:
        text = schema.options.get(kind.columns_option)
        for name in () if text is None else text.split(","):
            yield kind, name.strip()
