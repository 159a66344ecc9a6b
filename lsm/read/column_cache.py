"""Cache of decoded columns for scattered reads.

A filter or an index often selects a few rows in each page of a row group. Every such read would decode whole columns again. Once scattered
reads have decoded as much of a column as it has, the next one decodes it as a whole and caches it as a ``NarrowColumn``. A column costs at
most twice what the best choice in hindsight costs, and reads of single pages do not fill the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lsm.arrow.text_form import codes_fit
from lsm.formats.open_data_file import OpenDataFile
from lsm.parquet.footer import RowGroup
from lsm.parquet.narrow_column import NarrowColumn, bound_bytes, is_narrowable
from manifest.io.errors import OutOfMemory, UnsupportedTable
from manifest.types.data_type import DataField
from paimon_base.errors import CorruptFile
from paimon_base.thresholds import thresholds

_TOUCHES_BYTES, _TOUCH_BYTES = 300, 200
"""Approximate bytes in memory of the reads of a row group, and of one of its columns."""


@dataclass(slots=True)
class _Touch:
    """Scattered reads of a column.

    ``decoded`` is the number of times that they decoded all of it, in sum. ``time`` is that of the last one. An unsuitable column stays uncached.
    """

    decoded: float = 0.0
    time: int = 0
    is_suitable: bool = True


_Touches = dict[str, _Touch]


@dataclass(frozen=True)
class ColumnCache:
    """Cached columns of an open file. Thread-safe.

    All names are those of the file.

    Args:
        data: Open data file.
        nanos: INT96 columns to decode as nanoseconds.
    """

    data: OpenDataFile
    nanos: Collection[str]
    _empty: _Touches = field(default_factory=dict, repr=False)

    def cached(self, columns: Sequence[str], group: RowGroup) -> dict[str, NarrowColumn]:
        """Return the columns of a row group that are cached."""
        return self._cached(columns, group) if self._touches(group) else {}

    def read(self, columns: Sequence[DataField], group: RowGroup, decoded: Callable[[list[str]], float]) -> dict[str, NarrowColumn]:
        """Return the columns that the cache has or takes, for a scattered read.

        The caller decodes the other columns.

        Args:
            columns: Columns to read.
            group: Row group of the file.
            decoded: Returns the share of some columns that the caller will decode. 0: this read does not count.
        """
        parts, touches = self.data.parts, self._touches(group)
        if parts is None or group.num_rows < thresholds.paged_rows:
            return {}
        narrow_columns = self._cached([column.name for column in columns], group) if touches else {}
        absent = [column for column in columns if column.name not in narrow_columns and touches.get(column.name, _FIRST).is_suitable]
        share = decoded([column.name for column in absent]) if absent else 0.0
        if not share:
            return narrow_columns
        if touches is self._empty:
            touches = {}
            parts.put(_touches_of(group), touches, _TOUCHES_BYTES + _TOUCH_BYTES * len(self.data.schema))
        for column in absent:
            touch = touches.setdefault(column.name, _Touch(is_suitable=self._is_suitable(column.name, group)))
            narrow = self._load(column, group, touch) if touch.decoded >= 1 and touch.is_suitable else None
            if narrow is not None:
                narrow_columns[column.name] = narrow
            touch.decoded, touch.time = touch.decoded + share, parts.now()
        return narrow_columns

    def _touches(self, group: RowGroup) -> _Touches:
        parts = self.data.parts
        touches: _Touches | None = None if parts is None else parts.get(_touches_of(group))
        return self._empty if touches is None else touches

    def _cached(self, columns: Sequence[str], group: RowGroup) -> dict[str, NarrowColumn]:
        parts = self.data.parts
        assert parts is not None
        return {name: narrow for name in columns if (narrow := parts.get(_part_of(name, group))) is not None}

    def _is_suitable(self, name: str, group: RowGroup) -> bool:
        """Return whether the type becomes narrow, and the column fits in memory at once."""
        kind = self.data.schema.field(name).type
        if not (self.data.has_small_dictionary(name) if pa.types.is_string(kind) else is_narrowable(kind)):
            return False
        return self.data.decoded_size([name], group) <= thresholds.masked_bytes

    def _load(self, column: DataField, group: RowGroup, touch: _Touch) -> NarrowColumn | None:
        """Decode and cache a column. None: there is no room, or the column is unsuitable."""
        parts, part = self.data.parts, _part_of(column.name, group)
        assert parts is not None
        stored_bytes = self.data.decoded_size([column.name], group)
        weight = bound_bytes(
            self.data.schema.field(column.name).type, group.num_rows, self.data.bounds(group, column.name, column.type), stored_bytes
        )
        if not parts.has_room(weight, touch.time):
            return None
        with parts.making(part):
            narrow: NarrowColumn | None = parts.get(part)  # another thread may have decoded it meanwhile
            if narrow is None:
                narrow = self._decode(column.name, group)
                touch.is_suitable = narrow is not None
                if narrow is not None and not parts.admit(part, narrow, narrow.nbytes, touch.time):
                    touch.decoded = 0.0  # another one took the room
        return narrow

    def _decode(self, name: str, group: RowGroup) -> NarrowColumn | None:
        nanos = [name] if name in self.nanos else []
        try:
            arrays = [batch.column(0) for batch in self.data.batches([name], [group], nanos=nanos, dictionaries=[name])]
        except (CorruptFile, UnsupportedTable, OutOfMemory):
            return None  # the damage may be in other rows: the usual read reports it if it matters
        return NarrowColumn.of(arrays) if all(map(_is_sound, arrays)) else None


_FIRST = _Touch()


def _is_sound(array: Any) -> bool:
    return not pa.types.is_dictionary(array.type) or codes_fit(array)


def _touches_of(group: RowGroup) -> tuple[str, int]:
    return "touches", group.index


def _part_of(name: str, group: RowGroup) -> tuple[str, int, str]:
    return "narrow column", group.index, name
