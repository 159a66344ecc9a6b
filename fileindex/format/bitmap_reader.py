"""Reader of the ``bitmap`` index.

It reads the directory first. Then it reads only the blocks and row sets that a predicate needs, by byte range.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from pyroaring import BitMap

from fileindex.format.bitmap_writer import VERSION_1, VERSION_2
from fileindex.format.container import Payload
from fileindex.keys.fixed import convert_keys, is_lossy, key_dtype, key_values, literal_keys
from fileindex.predicate.tree import Compare, In, IsNull, Leaf, Op
from fileindex.rowset.result import REMAIN, FileIndexResult, RowSet
from fileindex.rowset.roaring import all_rows, cardinality
from paimon_base.errors import CorruptIndex
from sparkexpr.values.arrays import Int64s as Longs
from sparkexpr.values.column_type import STRINGS, ColumnType, Plain

_HEAD = struct.Struct(">bii?")
_UNKNOWN = -1

_Key = int | bytes


class BitmapReader:
    """Reader of one bitmap index.

    Answers ``=``, ``<>``, ``[NOT] IN`` and ``IS [NOT] NULL`` with the rows, everything else with REMAIN.
    """

    def __init__(self, payload: Payload, column_type: ColumnType) -> None:
        self._type = column_type
        version, self.row_count, value_count, has_null = _HEAD.unpack(payload.read(0, _HEAD.size))
        if version not in {VERSION_1, VERSION_2} or self.row_count < 0 or not 0 <= value_count <= self.row_count:
            raise CorruptIndex(f"a bitmap index has version {version}, {self.row_count} rows and {value_count} values")
        self.distinct = value_count
        cursor = _Cursor(payload, _HEAD.size)
        self._null_offset = cursor.number() if has_null else None
        self._null_length = cursor.number() if has_null and version == VERSION_2 else _UNKNOWN
        read_keys = _read_version_1 if version == VERSION_1 else _Blocks
        self._index: _Version1 | _Blocks = read_keys(cursor, value_count, column_type)
        self._sets = _Sets(payload, self._index.body, self.row_count)

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """Return the matching rows.

        The literals must fit the column.
        """
        match leaf:
            case IsNull(_, negated):
                nulls = self._nulls()
                return RowSet(all_rows(self.row_count) - nulls if negated else nulls, exact=True)
            case Compare(_, Op.EQ, value):
                return self._equal((value,), negated=False)
            case Compare(_, Op.NE, value):
                return self._equal((value,), negated=True)
            case In(_, values, negated):
                return self._equal(values, negated=negated)
            case _:
                return REMAIN

    def value_counts(self, rows: BitMap | None) -> tuple[Any, Longs]:
        """Return the values and the number of rows with each, the null last.

        ``rows`` None means all rows. Raises ``CorruptIndex`` if the row sets do not have every row of the file once.
        """
        keys, locations = self._index.all()
        nulls = [] if self._null_offset is None else [(self._null_offset, self._null_length)]
        set_locations = [*locations, *nulls]
        sizes = np.array([self._sets.size(offset) for offset, _ in set_locations], np.int64)
        if (rows_in_sets := int(sizes.sum())) != self.row_count:
            raise CorruptIndex(f"the row sets of a bitmap index have {rows_in_sets} of {self.row_count} rows")
        if rows is not None:
            sizes = np.array([self._sets.at(*location).intersection_cardinality(rows) for location in set_locations], np.int64)
        return key_values(keys, self._type), sizes if nulls else np.append(sizes, 0)

    def _equal(self, values: tuple[Plain, ...], *, negated: bool) -> FileIndexResult:
        lossy = is_lossy(self._type)
        keys: set[_Key] = set()
        for value in values:
            value_keys = literal_keys(value, self._type)
            if value_keys is None:
                return REMAIN
            keys.update(value_keys)
        if negated and lossy:
            return REMAIN
        locations = self._index.lookup(sorted(keys))
        sets = [self._sets.at(offset, length) for offset, length in locations]
        rows = sets[0] if len(sets) == 1 else BitMap.union(*sets) if sets else BitMap()
        if negated:
            return RowSet(all_rows(self.row_count) - rows - self._nulls(), exact=True)
        return RowSet(rows, exact=not lossy)

    def _nulls(self) -> BitMap:
        return BitMap() if self._null_offset is None else self._sets.at(self._null_offset, self._null_length)


class _Sets:
    """The row sets of a payload's body."""

    def __init__(self, payload: Payload, start: int, row_count: int) -> None:
        self._payload = payload
        self._start = start
        self._row_count = row_count

    def size(self, offset: int) -> int:
        """Return the number of rows of a set, from its header."""
        return 1 if offset < 0 else cardinality(memoryview(self._payload.whole())[self._start + offset :])

    def at(self, offset: int, length: int) -> BitMap:
        """Return the row set of an index entry.

        Raises CorruptIndex if it is malformed or contains rows beyond the file's end.
        """
        if offset < 0:
            if -1 - offset >= self._row_count:
                raise CorruptIndex(f"a row set contains row {-1 - offset}, but the file has {self._row_count} rows")
            return BitMap([-1 - offset])
        return self._payload.row_set(self._start + offset, None if length < 0 else length, self._row_count)


