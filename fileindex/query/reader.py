"""The opened indexes of one data file.

They are opened at first use, and their answers are recorded.
An index that cannot be used (malformed bytes, an unknown type, a failing store) means REMAIN and a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from fileindex.format.container import OWN_SUFFIXES, ContainerEntry, ContainerReader
from fileindex.format.registry import STORED_TYPES, IndexReader
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.tree import ColumnRef
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, FileIndexResult, RowSet
from paimon_base.errors import CorruptIndex, PaimonError
from sparkexpr.values.column_type import ColumnType

T = TypeVar("T")

MAX_ROWS = 2**31 - 1
"""Row positions have 32 bits: the indexes of larger files are ignored."""


@dataclass(slots=True)
class _Answers:
    """Kinds of answers that an index has given.

    ``none``: that no row matches. ``rows``: a set of rows.
    """

    none: bool = False
    rows: bool = False


class FileIndexes:
    """The indexes of one file.

    Args:
        container: The file's indexes.
        types: The file's columns.
        row_count: The file's rows. An index of another number of rows is ignored.
        notes: Receives what was read, used, and could not be used.
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
        """Return the column's type and its indexes.

        The smallest comes first, those that find blocks of rows last. None, and a warning, on an error.
        """
        try:
            column_type = type_of(column, self._types)
        except PaimonError as error:
            self.warn(str(column), error)
            return None
        try:
            entries = self._container.of_column(str(column))
        except Exception as error:  # noqa: BLE001 - a malformed container or a failing store must not fail the read
            self.warn("container", error)
            return None
        return column_type, sorted(entries, key=lambda entry: (entry.index_type in OWN_SUFFIXES, entry.length))

    def evaluate(
        self, entry: ContainerEntry, column_type: ColumnType, question: Callable[[IndexReader], FileIndexResult]
    ) -> FileIndexResult:
        """Return and record the answer of an index.

        REMAIN, and a warning, if it cannot be read.
        """
        result = self.query(entry, column_type, question)
        if result is None:
            return REMAIN
        self.record_answer(entry, result)
        return result

    def query(self, entry: ContainerEntry, column_type: ColumnType, question: Callable[[IndexReader], T]) -> T | None:
        """Call ``question`` with the reader of an index.

        None, and a warning, if it cannot be read.
        """
        use = self._notes.of(entry.column, entry.index_type)
        before = self._container.bytes_read
        try:
            reader = self._reader(entry, column_type)
            if reader is None:
                return None
            result = question(reader)
        except Exception as error:  # noqa: BLE001 - as above: a defect of one index must not affect the others
            use.unusable[_reason(error)] += 1
            self.warn(f"{entry.index_type} of '{entry.column}'", error)
            return None
        finally:
            use.bytes += self._container.bytes_read - before
        self._notes.used[f"{entry.column}: {entry.index_type}"] += 1
        return result

    def record_answer(self, entry: ContainerEntry, result: FileIndexResult) -> None:
        """Record an answer for the counters of the index."""
        answers = self._answers.setdefault(entry, _Answers())
        answers.none |= not result.remains
        answers.rows |= isinstance(result, RowSet)

    def warn(self, what: str, error: object) -> FileIndexResult:
        """Count a warning and return REMAIN."""
        self._notes.warnings[f"{what}: {_reason(error)}"] += 1
        return REMAIN

    def record_usage(self, result: FileIndexResult) -> FileIndexResult:
        """Count the effect of each index on the file's result."""
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
        """Return the opened index.

        Raises if it cannot be opened, then returns None from the second call on.
        """
        if entry not in self._readers:
            self._readers[entry] = None
            self._readers[entry] = self._open(entry, column_type)
        return self._readers[entry]

    def _open(self, entry: ContainerEntry, column_type: ColumnType) -> IndexReader:
        index_type = STORED_TYPES.get(entry.index_type)
        if index_type is None:
            raise CorruptIndex(f"index type '{entry.index_type}' is not supported")
        if not index_type.supports(column_type):
            raise CorruptIndex(f"a column of type {column_type.kind} cannot have this index")
        reader = index_type.open(self._container.payload(entry), column_type)
        if reader.row_count not in {None, self._row_count}:
            raise CorruptIndex(f"it has {reader.row_count} rows, the file {self._row_count}")
        return reader


def _reason(error: object) -> str:
    return str(error) if isinstance(error, str | PaimonError) else f"{type(error).__name__}: {error}"
