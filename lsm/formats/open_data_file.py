"""What readers ask of an open data file: its rows by group and column, and what it says of them before they are decoded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from lsm.parquet.footer import RowGroup
from lsm.parquet.row_group_pages import GroupPages
from manifest.entry.bounds import BoundsColumn
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType


class OpenDataFile(Protocol):
    """An open data file; a context manager. Positions count rows from the file's beginning, whatever the format.

    A format without page indexes answers None wherever pages are asked for, and readers decode whole row groups. Every method
    raises ``CorruptFile`` that names the file where its bytes are not what they must be.
    """

    path: str

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    @property
    def schema(self) -> Any:
        """The Arrow schema of the file's own columns."""

    @property
    def num_rows(self) -> int:
        """Rows of the file."""

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Row groups, stripes or blocks, in order."""

    def bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:
        """What the file says of an atomic column in a group, as plain values of ``data_type``; None if it says nothing."""

    def pages(self, group: RowGroup) -> GroupPages | None:
        """The page indexes of a group; None if there are none."""

    def expect(self, columns: Sequence[str], group: RowGroup, pages: GroupPages | None = None, rows: Any = None) -> None:
        """Tell storage that is far what is read next of a group: the pages at ``rows``, or without ``pages`` whole columns."""

    def page_bounds(self, pages: GroupPages, column: str, data_type: DataType) -> tuple[BoundsColumn, Any] | None:
        """As ``bounds``, of all pages of a column, and where the pages start."""

    def take(self, pages: GroupPages, columns: Sequence[str], rows: Any) -> list[Any | None]:
        """The values of columns at ``rows`` of a group; None for one that can only be read whole."""

    def masked(self, pages: GroupPages, columns: Sequence[str], mask: Any) -> list[Any | None] | None:
        """The values of columns where ``mask`` is true; None where that does not pay."""

    def rows_of_texts(self, pages: Sequence[GroupPages], column: str, texts: Sequence[str]) -> list[Any] | None:
        """Where a column is one of ``texts``, of each group; None if a mere decoder finds that as fast."""

    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """Bytes of ``columns`` in ``groups``, about."""

    def decoded_size(self, columns: Sequence[str], group: RowGroup) -> int:
        """Bytes that columns of a group have decoded, about."""

    def batches(
        self,
        columns: Sequence[str],
        groups: Sequence[RowGroup],
        *,
        nanos: Collection[str] = (),
        dictionaries: Collection[str] = (),
        threads: bool = True,
        batch_bytes: int = ...,
        batch_rows: int = ...,
    ) -> Iterator[Any]:
        """Decode ``columns`` of ascending ``groups`` into record batches of about ``batch_bytes``, and at most ``batch_rows``, in order.

        ``nanos`` are to keep all digits of their timestamps; ``dictionaries`` may come as dictionary arrays.
        """


__all__ = ["OpenDataFile"]
