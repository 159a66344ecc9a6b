"""ORC decoder for data files.

Only this module uses pyarrow's ORC reader. It decodes one stripe at a time. ORC has no checksums: damage that neither the tail nor the decoder
detects is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from lsm.formats.whole_groups import WholeGroupFile
from lsm.parquet.expected_footer import ExpectedFooter, FooterMismatch
from lsm.parquet.footer import RowGroup
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.stats.column_stats import ColumnBounds
from manifest.types.data_type import DataType
from paimon_base.lazy import cached_property
from pyspark_paimon.plugins.file_formats.orc.chars import without_padding
from pyspark_paimon.plugins.file_formats.orc.protobuf import integer
from pyspark_paimon.plugins.file_formats.orc.statistics import exceeds_nanos, stripe_bounds
from pyspark_paimon.plugins.file_formats.orc.tail import OrcKind, OrcTail, OrcType, with_parts
from sparkexpr.values.column_type import BINARIES, STRINGS, Kind

_SECOND = 1_000_000_000
_EXACT = 999_999
"""Nanoseconds up to which writers do not add a second."""
_FARTHEST = 16 * 3600 * _SECOND


def with_java_seconds(array: Any, zone: Callable[[], str]) -> Any:
    """Correct timestamps to the values that Java reads.

    ``zone`` returns the writer's time zone. It is called only if the zone matters.
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array if kind.tz is not None or kind.unit != "ns" else _timestamps(array, zone)
    if not pa.types.is_nested(kind) or not _has_times(kind):
        return array
    return with_parts(array, lambda part, _: with_java_seconds(part, zone))


