"""Columns and types that rows bring to their table."""

from __future__ import annotations

import pyarrow as pa

from lsm.arrow.row_kind import ROW_KIND
from lsm.rows_in.arrow import COLUMN_SET
from lsm.rows_in.policy import RowPolicy
from manifest.schema.evolution import evolve
from manifest.schema.merge_on_write import MergeRules, merge_changes
from manifest.schema.table_schema import TableSchema
from manifest.types.data_type import from_arrow


def merged_schema(schema: TableSchema, rows: pa.Schema, policy: RowPolicy) -> TableSchema | None:
    """Return the schema with the columns of incoming rows. None: it has them.

    A new column whose values are all null has no type and is left out.

    Raises:
        UnsupportedType: A new column has a type that no table has.
        InvalidSchema: The table cannot get such a column.
    """
    if not policy.merges:
        return None
    typed_fields = [field for field in rows if field.name not in {ROW_KIND, COLUMN_SET} and not pa.types.is_null(field.type)]
    changes = merge_changes(schema, from_arrow(pa.schema(typed_fields)), MergeRules(policy.widens, policy.retypes))
    return evolve(schema, changes) if changes else None
