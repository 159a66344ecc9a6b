"""Rows of given keys in one data file.

The bounds of key pages, and the keys of decoded pages, are cached for the process. So a repeated lookup decodes only the pages
with the found rows. Files without page indexes give the keys of whole row groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from pyroaring import BitMap

from fileindex.predicate.tree import ColumnRef
from lsm.data_file_format import open_data_file
from lsm.deletion_vectors.reader import DeletionFile, dead_rows
from lsm.formats.open_data_file import OpenDataFile
from lsm.keys.sorted_keys import KeyBlock, SortedKeys
from lsm.read.data_file import DataFileRead
from lsm.read.row_group import RowGroupRead
from manifest.entry.bounds import BoundsColumn
from manifest.io.file_cache import FileParts
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Indices, Int64s, Mask

_OBJECT_BYTES = 100
"""Approximate bytes in memory of a bound that is an object, and of a cached value."""


@dataclass(frozen=True, eq=False, slots=True)
class KeyPages:
    """Row ranges of a file, and the bounds of their keys.

    A range is a page of the leading key column, or a whole row group. ``starts`` and ``ends`` are positions in the row group.
    ``bounds`` of a key column are None if they are not known.
    """

    groups: Int64s
    starts: Int64s
    ends: Int64s
    first_rows: Int64s
    bounds: tuple[BoundsColumn | None, ...]

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory."""
        return sum(
            _OBJECT_BYTES if column_bounds is None else 2 * _OBJECT_BYTES * len(self.groups) for column_bounds in (None, *self.bounds)
        )

    def matching(self, keys: SortedKeys, types: Sequence[DataType]) -> Indices:
        """Return the ranges that may have one of the keys."""
        mask = np.ones(len(self.groups), np.bool_)
        # So many keys leave out few ranges between the first and the last key.
        test, by_ends = (_meets, True) if len(keys) > thresholds.keys_per_range * len(self.groups) else (_spans, False)
        for position, (column_bounds, data_type) in enumerate(zip(self.bounds, types, strict=True)):
            values = None if column_bounds is None else keys.ends(position, data_type) if by_ends else keys.values(position, data_type)
            if column_bounds is None or values is None:
                continue
            if column_bounds.known.all():
                mask &= test(column_bounds.low, column_bounds.high, values)
            else:
                has_bounds = column_bounds.known
                mask[has_bounds] &= test(column_bounds.low[has_bounds], column_bounds.high[has_bounds], values)
        return np.flatnonzero(mask)


