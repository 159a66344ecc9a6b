"""Columnar decoding of Avro records with numpy, field by field.

Avro has no index of its records, so the caller guesses where they start, and the guess is then proved. Record i must end
exactly where record i+1 starts, the first must start at 0, and the last must end at the end. A file that does not pass (another layout,
an unlucky guess) is left to fastavro. No value of an unproved guess is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from manifest.avro.schemas import AvroSchema
from manifest.avro.sequential import decode_few
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import AnyArray, Indices, Int64s, Mask, numpy_array

_PADDING = 16
_MOST_ITEMS = 1 << 12
_FIRST, _SECOND = 0, 2
"""Union branches in their encoding."""


def at_offsets(payload: bytes, dtype: str, offsets: Int64s) -> AnyArray:
    """Return values of ``dtype`` at any offsets, aligned or not.

    >>> at_offsets(bytes([1, 0, 2, 0]), "<u2", np.array([0, 1, 2])).tolist()
    [1, 512, 2]
    """
    kind = np.dtype(dtype)
    if not offsets.size:
        return np.zeros(0, kind)
    windows: AnyArray = np.ndarray((len(payload) - kind.itemsize + 1,), kind, payload, strides=(1,))
    return windows[offsets]


@dataclass(frozen=True, slots=True)
class Numbers:
    """One integer field of every record.

    Null has ``present`` False and value 0.
    """

    values: Int64s
    present: Mask

    def take(self, rows: Indices) -> Numbers:
        """Return the field of some records."""
        return Numbers(self.values[rows], self.present[rows])


@dataclass(frozen=True, slots=True)
class Spans:
    """Positions of one field of every record in the payload.

    Empty where ``present`` is False. Bytes and strings span their content, arrays their encoding.
    """

    # Kept in the given width: with a million files every field counts.
    starts: AnyArray
    ends: AnyArray
    present: Mask
    shift: int = 0
    """Offset to add to ``starts`` and ``ends``."""

    @property
    def start(self) -> Int64s:
        """Start of the field in every record."""
        return self.starts.astype(np.int64) + self.shift if self.shift else self.starts.astype(np.int64, copy=False)

    @property
    def end(self) -> Int64s:
        """End (exclusive) of the field in every record."""
        return self.ends.astype(np.int64) + self.shift if self.shift else self.ends.astype(np.int64, copy=False)

    def take(self, rows: Indices | slice) -> Spans:
        """Return the field of some records.

        A slice is not copied.
        """
        return Spans(self.starts[rows], self.ends[rows], self.present[rows], self.shift)

    def slices(self, payload: bytes) -> list[bytes]:
        """Return the field's bytes in every record."""
        return [payload[start:end] for start, end in zip(self.start.tolist(), self.end.tolist(), strict=True)]

    def codes(self, payload: bytes) -> tuple[Int64s, list[bytes]]:
        """Return a code per record, and the bytes per code.

        Codes are in order of first appearance.

        >>> Spans(np.array([0, 1, 3]), np.array([1, 3, 4]), np.ones(3, np.bool_)).codes(b"abba")
        (array([0, 1, 0]), [b'a', b'bb'])
        """
        widths = self.end - self.start
        if widths.any() and (widths == widths[0]).all():
            # Fixed width, as for partitions without long strings: Arrow encodes them without an object each.
            width = int(widths[0])
            content = pa.py_buffer(at_offsets(payload, f"V{width}", self.start))
            encoded = pa.Array.from_buffers(pa.binary(width), len(widths), [None, content]).dictionary_encode()
            return numpy_array(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()
        code_by_content: dict[bytes, int] = {}
        numbered = [code_by_content.setdefault(content, len(code_by_content)) for content in self.slices(payload)]
        return np.array(numbered, np.int64), list(code_by_content)


class _Column(Protocol):
    def take(self, rows: Indices) -> Self: ...


Field = TypeVar("Field", bound=_Column)


class _Derived(Mapping[str, Field]):
    """Fields computed from others on access.

    ``keep`` caches them.
    """

    # A plan reads few of many fields.
    def __init__(self, paths: Collection[str], derive: Callable[[str], Field], *, keep: bool) -> None:
        self._paths = paths
        self._derive = derive
        self._kept: dict[str, Field] | None = {} if keep else None

    def __getitem__(self, path: str) -> Field:
        if self._kept is None:
            return self._derive(path)
        column = self._kept.get(path)
        if column is None:
            column = self._kept[path] = self._derive(path)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class _Rows(_Derived[Field]):
    """Fields of some records."""

    def __init__(self, fields: Mapping[str, Field], rows: Indices) -> None:
        super().__init__(fields, lambda path: fields[path].take(rows), keep=True)
        self._fields: Mapping[str, Field] = fields
        self._rows = rows

    def take(self, rows: Indices) -> _Rows[Field]:
        return _Rows(self._fields, self._rows[rows])


def _take(fields: Mapping[str, Field], rows: Indices) -> _Rows[Field]:
    if not isinstance(fields, _Rows):
        return _Rows(fields, rows)
    selected: _Rows[Field] = fields.take(rows)
    return selected


@dataclass(slots=True)
class RecordColumns:
    """Fields of all records, and spans of whole records.

    Paths of fields are like ``_FILE._KEY_STATS._MIN_VALUES``.
    """

    start: Int64s
    end: Int64s
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    spans: Mapping[str, Spans] = field(default_factory=dict)

    def take(self, rows: Indices) -> RecordColumns:
        """Return records in the given order."""
        return RecordColumns(self.start[rows], self.end[rows], _take(self.numbers, rows), _take(self.spans, rows))

    def slice_rows(self, first: int, last: int) -> RecordColumns:
        """Return adjacent records, without copying."""
        rows = slice(first, last)
        numbers, spans = self.numbers, self.spans
        return RecordColumns(
            self.start[rows],
            self.end[rows],
            _Derived(numbers, lambda path: Numbers(numbers[path].values[rows], numbers[path].present[rows]), keep=False),
            _Derived(spans, lambda path: spans[path].take(rows), keep=False),
        )

    def shift_by(self, shift: int) -> RecordColumns:
        """Return the records with all positions shifted."""
        spans = self.spans

        def shift_spans(path: str) -> Spans:
            column = spans[path]
            return Spans(column.starts, column.ends, column.present, column.shift + shift)

        return RecordColumns(self.start + shift, self.end + shift, self.numbers, _Derived(spans, shift_spans, keep=False))

    @classmethod
    def join(cls, parts: Sequence[RecordColumns]) -> RecordColumns:
        """Return the records of ``parts``, which have the same fields."""

        def numbers(path: str) -> Numbers:
            values, present = [], []
            for part in parts:
                column = part.numbers[path]
                values.append(column.values)
                present.append(column.present)
            return Numbers(np.concatenate(values), np.concatenate(present))

        def spans(path: str) -> Spans:
            starts, ends, present = [], [], []
            for part in parts:
                column = part.spans[path]
                starts.append(column.start)
                ends.append(column.end)
                present.append(column.present)
            return Spans(np.concatenate(starts), np.concatenate(ends), np.concatenate(present))

        return cls(
            np.concatenate([part.start for part in parts]),
            np.concatenate([part.end for part in parts]),
            _Derived(parts[0].numbers, numbers, keep=True),
            _Derived(parts[0].spans, spans, keep=True),
        )


def decode_columns(shape: AvroSchema, payload: bytes, count: int, starts: Int64s) -> RecordColumns | None:
    """Return columns of ``count`` records, None if not provable.

    Each record has layout ``shape`` and begins at one of the offsets ``starts``.
    """
    exact_columns = decode_few_columns(shape, payload, count)
    if exact_columns is not None:
        return exact_columns
    if starts.size < max(count, 1):
        return None
    cursors = _Cursors(payload, starts)
    numbers: dict[str, Numbers] = {}
    spans: dict[str, Spans] = {}
    try:
        _Walk(cursors, numbers, spans).walk(shape, "", np.arange(starts.size), np.ones(starts.size, np.bool_))
    except _OtherLayoutError:
        return None
    candidates = RecordColumns(starts, cursors.position, numbers, spans)
    chain = _chain(starts, cursors.position, cursors.bad, count, len(payload))
    if chain is None:
        return None
    return candidates if chain.size == starts.size else candidates.take(chain)


def decode_few_columns(shape: AvroSchema, payload: bytes, count: int) -> RecordColumns | None:
    """Return columns of few records that fill ``payload``.

    None if they do not, or if they are too many to decode one by one.
    """
    decoded = decode_few(shape, payload, count) if 0 < count <= thresholds.records_one_by_one else None
    if decoded is None:
        return None
    bounds = np.array(decoded.bounds, np.int64)
    narrow = np.int32 if decoded.bounds[-1] < 2**31 else np.int64
    every = np.ones(count, np.bool_)
    numbers: dict[str, Numbers] = {}
    for path, pairs in decoded.numbers.items():
        values, present = zip(*pairs, strict=True)
        numbers[path] = Numbers(np.array(values, np.int64), every if all(present) else np.array(present, np.bool_))
    spans: dict[str, Spans] = {}
    for path, places in decoded.spans.items():
        starts, ends, filled = zip(*places, strict=True)
        spans[path] = Spans(np.array(starts, narrow), np.array(ends, narrow), every if all(filled) else np.array(filled, np.bool_))
    return RecordColumns(bounds[:-1], bounds[1:], numbers, spans)


def optional_longs(payload: bytes, spans: Spans, items: int) -> tuple[Int64s, Mask]:
    """Decode arrays of exactly ``items`` nullable numbers.

    One row each, null as -1. The mask is False for rows with another array.

    >>> optional_longs(bytes([4, 2, 14, 0, 0]), Spans(np.array([0]), np.array([5]), np.array([True])), 2)
    (array([[ 7, -1]]), array([ True]))
    """
    pieces = spans.slices(payload)
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    cursors = _Cursors(b"".join(pieces), ends - (spans.end - spans.start))
    rows = np.flatnonzero(spans.present)
    blocks = cursors.longs(rows)
    numbers = np.full((spans.start.size, items), -1, np.int64)
    rows = rows[blocks == items]
    for item in range(items):
        filled_rows = rows[cursors.branches(rows)]
        numbers[filled_rows, item] = cursors.longs(filled_rows)
    if items:
        cursors.longs(rows)  # the empty block that ends an array
    fits = np.zeros(spans.start.size, np.bool_)
    fits[rows] = True
    fits &= ~cursors.bad & (cursors.position == ends)
    return numbers, fits


class _OtherLayoutError(Exception):
    """The schema has a type without columnar decoding."""


class _Cursors:
    """One read position per record.

    A record that leaves the payload is marked ``bad`` and stays at its end.
    """

    def __init__(self, payload: bytes, starts: Int64s) -> None:
        self._bytes = np.frombuffer(payload + bytes(_PADDING), np.uint8)
        self._end = len(payload)
        self.narrow = np.int32 if self._end < 2**31 else np.int64
        """Integer type for any position."""
        self.position = starts.copy()
        self.bad = np.zeros(starts.size, np.bool_)

    def longs(self, rows: Indices) -> Int64s:
        """Read the next zigzag varint of ``rows``."""
        position = self._at(rows)
        first = self._bytes[position]
        position += 1
        more = np.flatnonzero(first > 0x7F)
        if not more.size:
            self._advance(rows, position, position > self._end)
            short = first.astype(np.int64)
            return short >> 1 ^ -(short & 1)
        value = (first & 0x7F).astype(np.uint64)
        shift = 7
        while more.size and shift <= 63:
            following = self._bytes[position[more]]
            value[more] |= (following & 0x7F).astype(np.uint64) << np.uint64(shift)
            position[more] += 1
            more = more[following > 0x7F]
            shift += 7
        over = position > self._end
        over[more] = True
        self._advance(rows, position, over)
        return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)

    def content(self, rows: Indices) -> tuple[Int64s, Int64s]:
        """Read the span of the next bytes or string."""
        length = self.longs(rows)
        start = self._at(rows)
        over = (length < 0) | (length > self._end - start)
        end = np.where(over, start, start + length)
        self._advance(rows, end, over)
        return start, end

    def branches(self, rows: Indices) -> Mask:
        """Read the next ``["null", T]`` branch. True: a value follows."""
        position = self._at(rows)
        branch = self._bytes[position]
        present: Mask = branch == _SECOND
        wrong = ~present & (branch != _FIRST)
        if wrong.any():
            self.bad[rows[wrong]] = True
        position += 1
        self._advance(rows, position, position > self._end)
        return present

    def array(self, rows: Indices, item: AvroSchema) -> None:
        """Skip the next array of ``rows``.

        Arrays of several blocks, or of blocks with sizes, mark the record as bad.
        """
        count = self.longs(rows)
        wild = (count < 0) | (count > np.minimum(self._end - self.position[rows], _MOST_ITEMS))
        self.bad[rows[wild]] = True
        count[wild] = 0
        filled = rows[count > 0]
        left = count[count > 0]
        if filled.size < left.max(initial=0) and item == ("union", "null", "long"):
            left = left * ~self._skip_short_items(filled, left)
        for item_number in range(int(left.max(initial=0))):
            self._item(filled[left > item_number], item)
        self.bad[filled[self.longs(filled) != 0]] = True

    def _skip_short_items(self, rows: Indices, count: Int64s) -> Mask:
        """Skip items of ``["null", "long"]`` with one byte each.

        Returns the rows whose items all have one byte. The others are not skipped.
        """
        item_number = np.zeros(rows.size, np.bool_)
        for index, (start, items) in enumerate(zip(self._at(rows).tolist(), count.tolist(), strict=True)):
            if start + 2 * items <= self._end:
                pairs = self._bytes[start : start + 2 * items].reshape(-1, 2)
                item_number[index] = (pairs[:, 0] == _SECOND).all() and (pairs[:, 1] <= 0x7F).all()
        self.position[rows[item_number]] += 2 * count[item_number]
        return item_number

    def _item(self, rows: Indices, item: AvroSchema) -> None:
        match item:
            case "int" | "long":
                self.longs(rows)
            case "bytes" | "string":
                self.content(rows)
            case ("union", "null", "int" | "long" | "bytes" | "string" as kind):
                self._item(rows[self.branches(rows)], kind)
            case _:
                raise _OtherLayoutError

    def _at(self, rows: Indices) -> Int64s:
        """Return a copy of the positions of ``rows``, which ascend."""
        # All rows need no gathering.
        return self.position.copy() if rows.size == self.position.size else self.position[rows]

    def _advance(self, rows: Indices, position: Int64s, over: Mask) -> None:
        if over.any():
            self.bad[rows[over]] = True
            np.minimum(position, self._end, out=position)
        if rows.size == self.position.size:
            self.position = position
        else:
            self.position[rows] = position


