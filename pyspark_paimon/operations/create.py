"""Create a table."""

from __future__ import annotations

from manifest.schema.iceberg_schema import shows_compacted_rows_only
from paimon_base.log import logger_of
from pyspark_paimon.request.answers import SchemaJson
from pyspark_paimon.request.operation import OpenTable, Operation

_LOG = logger_of(__name__)


class CreateTable(Operation[SchemaJson]):
    """Create the table. Raises ``TableExists``."""

    table_schema: SchemaJson

    def run(self, table: OpenTable) -> SchemaJson:
        """Write schema 0, if it is absent."""
        schema = table.create(self.table_schema)
        if shows_compacted_rows_only(schema):
            _LOG.warning(
                "%s: Iceberg readers will see only fully compacted rows; call compact(full=True), or set 'full-compaction.delta-commits'. "
                "maintenance() says how old their view is",
                table.path,
            )
        return schema
