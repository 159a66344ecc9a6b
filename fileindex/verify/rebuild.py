"""Verification of a stored index against its file's rows.

The index is rebuilt from the rows, and both must give the same answers. For given options Paimon's writers produce only one payload,
so the bytes are mostly equal. If they differ (other options, another order of bodies), both answer the same queries about values of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from fileindex.build.options import IndexSpec
from fileindex.build.writer import FileIndexMaintainer
from fileindex.format.block_lines import missing_bits
from fileindex.format.bloom_filter import BloomFilterBuilder, BloomFilterReader, BloomSize
from fileindex.format.container import NGRAMS, ROW_BLOCKS, Payload
from fileindex.format.ngram_filter import NgramFilterBuilder, NgramFilterReader
from fileindex.format.registry import INDEX_TYPES
from fileindex.format.row_blocks import RowBlocksBuilder, RowBlocksReader
from fileindex.predicate.tree import ColumnRef, Compare, IsNull, Leaf, Op
from fileindex.rowset.result import FileIndexResult, RowSet
from paimon_base.errors import PaimonError
from paimon_base.thresholds import thresholds
from sparkexpr.expression.nested import column_part
from sparkexpr.values.column_type import ColumnType
from sparkexpr.values.plain_value import from_scalar, plain_array

BROKEN_INDEX = (PaimonError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError, pa.ArrowException)
"""Errors that decoding a malformed payload may raise."""

_RANGES = frozenset({"bsi", "range-bitmap"})
_BITMAP = "bitmap"


class RebuiltIndex(Protocol):
    """A rebuilt index.

    Call ``write`` for all rows of the file in order, then ``mismatch`` once.
    """

    def write(self, column: Any) -> None:
        """Add the indexed column of the next rows.

        For a map entry, the MAP column.
        """

    def mismatch(self) -> str | None:
        """Return a wrong answer of the stored index, or None."""


def rebuild_index(
    column: ColumnRef, index_type: str, payload: Payload | None, column_type: ColumnType, options: Mapping[str, str]
) -> RebuiltIndex:
    """Return a builder that verifies an index.

    The type must be known and fit the column. Raises ``CorruptIndex`` for a payload that cannot be opened.

    Args:
        column: Indexed column or map entry.
        index_type: Name of the type in the container.
        payload: The stored index. None for an index that was built from no values.
        column_type: Type of the column.
        options: Options that it may have been built with.

    >>> spec = IndexSpec(ColumnRef("a"), "bitmap")
    >>> maintainer = FileIndexMaintainer(spec.column, ColumnType("INT"), [spec])
    >>> maintainer.write(pa.array([1, 2], pa.int32()))
    >>> stored = Payload.of(maintainer.finish()[0][2])
    >>> rebuilt = rebuild_index(ColumnRef("a"), "bitmap", stored, ColumnType("INT"), {})
    >>> rebuilt.write(pa.array([1, 3], pa.int32()))
    >>> rebuilt.mismatch()
    'for a = 3 it finds no row, expected row 1'
    """
    if payload is None:
        return _Empty(column, column_type)
    if index_type == "bloom-filter":
        return _Bloom(column, payload, column_type)
    if index_type in {ROW_BLOCKS, NGRAMS}:
        return _Blocks(column, payload, column_type, _same_row_blocks if index_type == ROW_BLOCKS else _same_ngrams)
    return _Exact(column, index_type, payload, column_type, options)


def _values(column: ColumnRef, array: Any) -> Any:
    """Return the column, or the entry of the MAP."""
    combined = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return column_part(combined, column.key)


class _Empty:
    """Marker of an empty index: no row has a value."""

    def __init__(self, column: ColumnRef, column_type: ColumnType) -> None:
        self._column = column
        self._type = column_type
        self._values = 0

    def write(self, column: Any) -> None:
        values = _values(self._column, column)
        self._values += len(values) - values.null_count

    def mismatch(self) -> str | None:
        return f"it states that no row has a value, but {self._values} have" if self._values else None


class _Bloom:
    """A filter of the same size.

    The stored filter must have all of its bits set.
    """

    def __init__(self, column: ColumnRef, payload: Payload, column_type: ColumnType) -> None:
        reader = BloomFilterReader(payload, column_type)
        self._column = column
        self._payload = payload
        self._type = column_type
        self._builder = BloomFilterBuilder(column_type, BloomSize(reader.bits, reader.hashes))

    def write(self, column: Any) -> None:
        self._builder.add(plain_array(_values(self._column, column), self._type))

    def mismatch(self) -> str | None:
        mine, theirs = (np.frombuffer(data, np.uint8, offset=4) for data in (self._builder.finish(), self._payload.whole()))
        missing = int(np.bitwise_count(mine & ~theirs).sum())
        return f"{missing} bits of values of the file are not set" if missing else None


def _same_row_blocks(payload: Payload, column_type: ColumnType) -> RowBlocksBuilder:
    reader = RowBlocksReader(payload, column_type)
    return RowBlocksBuilder(column_type, reader.block_rows, reader.segments)


def _same_ngrams(payload: Payload, column_type: ColumnType) -> NgramFilterBuilder:
    reader = NgramFilterReader(payload, column_type)
    return NgramFilterBuilder(reader.size, reader.fpp, reader.block_rows, reader.segments)


class _Blocks:
    """Filters of blocks of rows, of the same size.

    The stored filters must have all of their bits set.
    """

    def __init__(
        self,
        column: ColumnRef,
        payload: Payload,
        column_type: ColumnType,
        same: Callable[[Payload, ColumnType], RowBlocksBuilder | NgramFilterBuilder],
    ) -> None:
        self._column = column
        self._payload = payload
        self._type = column_type
        self._builder = same(payload, column_type)

    def write(self, column: Any) -> None:
        self._builder.add(plain_array(_values(self._column, column), self._type))

    def mismatch(self) -> str | None:
        mine, theirs = self._builder.finish(), self._payload.whole()
        if len(mine) != len(theirs):
            return f"it has another number of rows than the file ({self._builder.row_count})"
        missing = missing_bits(mine, theirs)
        return f"{missing} bits of values of its blocks are not set" if missing else None


class _Exact:
    """An index that finds the rows of every value."""

    def __init__(self, column: ColumnRef, index_type: str, payload: Payload, column_type: ColumnType, options: Mapping[str, str]) -> None:
        self._column = column
        self._type = column_type
        self._index_type = index_type
        self._payload = payload
        self._stored = INDEX_TYPES[index_type].open(payload, column_type)
        build_options = {**options, "version": str(payload.read(0, 1)[0])} if index_type == _BITMAP else dict(options)
        self._maintainer = FileIndexMaintainer(column, column_type, [IndexSpec(column, index_type, build_options)])
        self._compared: Any = None

    def write(self, column: Any) -> None:
        values = _values(self._column, column)
        self._maintainer.write(values)
        distinct = pc.unique(values).drop_null() if not pa.types.is_dictionary(values.type) else values.dictionary
        merged = distinct if self._compared is None else pc.unique(pa.concat_arrays([self._compared, distinct.cast(self._compared.type)]))
        if len(merged) > thresholds.compared_values:
            merged = merged.take(pa.array(np.linspace(0, len(merged) - 1, thresholds.compared_values).astype(np.int64)))
        self._compared = merged

    def mismatch(self) -> str | None:
        built = self._maintainer.finish()
        if not built:
            return f"it cannot hold the file's values: {'; '.join(self._maintainer.omitted)}"
        if built[0][2] == self._payload.whole():
            return None
        right = INDEX_TYPES[self._index_type].open(Payload.of(built[0][2]), self._type)
        for leaf in self._questions():
            expected_rows = _rows(right.evaluate(leaf))
            stored_rows = _rows(self._stored.evaluate(leaf))
            if expected_rows is not None and stored_rows is not None and expected_rows != stored_rows:
                return f"for {_leaf_text(leaf)} it finds {_rows_text(stored_rows)}, expected {_rows_text(expected_rows)}"
        return None

    def _questions(self) -> Iterator[Leaf]:
        yield IsNull(self._column)
        yield IsNull(self._column, negated=True)
        for scalar in self._compared if self._compared is not None else ():
            value = from_scalar(scalar, self._type)
            yield Compare(self._column, Op.EQ, value)
            if self._index_type in _RANGES:
                yield Compare(self._column, Op.LT, value)
                yield Compare(self._column, Op.GE, value)


def _rows(result: FileIndexResult) -> BitMap | None:
    """Return the rows of an answer, or None if unknown."""
    if isinstance(result, RowSet):
        return result.rows
    return None if result.remains else BitMap()


def _rows_text(rows: BitMap) -> str:
    if not rows:
        return "no row"
    shown = ", ".join(map(str, rows[:3]))
    return f"row{'s' if len(rows) > 1 else ''} {shown}{f' and {len(rows) - 3} more' if len(rows) > 3 else ''}"


def _leaf_text(leaf: Leaf) -> str:
    match leaf:
        case Compare(column, op, value):
            return f"{column} {op} {value!r}"
        case IsNull(column, negated):
            return f"{column} IS {'NOT ' if negated else ''}NULL"
    return str(leaf)
