"""Which partitions are too old, by their values or by their last change (Paimon's ``PartitionExpire``, ``PartitionTimeExtractor``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from fileindex.column_type import ColumnType, Plain
from manifest.durations import parse_duration_millis
from manifest.entry_columns import EntryColumns
from manifest.errors import InvalidArgument, UnsupportedOption
from manifest.partition_path import partition_text
from manifest.snapshot import Snapshot
from manifest.store import FileStore

EXPIRATION_TIME = "partition.expiration-time"
_FORMATTER, _PATTERN, _STRATEGY, _MAX_NUM = (
    "partition.timestamp-formatter",
    "partition.timestamp-pattern",
    "partition.expiration-strategy",
    "partition.expiration-max-num",
)
_MAX_PARTITIONS = 100
_PARTS = {"y": "year", "u": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "fraction"}
_DEFAULT = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
)
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """The time that a partition's values tell; ``pattern`` composes it of columns (``$day $hour:00``), ``formatter`` is Java's.

    >>> PartitionTime(("day",), None, None).of(("2024-01-31",))
    datetime.datetime(2024, 1, 31, 0, 0)
    >>> PartitionTime(("day", "hour"), "$day $hour", "yyyyMMdd HH").of(("20240131", "07"))
    datetime.datetime(2024, 1, 31, 7, 0)
    """

    keys: tuple[str, ...]
    pattern: str | None
    formatter: str | None

    def of(self, values: Sequence[str | None]) -> datetime | None:
        """None for values that tell no time: such a partition never expires."""
        text = values[0]
        if self.pattern is not None:
            text = self.pattern
            for key, value in sorted(zip(self.keys, values, strict=True), key=lambda pair: -len(pair[0])):
                if f"${key}" in text:
                    if value is None:
                        return None
                    text = text.replace(f"${key}", value)
        match = None if text is None else (_DEFAULT if self.formatter is None else _regex(self.formatter)).fullmatch(text)
        return None if match is None else _time(match.groupdict())


def _time(parts: Mapping[str, str | None]) -> datetime | None:
    numbers = {name: int(text) for name, text in parts.items() if text is not None and name != "fraction"}
    micros = int(((parts.get("fraction") or "") + "000000")[:6])
    try:
        return datetime(**{"year": 1970, "month": 1, "day": 1, **numbers}, microsecond=micros)  # type: ignore[arg-type]  # noqa: DTZ001 -- values have no zone
    except ValueError:
        return None


def _regex(formatter: str) -> re.Pattern[str]:
    """The texts that a pattern of Java's ``DateTimeFormatter`` matches. Raises ``UnsupportedOption`` for letters beyond date and time."""
    pieces: list[str] = []
    for match in _TOKEN.finditer(formatter):
        token = match[0]
        if match[1] is None:
            pieces.append(re.escape(token[1:-1].replace("''", "'") or "'" if token.startswith("'") and len(token) > 1 else token))
            continue
        part = _PARTS.get(match[1])
        if part is None or f"<{part}>" in "".join(pieces):
            raise UnsupportedOption(_FORMATTER, f"'{token}' of '{formatter}' is not built; use y, M, d, H, m, s and S, each once")
        pieces.append(f"(?P<{part}>\\d{{{len(token)}}})" if len(token) > 1 or part == "fraction" else f"(?P<{part}>\\d{{1,2}})")
    return re.compile("".join(pieces))


def expired_partitions(store: FileStore, snapshot: Snapshot | None, older_than: datetime | None = None) -> list[bytes]:
    """Serialised partitions of ``snapshot`` from before ``older_than`` (local wall clock), the oldest first.

    Without it the option ``partition.expiration-time`` decides; at most ``partition.expiration-max-num`` are given.

    Raises ``InvalidArgument`` for a table without partitions or without a time, ``UnsupportedOption`` for an option.
    """
    if not store.schema.partition_keys:
        raise InvalidArgument(f"{store.root}: the table has no partitions that could expire")
    raw = store.options.raw
    if older_than is None:
        if EXPIRATION_TIME not in raw:
            raise InvalidArgument(f"{store.root}: no partition expires: set option '{EXPIRATION_TIME}', or say older_than")
        millis = parse_duration_millis(raw[EXPIRATION_TIME], EXPIRATION_TIME)
        older_than = datetime.now() - timedelta(milliseconds=millis)  # noqa: DTZ005 -- as values have no zone
    times = _update_times(store, snapshot) if strategy_of(raw) == "update-time" else _value_times(store, snapshot)
    old = sorted((time, partition) for partition, time in times.items() if time is not None and time < older_than)
    return [partition for _, partition in old[: int(raw.get(_MAX_NUM, _MAX_PARTITIONS))]]


def strategy_of(raw: Mapping[str, str]) -> str:
    """``values-time`` or ``update-time``. Raises ``UnsupportedOption`` for another."""
    strategy = raw.get(_STRATEGY, "values-time").strip().lower()
    if strategy not in {"values-time", "update-time"}:
        raise UnsupportedOption(_STRATEGY, f"'{strategy}' is not built; possible: values-time, update-time")
    return strategy


def _value_times(store: FileStore, snapshot: Snapshot | None) -> dict[bytes, datetime | None]:
    raw = store.options.raw
    extractor = PartitionTime(store.schema.partition_keys, raw.get(_PATTERN), raw.get(_FORMATTER))
    types = store.paths.partition_types
    _, partitions = store.live_entries(snapshot).partition_codes
    return {
        partition: extractor.of([_text(value, column) for value, column in zip(store.partition.decode(partition), types, strict=True)])
        for partition in partitions
    }


def _text(value: Plain, column: ColumnType) -> str | None:
    return None if value is None else partition_text(value, column, "", legacy=False)


def _update_times(store: FileStore, snapshot: Snapshot | None) -> dict[bytes, datetime | None]:
    entries = store.live_entries(snapshot)
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001 -- a wall clock's time is noted as if it were UTC
    newest = newest_files(entries)
    return {
        partition: epoch + timedelta(milliseconds=int(millis)) for partition, millis in zip(entries.partition_codes[1], newest, strict=True)
    }


def newest_files(entries: EntryColumns) -> npt.NDArray[np.int64]:
    """When each partition, by its code, got its newest file: milliseconds by the wall clock of whoever wrote it."""
    codes, partitions = entries.partition_codes
    newest = np.zeros(len(partitions), np.int64)
    if partitions:
        np.maximum.at(newest, codes, entries.numbers("_FILE._CREATION_TIME"))
    return newest


__all__ = ["EXPIRATION_TIME", "PartitionTime", "expired_partitions", "newest_files"]