def _has_times(kind: Any) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_times(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _timestamps(array: Any, zone: Callable[[], str]) -> Any:
    values = array.view(pa.int64()).fill_null(_FARTHEST).to_numpy(zero_copy_only=False)
    fractions = values % _SECOND
    near = (fractions > _EXACT) & (np.abs(values) < _FARTHEST)
    if not near.any():
        return array
    ahead = _seconds_ahead(zone()) * _SECOND
    if ahead >= 0:
        moved = values - _SECOND * (near & (values >= 0) & (values < ahead))
    else:
        moved = values + _SECOND * (near & (values >= ahead - _SECOND) & (values < -_SECOND))
    return pa.array(moved, mask=array.is_null().to_numpy(zero_copy_only=False)).view(array.type)


def _seconds_ahead(zone: str) -> int:
    """Return a zone's UTC offset at the start of 1970."""
    if not zone:
        return 0
    try:
        offset = ZoneInfo(zone).utcoffset(datetime(1970, 1, 1))  # noqa: DTZ001  # the zone's own clock
    except (ZoneInfoNotFoundError, ValueError):
        return 0
    return 0 if offset is None else int(offset.total_seconds())


_TIMES = frozenset({OrcKind.TIMESTAMP, OrcKind.TIMESTAMP_INSTANT})
_TEXTS = frozenset({OrcKind.STRING, OrcKind.VARCHAR, OrcKind.CHAR})
_BYTES_ON_DISK = 11
_KINDS: Mapping[Kind, frozenset[OrcKind]] = {
    Kind.BOOLEAN: frozenset({OrcKind.BOOLEAN}),
    Kind.TINYINT: frozenset({OrcKind.BYTE}),
    Kind.SMALLINT: frozenset({OrcKind.SHORT}),
    Kind.INT: frozenset({OrcKind.INT}),
    Kind.TIME: frozenset({OrcKind.INT}),
    Kind.BIGINT: frozenset({OrcKind.LONG}),
    Kind.FLOAT: frozenset({OrcKind.FLOAT}),
    Kind.DOUBLE: frozenset({OrcKind.DOUBLE}),
    Kind.DATE: frozenset({OrcKind.DATE}),
    Kind.DECIMAL: frozenset({OrcKind.DECIMAL}),
    Kind.TIMESTAMP: _TIMES,
    Kind.TIMESTAMP_LTZ: _TIMES,
    **dict.fromkeys(STRINGS, _TEXTS),
    **dict.fromkeys(BINARIES, frozenset({OrcKind.BINARY})),
    **dict.fromkeys((Kind.ARRAY, Kind.VECTOR), frozenset({OrcKind.LIST})),
    **dict.fromkeys((Kind.MAP, Kind.MULTISET), frozenset({OrcKind.MAP})),
    Kind.ROW: frozenset({OrcKind.STRUCT}),
}
"""ORC types of each type. Older versions store local-zone timestamps as plain ones, in UTC."""


class OrcDataFile(WholeGroupFile):
    """An open ORC data file (``lsm.formats.open_data_file``).

    Args:
        file_io: File system of the file.
        path: Path of the file.
        expected: Expected properties from the metadata. None: unknown.
        files: Cache of tails. None: read the tail from the file.

    Raises:
        CorruptFile: The file is missing, is not an ORC file, or does not match its metadata.
    """

    FORMAT = "ORC"

    def __init__(self, file_io: FileIO, path: str, expected: ExpectedFooter | None = None, files: FileCache | None = None) -> None:
        super().__init__(file_io, path)
        try:
            with self.decoding():
                self._tail = self._read_tail() if files is None else files.load(file_io, path, "tail", self._read_tail, _weight)
                if expected is not None and expected.key not in self._tail.checked_footers:
                    _check(expected, self._tail, int(self.source.size()))
                    self._tail.checked_footers.add(expected.key)
        except BaseException:
            self.close()
            raise

    def _read_tail(self) -> OrcTail:
        return OrcTail.read(self.read_range, int(self.source.size()))

    @property
    def schema(self) -> Any:
        """See ``OpenDataFile``."""
        with self.decoding():
            return self._reader.schema

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Stripes of the file."""
        return self._tail.row_groups

    def bounds(self, group: RowGroup, column: str, data_type: DataType) -> ColumnBounds | None:
        """See ``OpenDataFile``. Uses the stripe's statistics."""
        number = self._tail.columns.get(column)
        if number is None or data_type.is_nested or not self._tail.stripe_statistics:
            return None
        with suppress(ValueError, ArithmeticError):  # statistics are optional, and the decoder detects damage
            statistics = self._tail.stripe_statistics[group.index][number]
            return stripe_bounds(statistics, self._tail.types[number], group.num_rows, data_type)
        return None

    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """See ``OpenDataFile``.

        Estimated from the columns' share of the file's bytes. If the file has no sizes, from the share of columns.
        """
        sizes = [max(1, integer(statistics, _BYTES_ON_DISK)) for statistics in self._tail.statistics] or [1] * len(self._tail.types)
        column_bytes = sum(sizes[number] for name in columns for number in self._tail.below(self._tail.columns[name]))
        return sum(group.size for group in groups) * column_bytes // sum(sizes)

    def decode_group(self, columns: Sequence[str], group: RowGroup) -> Any:
        """See ``WholeGroupFile``."""
        for name in columns:
            self._check_times(name)
        by_name = all("." not in name for name in columns)  # the decoder reads a dot as a path into a row
        rows = self._reader.read_stripe(group.index, columns=list(columns) if by_name else None)
        arrays = [without_padding(rows.column(name), self._tail, self._tail.columns[name]) for name in columns]
        arrays = [with_java_seconds(array, lambda: self._tail.writer_zone(self.read_range, group.index)) for array in arrays]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _check_times(self, column: str) -> None:
        """Raise ``UnsupportedTable`` if timestamps overflow.

        The decoder uses nanoseconds, whatever the precision.
        """
        for number in self._tail.below(self._tail.columns[column]) if self._tail.statistics else ():
            if self._tail.types[number].kind in _TIMES and exceeds_nanos(self._tail.statistics[number]):
                raise UnsupportedTable(f"{self.path}: column '{column}' has a timestamp outside of the range of nanoseconds since 1970")

    @cached_property
    def _reader(self) -> Any:
        from pyarrow import orc  # noqa: PLC0415  # few tables need it

        return orc.ORCFile(self.source)


def _weight(tail: OrcTail) -> int:
    return tail.weight


def _check(expected: ExpectedFooter, tail: OrcTail, size: int) -> None:
    """Raise ``FooterMismatch`` if the file does not match its metadata."""
    expected.check_size(sum(stripe.num_rows for stripe in tail.row_groups), size)
    for column in expected.columns(tail.columns):
        if not _fits(tail, tail.types[tail.columns[column.name]], column.type):
            raise FooterMismatch(f"column '{column.name}' is stored as another type than {column.type}")


def _fits(tail: OrcTail, stored: OrcType, type_: DataType) -> bool:
    kinds = _KINDS.get(type_.kind)
    if kinds is None:
        return True  # reading the column reports that its type is not supported
    if stored.kind not in kinds:
        return False
    children = [tail.types[number] for number in stored.children]
    match type_.kind:
        case Kind.DECIMAL:
            return (stored.precision, stored.scale) == (type_.precision, type_.scale)
        case Kind.ARRAY | Kind.VECTOR | Kind.MULTISET:
            return _fits(tail, children[0], type_.part("element"))
        case Kind.MAP:
            return all(_fits(tail, child, type_.part(part)) for child, part in zip(children, ("key", "value"), strict=True))
        case Kind.ROW:
            there = dict(zip(stored.names, children, strict=True))
            return all(field.name in there and _fits(tail, there[field.name], field.type) for field in type_.fields)
        case _:
            return True
