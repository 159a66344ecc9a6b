"""Create a table."""

from __future__ import annotations

from pyspark_paimon.request.answers import SchemaJson
from pyspark_paimon.request.operation import OpenTable, Operation


class CreateTable(Operation[SchemaJson]):
    """Create the table. Raises ``TableExists``."""

    table_schema: SchemaJson

    def run(self, table: OpenTable) -> SchemaJson:
        """Write schema 0, if it is absent."""
        return table.create(self.table_schema)
