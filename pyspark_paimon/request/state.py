"""Questions about schemas and snapshots."""

from __future__ import annotations

from pyspark_paimon.request.answers import SchemaJson, SnapshotJson
from pyspark_paimon.request.operation import OpenTable, Question
from pyspark_paimon.request.requests import TravelRequest


class SchemaOf(Question[SchemaJson]):
    """The newest schema, or that of an id. Raises ``TableNotFound``."""

    id: int | None = None

    def answer(self, table: OpenTable) -> SchemaJson:
        """Read the schema file."""
        return table.schema(self.id)


class Pin(Question[SnapshotJson | None]):
    """The snapshot that ``travel`` names. None: the table is empty."""

    travel: TravelRequest

    def answer(self, table: OpenTable) -> SnapshotJson | None:
        """Find the snapshot."""
        return table.pin(self.travel)


class Start(Question[tuple[SnapshotJson | None, SchemaJson]]):
    """Snapshot of ``travel`` and the schema to read it with."""

    travel: TravelRequest

    def answer(self, table: OpenTable) -> tuple[SnapshotJson | None, SchemaJson]:
        """Find both."""
        return table.start(self.travel)


class Snapshots(Question[list[SnapshotJson]]):
    """Every retained snapshot, oldest first."""

    def answer(self, table: OpenTable) -> list[SnapshotJson]:
        """Read all snapshot files."""
        return list(table.store().snapshots.backwards())[::-1]
