"""Decoded columns of a row group in as few bytes as their values need.

Integers, dates, times and decimals are differences of 1, 2 or 4 bytes to a base, repeated texts are codes of a dictionary. Other values of fixed
width keep their bytes, so floats are exact to the bit. Filters compare codes and differences, not values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import And, Compare, ComputedPredicate, In, IsNull, Leaf, Op, Or, Predicate
from manifest.stats.column_stats import ColumnBounds
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import AnyArray, Int64s, Mask, UInt8s, arrow_array, numpy_array
from sparkexpr.values.column_type import ColumnType

_WIDTHS = (np.uint8, np.uint16, np.uint32)
_COMPARE = {Op.EQ: np.equal, Op.NE: np.not_equal, Op.LT: np.less, Op.LE: np.less_equal, Op.GT: np.greater, Op.GE: np.greater_equal}
_SMALLER, _GREATER = frozenset({Op.LT, Op.LE, Op.NE}), frozenset({Op.GT, Op.GE, Op.NE})
"""Operators that hold for a smaller, and for a greater value."""
_OBJECT_BYTES = 500
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class NarrowColumn:
    """Decoded values of a row group's column.

    Args:
        arrow_type: Arrow type of the values.
        words: A number for each row, or two for each row of wide decimals.
        base: Added to a word, it gives the value. None: words are the bytes of values, or codes.
        dictionary: Values by code. None: words are no codes.
        valid: Bitmap of rows that are not null. None: there is no null.
    """

    arrow_type: Any
    words: AnyArray
    base: int | None
    dictionary: Any | None
    valid: UInt8s | None

    @classmethod
    def of(cls, arrays: Sequence[Any]) -> NarrowColumn | None:
        """Return the column of decoded arrays, in order.

        None: the type is not supported, or the dictionary is large. Codes must be in their dictionaries.
        """
        arrays = [array for array in arrays if len(array)]
        if not arrays or not is_narrowable(arrays[0].type):
            return None
        bitmap = _valid_rows(arrays)
        valid = None if bitmap is None else np.packbits(bitmap, bitorder="little")
        arrow_type = arrays[0].type
        if pa.types.is_dictionary(arrow_type):
            return cls._coded(arrays, bitmap, valid)
        if pa.types.is_decimal128(arrow_type):
            words = np.concatenate([_words(array, np.dtype("(2,)i8")) for array in arrays])
            if bitmap is not None:
                words[~bitmap] = 0
            if (words[:, 1] != words[:, 0] >> 63).any():  # beyond 64 bits
                return cls(arrow_type, words, None, None, valid)
            return cls._narrowed(arrow_type, words[:, 0], bitmap, valid)
        if pa.types.is_boolean(arrow_type):
            arrays = [array.cast(pa.int8()) for array in arrays]
        kind = np.dtype(f"{'u' if pa.types.is_floating(arrow_type) else 'i'}{arrays[0].type.bit_width // 8}")
        words = np.concatenate([_words(array, kind) for array in arrays])
        if pa.types.is_floating(arrow_type):
            return cls(arrow_type, words, None, None, valid)
        return cls._narrowed(arrow_type, words, bitmap, valid)

    @classmethod
    def _coded(cls, arrays: Sequence[Any], bitmap: Mask | None, valid: UInt8s | None) -> NarrowColumn | None:
        column = pa.chunked_array(arrays).unify_dictionaries()
        dictionary = column.chunk(0).dictionary
        width = _width(max(0, len(dictionary) - 1))
        if width is None or not len(dictionary):
            return None
        codes = np.concatenate([_words(chunk.indices, np.dtype(np.int32)) for chunk in column.chunks])
        if bitmap is not None:
            codes[~bitmap] = 0
        return cls(arrays[0].type.value_type, codes.astype(width), None, dictionary, valid)

    @classmethod
    def _narrowed(cls, arrow_type: Any, numbers: AnyArray, bitmap: Mask | None, valid: UInt8s | None) -> NarrowColumn:
        if bitmap is not None:
            numbers[~bitmap] = numbers[np.argmax(bitmap)]  # what stands at nulls must not widen the range
        low, high = int(numbers.min()), int(numbers.max())
        width = _width(high - low)
        if width is None:
            return cls(arrow_type, np.ascontiguousarray(numbers), 0, None, valid)
        words = np.empty(len(numbers), width)
        np.subtract(numbers, numbers.dtype.type(low), out=words, casting="unsafe")
        return cls(arrow_type, words, low, None, valid)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        parts = (self.words, self.valid, self.dictionary)
        return _OBJECT_BYTES + sum(int(part.nbytes) for part in parts if part is not None)

    def take(self, rows: Int64s) -> Any:
        """Return the values at positions of the row group.

        An array of the decoder's type, a dictionary array for texts.
        """
        words = self.words[rows]
        valid = None if self.valid is None else (self.valid[rows >> 3] >> (rows & 7) & 1).astype(np.bool_)
        if self.dictionary is not None:
            return pa.DictionaryArray.from_arrays(arrow_array(words.astype(np.int32), valid), self.dictionary, safe=False)
        return self._array(words, None if valid is None else np.packbits(valid, bitorder="little"))

    def _array(self, words: AnyArray, valid: UInt8s | None) -> Any:
        """Return words as values. ``valid`` is their bitmap."""
        kind = self.arrow_type
        if self.base is None:
            numbers = words
        elif pa.types.is_decimal128(kind):
            numbers = np.empty((len(words), 2), np.int64)
            np.add(words, self.base, out=numbers[:, 0], casting="unsafe", dtype=np.int64)
            np.right_shift(numbers[:, 0], 63, out=numbers[:, 1])
        elif pa.types.is_boolean(kind):
            numbers = np.packbits(words + np.uint8(self.base), bitorder="little")
        else:
            numbers = words.astype(np.dtype(f"i{kind.bit_width // 8}"))
            numbers += numbers.dtype.type(self.base)
        return pa.Array.from_buffers(kind, len(words), [None if valid is None else pa.py_buffer(valid), pa.py_buffer(numbers)])

    def matching(self, leaf: Leaf, types: Mapping[str, ColumnType]) -> Mask | None:
        """Return which rows satisfy a condition on this column.

        None: only values show it.

        Args:
            leaf: The condition.
            types: Types of the file's columns.
        """
        if leaf.column.key is not None:
            return None
        bitmap = self._bitmap
        if isinstance(leaf, IsNull):
            present = np.ones(len(self.words), np.bool_) if bitmap is None else bitmap
            return present if leaf.negated else ~present
        matches = self._compare(leaf, types[leaf.column.name])
        if matches is None:
            matches = self._evaluate(leaf, types)
        return matches if matches is None or bitmap is None else matches & bitmap

    @property
    def _bitmap(self) -> Mask | None:
        return None if self.valid is None else np.unpackbits(self.valid, count=len(self.words), bitorder="little").view(np.bool_)

    def _compare(self, leaf: Leaf, column_type: ColumnType) -> Mask | None:
        """Compare differences with those of literals. None: words are no differences."""
        if self.base is None or column_type.arrow != self.arrow_type or not isinstance(leaf, Compare | In):
            return None
        base, most = self.base, np.iinfo(self.words.dtype)
        if isinstance(leaf, Compare):
            if not isinstance(leaf.value, int):
                return None
            word = leaf.value - base
            if most.min <= word <= most.max:
                matches: Mask = _COMPARE[leaf.op](self.words, self.words.dtype.type(word))
                return matches
            return np.full(len(self.words), leaf.op in (_SMALLER if word > most.max else _GREATER))
        if len(leaf.values) > thresholds.listed_values or not all(isinstance(value, int) for value in leaf.values):
            return None
        words = [value - base for value in leaf.values if isinstance(value, int) and most.min <= value - base <= most.max]
        return np.isin(self.words, np.array(words, self.words.dtype), invert=leaf.negated)

    def _evaluate(self, leaf: Leaf, types: Mapping[str, ColumnType]) -> Mask | None:
        """Evaluate a condition once for each entry of the dictionary, or on the stored bytes."""
        if self.dictionary is None:
            if self.base is not None:
                return None
            stored = pa.RecordBatch.from_arrays([self._array(self.words, None)], names=[leaf.column.name])
            return np.array(numpy_array(mask(leaf, stored, types)))
        answers = numpy_array(mask(leaf, pa.RecordBatch.from_arrays([self.dictionary], names=[leaf.column.name]), types))
        codes = np.flatnonzero(answers)
        if len(codes) == 1:
            matches: Mask = np.equal(self.words, self.words.dtype.type(codes[0]))
            return matches
        by_code: Mask = answers[self.words]
        return by_code


def is_narrowable(arrow_type: Any) -> bool:
    """Return whether arrays of a type become narrow columns."""
    tests = (
        pa.types.is_dictionary,
        pa.types.is_boolean,
        pa.types.is_signed_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_decimal128,
        pa.types.is_date32,
        pa.types.is_time,
        pa.types.is_timestamp,
    )
    return any(test(arrow_type) for test in tests)


def evaluate(predicate: Predicate, columns: Mapping[str, NarrowColumn], types: Mapping[str, ColumnType]) -> Mask | None:
    """Return which rows of a row group satisfy a predicate.

    None: a column is missing, or only values show it.

    Args:
        predicate: Condition on the file's columns.
        columns: Columns of the row group by name in the file.
        types: Types of the file's columns.
    """
    match predicate:
        case And(children) | Or(children):
            masks: list[Mask] = []
            for child in children:
                matches = evaluate(child, columns, types)
                if matches is None:
                    return None
                masks.append(matches)
            combine = np.logical_and if isinstance(predicate, And) else np.logical_or
            combined: Mask | None = reduce(combine, masks) if masks else None
            return combined
        case ComputedPredicate():
            return None
    column = columns.get(predicate.column.name)
    return None if column is None else column.matching(predicate, types)


def _words(array: Any, kind: np.dtype[Any]) -> AnyArray:
    """Return the bytes of an array's values. What stands at nulls is arbitrary."""
    buffer = array.buffers()[1]
    if buffer is None:  # all values are null
        return np.zeros((len(array), *kind.shape), kind.base)
    return np.frombuffer(buffer, kind, len(array), kind.itemsize * array.offset)


