"""Files of planned splits, created on access.

Most callers of a large plan need few files: a file object costs several times its decoded entry. Files of adjacent splits are created together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from manifest.entry.columns import EntryColumns
from manifest.entry.data_file import DataFileMeta


class FileBatch:
    """Files of adjacent splits. Thread-safe.

    ``entries`` returns their entries.
    """

    __slots__ = ("_entries", "_files")

    def __init__(self, entries: Callable[[], EntryColumns]) -> None:
        self._entries: Callable[[], EntryColumns] | None = entries
        self._files: tuple[DataFileMeta, ...] = ()

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files as objects. Raises ``CorruptFile``."""
        entries = self._entries
        if entries is not None:
            self._files = tuple(entries().files())
            self._entries = None  # releases the entries of the plan, after the files are here for concurrent readers
        return self._files


class PlannedFiles(Sequence[DataFileMeta]):
    """Files of a split, created on access. Equal to a tuple.

    Accessing an invalid file raises ``CorruptFile``. A copy is a tuple.
    """

    __slots__ = ("_batch", "_first", "_last", "file_size", "row_count")

    def __init__(self, batch: FileBatch, first: int, last: int, row_count: int, file_size: int) -> None:
        self._batch = batch
        self._first = first
        self._last = last
        self.row_count = row_count
        self.file_size = file_size

    @property
    def _files(self) -> tuple[DataFileMeta, ...]:
        return self._batch.files[self._first : self._last]

    def __len__(self) -> int:
        return self._last - self._first

    @overload
    def __getitem__(self, index: int) -> DataFileMeta: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[DataFileMeta, ...]: ...

    def __getitem__(self, index: int | slice) -> DataFileMeta | tuple[DataFileMeta, ...]:
        return self._files[index]

    def __iter__(self) -> Iterator[DataFileMeta]:
        return iter(self._files)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlannedFiles | tuple):
            return NotImplemented
        return len(self) == len(other) and self._files == tuple(other)

    def __hash__(self) -> int:
        return hash(self._files)

    def __repr__(self) -> str:
        return repr(self._files)

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (self._files,)
