"""What Paimon checks of merge engines when a table is made or altered (``SchemaValidation``)."""

from __future__ import annotations

from fileindex.base.column_type import STRINGS
from fileindex.base.errors import UnsupportedOption
from manifest.options.merge_engine import AGGREGATE_REMOVE, PARTIAL_REMOVE
from manifest.options.merge_keys import GROUP_REMOVE, check_field_columns
from manifest.schema.merge_options import MergeOptions
from manifest.schema.table_schema import TableSchema

_OWN = frozenset(
    [
        AGGREGATE_REMOVE,
        PARTIAL_REMOVE,
        GROUP_REMOVE,
        "merge-engine",
        "ignore-delete",
        "rowkind.field",
        "sequence.field",
        "changelog-producer",
        "deletion-vectors.enabled",
    ]
)


def changes_merging(key: str) -> bool:
    """Whether an option has a say in how versions are merged."""
    return key in _OWN or key.startswith("fields.")


def check_merging(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption``, by key, for merge options that contradict each other or the columns."""
    options = schema.core
    if not schema.is_primary_key_table:
        if not options.engine.newest_replaces:
            raise UnsupportedOption("merge-engine", "means something for primary-key tables only")
        if options.rowkind_field is not None:
            raise UnsupportedOption("rowkind.field", "means something for primary-key tables only")
        return
    check_field_columns(schema.options, schema.names)
    MergeOptions.of(schema)
    if options.engine.first_row_wins and options.deletion_vectors_enabled:
        raise UnsupportedOption("deletion-vectors.enabled", f"does not go with merge-engine '{options.engine.name}'")
    if options.rowkind_field is not None:
        if options.rowkind_field not in schema.names:
            raise UnsupportedOption("rowkind.field", f"'{options.rowkind_field}' is no column; columns are: {', '.join(schema.names)}")
        column = schema.field(options.rowkind_field)
        if column.type.kind not in STRINGS:
            raise UnsupportedOption("rowkind.field", f"column '{column.name}' is {column.type}, no text")


__all__ = ["changes_merging", "check_merging"]
