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
        """The rows, a batch at a time."""

    def limited(self, rows: int) -> Self:
        """The first rows."""

    def narrowed(self, filter: Filter) -> Self:  # noqa: A002  # Arrow's word
        """The rows for which a filter is true, too. Raises ``PaimonError`` for one that the planner does not understand."""

    def projected(self, columns: Sequence[str]) -> Self:
        """These of its columns."""


__all__ = ["ScanSource"]