@dataclass(frozen=True, slots=True)
class _Walk:
    """One pass over a layout that records every field."""

    cursors: _Cursors
    numbers: dict[str, Numbers]
    spans: dict[str, Spans]

    def walk(self, shape: AvroSchema, path: str, rows: Indices, present: Mask) -> None:
        match shape:
            case "int" | "long":
                values = np.zeros(present.size, np.int64)
                values[rows] = self.cursors.longs(rows)
                self.numbers[path] = Numbers(values, present)
            case "bytes" | "string":
                start, end = np.zeros((2, present.size), self.cursors.narrow)
                start[rows], end[rows] = self.cursors.content(rows)
                self.spans[path] = Spans(start, end, present)
            case ("array", item):
                start, end = np.zeros((2, present.size), self.cursors.narrow)
                start[rows] = self.cursors.position[rows]
                self.cursors.array(rows, item)
                end[rows] = self.cursors.position[rows]
                self.spans[path] = Spans(start, end, present)
            case ("union", "null", kind) if rows.size == present.size:
                is_filled: Mask = self.cursors.branches(rows)
                self.walk(kind, path, np.flatnonzero(is_filled), is_filled)
            case ((_, _), *_) if rows.size == present.size:
                for name, kind in shape:
                    self.walk(kind, f"{path}.{name}" if path else name, rows, present)
            case _:
                raise _OtherLayoutError


def _chain(starts: Int64s, ends: Int64s, bad: Mask, count: int, size: int) -> Indices | None:
    """Return the candidates that form a complete chain of records.

    None if there is no chain of ``count`` records from 0 to ``size``.
    """
    following = np.searchsorted(starts, ends)
    if starts.size == count:
        is_gapless = starts[0] == 0 and ends[-1] == size and np.array_equal(starts[1:], ends[:-1]) and not bad.any()
        return np.arange(count) if is_gapless else None
    exact = ~bad & (following < starts.size)
    exact[exact] = starts[following[exact]] == ends[exact]
    chain: list[int] = []
    row, offset = 0, 0
    steps, has_follower, ended = following.tolist(), exact.tolist(), (ends == size) & ~bad
    while len(chain) < count:
        if row >= starts.size or starts[row] != offset:
            return None
        chain.append(row)
        if not has_follower[row]:
            break
        row, offset = steps[row], int(ends[row])
    return np.array(chain) if len(chain) == count and ended[chain[-1]] else None
