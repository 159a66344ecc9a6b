"""The indexes of one data file, opened when they are asked, and a record of what each one answered.

An index is advice: whatever is wrong with it (broken bytes, an unknown type, a store that fails) means REMAIN and a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fileindex.base.column_type import ColumnType
from fileindex.base.corrupt import CorruptIndex
from fileindex.base.errors import PaimonError
from fileindex.format.container import ROW_BLOCKS, ContainerEntry, ContainerReader
from fileindex.format.registry import STORED_TYPES, IndexReader
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, FileIndexResult, RowSet

T = TypeVar("T")

MAX_ROWS = 2**31 - 1
"""Row positions are 32 bits; larger files have no index answers."""


@dataclass(slots=True)
class _Answers:
    """Whether an index ever answered 'no row', and whether it ever answered with rows."""

    none: bool = False
    rows: bool = False


class FileIndexes:
    """Asks the indexes of one file.

    Args:
        container: the file's indexes.
        types: the file's columns.
        row_count: the file's rows; an index of another number of rows says nothing.
        notes: gets what was read, used, and could not be used.
    """

    def __init__(self, container: ContainerReader, types: Mapping[str, ColumnType], row_count: int, notes: IndexMetrics) -> None:
        self._container = container
        self._types = types
        self._row_count = row_count
        self._notes = notes
        self._readers: dict[ContainerEntry, IndexReader | None] = {}
        self._answers: dict[ContainerEntry, _Answers] = {}
        self._bytes_before = container.bytes_read

    def of(self, column: ColumnRef) -> tuple[ColumnType, list[ContainerEntry]] | None:
        """The column's type and its indexes, the smallest first and row blocks last; None, and a note, if that cannot be told."""
        try:
            column_type = type_of(column, self._types)
        except PaimonError as error:
            self.warn(str(column), error)
            return None
        try:
            entries = self._container.of_column(str(column))
        except Exception as error:  # noqa: BLE001 - advice: a broken container, or a store that fails, must not stop a read
            self.warn("container", error)
            return None
        return column_type, sorted(entries, key=lambda entry: (entry.index_type == ROW_BLOCKS, entry.length))

    def ask(self, entry: ContainerEntry, column_type: ColumnType, question: Callable[[IndexReader], FileIndexResult]) -> FileIndexResult:
        """What an index says; REMAIN, and a note, if it cannot be read."""
        result = self.told(entry, column_type, question)
        if result is None:
            return REMAIN
        self.note(entry, result)
        return result

    def told(self, entry: ContainerEntry, column_type: ColumnType, question: Callable[[IndexReader], T]) -> T | None:
        """What an index tells of its column; None, and a note, if it cannot be read."""
        use = self._notes.of(entry.column, entry.index_type)
        before = self._container.bytes_read
        try:
            reader = self._reader(entry, column_type)
            if reader is None:
                return None
            result = question(reader)
        except Exception as error:  # noqa: BLE001 - as above: any defect of one index leaves the others
            use.unusable[_reason(error)] += 1
            self.warn(f"{entry.index_type} of '{entry.column}'", error)
            return None
        finally:
            use.bytes += self._container.bytes_read - before
        self._notes.used[f"{entry.column}: {entry.index_type}"] += 1
        return result

    def note(self, entry: ContainerEntry, result: FileIndexResult) -> None:
        """Remember an answer, for the counters of the index."""
        answers = self._answers.setdefault(entry, _Answers())
        answers.none |= not result.remains
        answers.rows |= isinstance(result, RowSet)

    def warn(self, what: str, error: object) -> FileIndexResult:
        """Note that something could not be used; REMAIN."""
        self._notes.warnings[f"{what}: {_reason(error)}"] += 1
        return REMAIN

    def settle(self, result: FileIndexResult) -> FileIndexResult:
        """Count what the indexes did for the file as a whole, given the result for it."""
        self._notes.bytes_read += self._container.bytes_read - self._bytes_before
        some_found_none = any(answers.none for answers in self._answers.values())
        for entry, answers in self._answers.items():
            use = self._notes.of(entry.column, entry.index_type)
            use.files += 1
            if not result.remains:
                use.skipped += answers.none if some_found_none else answers.rows
            elif answers.rows and isinstance(result, RowSet):
                use.rows += len(result.rows)
        return result

    def _reader(self, entry: ContainerEntry, column_type: ColumnType) -> IndexReader | None:
        """The opened index; None from the second time on if it cannot be opened."""
        if entry not in self._readers:
            self._readers[entry] = None
            self._readers[entry] = self._open(entry, column_type)
        return self._readers[entry]

    def _open(self, entry: ContainerEntry, column_type: ColumnType) -> IndexReader:
        index_type = STORED_TYPES.get(entry.index_type)
        if index_type is None:
            raise CorruptIndex(f"index type '{entry.index_type}' is not known here")
        if not index_type.supports(column_type):
            raise CorruptIndex(f"a column of type {column_type.kind} cannot have it")
        reader = index_type.open(self._container.payload(entry), column_type)
        if reader.row_count not in {None, self._row_count}:
            raise CorruptIndex(f"it has {reader.row_count} rows, the file {self._row_count}")
        return reader


def _reason(error: object) -> str:
    return str(error) if isinstance(error, str | PaimonError) else f"{type(error).__name__}: {error}"


__all__ = ["MAX_ROWS", "FileIndexes"]
