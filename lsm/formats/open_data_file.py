"""Interface of an open data file, for all formats."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from lsm.parquet.footer import RowGroup
from lsm.parquet.row_group_pages import GroupPages
from manifest.entry.bounds import BoundsColumn
from manifest.io.file_cache import FileParts
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from sparkexpr.values.column_type import Plain


class OpenDataFile(Protocol):
    """An open data file; a context manager.

    Positions count rows from the beginning of the file. A format without page indexes returns None for pages, and readers
    decode whole row groups. Every method raises ``CorruptFile`` for damaged bytes; the error names the file.
    """

    path: str
    parts: FileParts | None
    """Cache of decoded parts of the file. None: nothing of it is cached, or a part costs as much as all of them."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    @property
    def schema(self) -> Any:
        """Arrow schema of the file's columns."""

    @property
    def num_rows(self) -> int:
        """Number of rows of the file."""

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Row groups, stripes or blocks, in order."""

    def bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:
        """Return the bounds of an atomic column in a group.

        Bounds are plain values of ``data_type``. None: unknown.
        """

    def lacks(self, group: RowGroup, column: str, values: tuple[Plain, ...], data_type: DataType, most_bytes: int) -> bool:
        """Return whether a group has none of ``values`` for certain.

        Reads at most ``most_bytes`` of each index of the group. A damaged one raises ``CorruptIndex``.
        """

    def pages(self, group: RowGroup) -> GroupPages | None:
        """Return the page indexes of a group, or None."""

    def prefetch(self, columns: Sequence[str], group: RowGroup, pages: GroupPages | None = None, rows: Any = None) -> None:
        """Prefetch the next read of a group.

        Only for remote storage. The pages at ``rows``, or whole columns without ``pages``.
        """

    def page_bounds(self, pages: GroupPages, column: str, data_type: DataType) -> tuple[BoundsColumn, Any] | None:
        """Return the bounds of a column's pages, and their starts."""

    def take(self, pages: GroupPages, columns: Sequence[str], rows: Any) -> list[Any | None]:
        """Return the values of columns at ``rows`` of a group.

        None for a column without page access.
        """

    def take_masked(self, pages: GroupPages, columns: Sequence[str], mask: Any) -> list[Any | None] | None:
        """Return the values of columns where ``mask`` is True.

        None: another method is faster.
        """

    def rows_of_texts(self, pages: Sequence[GroupPages], column: str, texts: Sequence[str]) -> list[Any] | None:
        """Return the positions of ``texts`` in each group.

        None: plain decoding is as fast.
        """

    def has_small_dictionary(self, column: str) -> bool:
        """Return whether a text column is decoded into dictionary arrays, where these are allowed."""

    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """Return the approximate bytes of ``columns`` in ``groups``."""

    def decoded_size(self, columns: Sequence[str], group: RowGroup) -> int:
        """Return the approximate decoded bytes of columns in a group."""

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
        """Yield record batches of ``columns`` of ascending ``groups``, in order.

        Batches have about ``batch_bytes`` and at most ``batch_rows``. Columns in ``nanos`` keep all digits of their timestamps. Columns in
        ``dictionaries`` may be dictionary arrays.
        """
