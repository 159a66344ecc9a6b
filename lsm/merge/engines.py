"""Merge function of a table (Paimon's ``PrimaryKeyTableUtils``).

Only this module of the package tests the name of the merge engine. Others ask for a trait (``manifest.options.merge_engine``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fileindex.base.errors import UnsupportedOption
from fileindex.base.lazy import LazyModule
from lsm.merge.function import Deduplicate, FirstRow, MergeFunction
from manifest.io.errors import UnsupportedTable
from manifest.schema.merge_options import MergeOptions
from manifest.schema.table_schema import TableSchema

if TYPE_CHECKING:
    from lsm.merge import aggregation, partial_update
else:
    aggregation = LazyModule("lsm.merge.aggregation")
    partial_update = LazyModule("lsm.merge.partial_update")


def merge_function_for(schema: TableSchema) -> MergeFunction:
    """Return the merge function of a primary-key table.

    Raises:
        UnsupportedTable: The engine or one of its options is not implemented; the message names it.

    >>> from manifest.schema.validation import build_schema
    >>> merge_function_for(build_schema("id BIGINT", primary_keys=["id"], options={"bucket": "1", "ignore-delete": "true"}))
    Deduplicate(ignore_delete=True)
    """
    try:
        options = MergeOptions.of(schema)
    except UnsupportedOption as error:
        raise UnsupportedTable(str(error)) from error
    match options.engine.name:
        case "deduplicate":
            return Deduplicate(options.ignore_delete)
        case "first-row":
            return FirstRow(options.ignore_delete)
        case "aggregation":
            return aggregation.Aggregation(options.aggregates, options.remove_on_delete)
        case _:
            return partial_update.PartialUpdate(
                schema.primary_keys,
                options.groups,
                options.aggregates,
                options.ignore_delete,
                options.remove_on_delete,
                options.remove_on_groups,
            )


__all__ = ["merge_function_for"]
