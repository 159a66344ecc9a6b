"""Format ``paimon``, also known as ``pyspark_paimon``, for Spark's Python Data Source API.

Spark discovers the class by the name of the top-level package (``spark.wire.names`` tells how, and what a jar of Paimon's own
changes) and imports this module for every session, so it stays thin: what needs Arrow or the table's rooms is imported when a
method runs. Nothing here travels from a client; a client sends options, which are strings, and rows.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from pyspark_paimon.spark.wire.names import NAME, UNIQUE_NAME, WARM


class PaimonDataSource(DataSource):  # type: ignore[misc]  # Spark's own annotations are not followed
    """Reads and writes Paimon tables by path: ``spark.read.format("paimon").load(path)``.

    Option ``branch`` reads or writes a branch. Read options: ``columns`` (comma separated), ``filter`` (SQL text), ``pushdown`` (``once`` lets
    Spark push its filters into a frame that is queried once; needs ``spark.sql.python.filterPushdown.enabled``), Paimon's ``incremental-between`` and
    ``incremental-between-scan-mode`` (rows with ``_row_kind``), ``scan.snapshot-id``, ``scan.tag-name`` and
    ``scan.timestamp-millis``. Write options: ``dynamic-partition-overwrite`` and the table options that a call may change.

    Streams: ``readStream`` takes ``columns``, ``filter``, Paimon's ``scan.mode`` with ``scan.snapshot-id`` or
    ``scan.timestamp-millis``, ``read.changelog`` (``true``: every change, its kind in ``_row_kind``; else the rows that came to be),
    ``streaming-read-overwrite``, ``consumer-id``, ``consumer.ignore-progress``, and the limits of a batch
    ``read.stream.maxFilesPerTrigger``, ``maxRowsPerTrigger`` and ``maxBytesPerTrigger``. ``writeStream`` takes output modes append and
    complete, and ``commit.user``, a name for the query where the id in its checkpoint will not do.

    Tasks of a plain ``df.write`` do not own buckets, so they write level 0 only, and the driver compacts the buckets of a primary-key
    table after the commit where that is due: a few at a time, in bounded memory, for as long as a rewrite takes. ``write-only``
    leaves that to others, to ``Table.compact`` above all, whose work is done in tasks; ``Table.write`` compacts in tasks.
    """

    @classmethod
    def name(cls) -> str:
        """The name that no other source has."""
        return UNIQUE_NAME

    def schema(self) -> StructType:
        """The table's (or the projection's) Spark schema, or the answer to a client's question."""
        from pyspark_paimon.spark.server import schema  # noqa: PLC0415  # discovery must not import Arrow

        return schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of one snapshot, which is pinned here at the latest."""
        if WARM in self.options:
            from pyspark_paimon.spark.warm import warm_reader  # noqa: PLC0415  # as above

            return warm_reader(self.options, schema)
        from pyspark_paimon.spark.read.reader import reader_for  # noqa: PLC0415  # as above

        return reader_for(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of rows, or the executor of a client's command."""
        if WARM in self.options:
            from pyspark_paimon.spark.warm import warm_writer  # noqa: PLC0415  # as above

            return warm_writer()
        from pyspark_paimon.spark.write.writer import writer_for  # noqa: PLC0415  # as above

        return writer_for(self.options, schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """A reader of the table's changes, as ``stream.options`` says."""
        from pyspark_paimon.spark.read.stream_reader import stream_reader  # noqa: PLC0415  # as above

        return stream_reader(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  # Spark's name
        """A writer of micro-batches, each committed once."""
        from pyspark_paimon.spark.write.stream_writer import stream_writer  # noqa: PLC0415  # as above

        return stream_writer(self.options, schema, overwrite=overwrite)


class ShortNamedSource(PaimonDataSource):
    """The same under the format's own name, which a jar may own on some servers."""

    @classmethod
    def name(cls) -> str:
        """The name that users write."""
        return NAME


__all__ = ["PaimonDataSource", "ShortNamedSource"]
