"""Rules for primary keys without all partition columns.

Such keys may move between partitions.
"""

from __future__ import annotations

from fileindex.base.errors import UnsupportedOption
from manifest.schema.table_schema import TableSchema


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


__all__ = ["check_crossing_keys"]
