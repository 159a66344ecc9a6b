"""Reader of the ``range-bitmap`` index.

It looks a literal up in the chunked dictionary, then finds rows by the bit slices of their codes.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from pyroaring import BitMap

from fileindex.format.container import Payload
from fileindex.format.range_bitmap_writer import RANGE_BITMAP_VERSION
from fileindex.keys.fixed import key_dtype, literal_keys, stored_keys
from fileindex.predicate.tree import Compare, In, IsNull, Leaf, Op, StartsWith
from fileindex.rowset.bit_sliced import BitSlices
from fileindex.rowset.result import REMAIN, FileIndexResult, RowSet
from fileindex.rowset.roaring import all_rows
from paimon_base.errors import CorruptIndex
from paimon_base.lazy import cached_property
from sparkexpr.values.column_type import FLOATS, STRINGS, ColumnType, Plain

_Key = int | bytes


class RangeBitmapReader:
    """Reader of one range bitmap.

    Answers all comparisons, ``[NOT] IN``, ``IS [NOT] NULL`` and prefixes of texts exactly with the rows.
    """

    def __init__(self, payload: Payload, column_type: ColumnType) -> None:
        self._payload = payload
        self._type = column_type
        (header_length,) = struct.unpack(">i", payload.read(0, 4))
        cursor = _Cursor(payload.read(4, header_length), column_type)
        version, self.row_count, self.distinct = cursor.byte(), cursor.number(), cursor.number()
        if version != RANGE_BITMAP_VERSION or not 0 <= self.distinct <= self.row_count:
            raise CorruptIndex(f"a range-bitmap has version {version}, {self.row_count} rows and {self.distinct} values")
        self._low: Any = cursor.key() if self.distinct else None
        self._high: Any = cursor.key() if self.distinct else None
        self._dictionary_at = 4 + header_length
        self._slices_at = self._dictionary_at + cursor.number()

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """Return the matching rows.

        The literals must fit the column.
        """
        match leaf:
            case IsNull(_, negated):
                rows = self._slices.existence
                return RowSet(rows if negated else all_rows(self.row_count) - rows, exact=True)
            case Compare(_, Op.EQ, value):
                return self._any_of((value,), negated=False)
            case Compare(_, Op.NE, value):
                return self._any_of((value,), negated=True)
            case In(_, values, negated):
                return self._any_of(values, negated=negated)
            case Compare(_, op, value):
                return self._range(op, value)
            case StartsWith(_, prefix, negated) if self._type.kind in STRINGS:
                rows = self._prefix_rows(prefix.encode())
                return RowSet(self._slices.existence - rows if negated else rows, exact=True)
            case _:
                return REMAIN

    def top_n(self, k: int, *, ascending: bool, nulls_first: bool, strict: bool, candidates: BitMap | None) -> BitMap:
        """Return the rows with the first ``k`` values of ``candidates``.

        Args:
            k: Number of values, at least 1.
            ascending: Smallest values first. If False, greatest first.
            nulls_first: Position of nulls.
            strict: Return exactly ``k`` rows. If False, return all tied rows too.
            candidates: Rows to choose from. None: all.
        """
        # Of tied rows the last ones are kept, of nulls the first, as in Paimon's RangeBitmap.
        eligible_rows = all_rows(self.row_count) if candidates is None else candidates
        nulls = eligible_rows - self._slices.existence

        def best(count: int) -> BitMap:
            sure, tied = self._slices.top_k(count, eligible_rows, greatest=not ascending)
            if strict:
                return sure | tied[len(tied) - (count - len(sure)) :] if tied else sure
            return self._with_other_zero(sure | tied) & eligible_rows

        if nulls_first:
            if len(nulls) >= k:
                return nulls[:k] if strict else nulls
            return nulls | best(k - len(nulls))
        first_rows = best(k)
        if len(first_rows) >= k:
            return first_rows
        return first_rows | (nulls[: k - len(first_rows)] if strict else nulls)

    def _with_other_zero(self, rows: BitMap) -> BitMap:
        """Add the rows of the other float zero, which tie."""
        if self._type.kind not in FLOATS or not self.distinct:
            return rows
        zeros = BitMap.union(*(self._slices.equal(code) for code, present in map(self._code_of, (-1, 0)) if present), BitMap())
        return rows | zeros if rows & zeros else rows

    def _any_of(self, values: tuple[Plain, ...], *, negated: bool) -> FileIndexResult:
        matching_rows = BitMap()
        for value in values:
            keys = literal_keys(value, self._type)
            if keys is None:
                return REMAIN
            for key in keys:
                code, present = self._code_of(key)
                if present:
                    matching_rows |= self._slices.equal(code)
        return RowSet(self._slices.existence - matching_rows if negated else matching_rows, exact=True)

    def _range(self, op: Op, value: Plain) -> FileIndexResult:
        """Return the rows that match a comparison.

        Both zeros are on the same side of a bound.
        """
        keys = literal_keys(value, self._type)
        if keys is None:
            return REMAIN
        strictly = op in {Op.LT, Op.GE}
        code, present = self._code_of(keys[0] if strictly else keys[-1])
        rows = self._below(code if strictly else code + present)
        return RowSet(rows if op in {Op.LT, Op.LE} else self._slices.existence - rows, exact=True)

    def _prefix_rows(self, prefix: bytes) -> BitMap:
        """Return the rows with texts that start with ``prefix``."""
        if not prefix:
            return self._slices.existence
        after = prefix[:-1] + bytes([prefix[-1] + 1])  # no byte of UTF-8 is 255
        return self._below(self._code_of(after)[0]) - self._below(self._code_of(prefix)[0])

    def _below(self, code: int) -> BitMap:
        return self._slices.existence if code >= self.distinct else self._slices.below(code)

    def _code_of(self, key: _Key) -> tuple[int, bool]:
        """Return the number of smaller values, and whether ``key`` exists.

        If it exists, that number is its code.
        """
        if not self.distinct or key < self._low:
            return 0, False
        if key > self._high:
            return self.distinct, False
        code, present = self._dictionary.find(key)
        if not 0 <= code <= self.distinct:
            raise CorruptIndex(f"a range-bitmap of {self.distinct} values has code {code}")
        return code, present

    @cached_property
    def _dictionary(self) -> _Dictionary:
        return _Dictionary(self._payload, self._dictionary_at, self._slices_at, self._type)

    @cached_property
    def _slices(self) -> BitSlices:
        payload, start = self._payload, self._slices_at
        length, version, count, existence_length, indexes_length = struct.unpack(">ibbii", payload.read(start, 14))
        if version != RANGE_BITMAP_VERSION or count < (self.distinct - 1).bit_length() * (self.distinct > 0) or indexes_length != 8 * count:
            raise CorruptIndex(f"the slices of a range-bitmap have version {version}, {count} slices, {indexes_length} bytes of index")
        index = np.frombuffer(payload.read(start + 14, indexes_length), dtype=">i4").reshape(count, 2)
        body = start + 4 + length
        ends = index.astype(np.int64).sum(axis=1)
        if body + existence_length + int(ends.max(initial=0)) != payload.length or (index[1:, 0] != ends[:-1]).any() or index[:1, 0].any():
            raise CorruptIndex("the slices of a range-bitmap do not fill the rest of it")
        existence = payload.row_set(body, existence_length, self.row_count)

        def read(bit: int) -> BitMap:
            offset, size = index[bit].tolist()
            return payload.row_set(body + existence_length + offset, size, self.row_count)

        return BitSlices(existence, count, read)


class _Dictionary:
    """Sorted keys in chunks.

    A lookup reads the chunk headers and one chunk.
    """

    def __init__(self, payload: Payload, start: int, end: int, column_type: ColumnType) -> None:
        self._payload = payload
        self._type = column_type
        length, version, count, offsets_length, headers_length = struct.unpack(">ibiii", payload.read(start, 17))
        headers_at = start + 4 + length + offsets_length
        self._keys_at = headers_at + headers_length
        if (
            version != RANGE_BITMAP_VERSION
            or count < 1
            or offsets_length != 4 * count
            or headers_length < 0
            or not self._keys_at <= end <= payload.length
        ):
            raise CorruptIndex(f"the dictionary of a range-bitmap has version {version}, {count} chunks, {headers_length} bytes of headers")
        self._offsets = np.frombuffer(payload.read(start + 4 + length, offsets_length), dtype=">i4")
        self._headers = memoryview(payload.read(headers_at, headers_length))

    def find(self, key: _Key) -> tuple[int, bool]:
        """Return the code of the first key >= ``key``.

        Also returns whether it equals ``key``.
        """
        low, high = 0, len(self._offsets)
        while low < high:
            middle = (low + high) // 2
            if self._header(middle)[0] <= key:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return 0, False
        first, cursor = self._header(low - 1)
        code, area_at, size = cursor.number(), cursor.number(), cursor.number()
        if first == key:
            return code, True
        index_in_block, present = (
            self._find_text(key, cursor, area_at, size) if isinstance(key, bytes) else self._find_number(key, area_at, size)
        )
        return code + 1 + index_in_block, present

    def _header(self, chunk: int) -> tuple[Any, _Cursor]:
        cursor = _Cursor(self._headers[max(0, int(self._offsets[chunk])) :], self._type)
        if cursor.byte() != RANGE_BITMAP_VERSION:
            raise CorruptIndex("a chunk of a range-bitmap's dictionary has an unknown version")
        return cursor.key(), cursor

    def _find_number(self, key: int, area_at: int, size: int) -> tuple[int, bool]:
        kind = key_dtype(self._type)
        stored = stored_keys(np.frombuffer(self._payload.read(self._keys_at + area_at, size * kind.itemsize), dtype=kind), self._type)
        index = int(np.searchsorted(stored, key))
        return index, index < size and int(stored[index]) == key

    def _find_text(self, key: bytes, cursor: _Cursor, area_at: int, size: int) -> tuple[int, bool]:
        offsets_length, texts_length = cursor.number(), cursor.number()
        if offsets_length != 4 * size:
            raise CorruptIndex(f"{size} texts have {offsets_length} bytes of offsets")
        area = self._payload.read(self._keys_at + area_at, offsets_length + texts_length)
        offsets, texts = np.frombuffer(area[:offsets_length], dtype=">i4"), memoryview(area)[offsets_length:]
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            text = _Cursor(texts[max(0, int(offsets[middle])) :], self._type).key()
            if text == key:
                return middle, True
            if text < key:
                low = middle + 1
            else:
                high = middle
        return low, False


class _Cursor:
    """Sequential reader of numbers and keys."""

    def __init__(self, data: bytes | memoryview, column_type: ColumnType) -> None:
        self._data = memoryview(data)
        self._type = column_type
        self._at = 0

    def byte(self) -> int:
        return self._take(1)[0]

    def number(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def key(self) -> Any:
        if self._type.kind in STRINGS:
            return self._take(self.number())
        kind = key_dtype(self._type)
        return int(stored_keys(np.frombuffer(self._take(kind.itemsize), dtype=kind), self._type)[0])

    def _take(self, length: int) -> bytes:
        data = bytes(self._data[self._at : self._at + max(0, length)])
        if length < 0 or len(data) != length:
            raise CorruptIndex("the header of a range-bitmap is truncated")
        self._at += length
        return data
