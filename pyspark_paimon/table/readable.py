"""Conversions to other libraries, shared by ``Scan`` and ``Table``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_base.errors import InvalidArgument

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from pyspark_paimon.table.dataset import DatasetSource, PaimonDataset

_HEAD_ROWS = 10


class Readable(ABC):
    """Base of objects whose rows other libraries can read.

    A table gives the rows of its newest snapshot at the time of the call.
    """

    @abstractmethod
    def _read(self) -> DatasetSource:
        """Return the scan to read."""

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as an Arrow reader, in bounded memory.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan(columns=["id"]).to_reader().read_all().num_rows
        3
        """
        scan = self._read()
        return pa.RecordBatchReader.from_batches(scan.schema, scan.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as an Arrow C stream (polars, DuckDB)."""
        batches = self.to_reader()
        # A C stream has error texts only. What fails at once, fails here, as a PaimonError.
        first = next(iter(batches), None)
        reader = batches if first is None else pa.RecordBatchReader.from_batches(batches.schema, chain([first], batches))
        return reader.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""
        return self._read().to_batches()

    def head(self, rows: int = _HEAD_ROWS) -> pa.Table:
        """Return the first rows.

        Only files that are needed for these rows are read. The order is arbitrary unless the scan has one.

        Args:
            rows: Number of rows.

        >>> from pyspark_paimon.example import cities
        >>> cities().head(2).num_rows
        2
        """
        if type(rows) is not int or rows < 0:
            raise InvalidArgument(f"head: rows must be a number of rows, 0 or more, not {rows!r}")
        return self._read().limited(rows).to_arrow()

    def to_dataset(self) -> PaimonDataset:
        """Return the rows as a ``pyarrow.dataset.Dataset``.

        Columns and filters passed to the dataset prune files in the same way as in a scan.

        >>> import pyarrow.compute as pc
        >>> from pyspark_paimon.example import cities
        >>> cities().to_dataset().to_table(columns=["city"], filter=pc.field("id") == 1).to_pylist()
        [{'city': 'Oslo'}]
        """
        from pyspark_paimon.table.dataset import PaimonDataset  # noqa: PLC0415  # importing pyarrow.dataset takes 0.3 s

        return PaimonDataset(self._read())

    def to_polars(self, *, dictionaries: bool | Sequence[str] = False) -> pl.DataFrame:
        """Return the rows as a polars DataFrame.

        Args:
            dictionaries: True: return text columns with few distinct values as categoricals. A list: these text columns.

        >>> from pyspark_paimon.example import cities
        >>> cities().scan("id = 1", columns=["city"]).to_polars().item()
        'Oslo'
        """
        import polars as pl  # noqa: PLC0415  # slow import, rarely needed

        return pl.DataFrame(self._read().to_arrow(dictionaries=dictionaries))

    def scan_polars(self) -> pl.LazyFrame:
        """Return the rows as a polars LazyFrame.

        Selections, filters and limits of the frame are planned before anything is read.

        >>> import polars as pl
        >>> from pyspark_paimon.example import cities
        >>> cities().scan_polars().filter(pl.col("id") >= 2).select("city").collect()["city"].to_list()
        ['Lima', 'Rome']
        """
        from pyspark_paimon.request.polars_source import lazy_frame  # noqa: PLC0415  # as above

        return lazy_frame(self._read())

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a lazy DuckDB relation.

        Columns and conditions of the query reach the plan of the scan.

        Args:
            connection: DuckDB connection. None: DuckDB's default connection.

        Raises:
            InvalidArgument: DuckDB is not installed, or the connection is not one of DuckDB.

        >>> from pyspark_paimon.example import cities
        >>> cities().to_duckdb().filter("id = 1").project("city").fetchall()
        [('Oslo',)]
        """
        try:
            import duckdb  # noqa: PLC0415  # optional dependency
        except ImportError as error:
            raise InvalidArgument("to_duckdb needs DuckDB: pip install 'pyspark-paimon[duckdb]'") from error
        if connection is not None and not (hasattr(connection, "from_arrow") and hasattr(connection, "sql")):
            raise InvalidArgument(f"to_duckdb: connection must be a DuckDB connection or None, not {connection!r:.60}")
        return (duckdb if connection is None else connection).from_arrow(self.to_dataset())
