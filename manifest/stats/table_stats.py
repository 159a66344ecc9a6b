"""Statistics of a whole table (Paimon's ``Statistics`` and ``ColStats``).

``ANALYZE`` writes them for one snapshot. Later snapshots inherit the file while the schema stays the same, as an estimate for
planners of other engines. They are exact only for the snapshot that added them, and for the one they were collected from.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from manifest.io.checksum import verify_checksum, with_checksum
from manifest.io.file_io import FileIO
from manifest.io.numbers import Count, FieldId, SnapshotId
from manifest.io.paths import FileNames, TablePaths
from manifest.snapshot.snapshot import CommitKind, Snapshot
from manifest.types.data_type import DataType
from paimon_base.errors import CorruptFile
from sparkexpr.values.column_type import FLOATS, STRINGS, TIMESTAMPS, Kind, Plain

EXACT = "pyspark-paimon.statistics"
"""Property of a snapshot with exact statistics. Those of other engines may be estimates."""

MAX_TEXT = 1024
"""Maximal characters of a minimum or maximum. A column with a longer one has neither."""

_WHOLE = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DATE, Kind.TIME})
_TIMESTAMP = re.compile(r"([+-]?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,9}))?")
_ALL_DIGITS = Context(prec=80)
_DIGITS = {"ms": 3, "us": 6, "ns": 9}


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")


class ColumnStatistics(_Wire):
    """Statistics of one column.

    ``distinct_count`` may be an estimate. Lengths are in characters for strings, in bytes for other types. ``parse_value`` reads ``min`` and
    ``max``, which binary and nested columns lack.
    """

    col_id: FieldId
    distinct_count: Count | None = None
    min: str | None = None
    max: str | None = None
    null_count: Count | None = None
    avg_len: Count | None = None
    max_len: Count | None = None


class Statistics(_Wire):
    """Statistics of a table at ``snapshot_id``.

    Has the merged rows, their share of the bytes of data files, and columns by name.

    >>> text = Statistics(snapshot_id=3, schema_id=0, merged_record_count=5, col_stats={"id": ColumnStatistics(col_id=0, min="1", max="5")}).to_json()
    >>> Statistics.from_json(text, "stat-1").col_stats["id"].max
    '5'
    """

    snapshot_id: SnapshotId
    schema_id: Count
    merged_record_count: Count | None = None
    merged_record_size: Count | None = None
    col_stats: dict[str, ColumnStatistics] = Field(default_factory=dict)

    @classmethod
    def from_json(cls, text: bytes | str, path: str) -> Statistics:
        """Parse the content of ``path``. Raises ``CorruptFile``."""
        verify_checksum(path, text)
        try:
            return cls.model_validate_json(text)
        except (ValidationError, ValueError, RecursionError) as error:
            raise CorruptFile(path, f"not a statistics file ({str(error).splitlines()[0]})") from error

    def to_json(self) -> str:
        """Return the file's content, without unknown values."""
        return self.model_dump_json(by_alias=True, exclude_none=True, indent=2)

    def describes(self, snapshot: Snapshot) -> bool:
        """Return whether ``snapshot`` added these exact statistics.

        It must directly follow the snapshot that they were collected from.
        """
        follows = snapshot.commit_kind is CommitKind.ANALYZE and snapshot.id == self.snapshot_id + 1
        return follows and (snapshot.properties or {}).get(EXACT) == "exact"


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """Reads and writes the statistics files of a table.

    ``names`` belongs to one committer.
    """

    file_io: FileIO
    paths: TablePaths
    names: FileNames

    def read(self, name: str) -> Statistics:
        """Return the statistics of a snapshot.

        Raises ``FileNotFoundError`` and ``CorruptFile``.
        """
        path = self.paths.statistics(name)
        return Statistics.from_json(self.file_io.read(path), path)

    def write(self, statistics: Statistics) -> str:
        """Write a new file and return its name."""
        name = self.names.next()
        path = self.paths.statistics(name)
        self.file_io.write(path, with_checksum(path, statistics.to_json()))
        return name


def value_text(value: Plain, data_type: DataType) -> str | None:
    """Return a minimum or maximum as text in Paimon's form.

    None for types without text, or if it is too long.

    >>> value_text(-120, DataType(Kind.DECIMAL, precision=10, scale=2)), value_text(float("nan"), DataType(Kind.DOUBLE))
    ('-1.20', 'NaN')
    >>> value_text(1_700_000_000_123_456, DataType(Kind.TIMESTAMP, precision=6))
    '2023-11-14 22:13:20.123456'
    """
    kind = data_type.kind
    text: str | None = None
    if isinstance(value, bool):
        text = str(value).lower()
    elif kind in _WHOLE or kind in STRINGS:
        text = str(value)
    elif isinstance(value, float):
        text = "NaN" if math.isnan(value) else _float_text(value, kind)
    elif isinstance(value, int) and kind is Kind.DECIMAL:
        text = f"{Decimal(value).scaleb(-data_type.scale, _ALL_DIGITS):f}"
    elif isinstance(value, int) and kind in TIMESTAMPS:
        text = _timestamp_text(value, data_type)
    return text if value is not None and text is not None and len(text) <= MAX_TEXT else None


def parse_value(text: str, data_type: DataType) -> Plain:
    """Parse the text of ``value_text`` or a Paimon serializer.

    Raises ``ValueError``.

    >>> parse_value("-1.20", DataType(Kind.DECIMAL, precision=10, scale=2)), parse_value("-Infinity", DataType(Kind.FLOAT))
    (-120, -inf)
    """
    kind = data_type.kind
    if kind in STRINGS:
        return text
    if kind in _WHOLE:
        return int(text)
    if kind in FLOATS:
        return float(np.float32(text)) if kind is Kind.FLOAT else float(text)
    if kind is Kind.BOOLEAN and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if kind is Kind.DECIMAL:
        scaled = _to_unscaled(text, data_type.scale)
        if scaled is not None:
            return scaled
    if kind in TIMESTAMPS and (match := _TIMESTAMP.fullmatch(text)):
        digits = _DIGITS[data_type.column_type.unit]
        seconds = int(np.datetime64(match[1].replace(" ", "T"), "s").astype(np.int64))
        fraction: str = match[2] or ""
        return int(seconds * 10**digits + int(fraction.ljust(9, "0")[:digits]))
    raise ValueError(f"{text!r} is not a value of type {data_type}")


def _to_unscaled(text: str, scale: int) -> int | None:
    try:
        scaled = Decimal(text).scaleb(scale, _ALL_DIGITS)
    except InvalidOperation:
        return None
    return int(scaled) if scaled.is_finite() and scaled == int(scaled) else None


def _float_text(value: float, kind: Kind) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(np.float32(value)) if kind is Kind.FLOAT else repr(value)


def _timestamp_text(value: int, data_type: DataType) -> str | None:
    unit = data_type.column_type.unit
    digits = _DIGITS[unit]
    seconds, fraction = divmod(value, 10**digits)
    moment = str(np.datetime64(seconds, "s"))
    if moment.startswith(("-", "+")) or moment.index("-") != 4:
        return None  # a year with more than four digits
    shown = f"{fraction:0{digits}d}".ljust(9, "0")[: data_type.precision]
    return moment.replace("T", " ") + (f".{shown}" if shown else "")
