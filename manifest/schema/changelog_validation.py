"""Which changelog a table may have: what its producer, its merge engine and its columns allow together."""

from __future__ import annotations

from fileindex.base.errors import UnsupportedOption
from manifest.schema.table_schema import TableSchema

_PRODUCER, _IGNORED = "changelog-producer", "changelog-producer.row-deduplicate-ignore-fields"


def check_changelog(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for a producer that the table cannot have.

    >>> from manifest.schema.validation import build_schema
    >>> build_schema("id BIGINT", options={"changelog-producer": "input"})
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'changelog-producer': 'input' needs a primary key
    """
    core, producer = schema.core, schema.core.changelog_producer
    for name in core.changelog_row_deduplicate_ignore_fields:
        if name not in schema.names:
            raise UnsupportedOption(_IGNORED, f"'{name}' is no column; columns are: {', '.join(schema.names)}")
    if producer == "none":
        return
    if not schema.is_primary_key_table:
        raise UnsupportedOption(_PRODUCER, f"'{producer}' needs a primary key")
    if core.engine.first_row_wins and producer != "lookup":
        raise UnsupportedOption(_PRODUCER, f"'{producer}' does not go with merge-engine '{core.engine.name}'; use 'lookup' or 'none'")
    if producer == "full-compaction":
        for option, on in (("deletion-vectors.enabled", core.deletion_vectors_enabled), ("force-lookup", core.force_lookup)):
            if on:
                raise UnsupportedOption(_PRODUCER, f"'{producer}' does not go with option '{option}'; use 'lookup'")
    if producer in {"lookup", "full-compaction"} and schema.options.get("streaming-read-overwrite", "").strip().lower() == "true":
        raise UnsupportedOption(_PRODUCER, f"'{producer}' does not go with option 'streaming-read-overwrite'")


__all__ = ["check_changelog"]
