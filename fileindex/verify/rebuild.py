"""Verifying a stored index: it is built anew from the rows of its file, and both must give the same answers.

Paimon's writers fill a payload in one way for given options, so mostly the bytes are equal and nothing has to be asked. Where they
are not (other options, another order of bodies), both answer the same questions about values that the rows have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from fileindex.base.column_type import ColumnType
from fileindex.base.errors import PaimonError
from fileindex.base.plain_value import from_scalar, plain_array
from fileindex.base.thresholds import thresholds
from fileindex.build.options import IndexSpec
from fileindex.build.writer import FileIndexMaintainer
from fileindex.format.bloom_filter import BloomFilterBuilder, BloomFilterReader, BloomSize
from fileindex.format.container import ROW_BLOCKS, Payload
from fileindex.format.registry import INDEX_TYPES
from fileindex.format.row_blocks import RowBlocksBuilder, RowBlocksReader
from fileindex.predicate.map_entries import map_entries
from fileindex.predicate.tree import ColumnRef, Compare, IsNull, Leaf, Op
from fileindex.rowset.result import FileIndexResult, RowSet

BROKEN_INDEX = (PaimonError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError, pa.ArrowException)
"""What decoding a payload that is not what it should be may raise."""

_RANGES = frozenset({"bsi", "range-bitmap"})
_BITMAP = "bitmap"


class Twin(Protocol):
    """An index built anew. Call order: ``write`` for all rows of the file in order, then ``lie`` once."""

    def write(self, column: Any) -> None:
        """The indexed column (of a map entry: the MAP) of the next rows."""

    def lie(self) -> str | None:
        """What the stored index says that is not so; None if nothing was found."""


def twin_of(column: ColumnRef, index_type: str, payload: Payload | None, column_type: ColumnType, options: Mapping[str, str]) -> Twin:
    """The twin of an index of a known type that the column can have; ``payload`` is None for one that was fed nothing.

    ``options`` are those that it may have been built with. Raises ``CorruptIndex`` for a payload that cannot be opened.

    >>> spec = IndexSpec(ColumnRef("a"), "bitmap")
    >>> maintainer = FileIndexMaintainer(spec.column, ColumnType("INT"), [spec])
    >>> maintainer.write(pa.array([1, 2], pa.int32()))
    >>> stored = Payload.of(maintainer.finish()[0][2])
    >>> twin = twin_of(ColumnRef("a"), "bitmap", stored, ColumnType("INT"), {})
    >>> twin.write(pa.array([1, 3], pa.int32()))
    >>> twin.lie()
    'for a = 3 it finds no row, right is row 1'
    """
    if payload is None:
        return _Nothing(column, column_type)
    if index_type == "bloom-filter":
        return _Bloom(column, payload, column_type)
    if index_type == ROW_BLOCKS:
        return _RowBlocks(column, payload, column_type)
    return _Exact(column, index_type, payload, column_type, options)


def _values(column: ColumnRef, array: Any) -> Any:
    """The column, or the entry of the MAP."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole if column.key is None else map_entries(whole, [column.key])[0]


class _Nothing:
    """The marker of an index that was fed nothing says that no row has a value."""

    def __init__(self, column: ColumnRef, column_type: ColumnType) -> None:
        self._column = column
        self._type = column_type
        self._values = 0

    def write(self, column: Any) -> None:
        values = _values(self._column, column)
        self._values += len(values) - values.null_count

    def lie(self) -> str | None:
        return f"it says that no row has a value, {self._values} have" if self._values else None


class _Bloom:
    """A filter of the same size: each of its bits must be set in the stored one."""

    def __init__(self, column: ColumnRef, payload: Payload, column_type: ColumnType) -> None:
        reader = BloomFilterReader(payload, column_type)
        self._column = column
        self._payload = payload
        self._type = column_type
        self._builder = BloomFilterBuilder(column_type, BloomSize(reader.bits, reader.hashes))

    def write(self, column: Any) -> None:
        self._builder.add(plain_array(_values(self._column, column), self._type))

    def lie(self) -> str | None:
        mine, theirs = (np.frombuffer(data, np.uint8, offset=4) for data in (self._builder.finish(), self._payload.whole()))
        missing = int(np.bitwise_count(mine & ~theirs).sum())
        return f"{missing} bits of values that the file has are not set" if missing else None


