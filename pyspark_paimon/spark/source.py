"""Formats ``paimon`` and ``pyspark_paimon`` of Spark's Python Data Source API.

Spark imports this module for every session (``spark.wire.names`` explains the discovery), so methods import what they need. A client
sends only options, which are strings, and rows.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from pyspark_paimon.spark.wire.names import NAME, UNIQUE_NAME, WARM


class PaimonDataSource(DataSource):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Data source of Paimon tables by path: ``spark.read.format("paimon").load(path)``.

    The option ``branch`` selects a branch.

    Options of ``spark.read``: ``columns`` (comma separated), ``filter`` (SQL text), ``scan.snapshot-id``, ``scan.tag-name``,
    ``scan.timestamp-millis``, also ``versionAsOf`` and ``timestampAsOf``, ``incremental-between`` and
    ``incremental-between-scan-mode`` (rows with ``_row_kind``). Spark pushes no filter and no columns of a query into this source:
    without the options a query reads all rows. A ``Filter`` above ``BatchScan`` in ``df.explain()`` is Spark's, after the read.

    Options of ``df.write``: ``dynamic-partition-overwrite`` and the table options that a call may change.

    Options of ``readStream``: ``columns``, ``filter``, ``scan.mode`` with ``scan.snapshot-id`` or ``scan.timestamp-millis``,
    ``streaming-read-overwrite``, ``consumer-id`` and ``consumer.ignore-progress``. ``read.changelog`` set to ``true`` returns all
    changes with ``_row_kind``, otherwise only new rows. ``read.stream.maxFilesPerTrigger``, ``maxRowsPerTrigger`` and
    ``maxBytesPerTrigger`` limit a batch.

    ``writeStream`` supports output modes append and complete. Its option ``commit.user`` replaces the query id of the checkpoint.

    Tasks of a plain ``df.write`` write level 0 only. After the commit the driver compacts buckets of a primary-key table that need it, a few
    at a time in bounded memory. The option ``write-only`` leaves that to ``Table.compact``, which compacts in tasks. ``Table.write`` always
    compacts in tasks.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name that no other data source has."""
        return UNIQUE_NAME

    def schema(self) -> StructType:
        """Return the schema of a scan, or a question's answer."""
        from pyspark_paimon.spark.server import schema  # noqa: PLC0415  # discovery must not import Arrow

        return schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of one snapshot."""
        if WARM in self.options:
            from pyspark_paimon.spark.warm import warm_reader  # noqa: PLC0415  # as above

            return warm_reader(self.options, schema)
        from pyspark_paimon.spark.read.reader import reader_for  # noqa: PLC0415  # as above

        return reader_for(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a writer of rows or of a client's command."""
        if WARM in self.options:
            from pyspark_paimon.spark.warm import warm_writer  # noqa: PLC0415  # as above

            return warm_writer()
        from pyspark_paimon.spark.write.writer import writer_for  # noqa: PLC0415  # as above

        return writer_for(self.options, schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return a reader of the table's changes."""
        from pyspark_paimon.spark.read.stream_reader import stream_reader  # noqa: PLC0415  # as above

        return stream_reader(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's name
        """Return a writer of micro-batches."""
        from pyspark_paimon.spark.write.stream_writer import stream_writer  # noqa: PLC0415  # as above

        return stream_writer(self.options, schema, overwrite=overwrite)


class ShortNamedSource(PaimonDataSource):
    """The same data source under the name ``paimon``.

    A jar on the server may take that name.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME
