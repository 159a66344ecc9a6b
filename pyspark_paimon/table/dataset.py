"""Scans as ``pyarrow.dataset.Dataset``.

DuckDB, polars and Dask pass columns and filters to a dataset, which uses them to plan the scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from paimon_base.errors import InvalidArgument, PaimonError
from pyspark_paimon.request.scan_mode import ScanSource

Columns: TypeAlias = Sequence[str] | Mapping[str, pc.Expression] | None
"""Column names, or expressions by name. None: all columns."""


class DatasetSource(ScanSource, Protocol):
    """Protocol of a scan that a dataset reads."""

    def to_arrow(self, *, dictionaries: bool | Sequence[str] = False) -> pa.Table:
        """Return the rows as one table.

        dictionaries: Text columns to return as dictionaries. True: those with few distinct values.
        """

    def count(self) -> int:
        """Return the number of rows."""


class PaimonDataset(pa.dataset.Dataset):  # type: ignore[misc]  # pyarrow ships no types
    """Dataset of the rows of a scan, returned by ``Scan.to_dataset``.

    A filter that the planner understands prunes files, row groups and rows. Arrow applies any other filter to the rows that
    were read. The class has the part of Arrow's dataset that readers use: schema, scanners, tables and counts.
    """

    def __init__(self, scan: DatasetSource) -> None:  # Arrow's constructor raises, so it is not called
        self._scan = scan

    def __reduce__(self) -> tuple[type[PaimonDataset], tuple[DatasetSource]]:
        return type(self), (self._scan,)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self._scan.schema

    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002  # Arrow's word
        batch_size: int | None = None,
        **_: Any,
    ) -> pa.dataset.Scanner:
        """Return a scanner that can be read once.

        columns: Column names, or expressions by name. None: all columns.
        """
        names = self._scan.schema.names
        scan_columns = list(columns) if columns is not None and not isinstance(columns, Mapping) else names
        for name in scan_columns:
            if name not in names:
                raise InvalidArgument(f"there is no column '{name}'; the scan has: {', '.join(names)}")
        try:
            scan, residual = self._scan.narrowed(filter), None
        except PaimonError:  # the filter uses a function that only Arrow supports
            scan, residual = self._scan, filter
        if residual is None and scan_columns != names:
            scan = scan.projected(scan_columns or names[:1])
        sizes = {} if batch_size is None else {"batch_size": batch_size}
        return pa.dataset.Scanner.from_batches(
            scan.to_batches(),
            schema=scan.schema,
            columns=columns if isinstance(columns, Mapping) else scan_columns,
            filter=residual,
            **sizes,
        )

    def to_table(self, columns: Columns = None, filter: pc.Expression | None = None, batch_size: int | None = None, **_: Any) -> pa.Table:  # noqa: A002  # as above
        """Return the rows as one Arrow table."""
        return self.scanner(columns, filter, batch_size).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002  # as above
        batch_size: int | None = None,
        **_: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""
        batches: Iterator[pa.RecordBatch] = self.scanner(columns, filter, batch_size).to_batches()
        return batches

    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: pc.Expression | None = None,  # noqa: A002  # as above
        batch_size: int | None = None,
        **_: Any,
    ) -> pa.Table:
        """Return the first rows."""
        return self.scanner(columns, filter, batch_size).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **_: Any) -> int:  # noqa: A002  # as above
        """Return the number of rows.

        Files that metadata or indexes can count are not read.
        """
        try:
            return self._scan.narrowed(filter).count()
        except PaimonError:
            return int(self.scanner([], filter).count_rows())