def _valid_rows(arrays: Sequence[Any]) -> Mask | None:
    if not any(array.null_count for array in arrays):
        return None
    return np.concatenate([numpy_array(array.is_valid()) for array in arrays])


def _width(span: int) -> type[np.unsignedinteger[Any]] | None:
    return next((width for width in _WIDTHS if span <= np.iinfo(width).max), None)


def bound_bytes(arrow_type: Any, row_count: int, bounds: ColumnBounds | None, stored_bytes: int) -> int:
    """Return the most bytes that a narrow column takes, before it is decoded.

    Args:
        arrow_type: Type of the column in the file.
        row_count: Rows of the row group.
        bounds: Minimum and maximum, if known.
        stored_bytes: Bytes of its pages before compression, with the dictionary.
    """
    if pa.types.is_string(arrow_type):
        width, dictionary_bytes = np.dtype(np.uint16).itemsize, stored_bytes
    else:
        low, high = (None, None) if bounds is None else (bounds.min, bounds.max)
        # Decimals beyond 64 bits keep their bytes, however close they are.
        narrow = _width(high - low) if isinstance(low, int) and isinstance(high, int) and low >= _LEAST and high <= _MOST else None
        width = max(1, arrow_type.bit_width // 8) if narrow is None else np.dtype(narrow).itemsize
        dictionary_bytes = 0
    return _OBJECT_BYTES + width * row_count + row_count // 8 + 1 + dictionary_bytes
