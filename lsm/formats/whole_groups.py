"""Open files of formats without page indexes.

Groups are decoded whole, and cut into batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from lsm.parquet.footer import RowGroup
from lsm.parquet.reader import decoding, rows_only
from lsm.parquet.row_group_pages import GroupPages
from manifest.io.file_cache import FileParts
from manifest.io.file_io import FileIO
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import Plain


class WholeGroupFile(ABC):
    """Base of ``OpenDataFile`` implementations without pages.

    Subclasses read the metadata of a file and decode one group.

    Args:
        file_io: File system of the file.
        path: Path of the file.
    """

    FORMAT: str

    def __init__(self, file_io: FileIO, path: str) -> None:
        self.path = path
        self.parts: FileParts | None = None
        self._file_io = file_io
        self._opened: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Returned batches stay valid."""
        while self._opened:
            self._opened.pop().close()

    @property
    @abstractmethod
    def schema(self) -> Any:
        """See ``OpenDataFile``."""

    @property
    @abstractmethod
    def row_groups(self) -> tuple[RowGroup, ...]:
        """See ``OpenDataFile``."""

    @abstractmethod
    def decode_group(self, columns: Sequence[str], group: RowGroup) -> Any:
        """Decode columns of a group into a record batch.

        Columns are in the order of ``columns``.
        """

    @abstractmethod
    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """See ``OpenDataFile``."""

    @property
    def num_rows(self) -> int:
        """See ``OpenDataFile``."""
        return sum(group.num_rows for group in self.row_groups)

    def bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:  # noqa: ARG002  # most formats have no bounds
        """See ``OpenDataFile``."""
        return None

    def lacks(self, group: RowGroup, column: str, values: tuple[Plain, ...], data_type: DataType, most_bytes: int) -> bool:  # noqa: ARG002
        """Return False: groups have no index of values."""
        return False

    def pages(self, group: RowGroup) -> GroupPages | None:  # noqa: ARG002
        """Return None: there are no page indexes."""
        return None

    def prefetch(self, columns: Sequence[str], group: RowGroup, pages: GroupPages | None = None, rows: Any = None) -> None:  # noqa: ARG002
        """Do nothing: a group is read sequentially."""
        return

    def page_bounds(self, pages: GroupPages, column: str, data_type: DataType) -> None:  # noqa: ARG002
        """Return None: there are no page indexes."""
        return

    def take(self, pages: GroupPages, columns: Sequence[str], rows: Any) -> list[Any | None]:  # noqa: ARG002
        """Return None for all columns: pages cannot be read."""
        return [None] * len(columns)

    def take_masked(self, pages: GroupPages, columns: Sequence[str], mask: Any) -> None:  # noqa: ARG002
        """Return None: pages cannot be read."""
        return

    def rows_of_texts(self, pages: Sequence[GroupPages], column: str, texts: Sequence[str]) -> None:  # noqa: ARG002
        """Return None: pages cannot be read."""
        return

    def has_small_dictionary(self, column: str) -> bool:  # noqa: ARG002
        """Return False: texts are never dictionaries."""
        return False

    def decoded_size(self, columns: Sequence[str], group: RowGroup) -> int:
        """See ``OpenDataFile``."""
        return self.compressed_size(columns, [group])

    def batches(
        self,
        columns: Sequence[str],
        groups: Sequence[RowGroup],
        *,
        nanos: Collection[str] = (),  # noqa: ARG002  # all digits are always kept
        dictionaries: Collection[str] = (),  # noqa: ARG002  # texts are never dictionaries
        threads: bool = True,  # noqa: ARG002
        batch_bytes: int | None = None,
        batch_rows: int | None = None,
    ) -> Iterator[Any]:
        """See ``OpenDataFile``. Memory is one group."""
        most_bytes, most_rows = batch_bytes or thresholds.batch_bytes, batch_rows or thresholds.batch_rows
        for group in groups:
            if not columns:
                yield rows_only(group.num_rows)
                continue
            with self.decoding():
                rows = self.decode_group(columns, group)
                rows.validate(full=True)  # there are no checksums, so texts and offsets may be damaged
            if rows.num_rows != group.num_rows:
                raise CorruptFile(self.path, f"{rows.num_rows} rows were decoded, but the file says {group.num_rows}")
            size = max(1, min(most_rows, most_bytes * rows.num_rows // max(1, rows.nbytes)))
            yield from (rows.slice(start, size) for start in range(0, rows.num_rows, size))

    @cached_property
    def source(self) -> Any:
        """The open file, opened on first use."""
        source = self._file_io.open_input(self.path)
        self._opened.append(source)
        return source

    def read_range(self, offset: int, length: int) -> bytes:
        """Read bytes of the file.

        Raises:
            ValueError: The file is too short.
        """
        data: bytes = self.source.read_at(length, offset) if offset >= 0 and length >= 0 else b""
        if offset < 0 or len(data) != length:
            raise ValueError(f"the file ends before {length} bytes at {offset}")
        return data

    def decoding(self) -> AbstractContextManager[None]:
        """Convert errors of the block to ones naming the file."""
        return decoding(self.path, self.FORMAT)
