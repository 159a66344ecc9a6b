"""Times of partitions and their options (Paimon's ``PartitionTimeExtractor``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from manifest.options.durations import parse_duration_millis
from manifest.schema.table_schema import TableSchema
from paimon_base.errors import UnsupportedOption, not_a_column
from sparkexpr.values.column_type import TIMESTAMPS, Kind

EXPIRATION_TIME = "partition.expiration-time"
FORMATTER, PATTERN = "partition.timestamp-formatter", "partition.timestamp-pattern"
STRATEGY, MAX_NUM = "partition.expiration-strategy", "partition.expiration-max-num"
_MAX_PARTITIONS = 100
_PARTS = {"y": "year", "u": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "fraction"}
_DEFAULT = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
)
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)
EXPIRE_TIME, TIME_FIELD = "record-level.expire-time", "record-level.time-field"
_TIMES = TIMESTAMPS | {Kind.INT, Kind.BIGINT}


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """Extracts a time from a partition's values.

    ``pattern`` combines columns (``$day $hour:00``). ``formatter`` is in Java's syntax.

    >>> PartitionTime(("day",), None, None).of(("2024-01-31",))
    datetime.datetime(2024, 1, 31, 0, 0)
    >>> PartitionTime(("day", "hour"), "$day $hour", "yyyyMMdd HH").of(("20240131", "07"))
    datetime.datetime(2024, 1, 31, 7, 0)
    """

    keys: tuple[str, ...]
    pattern: str | None
    formatter: str | None

    def of(self, values: Sequence[str | None]) -> datetime | None:
        """Return the time of a partition.

        None if the values have no time. Such a partition never expires.
        """
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


@lru_cache
def _regex(formatter: str) -> re.Pattern[str]:
    """Return a regular expression for a pattern of Java's ``DateTimeFormatter``.

    Raises ``UnsupportedOption`` for letters other than date and time.
    """
    pieces: list[str] = []
    for match in _TOKEN.finditer(formatter):
        token = match[0]
        if match[1] is None:
            pieces.append(re.escape(token[1:-1].replace("''", "'") or "'" if token.startswith("'") and len(token) > 1 else token))
            continue
        part = _PARTS.get(match[1])
        if part is None or f"<{part}>" in "".join(pieces):
            raise UnsupportedOption(FORMATTER, f"'{token}' of '{formatter}' is not supported; use y, M, d, H, m, s and S, each once")
        pieces.append(f"(?P<{part}>\\d{{{len(token)}}})" if len(token) > 1 or part == "fraction" else f"(?P<{part}>\\d{{1,2}})")
    return re.compile("".join(pieces))


@dataclass(frozen=True, slots=True)
class PartitionExpiration:
    """Options of partition expiry.

    ``retained_ms`` None: no automatic expiry.

    >>> PartitionExpiration.of({"partition.expiration-time": "7 d"}).retained_ms
    604800000
    """

    retained_ms: int | None
    by_update_time: bool
    pattern: str | None
    formatter: str | None
    max_partitions: int

    @classmethod
    def of(cls, raw: Mapping[str, str]) -> PartitionExpiration:
        """Parse the options. Raises ``UnsupportedOption``."""
        strategy = raw.get(STRATEGY, "values-time").strip().lower()
        if strategy not in {"values-time", "update-time"}:
            raise UnsupportedOption(STRATEGY, f"'{strategy}' is not supported; use one of: values-time, update-time")
        if FORMATTER in raw:
            _regex(raw[FORMATTER])
        limit = raw.get(MAX_NUM, str(_MAX_PARTITIONS)).strip()
        if not limit.isdecimal() or int(limit) < 1:
            raise UnsupportedOption(MAX_NUM, f"'{limit}' is not a number of partitions")
        retained = raw.get(EXPIRATION_TIME)
        millis = None if retained is None else parse_duration_millis(retained, EXPIRATION_TIME)
        return cls(millis, strategy == "update-time", raw.get(PATTERN), raw.get(FORMATTER), int(limit))


def check_record_expiry(schema: TableSchema) -> None:
    """Raise ``UnsupportedOption`` for invalid options of record expiry.

    >>> from manifest.schema.validation import build_schema
    >>> options = {"record-level.expire-time": "1 d", "record-level.time-field": "day"}
    >>> build_schema("id BIGINT, day DATE", primary_keys=["id"], options=options)
    Traceback (most recent call last):
    ...
    pyspark_paimon.UnsupportedOption: option 'record-level.time-field': 'day' is DATE; a time is INT or BIGINT (seconds, or in BIGINT \
milliseconds) or a TIMESTAMP
    """
    core = schema.core
    if core.record_level_expire_time is None and core.record_level_time_field is None:
        return
    schema.require_primary_key(EXPIRE_TIME, "needs a primary key: rows expire when a merge tree is compacted")
    problem = expiry_problem(schema)
    if problem is not None:
        raise UnsupportedOption(TIME_FIELD if core.record_level_time_field else EXPIRE_TIME, problem)


def expiry_problem(schema: TableSchema) -> str | None:
    """Return why rows cannot expire, None if they can."""
    name = schema.core.record_level_time_field
    if name is None:
        return f"needs '{TIME_FIELD}', the column with a row's time"
    if name not in schema.names:
        return not_a_column(name, schema.names)
    data_type = schema.field(name).type
    if data_type.kind not in _TIMES:
        return f"'{name}' is {data_type}; a time is INT or BIGINT (seconds, or in BIGINT milliseconds) or a TIMESTAMP"
    return None