class _RowBlocks:
    """Blocks of the same size: each of their bits must be set in the stored ones."""

    def __init__(self, column: ColumnRef, payload: Payload, column_type: ColumnType) -> None:
        reader = RowBlocksReader(payload, column_type)
        self._column = column
        self._payload = payload
        self._type = column_type
        self._builder = RowBlocksBuilder(column_type, reader.block_rows, reader.segments)

    def write(self, column: Any) -> None:
        self._builder.add(plain_array(_values(self._column, column), self._type))

    def lie(self) -> str | None:
        mine, theirs = (np.frombuffer(data, np.uint8) for data in (self._builder.finish(), self._payload.whole()))
        if len(mine) != len(theirs):
            return f"it is of another number of rows than the file's {self._builder.row_count}"
        missing = int(np.bitwise_count(mine & ~theirs).sum())
        return f"{missing} bits of values that its blocks have are not set" if missing else None


class _Exact:
    """An index of the same type, which finds the rows of every value."""

    def __init__(self, column: ColumnRef, index_type: str, payload: Payload, column_type: ColumnType, options: Mapping[str, str]) -> None:
        self._column = column
        self._type = column_type
        self._index_type = index_type
        self._payload = payload
        self._stored = INDEX_TYPES[index_type].open(payload, column_type)
        chosen = {**options, "version": str(payload.read(0, 1)[0])} if index_type == _BITMAP else dict(options)
        self._maintainer = FileIndexMaintainer(column, column_type, [IndexSpec(column, index_type, chosen)])
        self._asked: Any = None

    def write(self, column: Any) -> None:
        values = _values(self._column, column)
        self._maintainer.write(values)
        known = pc.unique(values).drop_null() if not pa.types.is_dictionary(values.type) else values.dictionary
        merged = known if self._asked is None else pc.unique(pa.concat_arrays([self._asked, known.cast(self._asked.type)]))
        if len(merged) > thresholds().asked_values:
            merged = merged.take(pa.array(np.linspace(0, len(merged) - 1, thresholds().asked_values).astype(np.int64)))
        self._asked = merged

    def lie(self) -> str | None:
        built = self._maintainer.finish()
        if not built:
            return f"it cannot hold what the file has: {'; '.join(self._maintainer.omitted)}"
        if built[0][2] == self._payload.whole():
            return None
        right = INDEX_TYPES[self._index_type].open(Payload.of(built[0][2]), self._type)
        for leaf in self._questions():
            wanted = _rows(right.evaluate(leaf))
            found = _rows(self._stored.evaluate(leaf))
            if wanted is not None and found is not None and wanted != found:
                return f"for {_shown(leaf)} it finds {_some(found)}, right is {_some(wanted)}"
        return None

    def _questions(self) -> Iterator[Leaf]:
        yield IsNull(self._column)
        yield IsNull(self._column, negated=True)
        for scalar in self._asked if self._asked is not None else ():
            value = from_scalar(scalar, self._type)
            yield Compare(self._column, Op.EQ, value)
            if self._index_type in _RANGES:
                yield Compare(self._column, Op.LT, value)
                yield Compare(self._column, Op.GE, value)


def _rows(result: FileIndexResult) -> BitMap | None:
    """The rows of an answer; None if it says nothing."""
    if isinstance(result, RowSet):
        return result.rows
    return None if result.remains else BitMap()


def _some(rows: BitMap) -> str:
    if not rows:
        return "no row"
    shown = ", ".join(map(str, rows[:3]))
    return f"row{'s' if len(rows) > 1 else ''} {shown}{f' and {len(rows) - 3} more' if len(rows) > 3 else ''}"


def _shown(leaf: Leaf) -> str:
    match leaf:
        case Compare(column, op, value):
            return f"{column} {op} {value!r}"
        case IsNull(column, negated):
            return f"{column} IS {'NOT ' if negated else ''}NULL"
    return str(leaf)


__all__ = ["BROKEN_INDEX", "Twin", "twin_of"]
