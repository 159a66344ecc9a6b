"""What other libraries read a scan through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, Self

import pyarrow as pa

from manifest.schema.table_schema import TableSchema
from pyspark_paimon.typing import Filter


class ScanSource(Protocol):
    """A scan: its schema, its rows, and narrower scans."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""

    @property
    def table_schema(self) -> TableSchema:
        """Schema of the table, whose columns filters may name."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches."""

    def limited(self, rows: int) -> Self:
        """Return a scan of the first rows."""

    def narrowed(self, filter: Filter) -> Self:  # noqa: A002  # Arrow's word
        """Return a scan with an additional filter.

        Raises ``PaimonError`` for a filter that the planner does not support.
        """

    def projected(self, columns: Sequence[str]) -> Self:
        """Return a scan of these columns."""


__all__ = ["ScanSource"]
