"""Rows as other libraries take them: Arrow streams, polars, DuckDB, datasets with pushdown. What a ``Scan`` and a ``Table`` share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from fileindex.base.errors import InvalidArgument

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from pyspark_paimon.table.dataset import DatasetSource, PaimonDataset

_HEAD_ROWS = 10


class Readable(ABC):
    """Rows that can be handed on: of a scan, or of a table as it is at the moment of the call."""

    @abstractmethod
    def _read(self) -> DatasetSource:
        """The scan that is handed on."""

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow reader, a batch at a time, in bounded memory.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan(columns=["id"]).to_reader().read_all().num_rows
        3
        """
        scan = self._read()
        return pa.RecordBatchReader.from_batches(scan.schema, scan.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for polars, DuckDB and other libraries that take an Arrow stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, a batch at a time."""
        return self._read().to_batches()

    def head(self, rows: int = _HEAD_ROWS) -> pa.Table:
        """The first ``rows`` rows, in no order unless the scan has one; no more is read than that needs.

        >>> from pyspark_paimon.example import cities
        >>> cities().head(2).num_rows
        2
        """
        if type(rows) is not int or rows < 0:
            raise InvalidArgument(f"head: a number of rows is wanted, not {rows!r}")
        return self._read().limited(rows).to_arrow()

    def to_dataset(self) -> PaimonDataset:
        """The rows as a ``pyarrow.dataset.Dataset`` whose columns and filters prune as this table does.

        >>> import pyarrow.compute as pc
        >>> from pyspark_paimon.example import cities
        >>> cities().to_dataset().to_table(columns=["city"], filter=pc.field("id") == 1).to_pylist()
        [{'city': 'Oslo'}]
        """
        from pyspark_paimon.table.dataset import PaimonDataset  # noqa: PLC0415  # pyarrow.dataset takes a third of a second

        return PaimonDataset(self._read())

    def to_polars(self, *, dictionaries: bool | Sequence[str] = False) -> pl.DataFrame:
        """The rows as a polars DataFrame; ``dictionaries``: text columns as categoricals, all or these.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id = 1", columns=["city"]).to_polars().item()
        'Oslo'
        """
        import polars as pl  # noqa: PLC0415  # takes long, and few want it

        return pl.DataFrame(self._read().to_arrow(dictionaries=dictionaries))

    def scan_polars(self) -> pl.LazyFrame:
        """The rows as a polars LazyFrame: what it selects, filters and limits is planned here before anything is read.

        >>> import polars as pl
        >>> from pyspark_paimon.example import cities
        >>> cities().scan_polars().filter(pl.col("id") >= 2).select("city").collect()["city"].to_list()
        ['Lima', 'Rome']
        """
        from pyspark_paimon.request.polars_source import lazy_frame  # noqa: PLC0415  # as above

        return lazy_frame(self._read())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB, lazily: columns and conditions of the query reach the plan.

        ``connection`` is DuckDB's own unless one is given. Raises ``InvalidArgument`` where DuckDB is not installed.
        """
        try:
            import duckdb  # noqa: PLC0415  # no dependency
        except ImportError as error:
            raise InvalidArgument("to_duckdb needs DuckDB: pip install duckdb") from error
        if connection is not None and not (hasattr(connection, "from_arrow") and hasattr(connection, "sql")):
            raise InvalidArgument(f"to_duckdb: a connection of DuckDB is wanted, not {connection!r:.60}")
        return (duckdb if connection is None else connection).from_arrow(self.to_dataset())


__all__ = ["Readable"]
