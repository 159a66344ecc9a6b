"""What the index container of a file says about a predicate. An index is advice: whatever is wrong with it means REMAIN and a note."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from fileindex.column_type import ColumnType, Plain
from fileindex.container import ContainerReader, IndexEntry
from fileindex.corrupt import CorruptIndex
from fileindex.errors import PaimonError
from fileindex.plain import is_plain
from fileindex.predicate import And, Compare, In, IsNull, Leaf, Op, Or, Predicate, StartsWith
from fileindex.registry import INDEX_TYPES, IndexReader
from fileindex.result import REMAIN, SKIP, FileIndexResult
from fileindex.row_filter import type_of

MAX_ROWS = 2**31 - 1
"""Row positions are 32 bits; larger files have no index answers."""


@dataclass(slots=True)
class IndexNotes:
    """What evaluating the indexes of any number of files came upon: for explain and for warnings.

    Attributes:
        warnings: how often an index could not be used, by reason.
        used: how often an index was asked, by ``column: index type``.
        bytes_read: bytes of containers that were fetched.
    """

    warnings: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0

    def merge(self, other: IndexNotes) -> None:
        """Add what another has counted.

        >>> notes = IndexNotes(bytes_read=1)
        >>> notes.merge(IndexNotes(bytes_read=2))
        >>> notes.bytes_read
        3
        """
        self.warnings.update(other.warnings)
        self.used.update(other.used)
        self.bytes_read += other.bytes_read


def evaluate(
    predicate: Predicate, container: ContainerReader, types: Mapping[str, ColumnType], row_count: int, notes: IndexNotes
) -> FileIndexResult:
    """The result for a whole file, never an exception.

    Args:
        predicate: on the data file's columns, with literals of their types.
        container: the file's indexes.
        types: the data file's columns.
        row_count: the data file's rows; an index of another number of rows says nothing.
        notes: gets what was read, used, and could not be used.

    >>> from fileindex.predicate import ColumnRef
    >>> notes = IndexNotes()
    >>> evaluate(Compare(ColumnRef("a"), Op.EQ, 1), ContainerReader.of(b"nonsense"), {"a": ColumnType("INT")}, 3, notes)
    <Verdict.REMAIN: 'remain'>
    >>> notes.warnings.total()
    1
    """
    if row_count > MAX_ROWS:
        return REMAIN
    before = container.bytes_read
    result = _Evaluation(container, types, row_count, notes).tree(predicate)
    notes.bytes_read += container.bytes_read - before
    return result


class _Evaluation:
    def __init__(self, container: ContainerReader, types: Mapping[str, ColumnType], row_count: int, notes: IndexNotes) -> None:
        self._container = container
        self._types = types
        self._row_count = row_count
        self._notes = notes
        self._readers: dict[IndexEntry, IndexReader | None] = {}

    def tree(self, predicate: Predicate) -> FileIndexResult:
        match predicate:
            case And(children):
                result: FileIndexResult = REMAIN
                for number, child in enumerate(children):
                    found = self.tree(child)
                    result = result.and_(found) if number else found
                    if not result.remains:
                        return SKIP
                return result
            case Or(children):
                result = SKIP
                for child in children:
                    result = result.or_(self.tree(child))
                    if result is REMAIN:
                        return result
                return result
            case leaf:
                return self._leaf(leaf)

    def _leaf(self, leaf: Leaf) -> FileIndexResult:
        """All indexes of the column together; an exact answer needs no second opinion."""
        try:
            column_type = type_of(leaf.column, self._types)
            entries = self._container.of_column(str(leaf.column))
        except Exception as error:  # noqa: BLE001 - advice: a broken container, or a store that fails, must not stop a read
            return self._warn("container", error)
        if not entries:
            return REMAIN
        if not all(is_plain(value, column_type) and value is not None for value in _literals(leaf)):
            return self._warn(str(leaf.column), f"a literal is not of type {column_type.kind}")
        result: FileIndexResult = REMAIN
        for entry in sorted(entries, key=lambda entry: entry.length):
            try:
                found = self._ask(entry, leaf, column_type)
            except Exception as error:  # noqa: BLE001 - as above: any defect of one index leaves the others
                found = self._warn(f"{entry.index_type} of '{entry.column}'", error)
            if not found.remains:
                return SKIP
            if found.exact:
                return found
            result = result.and_(found)
        return result

    def _ask(self, entry: IndexEntry, leaf: Leaf, column_type: ColumnType) -> FileIndexResult:
        if entry.is_empty:
            return _empty(leaf)
        if entry not in self._readers:
            self._readers[entry] = None
            self._readers[entry] = self._open(entry, column_type)
        reader = self._readers[entry]
        if reader is None:
            return REMAIN
        self._notes.used[f"{entry.column}: {entry.index_type}"] += 1
        return reader.evaluate(leaf)

    def _open(self, entry: IndexEntry, column_type: ColumnType) -> IndexReader:
        index_type = INDEX_TYPES.get(entry.index_type)
        if index_type is None:
            raise CorruptIndex(f"index type '{entry.index_type}' is not known here")
        if not index_type.supports(column_type):
            raise CorruptIndex(f"a column of type {column_type.kind} cannot have it")
        reader = index_type.open(self._container.payload(entry), column_type)
        if reader.row_count not in {None, self._row_count}:
            raise CorruptIndex(f"it has {reader.row_count} rows, the file {self._row_count}")
        return reader

    def _warn(self, what: str, error: object) -> FileIndexResult:
        kind = "" if isinstance(error, str | PaimonError) else f"{type(error).__name__}: "
        self._notes.warnings[f"{what}: {kind}{error}"] += 1
        return REMAIN


def _literals(leaf: Leaf) -> tuple[Plain, ...]:
    match leaf:
        case Compare(_, _, value):
            return (value,)
        case In(_, values, _):
            return values
        case StartsWith(_, prefix, _):
            return (prefix,)
        case IsNull():
            return ()


def _empty(leaf: Leaf) -> FileIndexResult:
    """An index that was fed nothing: no row has a value."""
    match leaf:
        case Compare(_, Op.NE, _) | In(_, _, True) | IsNull(_, False):
            return REMAIN
        case _:
            return SKIP
