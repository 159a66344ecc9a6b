"""What a table is and holds: schema, options, snapshots, files. Nothing here changes it."""

from __future__ import annotations

import pyarrow as pa

from manifest.schema import TableSchema
from pyspark_paimon.engine import Backend, TravelRequest
from pyspark_paimon.table_analysis import statistics_table
from pyspark_paimon.table_views import snapshots_table


class TableInspection:
    """The half of ``Table`` that only looks.

    >>> from pyspark_paimon.example import cities
    >>> cities().primary_keys
    ('id',)
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def path(self) -> str:
        """Where the table is."""
        return self._backend.path

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow has them in memory."""
        return self.table_schema.arrow

    @property
    def table_schema(self) -> TableSchema:
        """The newest schema of record: Paimon's types, keys, options."""
        return self._backend.schema()

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Primary-key columns; () for an append table."""
        return self.table_schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Partition columns."""
        return self.table_schema.partition_keys

    @property
    def options(self) -> dict[str, str]:
        """The table's options, as they are stored."""
        return dict(self.table_schema.options)

    def snapshots(self) -> pa.Table:
        """One row for every retained snapshot, oldest first: id, kind, user, time, record counts.

        >>> from pyspark_paimon.example import cities
        >>> cities().snapshots().select(["snapshot_id", "commit_kind", "total_record_count"]).to_pylist()
        [{'snapshot_id': 1, 'commit_kind': 'APPEND', 'total_record_count': 3}]
        """
        return snapshots_table(self._backend.snapshots())

    def statistics(self, snapshot: int | None = None) -> pa.Table:
        """The statistics that a snapshot (default: the newest) carries: one row for every column that ``analyze`` counted.

        ``snapshot_id`` is the snapshot that was counted; later ones carry its statistics on until the schema changes. Minima and
        maxima are texts; ``distinct_count`` is an estimate above 65,536. No row if the table was never analyzed.

        >>> from pyspark_paimon.example import cities
        >>> table = cities()
        >>> table.statistics().num_rows
        0
        >>> table.analyze(["city"]).snapshot_id
        2
        >>> table.statistics().select(["column", "record_count", "distinct_count", "min", "max", "null_count"]).to_pylist()
        [{'column': 'city', 'record_count': 3, 'distinct_count': 3, 'min': 'Lima', 'max': 'Rome', 'null_count': 0}]
        """
        pinned = self._backend.pin(TravelRequest(snapshot_id=snapshot))
        return statistics_table(self._backend.statistics(None if pinned is None else pinned.id))

    def files(self, snapshot: int | None = None) -> pa.Table:
        """One row for every live data file of a snapshot (default: the newest): bucket, level, rows, bytes, keys, index.

        >>> from pyspark_paimon.example import cities
        >>> cities().files().select(["bucket", "level", "row_count", "min_key", "max_key", "file_index"]).to_pylist()
        [{'bucket': 0, 'level': 0, 'row_count': 3, 'min_key': '1', 'max_key': '3', 'file_index': 'embedded'}]
        """
        pinned = self._backend.pin(TravelRequest(snapshot_id=snapshot))
        return self._backend.files(None if pinned is None else pinned.id)


__all__ = ["TableInspection"]