@dataclass(frozen=True, eq=False)
class KeyedRead:
    """Read of the rows of ``keys`` in one data file.

    ``read`` reads the columns of the result. ``names`` are the key columns of the file.
    """

    read: DataFileRead
    keys: SortedKeys
    names: tuple[str, ...]

    def find(self, key_numbers: Indices) -> tuple[Int64s, Indices]:
        """Return the positions of live rows with a key, and their keys.

        Positions ascend. ``key_numbers`` are numbers of ``keys``.

        Raises:
            CorruptFile: The data file or its deletion vector is missing or damaged.
        """
        key_pages = self._pages
        pages = key_pages.matching(self.keys, self._types)
        blocks = {page: block for page in pages.tolist() if (block := self._parts.get(self._place(key_pages, page))) is not None}
        missing = [page for page in pages.tolist() if page not in blocks]
        if missing:
            blocks |= self._decode(key_pages, missing)
        rows: list[Int64s] = []
        number_parts: list[Indices] = []
        for page in pages.tolist():
            numbers, positions_in_page = blocks[page].find(self.keys, key_numbers)
            if len(positions_in_page):
                rows.append(positions_in_page + key_pages.first_rows[page])
                number_parts.append(numbers)
        if not rows:
            return np.zeros(0, np.int64), key_numbers[:0]
        positions, numbers = (rows[0], number_parts[0]) if len(rows) == 1 else (np.concatenate(rows), np.concatenate(number_parts))
        if len(positions) > 1 and not bool((positions[:-1] < positions[1:]).all()):
            order = np.argsort(positions, kind="stable")
            positions, numbers = positions[order], numbers[order]
        return self._drop_dead(positions, numbers)

    def warm(self, room: Callable[[], int]) -> None:
        """Cache bounds and keys of all pages while there is ``room``.

        Keys are read by row group. ``room`` returns the bytes left.
        """
        key_pages = self._pages
        missing = [page for page in range(len(key_pages.groups)) if self._parts.get(self._place(key_pages, page)) is None]
        for _, pages in groupby(missing, lambda page: int(key_pages.groups[page])):
            if room() <= 0:
                return
            self._decode(key_pages, list(pages))

    def _drop_dead(self, rows: Int64s, numbers: Indices) -> tuple[Int64s, Indices]:
        vector = self.read.deletion_file
        if vector is None:
            return rows, numbers
        if isinstance(vector, DeletionFile):
            io, cache_key = self.read.store.file_io, ("deletion vector", vector.offset, vector.length)
            dead = self.read.store.cache.files.load(io, vector.path, cache_key, lambda: dead_rows(io, vector), _bitmap_weight)
        else:
            dead = vector
        gone = np.array(BitMap(rows.tolist()) & dead, np.int64)
        alive = ~np.isin(rows, gone)
        return rows[alive], numbers[alive]

    @cached_property
    def _types(self) -> list[DataType]:
        fields = self.read.mapping.read
        return [fields[name].type for name in self.names]

    @cached_property
    def _parts(self) -> _Parts:
        store = self.read.store
        ids = self.read.file.schema_id, store.schema.id
        return _Parts(FileParts(store.cache.files, store.file_io, self.read.path), ids)

    @cached_property
    def _pages(self) -> KeyPages:
        return self._parts.load("key pages", self._read_pages)

    def _read_pages(self) -> KeyPages:
        with self._open() as data:
            return _key_pages(self._key_reader(data), self.names, self._types)

    def _place(self, key_pages: KeyPages, page: int) -> tuple[str, int, int]:
        return "keys", int(key_pages.groups[page]), int(key_pages.starts[page])

    def _decode(self, key_pages: KeyPages, pages: Sequence[int]) -> dict[int, KeyBlock]:
        """Decode and cache the keys of some pages."""
        blocks: dict[int, KeyBlock] = {}
        with self._open() as data:
            reader = self._key_reader(data)
            for number, members in groupby(pages, lambda page: int(key_pages.groups[page])):
                group_pages = list(members)
                group = data.row_groups[number]
                ends = np.cumsum(key_pages.ends[group_pages] - key_pages.starts[group_pages])
                rows = np.concatenate([np.arange(key_pages.starts[page], key_pages.ends[page]) for page in group_pages])
                is_full_group = len(rows) == group.num_rows
                columns = reader.key_columns(group, None if is_full_group else rows)
                for page, start, end in zip(group_pages, [0, *ends.tolist()], ends.tolist(), strict=False):
                    blocks[page] = KeyBlock.of([column.slice(start, end - start) for column in columns])
                    self._parts.put(self._place(key_pages, page), blocks[page])
        return blocks

    def _open(self) -> OpenDataFile:
        read = self.read
        return open_data_file(read.store.file_io, read.path, read.expected, read.store.cache.files)

    def _key_reader(self, data: OpenDataFile) -> RowGroupRead:
        return self.read.opened(data, self.names)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Cached keys of one file, converted from one schema to another."""

    parts: FileParts
    schemas: tuple[int, int]

    def get(self, cache_key: tuple[Any, ...]) -> KeyBlock | None:
        block: KeyBlock | None = self.parts.get((*cache_key, self.schemas))
        return block

    def put(self, cache_key: tuple[Any, ...], block: KeyBlock) -> None:
        self.parts.put((*cache_key, self.schemas), block, _OBJECT_BYTES + block.nbytes, lesser=True)

    def load(self, kind: str, make: Any) -> KeyPages:
        key_pages: KeyPages = self.parts.load((kind, self.schemas), make, lambda pages: pages.nbytes)
        return key_pages


def _key_pages(read: RowGroupRead, names: Sequence[str], types: Sequence[DataType]) -> KeyPages:
    groups, starts, ends, first_rows = [], [], [], []
    bounds: list[list[BoundsColumn]] = [[] for _ in names]
    for group in read.data.row_groups:
        if not group.num_rows:
            continue
        pages = read.data.pages(group)
        page_bounds = [None if pages is None else read.pruner.page_bounds(pages, ColumnRef(name)) for name in names]
        cuts = np.array([0, group.num_rows]) if page_bounds[0] is None else page_bounds[0][1]
        groups.append(np.full(len(cuts) - 1, group.index))
        starts.append(cuts[:-1])
        ends.append(cuts[1:])
        first_rows.append(np.full(len(cuts) - 1, group.first_row))
        for column, name, data_type, pair in zip(bounds, names, types, page_bounds, strict=True):
            if pair is not None and len(pair[1]) == len(cuts) and (pair[1] == cuts).all():
                column.append(pair[0])
            else:
                group_bounds = read.pruner.bounds(group, ColumnRef(name)) or ColumnBounds(None, None, None, group.num_rows)
                column.append(BoundsColumn.of([group_bounds] * (len(cuts) - 1), data_type))
    if not groups:
        nothing = np.zeros(0, np.int64)
        return KeyPages(nothing, nothing, nothing, nothing, (None,) * len(names))
    numbers = [np.concatenate(parts).astype(np.int64) for parts in (groups, starts, ends, first_rows)]
    numbers[3] += numbers[1]
    return KeyPages(numbers[0], numbers[1], numbers[2], numbers[3], tuple(map(_concat_bounds, bounds)))


def _concat_bounds(parts: Sequence[BoundsColumn]) -> BoundsColumn | None:
    if not any(part.known.any() for part in parts):
        return None
    if len(parts) == 1:
        return parts[0]
    wide = any(side.dtype == object for part in parts for side in (part.low, part.high))
    low, high = ([getattr(part, side).astype(object) if wide else getattr(part, side) for part in parts] for side in ("low", "high"))
    rest = (np.concatenate([getattr(part, name) for part in parts]) for name in ("known", "nulls", "rows"))
    return BoundsColumn(np.concatenate(low), np.concatenate(high), *rest)


def _spans(low: Any, high: Any, values: Any) -> Mask:
    """Return which ranges have one of the ascending ``values``."""
    mask: Mask = np.searchsorted(values, low, "left") < np.searchsorted(values, high, "right")
    return mask


def _meets(low: Any, high: Any, ends: Any) -> Mask:
    """Return which ranges overlap the range of ``ends``."""
    # Not as scalars: NumPy would drop the NUL bytes at their end.
    mask: Mask = (low <= ends[-1:]) & (high >= ends[:1])
    return mask


def _bitmap_weight(rows: BitMap) -> int:
    return _OBJECT_BYTES + 2 * len(rows)