class _Cursor:
    """Sequential reader of a payload's head.

    A large head is fetched in pieces. The first piece is small.
    """

    FIRST_PIECE = 4 * 1024
    LAST_PIECE = 256 * 1024

    def __init__(self, payload: Payload, position: int) -> None:
        self.payload = payload
        self._piece_size = self.FIRST_PIECE
        self._piece = b""
        self._piece_at = position
        self.at = position

    def take(self, length: int) -> bytes:
        first = self.at - self._piece_at
        if first + length > len(self._piece):
            self._piece = self.payload.read(self.at, max(length, min(self._piece_size, self.payload.length - self.at)))
            self._piece_at, first = self.at, 0
            self._piece_size = min(4 * self._piece_size, self.LAST_PIECE)
        self.at += length
        return self._piece[first : first + length]

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def text(self) -> bytes:
        length = self.number()
        if length < 0:
            raise CorruptIndex("a key has a negative length")
        return self.take(length)

    def table(self, record: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
        if count < 0:
            raise CorruptIndex(f"an index has {count} entries")
        return np.frombuffer(self.take(count * record.itemsize), dtype=record)


def _record(column_type: ColumnType, *numbers: str) -> np.dtype[Any]:
    return np.dtype([("key", key_dtype(column_type)), *((name, ">i4") for name in numbers)])


class _Version1:
    """All keys with their offsets.

    The row sets follow the last key.
    """

    def __init__(self, entries: dict[_Key, int], body: int) -> None:
        self._entries = entries
        self.body = body

    def all(self) -> tuple[list[_Key], list[tuple[int, int]]]:
        """Return all keys, and the locations of their sets."""
        return list(self._entries), [(offset, _UNKNOWN) for offset in self._entries.values()]

    def lookup(self, keys: Iterable[_Key]) -> list[tuple[int, int]]:
        return [(self._entries[key], _UNKNOWN) for key in keys if key in self._entries]


def _read_version_1(cursor: _Cursor, value_count: int, column_type: ColumnType) -> _Version1:
    entries: dict[_Key, int] = {}
    if column_type.kind in STRINGS:
        for _ in range(value_count):
            key = cursor.text()
            entries[key] = cursor.number()
    else:
        table = cursor.table(_record(column_type, "offset"), value_count)
        entries.update(zip(convert_keys(table["key"], column_type).tolist(), table["offset"].tolist(), strict=True))
    return _Version1(entries, cursor.at)


class _Blocks:
    """Version 2: first keys and locations of sorted index blocks.

    A block is read when a key may be in it.
    """

    def __init__(self, cursor: _Cursor, value_count: int, column_type: ColumnType) -> None:
        self._payload = cursor.payload
        self._type = column_type
        count = cursor.number()
        if not 0 <= count <= value_count:
            raise CorruptIndex(f"a bitmap index of {value_count} values has {count} blocks")
        self._first_keys: list[Any]
        if column_type.kind in STRINGS:
            pairs = [(cursor.text(), cursor.number()) for _ in range(count)]
            self._first_keys = [key for key, _ in pairs]
            self._offsets = [offset for _, offset in pairs]
        else:
            table = cursor.table(_record(column_type, "offset"), count)
            self._first_keys = convert_keys(table["key"], column_type).tolist()
            self._offsets = table["offset"].tolist()
        size = cursor.number()
        self._start = cursor.at
        self.body = self._start + size
        self._offsets.append(size)
        if size < 0 or self._offsets != sorted(self._offsets) or self._offsets[0] != 0 or self.body > self._payload.length:
            raise CorruptIndex("the block offsets of a bitmap index are inconsistent")

    def lookup(self, keys: list[_Key]) -> list[tuple[int, int]]:
        """Return offsets and lengths of the sets of existing ``keys``.

        ``keys`` must ascend.
        """
        keys_by_block: dict[int, list[_Key]] = {}
        for key in keys:
            block = bisect.bisect_right(self._first_keys, key) - 1
            if block >= 0:
                keys_by_block.setdefault(block, []).append(key)
        return [location for block, block_keys in keys_by_block.items() for location in self._find(block, block_keys)]

    def all(self) -> tuple[list[_Key], list[tuple[int, int]]]:
        """Return all keys, and the locations of their sets."""
        keys: list[_Key] = []
        locations: list[tuple[int, int]] = []
        for start, end in pairwise(self._offsets):
            cursor = _Cursor(Payload.of(self._payload.read(self._start + start, end - start)), 0)
            count = cursor.number()
            if self._type.kind in STRINGS:
                entries = [(cursor.text(), cursor.number(), cursor.number()) for _ in range(count)]
                keys += [key for key, _, _ in entries]
                locations += [(offset, length) for _, offset, length in entries]
            else:
                table = cursor.table(_record(self._type, "offset", "length"), count)
                keys += convert_keys(table["key"], self._type).tolist()
                locations += zip(table["offset"].tolist(), table["length"].tolist(), strict=True)
        return keys, locations

    def _find(self, block: int, keys: list[_Key]) -> Iterator[tuple[int, int]]:
        start, end = self._offsets[block], self._offsets[block + 1]
        cursor = _Cursor(Payload.of(self._payload.read(self._start + start, end - start)), 0)
        count = cursor.number()
        if self._type.kind in STRINGS:
            searched_keys = set(keys)
            for _ in range(count):
                key, offset, length = cursor.text(), cursor.number(), cursor.number()
                if key in searched_keys:
                    yield offset, length
                if key == keys[-1]:
                    return
            return
        table = cursor.table(_record(self._type, "offset", "length"), count)
        stored = convert_keys(table["key"], self._type)
        for index in np.flatnonzero(np.isin(stored, np.array(keys, dtype=np.int64))).tolist():
            yield int(table["offset"][index]), int(table["length"][index])
